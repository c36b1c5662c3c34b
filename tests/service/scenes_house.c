/* The house as a whole: limits, tenants, closing, a crash, speed. */
#include "stage.h"

static void on_failed_session(void *arg, const struct session_info *info, const struct err *failed)
{
    CHECK(!info && failed);
    on_session(arg, info, failed);
}

static void on_any(void *arg, const struct session_info *info, const struct err *failed)
{
    (void)arg, (void)info;
    CHECK(!failed);
}

void scene_busy_limits(void)
{
    struct answer a = {0};
    static struct run r;
    static struct run one, two, three;
    const char *first = keep(new_session());
    const char *second = keep(new_session());
    struct exec_spec spec = {.code = STR("1")};
    struct exec_spec slow = {.session = str_of(first), .code = STR("import time\ntime.sleep(600)")};

    /* one that only idles would make room */
    start(&one, &alice, &slow);
    slow.session = str_of(second);
    start(&two, &alice, &slow);
    wait_state(first, SESSION_RUNNING);
    wait_state(second, SESSION_RUNNING);
    service_session_create(service, &alice, &(struct session_spec){0}, on_failed_session, &a);
    wait_for(&a.done, "a refusal");
    CHECK(a.err.kind == ERR_BUSY && a.err.retry_s >= 1); /* two for one tenant */
    a = (struct answer){0};
    service_session_create(service, &bob, &(struct session_spec){0}, on_session, &a);
    wait_for(&a.done, "a session");
    CHECK(a.err.kind == ERR_NONE);
    slow.session = str_of(a.id);
    start(&three, &bob, &slow);
    start(&r, &bob, &spec);
    finish(&r);
    CHECK(r.err.kind == ERR_BUSY && r.err.retry_s >= 1 && !r.queued); /* three in the pool */
    service_session_interrupt(service, &alice, str_of(first), on_any, NULL);
    service_session_interrupt(service, &alice, str_of(second), on_any, NULL);
    service_session_interrupt(service, &bob, str_of(a.id), on_any, NULL);
    finish(&one);
    finish(&two);
    finish(&three);
    CHECK(strcmp(run(first, "6 * 7"), "42") == 0);
    start(&r, &bob, &spec); /* the longest idle one sleeps */
    finish(&r);
    CHECK(r.err.kind == ERR_NONE);
    wait_state(second, SESSION_ASLEEP);
    CHECK(service_counts(service)->refused_busy == 2);
}

void scene_tenants_apart(void)
{
    const char *id = keep(new_session());
    static struct run r;
    struct exec_spec spec = {.session = str_of(id), .code = STR("1")};
    struct answer a;

    run(id, "open('secret', 'w').write('s')");
    get_session(&a, &bob, id);
    CHECK(a.err.kind == ERR_MISSING);
    list_files(&a, &bob, id);
    CHECK(a.err.kind == ERR_MISSING);
    read_file(&a, &bob, id, "secret");
    CHECK(a.err.kind == ERR_MISSING);
    delete_session(&a, &bob, id);
    CHECK(a.err.kind == ERR_MISSING);
    start(&r, &bob, &spec);
    finish(&r);
    CHECK(r.err.kind == ERR_MISSING && !r.queued);
    wait_state(id, SESSION_ASLEEP);
    get_session(&a, &bob, id);
    CHECK(a.err.kind == ERR_MISSING);
    start(&r, &bob, &spec);
    finish(&r);
    CHECK(r.err.kind == ERR_MISSING);
    CHECK(state_of(id) == SESSION_ASLEEP);
}

static void on_empty(void *arg)
{
    *(bool *)arg = true;
    loop_stop(loop);
}

void scene_draining(void)
{
    const char *id = keep(new_session());
    static struct run r, late;
    struct exec_spec spec = {.session = str_of(id), .code = STR("import time; time.sleep(0.5)")};
    static bool empty;
    struct answer a = {0};
    const char *why;

    start(&r, &alice, &spec);
    service_drain(service, on_empty, &empty);
    CHECK(!empty && !service_is_ready(service, &why) && why);
    start(&late, &alice, &spec);
    finish(&late);
    CHECK(late.err.kind == ERR_AWAY);
    service_session_create(service, &alice, &(struct session_spec){0}, on_failed_session, &a);
    wait_for(&a.done, "a refusal");
    CHECK(!empty);
    wait_for(&empty, "an empty house");
    CHECK(r.done && r.status == OUTCOME_OK);
}

/* Closing with everything under way: answers come, files are saved; checked by the next scene on
 * the same store. */
void scene_closed_in_the_middle(void)
{
    static struct run r, queued;
    struct session_spec named = {.name = STR("closed")};
    struct answer a, last = {0};

    create(&a, &named);
    struct exec_spec spec = {.session = str_of(a.id),
                             .code = STR("open('half', 'w').write('half')\n"
                                         "print('half', flush=True)\n"
                                         "import time; time.sleep(60)")};
    start(&r, &alice, &spec);
    start(&queued, &alice, &spec);
    wait_said(&r, "half");
    service_session_create(service, &bob, &(struct session_spec){0}, on_session, &last);
    stage_down();
    CHECK(last.done);
    CHECK(r.done && r.status == OUTCOME_SESSION_LOST);
    CHECK(queued.done && queued.err.kind == ERR_AWAY);
    exit(0);
}

void scene_after_the_closing(void)
{
    struct session_spec named = {.name = STR("closed")};
    struct answer a, f;

    create(&a, &named);
    CHECK(a.existed && a.state == SESSION_ASLEEP && a.has_note);
    read_file(&f, &alice, a.id, "half");
    CHECK(f.err.kind == ERR_NONE && strcmp(f.text, "half") == 0);
}

/* Says on stdout what it has been told, and is killed by the test at some moment. */
void scene_until_killed(void)
{
    static struct run r;
    struct session_spec named = {.name = STR("killed")};
    struct answer a;
    char code[128], path[32];

    create(&a, &named);
    char *id = keep(a.id);
    for (int i = 0;; i++) {
        snprintf(code, sizeof(code), "open('f%d', 'w').write('%d')", i, i);
        run_into(&r, id, code);
        printf("ran %s f%d\n", r.id, i);
        snprintf(path, sizeof(path), "u%d", i);
        put_file(&a, id, path, path);
        CHECK(a.err.kind == ERR_NONE);
        printf("put %s\n", path);
        fflush(stdout);
    }
}

/* Reads that list from stdin: all of it must be there. */
void scene_after_the_kill(void)
{
    struct session_spec named = {.name = STR("killed")};
    char line[256], word[8], first[64], second[64];
    struct answer a, f;
    struct record rec;
    unsigned seen = 0;

    create(&a, &named);
    CHECK(a.existed && a.state == SESSION_ASLEEP);
    char *id = keep(a.id);
    while (fgets(line, sizeof(line), stdin)) {
        int n = sscanf(line, "%7s %63s %63s", word, first, second);
        CHECK(n >= 2);
        if (strcmp(word, "ran") == 0) {
            get_record(&rec, &alice, first);
            CHECK(rec.failed == ERR_NONE && strcmp(rec.status, "ok") == 0);
        }
        read_file(&f, &alice, id, n == 3 ? second : first);
        CHECK(f.err.kind == ERR_NONE && strcmp(f.text, n == 3 ? second + 1 : first) == 0);
        seen++;
    }
    CHECK(seen > 0);
    CHECK(strcmp(run(id, "open('f0').read()"), "'0'") == 0);
}

/* Not a test: how long the two things take that everybody waits for. */
static int by_value(const void *a, const void *b)
{
    return (*(const int64_t *)a > *(const int64_t *)b) -
           (*(const int64_t *)a < *(const int64_t *)b);
}

static void report(const char *what, int64_t *us, size_t n)
{
    qsort(us, n, sizeof(*us), by_value);
    printf("%-36s p10 %lld us, p50 %lld us, p99 %lld us\n", what, (long long)us[n / 10],
           (long long)us[n / 2], (long long)us[n * 99 / 100]);
}

static void time_cells(const char *what, const char *id, const char *code, size_t n)
{
    static int64_t us[2000], beside[2000];
    static struct run r;
    char text[64];

    for (size_t i = 0; i < n; i++) {
        us[i] = time_mono_us();
        run_into(&r, id, code);
        us[i] = time_mono_us() - us[i];
        beside[i] = us[i] - (int64_t)r.engine_us;
    }
    report(what, us, n);
    snprintf(text, sizeof(text), "%s, beside the engine", what);
    report(text, beside, n);
}

void scene_speed(void)
{
    static int64_t us[300];
    struct pool_info info;
    struct answer a;
    const char *id;

    for (size_t i = 0; i < COUNT(us); i++) {
        do {
            pause_ms(20);
            service_pool_get(service, 0, &info);
        } while (info.parked == 0);
        us[i] = time_mono_us();
        create(&a, &(struct session_spec){0});
        us[i] = time_mono_us() - us[i];
        delete_session(&a, &alice, keep(a.id));
    }
    report("create, pool hit", us, COUNT(us));
    id = keep(new_session());
    time_cells("warm cell", id, "6 * 7", 2000);
    time_cells("cell with one file", id, "open('f', 'w').write('x')", 500);
}
