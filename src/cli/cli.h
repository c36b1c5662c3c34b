/*
 * cli: the command line. Arguments become settings, settings become one command.
 *
 * Touches: the terminal, files named on the command line, the engine. Never
 * touches: guests, the warden, any rule of the house.
 *
 * main() calls cli_main(). A new flag is one row in options.c, a new command one
 * row in cli.c; parsing, --help and the error sentences follow from the rows.
 */
#pragma once

#include "engine/engine.h"

enum exit_status {
    EXIT_OK = 0,
    EXIT_RAISED = 1, /* the code raised, the command failed, or the interpreter died */
    EXIT_USAGE = 2,
    EXIT_OURS = 3, /* we failed */
    EXIT_TIMEOUT = 124,
    EXIT_INTERRUPTED = 130,
    EXIT_MEMORY = 137,
    EXIT_PIPE = 141, /* whoever read our output is gone */
};

/* One thing to execute, as named on the command line. */
enum work_kind { WORK_SCRIPT, WORK_CODE, WORK_SHELL };

struct work {
    enum work_kind kind;
    char *arg; /* owned: file name, code or command line */
};

struct list {
    char **item; /* owned, and each item too */
    size_t count;
};

/* Everything that can be set. Rows of options.c point into it. */
struct settings {
    struct limits limits;
    char *python;  /* owned; NULL: python3 from PATH */
    char *preload; /* owned; NULL: nothing */
    char *out;     /* owned; NULL: artifacts are named, not kept */
    struct list files;
    struct {
        struct work *item; /* owned */
        size_t count;
    } work; /* in the order given */
    bool json;
    bool keep_going;
    bool verbose;
    bool help;
};

void settings_init(struct settings *s); /* every default */
void settings_done(struct settings *s);

/* Returns the exit status. */
int cli_main(int argc, char **argv);
int run_main(const struct settings *s);
int doctor_main(const struct settings *s);

/* The folder that holds retort_guest/ and _retort.abi3.so: beside the program in a build tree,
 * below
 * ../lib/retort where it is installed. */
int guest_dir_find(char *ret, size_t size, struct err *e) MUST_CHECK;
