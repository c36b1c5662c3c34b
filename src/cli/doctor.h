/* Private to doctor: doctor.c asks, smoke_test.c runs cells, report.c shows. */
#pragma once

#include "cli/cli.h"
#include "sandbox/probe.h"

#include <jansson.h>

/* --- smoke_test.c: the whole program once, from the engine's start to an answer --- */

struct smoke_test {
    const char *python;    /* borrowed; NULL: the default */
    const char *guest_dir; /* borrowed */
    bool has_numpy;        /* its generator is then drawn from, too */
    bool ran;
    bool drew;         /* after that: random numbers, in two sessions */
    char drawn[128];   /* names of what they drew from */
    struct err failed; /* when it did not run, or not draw */
    char same[128];    /* those that gave both sessions the same numbers; empty: none */
    double interpreter_ms, create_ms, cell_ms;
    double answer_ms; /* from the start to the first answer */
};

/* Runs to its end. For a process of its own: it starts an engine. */
void smoke_test_run(struct smoke_test *t);

/* --- report: rows as lines of text, or as one JSON document --- */

struct report_row {
    const char *section, *name;
    bool floor;
    enum layer_state state;
    const char *detail;
    const char *cost, *remedy; /* told when it is not LAYER_OK; or NULL */
};

struct report {
    bool json, colour;
    const char *section; /* borrowed: of the last row */
    json_t *root;        /* owned; with --json */
    json_t *rows;        /* borrowed from root */
    struct err failed;   /* standard output did not take a line */
};

void report_begin(struct report *r, bool json);
void report_row(struct report *r, const struct report_row *row);
/* Facts that are numbers or names, for --json alone. Takes value. */
void report_fact(struct report *r, const char *key, json_t *value);
/* Ends with the verdict; the exit status is status, unless nobody took our lines. */
int report_end(struct report *r, const char *verdict, int status);

/* --- doctor_store.c: the database and the bucket of the settings --- */

/* Rows of the report. Names of those that are bad go into bad. */
void doctor_store(struct report *r, const struct settings *s, struct buf *bad);
