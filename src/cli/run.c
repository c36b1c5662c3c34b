/*
 * retort run: one session, the executions of the command line in their order.
 *
 * Everything that can be wrong with the command line is found first (prepare);
 * then the engine starts and the rest is driven by its answers: on_pool, on_open,
 * then next() and on_outcome in turn until finish() stops the loop.
 */
#include "cli/remote.h"
#include "cli/serve_int.h"
#include "loop/loop.h"

#include <limits.h>
#include <signal.h>
#include <unistd.h>

struct run {
    const struct settings *s; /* borrowed */
    struct sources sources;
    bool typed; /* cells come from standard input, one after the other */
    struct repl repl;
    struct inputs inputs;
    struct folders folders;
    struct artifacts artifacts;
    struct show show;
    struct doc doc; /* with --json, in place of show */
    char guest_dir[PATH_MAX];

    struct loop *loop;       /* owned */
    struct engine *engine;   /* owned */
    struct pool *pool;       /* borrowed from engine */
    struct session *session; /* owned; NULL until open */
    struct exec *exec;       /* borrowed: the one running, or NULL */
    struct watch *writable;  /* owned; while a reader of ours does not keep up */
    int writable_fd;
    bool held;        /* the next execution waits until what was said has been read */
    size_t at;        /* the next source */
    bool interrupted; /* Ctrl-C came during this execution */
    bool finished;
    bool in_a_hurry;   /* Ctrl-C came again */
    struct err failed; /* what kept us from going on */
    int status;
};

/* --- ending --- */

/* The first failure is the one the exit status tells. */
static void set_status(struct run *r, int status)
{
    if (r->status == EXIT_OK)
        r->status = status;
}

static void finish(struct run *r)
{
    r->finished = true;
    loop_stop(r->loop);
}

static void fail(struct run *r, const struct err *e)
{
    r->failed = *e;
    set_status(r, status_of_err(e));
    term_line(&r->show.err, "retort: %s", e->text);
    finish(r);
}

/* Nobody reads what we print: a reason to stop, not to complain. */
static void check_stdout(struct run *r)
{
    struct term *out = &r->show.out;
    struct err e;

    if (!out->failed || r->finished)
        return;
    if (out->sys == EPIPE) {
        r->status = EXIT_PIPE;
        finish(r);
    } else {
        errno = out->sys;
        err_sys(&e, "cannot write to standard output");
        fail(r, &e);
    }
}

static void next(void *arg);

/* Keeps the watch where the output is stuck, if it is. */
static void on_writable(void *arg)
{
    struct run *r = arg;
    int fd;

    outbox_push(&r->show.box);
    check_stdout(r);
    fd = outbox_waits_for(&r->show.box);
    if (!r->writable || fd != r->writable_fd) {
        watch_free(r->writable);
        r->writable = fd < 0 ? NULL : watch_new_writable(r->loop, fd, on_writable, r);
        r->writable_fd = fd;
    }
    if (fd < 0 && r->held)
        next(r);
}

static int status_of_outcome(enum outcome_status s)
{
    static const int status[] = {
        [OUTCOME_OK] = EXIT_OK,
        [OUTCOME_RAISED] = EXIT_RAISED,
        [OUTCOME_TIMEOUT] = EXIT_TIMEOUT,
        [OUTCOME_MEMORY] = EXIT_MEMORY,
        [OUTCOME_INTERRUPTED] = EXIT_INTERRUPTED,
        [OUTCOME_DIED] = EXIT_RAISED,
        [OUTCOME_SESSION_LOST] = EXIT_OURS,
    };

    return status[s];
}

/* --- executions --- */

static void complain(struct run *r, const struct err *e)
{
    term_line(&r->show.err, "retort: %s", e->text);
    if (e->kind == ERR_HOST)
        set_status(r, EXIT_OURS);
}

static void on_event(void *arg, const struct event *ev)
{
    struct run *r = arg;
    char figure[NAME_SHOWN] = "";
    struct err e;

    if (r->finished || (ev->kind == EVENT_FILE && ev->file.unlisted))
        return;
    if (ev->kind == EVENT_FILE && artifacts_file(&r->artifacts, r->session, ev, &e) < 0)
        complain(r, &e);
    if ((ev->kind == EVENT_DISPLAY || ev->kind == EVENT_RESULT) && image_part(ev) &&
        artifacts_figure(&r->artifacts, r->session, image_part(ev), figure, &e) < 0)
        complain(r, &e);
    if (r->s->json)
        doc_event(&r->doc, ev);
    else
        show_event(&r->show, ev, figure);
    on_writable(r);
}

static void on_outcome(void *arg, const struct outcome *o)
{
    struct run *r = arg;

    r->exec = NULL;
    if (r->finished)
        return;
    if (r->s->json)
        doc_outcome(&r->doc, o);
    else
        show_outcome(&r->show, o);
    set_status(r, status_of_outcome(o->status));
    on_writable(r);
    if (r->finished)
        return;
    if (o->status == OUTCOME_SESSION_LOST ||
        (o->status != OUTCOME_OK && !r->s->keep_going && !r->typed))
        finish(r);
    else
        loop_later(r->loop, next, r);
}

/* Waits for a person, and for nothing else: no code runs. The status is that of the last cell. */
static bool read_cell(struct run *r)
{
    outbox_wait(&r->show.box);
    sources_done(&r->sources);
    r->sources = (struct sources){.item = mem_zalloc(sizeof(*r->sources.item)), .count = 1};
    r->at = 0;
    if (!repl_read(&r->repl, r->sources.item))
        return false;
    r->status = EXIT_OK;
    return true;
}

static void next(void *arg)
{
    static const struct exec_callbacks callbacks = {on_event, on_outcome};
    struct run *r = arg;
    struct err e;

    if (r->finished)
        return;
    if (r->at == r->sources.count && !(r->typed && read_cell(r))) {
        finish(r);
        return;
    }
    /* One execution's output is bounded; that of many is so only if each waits for its reader. */
    r->held = outbox_waits_for(&r->show.box) >= 0;
    if (r->held)
        return;
    const struct source *src = &r->sources.item[r->at++];
    const struct exec_config config = {
        .kind = src->kind, .code = {src->code, src->n}
    };
    if (r->s->json)
        doc_begin(&r->doc, src);
    r->interrupted = false;
    r->exec = exec_start(r->session, &config, &callbacks, r, &e);
    if (!r->exec)
        fail(r, &e);
}

/* --- starting --- */

static int put_inputs(struct run *r, struct err *e)
{
    for (size_t i = 0; i < r->inputs.count; i++) {
        const struct input *in = &r->inputs.item[i];
        char shown[NAME_SHOWN];
        if (workspace_put(r->session, str_of(in->name), in->fd, e) < 0)
            return err_wrap(e, "cannot put %s into the workspace",
                            name_show(shown, str_of(in->name)));
    }
    return 0;
}

/* No sandbox came up: a layer that is missing says more than what the kernel answered, such as "No
 * space left on device" where user namespaces are turned off. */
static void fail_to_seal(struct run *r, const struct err *failed)
{
    struct err e;

    fail(r, failed->kind == ERR_HOST && floor_check(r->s, &e) < 0 ? &e : failed);
}

static void on_open(void *arg, struct session *session, const struct err *failed)
{
    struct run *r = arg;
    struct err e;

    r->session = session;
    if (r->finished)
        return;
    if (failed)
        fail_to_seal(r, failed);
    else if (put_inputs(r, &e) < 0)
        fail(r, &e);
    else
        next(r);
}

static void on_pool(void *arg, const struct err *failed)
{
    struct run *r = arg;

    if (r->finished)
        return;
    if (!failed)
        session_open(r->pool, on_open, r);
    else
        fail_to_seal(r, failed);
}

/* Once asks the code to stop; twice, or with no code running, ends us. */
static void on_interrupt(void *arg, int signum)
{
    struct run *r = arg;

    (void)signum;
    if (r->exec && !r->interrupted) {
        r->interrupted = true;
        exec_interrupt(r->exec);
        return;
    }
    r->status = EXIT_INTERRUPTED;
    r->in_a_hurry = true;
    finish(r);
}

static int check_python(const char *python, struct err *e)
{
    char shown[NAME_SHOWN];

    /* A bare name is looked for in PATH, by the engine. */
    if (python && strchr(python, '/') && access(python, X_OK) < 0)
        return err_sys(e, "--python: cannot run %s", name_show(shown, str_of(python)));
    return 0;
}

/* --out comes last: it is the one check that leaves something behind. */
static int prepare(struct run *r, struct err *e)
{
    if ((!r->typed && sources_load(&r->sources, r->s, e) < 0) ||
        inputs_open(&r->inputs, r->s, e) < 0 || folders_open(&r->folders, r->s, e) < 0 ||
        check_python(r->s->pool.python, e) < 0 || artifacts_open(&r->artifacts, r->s, e) < 0) {
        e->kind = ERR_CALLER;
        return -1;
    }
    return guest_dir_find(r->guest_dir, sizeof(r->guest_dir), e);
}

static int start(struct run *r, struct err *e)
{
    const struct engine_environment environment = {r->s->pool.python, r->s->pool.preload};
    const struct engine_config engine = {
        .guest_dir = r->guest_dir,
        .folders = r->folders.item,
        .folder_count = r->folders.count,
        .environments = &environment,
        .environment_count = 1,
        .one_user = r->s->sandbox_users == USERS_ONE,
    };
    const struct pool_config pool = {
        .name = "run",
        .environment = environment,
        .limits = r->s->pool.limits,
    };

    r->loop = loop_new(e);
    if (!r->loop)
        return -1;
    r->engine = engine_new(r->loop, &engine, e);
    if (!r->engine)
        return -1;
    /* Only now: the warden, and through it every command in a sandbox, would inherit both. */
    signal(SIGPIPE, SIG_IGN);
    loop_on_signal(r->loop, SIGINT, on_interrupt, r);
    r->pool = pool_start(r->engine, &pool, on_pool, r);
    return 0;
}

/* --- the end --- */

static void report_json(struct run *r)
{
    static const struct outcome ended = {
        .status = OUTCOME_INTERRUPTED,
        .line = "interrupted twice, so the session was ended",
    };
    AUTO_FREE char *text = NULL;

    if (r->exec)
        doc_outcome(&r->doc, &ended);
    text = doc_print(&r->doc, r->status, r->failed.kind ? &r->failed : NULL);
    if (text) {
        term_put(&r->show.out, str_of(text));
        term_put(&r->show.out, STR("\n"));
    } else {
        term_line(&r->show.err, "retort: the document does not fit into memory");
        set_status(r, EXIT_OURS);
    }
}

static void report_text(struct run *r)
{
    AUTO(buf_done) struct buf line = BUF(8 * KiB);
    struct err e;

    if (r->status != EXIT_PIPE && artifacts_summary(&r->artifacts, &line, &e) == 0 && line.n > 0)
        term_line(&r->show.err, "%.*s", (int)line.n, line.p);
}

static void stop(void *arg)
{
    struct run *r = arg;

    loop_stop(r->loop);
}

static void close_engine(struct run *r)
{
    watch_free(r->writable);
    if (r->session) {
        session_close(r->session);
        /* It lets go of the last things from the loop, and ours comes after them. */
        loop_later(r->loop, stop, r);
        loop_run(r->loop);
    }
    if (r->engine)
        engine_free(r->engine);
    loop_free(r->loop);
}

/* The sandbox is gone by now, so a reader may take its time; Ctrl-C ends that too. */
static void hand_over(struct run *r)
{
    if (r->s->json || !r->in_a_hurry)
        outbox_wait(&r->show.box);
    if (!r->show.out.failed)
        return;
    if (r->failed.kind) /* told already */
        set_status(r, r->show.out.sys == EPIPE ? EXIT_PIPE : EXIT_OURS);
    else
        set_status(r, stdout_failed(&(struct err){.sys = r->show.out.sys}));
}

static void done(struct run *r)
{
    show_done(&r->show);
    doc_done(&r->doc);
    artifacts_done(&r->artifacts);
    inputs_done(&r->inputs);
    folders_done(&r->folders);
    sources_done(&r->sources);
    repl_done(&r->repl);
}

int run_main(const struct settings *s)
{
    return s->session ? remote_main(s) : run_cells(s, false);
}

int run_cells(const struct settings *s, bool typed)
{
    struct run r = {.s = s, .typed = typed, .artifacts.dir = -1};
    struct err e;

    repl_init(&r.repl);
    show_init(&r.show);
    doc_init(&r.doc);
    if (prepare(&r, &e) < 0 || start(&r, &e) < 0) {
        term_line(&r.show.err, "retort: %s", e.text);
        r.status = status_of_err(&e);
    } else {
        loop_run(r.loop);
        /* Whoever presses Ctrl-C from here on does not want to wait for the cleaning up; the warden
         * does that also when we are gone. */
        signal(SIGINT, SIG_DFL);
        if (s->json)
            report_json(&r);
        else
            report_text(&r);
    }
    close_engine(&r);
    hand_over(&r);
    done(&r);
    return r.status;
}
