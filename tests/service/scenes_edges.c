/* What comes between two steps of something else: who leaves, deletes, closes or dies there. */
#include "stage.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/* Whoever asked for it has left before it was up; nobody would ever use it again. */
void scene_left_before_it_was_up(void)
{
    static struct run r = {.leave_when_queued = true};
    struct exec_spec spec = {.code = STR("1")};

    start(&r, &alice, &spec);
    wait_for(&r.queued, "the queue");
    wait_state(r.session, SESSION_ASLEEP);
}

/* A file that takes its time to be put, so that what comes after it waits. */
static struct blob *long_blob(void)
{
    static char bytes[MiB];
    struct err e;
    struct blob *b = service_blob_new(service, &alice, &e);

    CHECK(b);
    for (int i = 0; i < 32; i++)
        CHECK(blob_write(b, (struct str){bytes, sizeof(bytes)}, &e) == 0);
    return b;
}

static void ignore_files(void *arg, const struct space_file *files, size_t count,
                         const struct err *failed)
{
    (void)files;
    (void)count;
    (void)failed;
    ++*(size_t *)arg;
}

static void on_missing(void *arg, const struct space_file *files, size_t count,
                       const struct err *failed)
{
    (void)files;
    (void)count;
    CHECK(failed && failed->kind == ERR_MISSING);
    ++*(size_t *)arg;
}

/* What waits in the queue of a session that is deleted does not find it, and that is all. */
void scene_deleted_with_work_waiting(void)
{
    const char *id = keep(new_session());
    struct file_input given = {.path = STR("given"), .content = STR("g"), .has_content = true};
    struct exec_spec spec = {
        .session = str_of(id), .code = STR("1"), .files = &given, .file_count = 1};
    static struct run r;
    struct answer a;
    size_t answered = 0;

    service_space_put(service, &alice, str_of(id), STR("long"), long_blob(), ignore_files,
                      &answered);
    pause_ms(1); /* it is under way */
    start(&r, &alice, &spec);
    service_space_list(service, &alice, str_of(id), on_missing, &answered);
    pause_ms(1); /* all have found the session */
    delete_session(&a, &alice, id);
    CHECK(a.err.kind == ERR_NONE);
    finish(&r);
    CHECK(r.err.kind == ERR_MISSING);
    for (int i = 0; i < 1000 && answered < 2; i++)
        pause_ms(10);
    CHECK(answered == 2);
}

/* As many as there are clients may wait for one session; on a small stack, as each must not lie on
 * the one before. */
void scene_many_wait_for_one(void)
{
    enum { MANY = 5000 };
    const struct rlimit small = {512 * KiB, RLIM_INFINITY};
    const char *id = keep(new_session());
    size_t answered = 0;

    CHECK(setrlimit(RLIMIT_STACK, &small) == 0);
    run(id, "open('f', 'w').write('f')");
    wait_state(id, SESSION_ASLEEP);
    service_space_put(service, &alice, str_of(id), STR("long"), long_blob(), ignore_files,
                      &answered);
    for (int i = 0; i < MANY; i++)
        service_space_list(service, &alice, str_of(id), ignore_files, &answered);
    for (int i = 0; i < 6000 && answered < MANY + 1; i++)
        pause_ms(10);
    CHECK(answered == MANY + 1);
}

static pid_t first_child(void)
{
    char path[64], text[64] = "";
    long pid;

    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(path, "re");
    CHECK(f && fgets(text, sizeof(text), f));
    fclose(f);
    pid = strtol(text, NULL, 10);
    CHECK(pid > 1);
    return (pid_t)pid;
}

/* The sandbox dies while the files are put back, and the server closes at the same time. */
void scene_closed_while_waking(void)
{
    const char *id = keep(new_session());
    struct exec_spec spec = {.session = str_of(id), .code = STR("1")};
    static struct run r;

    run(id, "for i in range(5000): open(f'{i}', 'w').write('x')");
    wait_state(id, SESSION_ASLEEP);
    start(&r, &alice, &spec);
    pause_ms(60);
    CHECK(state_of(id) == SESSION_STARTING);
    kill(first_child(), SIGKILL); /* the warden, and every sandbox with it */
    stage_down();
    CHECK(r.done && r.err.kind != ERR_NONE);
    exit(0);
}

/* A sandbox that is lost while files wait to be put into it: they are put into the next one. */
void scene_lost_while_placing(void)
{
    const char *id = keep(new_session());
    struct file_input given[] = {
        {.path = STR("given"), .content = STR("g"), .has_content = true},
        {.path = STR("fetched"),                    .url = STR("data:,f")                 },
    };
    struct exec_spec spec = {.session = str_of(id),
                             .code = STR("print(open('given').read(), open('fetched').read())"),
                             .files = given,
                             .file_count = COUNT(given)};
    struct blob *b = long_blob();
    static struct run r;
    size_t answered = 0;

    run(id, bad_packet);
    run(id, "import threading\nthreading.Timer(0.01, bad).start()");
    service_space_put(service, &alice, str_of(id), STR("long"), b, ignore_files, &answered);
    pause_ms(1); /* it is under way */
    start(&r, &alice, &spec);
    finish(&r);
    CHECK(r.err.kind == ERR_NONE && strcmp(r.text, "g f\n") == 0);
}

/* --- when nothing can be saved --- */

static struct rlimit descriptors;
static int taken[1024];
static size_t taken_count;

/* All but a few. */
static void take_descriptors(size_t spare)
{
    struct rlimit few;
    int fd;

    CHECK(getrlimit(RLIMIT_NOFILE, &descriptors) == 0);
    few = (struct rlimit){.rlim_cur = COUNT(taken), .rlim_max = descriptors.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    for (taken_count = 0; (fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0; taken_count++)
        taken[taken_count] = fd;
    while (spare-- > 0)
        close(taken[--taken_count]);
}

static void give_descriptors(void)
{
    while (taken_count > 0)
        close(taken[--taken_count]);
    CHECK(setrlimit(RLIMIT_NOFILE, &descriptors) == 0);
}

/* What waits for the next interpreter hears of it. */
static void end_a_life(size_t spare)
{
    const char *id = keep(new_session());
    struct exec_spec spec = {.session = str_of(id), .code = STR("1")};
    static struct run r;

    run(id, "import threading, time\n"
            "def f():\n"
            "    for i in range(100): open('late', 'w').write(str(i)); time.sleep(0.1)\n"
            "threading.Thread(target=f).start()");
    pause_ms(500); /* nobody else makes descriptors */
    take_descriptors(spare);
    pause_ms(3100); /* it has lived its lifetime */
    start(&r, &alice, &spec);
    finish(&r);
    CHECK(r.err.kind == ERR_HOST);
    give_descriptors();
    /* A save that is under way may fail yet. */
    spec.code = STR("int(open('late').read()) > 9");
    for (int tries = 0; tries < 100 && (r.err.kind != ERR_NONE || r.status != OUTCOME_OK);
         tries++) {
        pause_ms(100);
        start(&r, &alice, &spec);
        finish(&r);
    }
    CHECK(strcmp(r.text, "True") == 0);
}

void scene_saving_fails_at_the_end_of_a_life(void)
{
    end_a_life(0);
}

/* The workspace can be opened, the file in it cannot. */
void scene_a_file_cannot_be_opened_at_the_end_of_a_life(void)
{
    end_a_life(1);
}

/* What could not be saved at the end of an execution, nor at a look, is saved when it can be. */
void scene_saved_later(void)
{
    const char *id = keep(new_session());
    struct exec_spec spec = {.session = str_of(id), .code = STR("open('f', 'w').write('f')")};
    static struct run r;
    struct record rec;
    struct answer a;

    pause_ms(500);       /* nobody else makes descriptors */
    take_descriptors(2); /* to look, but not to keep */
    start(&r, &alice, &spec);
    finish(&r);
    list_files(&a, &alice, id);
    give_descriptors();
    CHECK(r.err.kind == ERR_NONE && r.files[0] == '\0' && strstr(r.notes, "could not be saved"));
    CHECK(a.err.kind == ERR_HOST);
    get_record(&rec, &alice, r.id);
    CHECK(strcmp(rec.status, "ok") == 0 && strstr(rec.text, "could not be saved"));
    run_into(&r, id, "open('g', 'w').write('g')");
    CHECK(strcmp(r.files, "f g ") == 0);
    list_files(&a, &alice, id);
    CHECK(strcmp(a.text, "f:1 g:1") == 0);
}

/* Who sees nothing for want of descriptors must not take what is there for deleted. */
void scene_blind_for_a_while(void)
{
    const char *id = keep(new_session());
    static struct run r;
    struct answer a;

    run(id, "open('f', 'w').write('f')");
    pause_ms(500);
    take_descriptors(0);
    run_into(&r, id, "1");
    CHECK(r.files[0] == '\0');
    give_descriptors();
    list_files(&a, &alice, id);
    CHECK(strcmp(a.text, "f:1") == 0);
}

/* What has been executed is on record in any case, with less of what it said and left. */
void scene_disk_is_nearly_full(void)
{
    const char *id = keep(new_session());
    static struct run r;
    struct record rec;
    struct err e;

    run_into(&r, id, "print('x' * 100000)");
    get_record(&rec, &alice, r.id);
    CHECK(strcmp(rec.status, "ok") == 0 && strstr(rec.text, "could not be kept"));
    run_into(&r, id, "open('f', 'w').write('f')");
    CHECK(r.files[0] == '\0' && strstr(r.notes, "could not be saved"));
    get_record(&rec, &alice, r.id);
    CHECK(strcmp(rec.status, "ok") == 0 && strstr(rec.text, "could not be saved"));
    CHECK(!service_blob_new(service, &alice, &e) && e.kind == ERR_FULL);
    CHECK(strcmp(run(id, "open('f').read()"), "'f'") == 0);
}

/* --- what is held in memory --- */

void scene_record_has_room(void)
{
    const char *id = keep(new_session());
    static struct run r;
    struct record rec;

    /* each piece is taken in by itself */
    run_into(&r, id,
             "import time\n"
             "for c in 'xyz': print(c * 3000, flush=True); time.sleep(0.2)");
    CHECK(strstr(r.text, "xxx") && strstr(r.text, "yyy") && strstr(r.text, "zzz"));
    CHECK(strstr(r.notes, "not on record"));
    get_record(&rec, &alice, r.id);
    CHECK(strcmp(rec.status, "ok") == 0 && strstr(rec.text, "xxx") && !strstr(rec.text, "zzz"));
    CHECK(strstr(rec.text, "not on record"));
    for (int i = 0; i < 9; i++) { /* what has ended holds nothing */
        run_into(&r, id, "print('x' * 2000)");
        CHECK(r.notes[0] == '\0');
    }
}

void scene_code_has_room(void)
{
    static char code[6000];
    const char *id = keep(new_session());
    struct exec_spec spec = {
        .session = str_of(id), .code = {code, sizeof(code)}
    };
    static struct run r;

    memset(code, '#', sizeof(code));
    start(&r, &alice, &spec);
    finish(&r);
    CHECK(r.err.kind == ERR_BUSY && !r.queued);
    spec.code.n = 3000;
    for (int i = 0; i < 9; i++) {
        start(&r, &alice, &spec);
        finish(&r);
        CHECK(r.err.kind == ERR_NONE);
    }
}

void scene_any_text_is_on_record(void)
{
    const char *id = keep(new_session());
    static struct run r;
    struct record rec;

    run_into(&r, id, "print('a\\0b\\x01\\x7f\\ud7ff')");
    get_record(&rec, &alice, r.id);
    CHECK(strstr(rec.text, "a\\u0000b\\u0001"));
}
