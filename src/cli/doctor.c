/*
 * retort doctor: which layers of the sandbox this machine has, which Python there is, and
 * whether a cell runs. Nothing is concluded from a setting: the rows of layers[] are tried, the
 * interpreter is asked, and the last rows are the program itself, used once: a cell, and the
 * random numbers of two sessions.
 */
#include "cli/doctor.h"

#include "cli/cli_int.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#define SMOKE_TEST_MS 60000 /* a first start reads a few hundred files of Python from the disk */
#define ANSWER_MAX    (8 * KiB)
#define LIST_MAX      KiB

/* What the rows come to. */
struct findings {
    struct report *report; /* borrowed */
    struct buf missing;    /* names of layers of the floor */
    struct buf weaker;     /* names of other layers */
    struct buf store;      /* of what is bad about the database or the bucket */
    char remedy[240];      /* for the first that is missing */
    bool has_numpy;
    bool runs; /* a cell ran, and two sessions were apart */
    char why_not[640];
};

/* --- layers --- */

static void add_name(struct buf *list, const char *name)
{
    buf_printf(list, "%s%s", list->n ? ", " : "", name); /* every layer fits */
}

static void try_layers(struct findings *f)
{
    for (size_t i = 0; i < layers_count; i++) {
        const struct layer *l = &layers[i];
        struct layer_found found;

        layer_try(l, &found);
        report_row(f->report,
                   &(struct report_row){"Layers", l->name, l->floor, found.state, found.detail,
                                        found.blocked ? "" : l->cost, found.remedy});
        if (found.blocked)
            continue; /* the row that it waits for is told of */
        if (l->floor && found.state == LAYER_MISSING) {
            if (f->missing.n == 0)
                snprintf(f->remedy, sizeof(f->remedy), "%s", found.remedy);
            add_name(&f->missing, l->name);
        } else if (found.state != LAYER_OK) {
            add_name(&f->weaker, l->name);
        }
    }
}

/* --- Python --- */

struct package {
    const char *name, *module;
    const char *pip, *apt; /* by which it is installed; Debian puts python3- in front */
    bool needed;           /* no cell runs without it */
};

static const struct package packages[] = {
    {"IPython",           "IPython",           "ipython",           "ipython",           true },
    {"matplotlib_inline", "matplotlib_inline", "matplotlib-inline", "matplotlib-inline", true },
    {"numpy",             "numpy",             "numpy",             "numpy",             false},
    {"pandas",            "pandas",            "pandas",            "pandas",            false},
    {"matplotlib",        "matplotlib",        "matplotlib",        "matplotlib",        false},
    {"seaborn",           "seaborn",           "seaborn",           "seaborn",           false},
    {"scikit-learn",      "sklearn",           "scikit-learn",      "sklearn",           false},
    {"scipy",             "scipy",             "scipy",             "scipy",             false},
    {"sympy",             "sympy",             "sympy",             "sympy",             false},
    {"openpyxl",          "openpyxl",          "openpyxl",          "openpyxl",          false},
    {"Pillow",            "PIL",               "pillow",            "pil",               false},
};

#define ABSENT  "-"
#define UNKNOWN "?"

/* One line each: executable, version, then a version for every module. Looked up, not imported: an
 * import of them all takes seconds. */
static const char question[] = "import os, sys\n"
                               "from importlib import util\n"
                               "try:\n"
                               "    from importlib.metadata import version\n"
                               "except ImportError:\n"
                               "    version = None\n"
                               "def find(module, name):\n"
                               "    try:\n"
                               "        if util.find_spec(module) is None:\n"
                               "            return '" ABSENT "'\n"
                               "    except Exception:\n"
                               "        return '" ABSENT "'\n"
                               "    try:\n"
                               "        return version(name) or '" UNKNOWN "'\n"
                               "    except Exception:\n"
                               "        return '" UNKNOWN "'\n"
                               "print(os.path.abspath(sys.executable))\n"
                               "print('%d.%d.%d' % sys.version_info[:3])\n";

static int ask_python(const char *python, char answer[ANSWER_MAX], struct err *e)
{
    AUTO(buf_done) struct buf source = BUF(ANSWER_MAX);

    buf_put(&source, STR(question));
    for (size_t i = 0; i < COUNT(packages); i++)
        buf_printf(&source, "print(find('%s', '%s'))\n", packages[i].module, packages[i].pip);
    buf_put(&source, (struct str){"", 1});
    return buf_check(&source, e) < 0 ? -1
                                     : python_ask(python, source.p, NULL, answer, ANSWER_MAX, e);
}

/* version NULL: the interpreter did not say. */
static void report_package(struct findings *f, const struct package *p, const char *version)
{
    bool found = version && strcmp(version, ABSENT) != 0;
    char detail[256];

    if (found)
        snprintf(detail, sizeof(detail), "%s",
                 strcmp(version, UNKNOWN) == 0 ? "found; its version is not recorded" : version);
    else
        snprintf(detail, sizeof(detail),
                 "not found: pip install %s (Debian: apt install python3-%s)", p->pip, p->apt);
    report_row(f->report, &(struct report_row){.section = "Python",
                                               .name = p->name,
                                               .state = found       ? LAYER_OK
                                                        : p->needed ? LAYER_MISSING
                                                                    : LAYER_WEAKER,
                                               .detail = detail,
                                               .cost = p->needed ? "No cell runs." : NULL});
}

static int parse_python(struct findings *f, char *answer, const char *python, struct err *e)
{
    char *save = NULL, *exe = strtok_r(answer, "\n", &save);
    char *version = exe ? strtok_r(NULL, "\n", &save) : NULL;
    json_t *found = json_object();
    char detail[700];

    if (!version || exe[0] != '/') {
        json_decref(found);
        return err_set(e, ERR_CALLER, "'%s' is not a Python 3 interpreter that runs here",
                       python ? python : "python3");
    }
    snprintf(detail, sizeof(detail), "%.500s, version %.60s", exe, version);
    report_row(f->report,
               &(struct report_row){.section = "Python", .name = "python", .detail = detail});
    report_fact(
        f->report, "python",
        json_pack("{s:s%, s:s}", "executable", exe, str_utf8_len(str_of(exe)), "version", version));
    for (size_t i = 0; i < COUNT(packages); i++) {
        char *line = strtok_r(NULL, "\n", &save);
        report_package(f, &packages[i], line);
        if (strcmp(packages[i].module, "numpy") == 0)
            f->has_numpy = line && strcmp(line, ABSENT) != 0;
        json_object_set_new(found, packages[i].name,
                            line && strcmp(line, ABSENT) != 0 ? json_string(line) : json_null());
    }
    report_fact(f->report, "packages", found);
    return 0;
}

static void try_python(struct findings *f, const char *python)
{
    char answer[ANSWER_MAX];
    struct err e;

    if (ask_python(python, answer, &e) == 0 && parse_python(f, answer, python, &e) == 0)
        return;
    report_fact(f->report, "python", json_null());
    report_row(f->report,
               &(struct report_row){.section = "Python",
                                    .name = "python",
                                    .state = LAYER_MISSING,
                                    .detail = e.text,
                                    .cost = "No cell runs.",
                                    .remedy = "Install python3, or name one with --python."});
}

/* --- a cell --- */

static void run_smoke_test(void *arg)
{
    smoke_test_run(arg);
}

/* Not below the floor: an engine that was not made for such a kernel might leave a process that
 * it cannot end. */
static int try_smoke_test(const struct findings *f, struct smoke_test *t, struct err *e)
{
    char guest_dir[PATH_MAX];

    if (f->missing.n > 0)
        return err_set(e, ERR_HOST, "not tried: the floor does not hold");
    if (guest_dir_find(guest_dir, sizeof(guest_dir), e) < 0)
        return -1;
    t->guest_dir = guest_dir;
    if (probe_apart(run_smoke_test, t, sizeof(*t), SMOKE_TEST_MS, e) < 0)
        return -1;
    *e = t->failed;
    return t->ran && t->drew ? 0 : -1;
}

static void report_cell(struct findings *f, const struct smoke_test *t, const struct err *e)
{
    struct report_row row = {.section = "Trial", .name = "one cell", .floor = true};
    char detail[256];

    if (t->ran) {
        snprintf(
            detail, sizeof(detail),
            "print(6*7) gave 42, %.0f ms after the start: interpreter %.0f ms, sandbox %.1f ms, "
            "cell %.1f ms",
            t->answer_ms, t->interpreter_ms, t->create_ms, t->cell_ms);
        row.detail = detail;
        report_fact(f->report, "trial",
                    json_pack("{s:f, s:f, s:f, s:f}", "answer_ms", t->answer_ms, "interpreter_ms",
                              t->interpreter_ms, "create_ms", t->create_ms, "cell_ms", t->cell_ms));
    } else {
        row.state = LAYER_MISSING;
        row.detail = e->text;
        row.cost = "Nothing runs here.";
        snprintf(f->why_not, sizeof(f->why_not), "no cell runs: %s", e->text);
        report_fact(f->report, "trial", json_null());
    }
    report_row(f->report, &row);
}

/* Sessions are forks of one interpreter. What its generators hold must not be what they draw. */
static void report_randomness(struct findings *f, const struct smoke_test *t, const struct err *e)
{
    struct report_row row = {.section = "Trial", .name = "randomness", .floor = true};
    char detail[600];

    if (t->ran && t->drew && !t->same[0]) {
        snprintf(detail, sizeof(detail), "two sessions drew different numbers from %s", t->drawn);
    } else {
        row.state = LAYER_MISSING;
        row.cost = "One session may guess the keys and tokens of another.";
        if (!t->ran)
            snprintf(detail, sizeof(detail), "not tried: no cell runs");
        else if (!t->drew)
            snprintf(detail, sizeof(detail), "not found out: %s", e->text);
        else
            snprintf(detail, sizeof(detail), "two sessions drew the same numbers from %s", t->same);
        if (t->ran)
            snprintf(f->why_not, sizeof(f->why_not), "sessions are not known to differ: %s",
                     detail);
    }
    row.detail = detail;
    report_row(f->report, &row);
}

static void try_cells(struct findings *f, const char *python)
{
    struct smoke_test t = {.python = python, .has_numpy = f->has_numpy};
    struct err e = {0};

    f->runs = try_smoke_test(f, &t, &e) == 0 && !t.same[0];
    report_cell(f, &t, &e);
    report_randomness(f, &t, &e);
}

/* --- the verdict --- */

/* A cell that does not run is below the floor too: walls that were never put up hold nobody. And so
 * are sessions that draw the same numbers: each knows the other's secrets. */
static int conclude(struct findings *f)
{
    char verdict[2 * KiB];
    bool holds = f->missing.n == 0;

    if (!holds)
        snprintf(verdict, sizeof(verdict),
                 "below the isolation floor (namespaces and seccomp), so retort runs no code here; "
                 "missing: %.*s.%s%s",
                 (int)f->missing.n, f->missing.p, f->remedy[0] ? " Help: " : "", f->remedy);
    else if (!f->runs)
        snprintf(verdict, sizeof(verdict), "the layers of the isolation floor are there, but %s",
                 f->why_not);
    else if (f->store.n > 0)
        snprintf(verdict, sizeof(verdict),
                 "the isolation floor holds, but no server can keep its data there: %.*s.",
                 (int)f->store.n, f->store.p);
    else if (f->weaker.n > 0)
        snprintf(verdict, sizeof(verdict),
                 "fit to run strangers' code: the isolation floor (namespaces and seccomp) holds; "
                 "weaker than it could be in: %.*s.",
                 (int)f->weaker.n, f->weaker.p);
    else
        snprintf(verdict, sizeof(verdict), "fit to run strangers' code: every layer holds.");
    report_fact(f->report, "floor", json_boolean(holds));
    return report_end(f->report, verdict,
                      holds && f->runs && f->store.n == 0 ? EXIT_OK : EXIT_RAISED);
}

int doctor_main(const struct settings *s)
{
    struct report report;
    struct findings f = {.report = &report};
    int status;

    buf_init(&f.missing, LIST_MAX);
    buf_init(&f.weaker, LIST_MAX);
    buf_init(&f.store, LIST_MAX);
    report_begin(&report, s->json);
    try_layers(&f);
    try_python(&f, s->pool.python);
    try_cells(&f, s->pool.python);
    doctor_store(&report, s, &f.store);
    status = conclude(&f);
    buf_done(&f.missing);
    buf_done(&f.weaker);
    buf_done(&f.store);
    return status;
}
