/*
 * Everything at once, in an order that a generator with a fixed seed makes up: sessions
 * are created, used, left, restarted and deleted while files come and go. Nothing is
 * checked but that each call is answered, once, and that the house can be closed.
 */
#include "stage.h"

#define CALLS    600
#define SESSIONS 6

static uint64_t seed;
static size_t asked, answered;
static struct run runs[CALLS];
static struct answer answers[CALLS];
static size_t run_count, answer_count;
static char ids[SESSIONS][ID_MAX];

static unsigned pick(unsigned n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

static struct answer *next_answer(void)
{
    asked++;
    return &answers[answer_count++];
}

static void count(struct answer *a)
{
    CHECK(!a->done);
    a->done = true;
    answered++;
}

static void on_crowd_session(void *arg, const struct session_info *info, const struct err *failed)
{
    count(arg);
    if (!failed)
        snprintf(ids[pick(SESSIONS)], ID_MAX, "%s", info->row->id);
}

static void on_crowd_done(void *arg, const struct err *failed)
{
    (void)failed;
    count(arg);
}

static void on_crowd_files(void *arg, const struct space_file *files, size_t n,
                           const struct err *failed)
{
    (void)files;
    (void)n;
    (void)failed;
    count(arg);
}

static void on_crowd_open(void *arg, int *fd, const struct space_file *file,
                          const struct err *failed)
{
    (void)fd;
    (void)file;
    (void)failed;
    count(arg);
}

static void on_crowd_record(void *arg, const struct exec_info *info, const struct err *failed)
{
    (void)info;
    (void)failed;
    count(arg);
}

static void on_crowd_list(void *arg, const struct session_info *infos, size_t n, bool more,
                          const struct err *failed)
{
    (void)infos;
    (void)n;
    (void)more;
    (void)failed;
    count(arg);
}

static void on_crowd_end(struct run *r)
{
    (void)r;
    answered++;
}

static struct run *execute(struct str id)
{
    static const char *const codes[] = {
        "x = 1",
        "open('a', 'a').write('a')",
        "import time; time.sleep(0.05)",
        "import time; time.sleep(9)",
        "1/0",
        "import os; os._exit(1)",
        "print('y' * 50000)",
        "import os\nfor n in os.listdir(): os.remove(n)",
    };
    struct file_input files[] = {
        {.path = STR("given"), .content = STR("g"), .has_content = true},
        {.path = STR("url"),                    .url = STR("data:,u")                     },
    };
    struct exec_spec spec = {.session = id,
                             .kind = pick(4) ? EXEC_CELL : EXEC_COMMAND,
                             .code = str_of(codes[pick(COUNT(codes))]),
                             .wall_ms = 1000,
                             .files = files,
                             .file_count = pick(3),
                             .background = pick(6) == 0};
    struct run *r = &runs[run_count++];

    r->leave_when_queued = pick(8) == 0;
    r->on_end = on_crowd_end;
    asked++;
    start(r, pick(10) ? &alice : &bob, &spec);
    return r;
}

static void one_call(void)
{
    struct str id = str_of(ids[pick(SESSIONS)]);
    struct session_spec named = {.name = STR("crowd")};

    switch (pick(16)) {
    case 0:
    case 1:
        return service_session_create(service, &alice, pick(2) ? &named : &(struct session_spec){0},
                                      on_crowd_session, next_answer());
    case 2:
        return service_session_delete(service, &alice, id, on_crowd_done, next_answer());
    case 3:
        return service_session_restart(service, &alice, id, on_crowd_session, next_answer());
    case 4:
        return service_session_interrupt(service, &alice, id, on_crowd_session, next_answer());
    case 5:
        return service_space_list(service, &alice, id, on_crowd_files, next_answer());
    case 6:
        return service_space_open(service, &alice, id, STR("a"), on_crowd_open, next_answer());
    case 7:
        return service_space_put(service, &alice, id, STR("put"), blob_of("put"), on_crowd_files,
                                 next_answer());
    case 8:
        return service_space_delete(service, &alice, id, STR("put"), on_crowd_done, next_answer());
    case 9:
        return service_session_list(service, &alice, (struct page){.limit = 3}, on_crowd_list,
                                    next_answer());
    case 10:
        return service_exec_get(service, &alice, str_of(runs[pick(CALLS)].id), on_crowd_record,
                                next_answer());
    case 11:
        execute((struct str){0});
        return;
    default:
        execute(id);
    }
}

static void leave_some(void)
{
    for (size_t i = 0; i < run_count; i++) {
        struct run *r = &runs[i];
        if (!r->done && !r->leave_when_queued && pick(60) == 0) {
            r->leave_when_queued = true;
            execution_leave(r->job);
            answered++;
        }
    }
}

static void take_seed(uint64_t fixed)
{
    const char *text = getenv("SEED"); /* another order, to look for more */

    seed = text ? strtoull(text, NULL, 10) : fixed;
}

void scene_crowd(void)
{
    take_seed(7);
    for (int i = 0; i < CALLS; i++) {
        one_call();
        if (pick(3) == 0)
            pause_ms(pick(30));
        leave_some();
    }
    for (int i = 0; i < 3000 && answered < asked; i++)
        pause_ms(20);
    CHECK(answered == asked);
}

/* The same, and the house is closed before the answers are there. */
void scene_crowd_is_closed(void)
{
    take_seed(99);
    for (int i = 0; i < CALLS / 4; i++) {
        one_call();
        if (pick(4) == 0)
            pause_ms(pick(20));
    }
    stage_down();
    CHECK(answered == asked);
    exit(0);
}
