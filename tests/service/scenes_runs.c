/* Executions: order, leaving, the background, what is on record. */
#include "stage.h"

void scene_one_shot(void)
{
    static struct run r;
    struct exec_spec spec = {.code = STR("open('out', 'w').write('abc'); print(6 * 7)")};
    struct answer a;

    start(&r, &alice, &spec);
    finish(&r);
    CHECK(r.err.kind == ERR_NONE && strcmp(r.text, "42\n") == 0 && strcmp(r.files, "out ") == 0);
    wait_state(r.session, SESSION_ASLEEP);
    read_file(&a, &alice, r.session, "/workspace/out");
    CHECK(strcmp(a.text, "abc") == 0);
    CHECK(strcmp(run(r.session, "open('out').read()"), "'abc'") == 0);
}

void scene_cells_keep_their_order(void)
{
    const char *id = keep(new_session());
    static struct run r[64], extra;
    struct exec_spec spec = {.session = str_of(id)};
    char code[64];

    wait_state(id, SESSION_ASLEEP); /* they also keep it while the session wakes */
    for (unsigned i = 0; i < COUNT(r); i++) {
        snprintf(code, sizeof(code), "import time; time.sleep(%u); print(%u)", i ? 0 : 2, i);
        spec.code = str_of(code);
        start(&r[i], &alice, &spec);
    }
    wait_for(&r[COUNT(r) - 1].queued, "a place in the queue");
    start(&extra, &alice, &spec);
    finish(&extra);
    CHECK(extra.err.kind == ERR_BUSY && extra.err.retry_s >= 1);
    for (unsigned i = 0; i < COUNT(r); i++) {
        finish(&r[i]);
        snprintf(code, sizeof(code), "%u\n", i);
        CHECK(r[i].err.kind == ERR_NONE && strcmp(r[i].text, code) == 0);
        CHECK(r[i].order == i + 2);
    }
}

void scene_leaving_interrupts(void)
{
    const char *id = keep(new_session());
    static struct run r, queued;
    struct exec_spec spec = {.session = str_of(id),
                             .code = STR("import time\nx = 'began'\nprint(x, flush=True)\n"
                                         "time.sleep(60)\nx = 'ended'")};

    start(&r, &alice, &spec);
    start(&queued, &alice, &spec);
    wait_said(&r, "began");
    execution_leave(queued.job);
    execution_leave(r.job);
    CHECK(strcmp(run(id, "x"), "'began'") == 0);
    CHECK(!r.done && !queued.done);
    queued.leave_when_queued = true;
    start(&queued, &alice, &spec);
    CHECK(strcmp(run(id, "x"), "'began'") == 0);
    CHECK(!queued.done);
}

void scene_background_goes_on(void)
{
    const char *id = keep(new_session());
    static struct run r = {.leave_when_queued = true};
    struct exec_spec spec = {
        .session = str_of(id),
        .background = true,
        .code = STR("print('one', flush=True)\n" UNTIL_GO "print('two')\nopen('bg', 'w')")};
    struct record rec;
    struct answer a;

    start(&r, &alice, &spec);
    wait_said(&r, "one");
    get_record(&rec, &alice, r.id);
    CHECK(strcmp(rec.status, "running") == 0 && !rec.has_outcome);
    get_record(&rec, &bob, r.id);
    CHECK(rec.failed == ERR_MISSING);
    put_file(&a, id, "go", "");
    run(id, "1"); /* after it; its files may take longer to be saved */
    for (int i = 0; i < PATIENCE_MS / 10 && !rec.has_outcome; i++) {
        pause_ms(10);
        get_record(&rec, &alice, r.id);
    }
    CHECK(strcmp(rec.status, "ok") == 0 && rec.has_outcome);
    CHECK(strstr(rec.text, "one\\ntwo") && strstr(rec.text, "bg")); /* one event of both */
    CHECK(!r.done);
}

static void on_news(void *arg)
{
    ++*(int *)arg;
    loop_stop(loop);
}

/* One that nobody waits for any more goes on, and who watches hears of it once. */
void scene_detached_goes_on(void)
{
    const char *id = keep(new_session());
    static struct run r;
    struct exec_spec spec = {.session = str_of(id),
                             .code = STR("import time\nprint('one', flush=True)\ntime.sleep(0.5)\n"
                                         "print('two', flush=True)\nx = 'ended'")};
    struct exec_watch *talk, *over, *left;
    int talked = 0, ended = 0, never = 0;

    start(&r, &alice, &spec);
    wait_for(&r.queued, "the queue");
    CHECK(!service_exec_watch(service, &bob, str_of(r.id), true, on_news, &never));
    talk = service_exec_watch(service, &alice, str_of(r.id), true, on_news, &talked);
    over = service_exec_watch(service, &alice, str_of(r.id), false, on_news, &ended);
    left = service_exec_watch(service, &alice, str_of(r.id), true, on_news, &never);
    CHECK(talk && over && left);
    exec_watch_free(left);
    execution_detach(r.job);
    CHECK(strcmp(run(id, "x"), "'ended'") == 0);
    for (int i = 0; i < 500 && !ended; i++)
        pause_ms(10);
    CHECK(talked == 1 && ended == 1 && never == 0 && !r.done);
    exec_watch_free(talk);
    exec_watch_free(over);
    CHECK(!service_exec_watch(service, &alice, str_of(r.id), true, on_news, &never));
}

/* A session made with its first execution, for more to come. */
void scene_one_that_stays(void)
{
    static struct run r;
    struct exec_spec spec = {.code = STR("x = 'kept'"), .stays = true};

    start(&r, &alice, &spec);
    finish(&r);
    CHECK(r.err.kind == ERR_NONE && strcmp(run(keep(r.session), "x"), "'kept'") == 0);
}

void scene_long_output_is_on_record(void)
{
    const char *id = keep(new_session());
    static struct run r;
    struct record rec;

    run_into(&r, id, "print('x' * 100000)");
    get_record(&rec, &alice, r.id);
    CHECK(strcmp(rec.status, "ok") == 0 && strlen(rec.text) == TEXT_MAX - 1);
    run_into(&r, id,
             "from IPython.display import HTML, display\nfor i in range(60):\n"
             "    display(HTML('y' * 500))"); /* short each, long in JSON */
    get_record(&rec, &alice, r.id);
    CHECK(strlen(rec.text) == TEXT_MAX - 1);
}

void scene_variables_of_the_environment(void)
{
    struct env_var all[] = {
        {STR("A"), STR("1")},
        {STR("B"), STR("2")}
    };
    struct env_var own[] = {
        {STR("B"), STR("3")}
    };
    struct session_spec spec = {.env = all, .env_count = 2};
    struct env_var bad[] = {
        {STR("A=B"), STR("1")}
    };
    struct answer a;
    static struct run r;

    create(&a, &spec);
    struct exec_spec es = {.session = str_of(a.id),
                           .code = STR("import os; print(os.environ['A'], os.environ['B'])"),
                           .env = own,
                           .env_count = 1};
    start(&r, &alice, &es);
    finish(&r);
    CHECK(strcmp(r.text, "1 3\n") == 0);
    wait_state(a.id, SESSION_ASLEEP);
    es.env_count = 0;
    start(&r, &alice, &es);
    finish(&r);
    CHECK(strcmp(r.text, "1 2\n") == 0);
    es.env = bad;
    es.env_count = 1;
    start(&r, &alice, &es);
    finish(&r);
    CHECK(r.err.kind == ERR_CALLER && !r.queued);
}

void scene_commands_run_beside(void)
{
    const char *id = keep(new_session());
    static struct run cell, command;
    struct exec_spec spec = {.session = str_of(id),
                             .code = STR("print('up', flush=True)\n" UNTIL_GO)};
    struct answer a;

    start(&cell, &alice, &spec);
    wait_said(&cell, "up");
    spec.kind = EXEC_COMMAND;
    spec.code = STR("echo beside > f; exit 3");
    start(&command, &alice, &spec);
    finish(&command);
    CHECK(command.status == OUTCOME_RAISED && strcmp(command.files, "f ") == 0 && !cell.done);
    put_file(&a, id, "go", "");
    finish(&cell);
    CHECK(cell.status == OUTCOME_OK && cell.files[0] == '\0');
}
