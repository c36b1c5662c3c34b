/* How sessions live: sleep, wake, loss, names, expiry. */
#include "stage.h"

void scene_sleeps_and_wakes(void)
{
    const char *id = keep(new_session());
    static struct run r;
    struct answer a;

    run_into(&r, id,
             "x = 5; open('kept.txt', 'w').write('hello'); import os; "
             "os.makedirs('d'); open('d/two', 'w').write('22')");
    CHECK(strcmp(r.files, "d/two kept.txt ") == 0 && r.notes[0] == '\0');
    list_files(&a, &alice, id);
    CHECK(strcmp(a.text, "d/two:2 kept.txt:5") == 0);
    wait_state(id, SESSION_ASLEEP);
    get_session(&a, &alice, id);
    CHECK(a.has_note && a.executions == 1);
    list_files(&a, &alice, id);
    CHECK(strcmp(a.text, "d/two:2 kept.txt:5") == 0);
    run_into(&r, id, "print(open('kept.txt').read(), open('d/two').read(), 'x' in globals())");
    CHECK(strcmp(r.text, "hello 22 False\n") == 0);
    CHECK(strstr(r.notes, "variables and processes are gone, files ") && r.state_lost);
    CHECK(r.files[0] == '\0'); /* what was put back is no news */
    run_into(&r, id, "1");
    CHECK(r.notes[0] == '\0' && !r.state_lost);
    delete_session(&a, &alice, id);
    CHECK(a.err.kind == ERR_NONE);
    get_session(&a, &alice, id);
    CHECK(a.err.kind == ERR_MISSING);
    delete_session(&a, &alice, id);
    CHECK(a.err.kind == ERR_MISSING);
}

/* Nothing was ever executed, so nothing is lost. */
void scene_sleeps_without_loss(void)
{
    const char *id = keep(new_session());
    static struct run r;
    struct answer a;

    wait_state(id, SESSION_ASLEEP);
    get_session(&a, &alice, id);
    CHECK(!a.has_note);
    run_into(&r, id, "6 * 7");
    CHECK(strcmp(r.text, "42") == 0 && r.notes[0] == '\0' && !r.state_lost);
}

void scene_lifetime_ends(void)
{
    const char *id = keep(new_session());

    run(id, "x = 1");
    for (int i = 0; i < 100 && state_of(id) != SESSION_ASLEEP; i++) {
        run(id, "1");
        pause_ms(50);
    }
    wait_state(id, SESSION_ASLEEP);
    CHECK(strcmp(run(id, "'x' in globals()"), "False") == 0);
}

/* Files written between two executions, by a thread, are there after the sleep as well. */
void scene_what_came_late_is_saved(void)
{
    const char *id = keep(new_session());
    struct answer a;

    run(id, "import threading, time\n"
            "def f():\n    time.sleep(0.3); open('late', 'w').write('late')\n"
            "threading.Thread(target=f).start()");
    wait_file(id, "late", "late");
    run(id, "import threading, time\n"
            "def f():\n    time.sleep(0.2); open('later', 'w').write('later')\n"
            "threading.Thread(target=f).start()");
    wait_state(id, SESSION_ASLEEP);
    read_file(&a, &alice, id, "later");
    CHECK(a.err.kind == ERR_NONE && strcmp(a.text, "later") == 0);
}

/* A packet that is none, on the kernel's own socket, ends the sandbox. */
const char bad_packet[] =
    "import os, socket, time\n"
    "def bad():\n"
    "    for fd in range(3, 1024):\n"
    "        try:\n"
    "            if os.fstat(fd).st_mode & 0o170000 == 0o140000:\n"
    "                socket.socket(fileno=os.dup(fd)).send(bytes(range(256)) * 16)\n"
    "        except OSError: pass\n";

void scene_lost_sandbox(void)
{
    const char *id = keep(new_session());
    static struct run r, queued;
    struct exec_spec spec = {.session = str_of(id), .code = STR("bad()\ntime.sleep(9)")};
    struct exec_spec next = {.session = str_of(id), .code = STR("open('kept').read()")};
    struct answer a;

    run(id, "x = 1; open('kept', 'w').write('k')");
    run(id, bad_packet);
    start(&r, &alice, &spec);
    start(&queued, &alice, &next);
    finish(&r);
    CHECK(r.err.kind == ERR_NONE && r.status == OUTCOME_SESSION_LOST && r.state_lost);
    finish(&queued);
    CHECK(queued.status == OUTCOME_OK && strcmp(queued.text, "'k'") == 0 && queued.state_lost);
    CHECK(strcmp(run(id, "print(open('kept').read(), 'x' in globals())"), "k False\n") == 0);

    run(id, bad_packet); /* the same while nothing runs */
    run(id, "import threading\nthreading.Timer(0.3, bad).start()");
    wait_state(id, SESSION_ASLEEP);
    get_session(&a, &alice, id);
    CHECK(a.has_note);
    CHECK(strcmp(run(id, "open('kept').read()"), "'k'") == 0);
}

void scene_restart_keeps_files(void)
{
    const char *id = keep(new_session());
    struct answer a = {0};
    static struct run r, waiting;
    struct exec_spec spec = {.session = str_of(id), .code = STR("import time; time.sleep(60)")};

    run(id, "x = 1; open('kept', 'w').write('k')");
    service_session_restart(service, &alice, str_of(id), on_session, &a);
    wait_for(&a.done, "a restart");
    CHECK(strcmp(run(id, "print(open('kept').read(), 'x' in globals())"), "k False\n") == 0);
    start(&r, &alice, &spec);
    start(&waiting, &alice, &spec);
    pause_ms(200);
    a = (struct answer){0};
    service_session_restart(service, &alice, str_of(id), on_session, &a);
    wait_for(&a.done, "a restart");
    finish(&r);
    finish(&waiting);
    CHECK(r.status != OUTCOME_OK && waiting.status == OUTCOME_INTERRUPTED);
    CHECK(strcmp(run(id, "6 * 7"), "42") == 0);
}

void scene_named_sessions(void)
{
    struct session_spec spec = {.name = STR("work")};
    struct answer a[4] = {0}, b, c = {0};

    for (size_t i = 0; i < COUNT(a); i++)
        service_session_create(service, &alice, &spec, on_session, &a[i]);
    for (size_t i = 0; i < COUNT(a); i++)
        wait_for(&a[i].done, "a session");
    for (size_t i = 0; i < COUNT(a); i++)
        CHECK(a[i].err.kind == ERR_NONE && strcmp(a[i].id, a[0].id) == 0 &&
              a[i].existed == (i > 0));
    service_session_create(service, &bob, &spec, on_session, &c);
    wait_for(&c.done, "a session");
    CHECK(c.err.kind == ERR_NONE && !c.existed && strcmp(c.id, a[0].id) != 0);
    wait_state(a[0].id, SESSION_ASLEEP);
    create(&b, &spec);
    CHECK(b.existed && strcmp(b.id, a[0].id) == 0 && b.state == SESSION_ASLEEP);
    delete_session(&b, &alice, a[0].id);
    create(&b, &spec);
    CHECK(!b.existed && strcmp(b.id, a[0].id) != 0);
}

/* The first half of it; the sweep comes soon after the next start. */
void scene_left_behind(void)
{
    struct session_spec named = {.name = STR("old")};
    struct answer a;

    create(&a, &named);
    run(a.id, "open('f', 'w').write('f')");
    wait_state(a.id, SESSION_ASLEEP);
    printf("%s\n", a.id);
    pause_ms(1000);
}

void scene_expired_sessions_go(void)
{
    char id[ID_MAX];
    struct answer a = {0};

    CHECK(scanf("%39s", id) == 1);
    for (int i = 0; i < 600 && a.err.kind != ERR_MISSING; i++) {
        get_session(&a, &alice, id);
        pause_ms(100);
    }
    CHECK(a.err.kind == ERR_MISSING);
}
