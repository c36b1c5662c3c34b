/*
 * retort mcp: a server for one client, on standard input and output.
 *
 * Theory of operation: at first there is the protocol and nothing else, no Python, no
 * file, no other process. The service is built (steps) when a client has introduced
 * itself, so that the first call finds a warm interpreter; or with the first call that
 * needs the service. Until then the process has one thread, so the warden can be forked
 * and root given up before the store starts a thread. When a step fails, the client gets
 * the error as the result of its call, and the next call tries again.
 *
 * The client's two descriptors get other numbers before anything can be printed. Code
 * that prints to number 1 by mistake then writes to the log, not into the protocol.
 *
 * The server ends when its input ends, at a signal, or when the process that started it
 * ends. Everything is then closed in reverse order. If the server is killed, the warden
 * and the janitor notice, and clean up.
 */
#include "agent/agent.h"
#include "cli/janitor.h"
#include "cli/serve_int.h"
#include "doors/qwen/qwen.h"
#include "doors/ubik/ubik.h"
#include "loop/loop.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FDS_FROM 10 /* the client's, away from those that everybody knows */

struct local {
    const struct settings *s; /* borrowed */
    int in, out;              /* owned: the client's */
    int parent;               /* owned: a pidfd, or -1 */
    int status;
    struct loop *loop; /* owned, as are the rest */
    struct mcp *mcp;
    struct doors doors; /* whose tools are shown; or nothing */
    struct model_set model_set;
    struct models *models;
    struct folders folders;
    char *told_folders, *told_roots; /* sentences for the model; or NULL */

    size_t steps_done;
    char guest_dir[PATH_MAX];
    struct server_user user;
    int lock;               /* of --state; -1: there is none */
    struct janitor janitor; /* in place of it */
    const char *state;      /* borrowed from settings or janitor */
    struct pool_set pools;
    struct engine *engine;
    struct store *store;
    struct service *service;
    struct agent *agent;
};

/* --- the end --- */

static void on_end(void *arg)
{
    struct local *lo = arg;

    loop_stop(lo->loop);
}

static void on_signal(void *arg, int signum)
{
    (void)signum;
    on_end(arg);
}

/* Nothing can be run any more; the client may start us again. */
static void on_warden_lost(void *arg)
{
    struct local *lo = arg;

    lo->status = EXIT_OURS;
    loop_stop(lo->loop);
}

/* --- the service, when it is needed --- */

static int check_floor(struct local *lo, struct err *e)
{
    return floor_check(lo->s, e);
}

static int find_guest(struct local *lo, struct err *e)
{
    return guest_dir_find(lo->guest_dir, sizeof(lo->guest_dir), e);
}

static int find_user(struct local *lo, struct err *e)
{
    return server_user_find(lo->s->serve.user, &lo->user, e);
}

static int make_state(struct local *lo, struct err *e)
{
    if (!lo->s->state) {
        lo->state = lo->janitor.path;
        return janitor_start(&lo->janitor, "mcp", &lo->user, e);
    }
    lo->state = lo->s->state;
    if (state_prepare(lo->state, &lo->user, e) < 0)
        return -1;
    lo->lock = state_lock(lo->state, e);
    return lo->lock < 0 ? -1 : 0;
}

static int start_engine(struct local *lo, struct err *e)
{
    signal(SIGPIPE, SIG_DFL); /* the warden's children would inherit it */
    lo->engine = engine_of(lo->loop, &lo->pools, lo->guest_dir, &lo->folders, &lo->user, e);
    signal(SIGPIPE, SIG_IGN);
    if (!lo->engine)
        return -1;
    engine_on_lost(lo->engine, on_warden_lost, lo);
    return 0;
}

static int leave_root(struct local *lo, struct err *e)
{
    void *qwen = lo->user.changes ? lo->doors.at[DOOR_QWEN].room : NULL;

    if (qwen)
        qwen_images_give(qwen, lo->user.uid, lo->user.gid);
    if (server_user_enter(&lo->user, e) < 0)
        return -1;
    if (qwen)
        qwen_images_settle(qwen);
    return 0;
}

static int reach_state(struct local *lo, struct err *e)
{
    return state_reach(lo->state, e);
}

static int complete_pools(struct local *lo, struct err *e)
{
    return pool_set_open(&lo->pools, lo->s, &lo->user, e);
}

static int open_store(struct local *lo, struct err *e)
{
    const struct store_config config = {.dir = lo->state,
                                        .durability = (enum durability)lo->s->serve.durability};

    lo->store = store_open(lo->loop, &config, e);
    return lo->store ? 0 : -1;
}

static int start_service(struct local *lo, struct err *e)
{
    lo->service = service_of(&lo->pools, lo->loop, lo->engine, lo->store, e);
    return lo->service ? 0 : -1;
}

static int start_agent(struct local *lo, struct err *e)
{
    (void)e;
    lo->agent = agent_of(lo->s, lo->loop, lo->service, lo->store, lo->models);
    agent_resume(lo->agent, NULL);
    return 0;
}

/* The order is the argument: what forks and what needs root comes before the first thread. */
static int (*const steps[])(struct local *lo, struct err *e) = {
    check_floor, find_guest,  find_user,  make_state,    complete_pools, start_engine,
    leave_root,  reach_state, open_store, start_service, start_agent,
};

/* Builds the service with the first call that needs it; this blocks for some tenths of a second. */
static struct service *the_service(void *arg, struct err *e)
{
    struct local *lo = arg;

    for (; lo->steps_done < COUNT(steps); lo->steps_done++)
        if (steps[lo->steps_done](lo, e) < 0)
            return NULL;
    return lo->service;
}

static struct agent *the_agent(void *arg, struct err *e)
{
    struct local *lo = arg;

    return the_service(lo, e) ? lo->agent : NULL;
}

/* --- the client's roots --- */

/* Code that reaches the network could send away what it reads: the user has to say so. */
static bool roots_are_wanted(const struct settings *s)
{
    const struct option *o = option_by_name(STR("roots"), IN(COMMAND_MCP));

    if (s->from[option_index(o)] == SOURCE_DEFAULT && pools_reach_out(s))
        return false;
    return s->roots != ROOTS_OFF;
}

static const char *take_roots(void *arg, const char *const *paths, size_t count)
{
    struct local *lo = arg;
    size_t from = lo->folders.count;
    char shown[NAME_SHOWN];
    struct err e;

    if (lo->steps_done > 0)
        return NULL; /* too late: the interpreter has been started */
    for (size_t i = 0; i < count; i++)
        if (folders_add_root(&lo->folders, paths[i], lo->s->roots == ROOTS_RW, &e) < 0)
            log_warn("root %s of the client is left out: %s", name_show(shown, str_of(paths[i])),
                     e.text);
    lo->told_roots =
        folders_tell(&lo->folders, "Folders that the user has opened in this client: ", from);
    return lo->told_roots;
}

/* --- the client's fds --- */

static int move_fds(struct local *lo, struct err *e)
{
    AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    lo->in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, FDS_FROM);
    lo->out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, FDS_FROM);
    if (null < 0 || lo->in < 0 || lo->out < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return err_sys(e, "move standard input and output");
    return 0;
}

/* --- the life --- */

/* Not PR_SET_PDEATHSIG: that speaks of the thread that started us, which in a client with many
 * may end long before the client does. */
static void watch_parent(struct local *lo, pid_t parent)
{
    lo->parent = (int)syscall(SYS_pidfd_open, parent, 0);
    if (lo->parent < 0)
        return;
    watch_new(lo->loop, lo->parent, on_end, lo);
    if (getppid() != parent)
        loop_later(lo->loop, on_end, lo);
}

static void stop(void *arg)
{
    loop_stop(arg);
}

/* In reverse order. Rooms let go of the last things from the loop, so it turns once more. */
static void take_down(struct local *lo)
{
    mcp_free(lo->mcp);
    doors_stop(&lo->doors);
    agent_free(lo->agent);
    service_free(lo->service);
    if (lo->store)
        store_close(lo->store);
    if (lo->loop) {
        loop_later(lo->loop, stop, lo->loop);
        loop_run(lo->loop);
    }
    doors_free(&lo->doors); /* what their calls began has ended */
    models_free(lo->models);
    model_set_done(&lo->model_set);
    engine_free(lo->engine);
    loop_free(lo->loop);
    pool_set_done(&lo->pools);
    folders_done(&lo->folders);
    free(lo->told_folders);
    free(lo->told_roots);
    janitor_end(&lo->janitor);
    fd_closep(&lo->parent);
    fd_closep(&lo->in);
    fd_closep(&lo->out);
    fd_closep(&lo->lock); /* last: now another one may come */
}

static bool has_model(const struct local *lo)
{
    return models_find(lo->models, "local", (struct str){0}) != NULL;
}

/* The door whose tools are shown. */
static enum door_kind shown(const struct local *lo)
{
    static const enum door_kind doors[] = {
        [TOOLS_NATIVE] = DOOR_MCP,  [TOOLS_QWEN] = DOOR_QWEN, [TOOLS_PRISME] = DOOR_PRISME,
        [TOOLS_AZURE] = DOOR_AZURE, [TOOLS_UBIK] = DOOR_UBIK,
    };

    return doors[lo->s->tools];
}

static void live(struct local *lo, pid_t parent)
{
    static const int ends[] = {SIGTERM, SIGINT, SIGHUP};
    const struct mcp_config config = {
        .loop = lo->loop,
        .service = the_service,
        .arg = lo,
        .answer_ms = lo->s->serve.answer_ms,
        .outside = pools_reach_out(lo->s),
        .tool_set = door_tool_set(&lo->doors, shown(lo)),
        .agent_tool = &tool_code_execution,
        .agent_tool_ctx = ubik_backend(lo->doors.at[DOOR_UBIK].room),
        .has_model = has_model(lo),
        .folders = lo->told_folders,
        .take_roots = roots_are_wanted(lo->s) ? take_roots : NULL,
    };

    lo->mcp = mcp_new(&config);
    mcp_stdio(lo->mcp, lo->in, lo->out, on_end, lo);
    for (size_t i = 0; i < COUNT(ends); i++)
        loop_on_signal(lo->loop, ends[i], on_signal, lo);
    watch_parent(lo, parent);
    loop_run(lo->loop);
    /* Who says it twice does not want to wait; the warden and the janitor clean up by themselves.
     */
    for (size_t i = 0; i < COUNT(ends); i++)
        signal(ends[i], SIG_DFL);
}

static int build_doors(struct local *lo, struct err *e)
{
    const struct doors_config config = {
        .settings = lo->s,
        .mcp = {.loop = lo->loop, .has_model = has_model(lo)},
        .agent = the_agent,
        .agent_arg = lo
    };

    for (enum door_kind k = 0; k < DOORS; k++)
        if ((k == DOOR_UBIK || k == shown(lo) ||
             (k == DOOR_PRISME_AGENT && shown(lo) == DOOR_PRISME)) &&
            door_make(&lo->doors, k, &config, e) < 0)
            return -1;
    return 0;
}

/* At once, as the keys may be for root alone to read; nobody is asked yet. */
static int build_models(struct local *lo, struct err *e)
{
    if (model_set_open(&lo->model_set, lo->s, e) < 0)
        return -1;
    lo->models = model_set_start(&lo->model_set, lo->loop, e);
    return lo->models ? 0 : -1;
}

int mcp_main(const struct settings *s)
{
    struct local lo = {
        .s = s, .in = -1, .out = -1, .parent = -1, .lock = -1, .janitor = {-1, -1, ""}
    };
    pid_t parent = getppid();
    struct err e;

    if (egress_check(s, &e) < 0 || approval_rules_check(s, &e) < 0 ||
        folders_open(&lo.folders, s, &e) < 0 || move_fds(&lo, &e) < 0) {
        folders_done(&lo.folders);
        return command_failed(&e);
    }
    if (isatty(lo.in))
        fprintf(stderr, "retort mcp speaks MCP, a message of JSON on each line; it is for a client "
                        "to start. Ctrl-D ends it.\n");
    lo.told_folders =
        folders_tell(&lo.folders, "Folders of the user's own disk are in every session: ", 0);
    memory_give_back();
    signal(SIGPIPE, SIG_IGN);
    lo.loop = loop_new(&e);
    if (lo.loop && build_models(&lo, &e) == 0 && build_doors(&lo, &e) == 0) {
        live(&lo, parent);
    } else {
        lo.status = command_failed(&e);
    }
    take_down(&lo);
    return lo.status;
}
