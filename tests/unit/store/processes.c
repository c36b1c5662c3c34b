/* More than one process on a store, and processes that die. */
#include "loop/loop.h"
#include "shop.h"

#include <signal.h>
#include <sys/wait.h>

#define CONFIG(dir) ((struct store_config[]){engine_config(dir)}[0])

/* --- other processes --- */

/* A child, forked while there is one thread and released by a byte, so that its locks and its
 * SQLite are its own. */
struct child {
    pid_t pid;
    int go;
};

static struct child child_new(int (*fn)(const char *dir), const char *dir)
{
    int p[2];
    char byte;
    struct child c;

    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    c = (struct child){.pid = fork(), .go = p[1]};
    if (c.pid == 0)
        _exit(read(p[0], &byte, 1) == 1 ? fn(dir) : 99);
    fd_closep(&p[0]);
    return c;
}

static void child_go(struct child *c)
{
    assert_int_equal(write(c->go, "x", 1), 1);
    fd_closep(&c->go);
}

static int child_wait(const struct child *c)
{
    int status;

    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int serve_too(const char *dir)
{
    struct err e = {0};
    struct store *second = store_open(loop_new(&(struct err){0}), &CONFIG(dir), &e);

    return second ? 1 : strstr(e.text, "another retort serves") ? 0 : 2;
}

static int write_too(const char *dir)
{
    struct err e = {0};
    struct store *mine = store_open(NULL, &CONFIG(dir), &e);

    if (!mine)
        return 1;
    for (int i = 1000; i < 1100; i++)
        if (store_call(mine, numbered_job, &i, &e) < 0)
            return 2;
    store_close(mine);
    return 0;
}

/* Sees what the server has written since another command closed the database. */
static int read_too(const char *dir)
{
    struct err e = {0};
    struct store *mine = store_open(NULL, &CONFIG(dir), &e);

    return mine && numbered_is_there(mine->db, 0) && numbered_is_there(mine->db, 1099) &&
                   numbered_is_there(mine->db, 2000)
               ? 0
               : 1;
}

static void test_one_server_many_commands(void **state)
{
    struct shop *s = *state;
    struct store_config config = engine_config(s->dir.path);
    struct loop *l = loop_new(&(struct err){0});
    struct child server, command, reader;

    store_close(s->store); /* or the children would have SQLite's memory of it */
    server = child_new(serve_too, s->dir.path);
    command = child_new(write_too, s->dir.path);
    reader = child_new(read_too, s->dir.path);
    s->store = store_open(l, &config, &s->e);
    assert_non_null(s->store);
    child_go(&server);
    child_go(&command);
    for (int i = 0; i < 200; i++)
        assert_ok(s, store_call(s->store, numbered_job, &i, &s->e));
    assert_int_equal(child_wait(&server), 0);
    assert_int_equal(child_wait(&command), 0);
    assert_ok(s, store_call(s->store, numbered_job, &(int){2000}, &s->e));
    child_go(&reader);
    assert_int_equal(child_wait(&reader), 0);
    store_close(s->store);
    loop_free(l);
    s->store = NULL;
    shop_reopen(s);
    assert_true(numbered_is_there(s->db, 199) && numbered_is_there(s->db, 1000) &&
                numbered_is_there(s->db, 2000));
}

/* --- a crash --- */

/* Says each number once it is acknowledged, for as long as it lives. */
static _Noreturn void put_for_ever(struct shop *s, int out, int first)
{
    struct loop *l = loop_new(&(struct err){0});
    struct store *mine = store_open(l, &CONFIG(s->dir.path), &s->e);

    for (int i = first; mine; i++) {
        if (store_call(mine, numbered_job, &i, &s->e) < 0)
            break;
        if (write(out, &i, sizeof(i)) != sizeof(i))
            break;
    }
    _exit(1);
}

static void test_what_is_acknowledged_survives_a_kill(void **state)
{
    struct shop *s = *state;
    int next = 0;

    store_close(s->store);
    s->store = NULL;
    for (int round = 0; round < 5; round++) {
        int p[2], status, number, first = next, wanted = next + 50 + 7 * round;
        pid_t pid;
        assert_int_equal(pipe2(p, O_CLOEXEC), 0);
        pid = fork();
        if (pid == 0)
            put_for_ever(s, p[1], next);
        fd_closep(&p[1]);
        while (read(p[0], &number, sizeof(number)) == sizeof(number)) {
            next = number + 1;
            if (next == wanted)
                kill(pid, SIGKILL); /* and what is in the pipe by then counts, too */
        }
        fd_closep(&p[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_true(next >= wanted);
        shop_reopen(s);
        for (int i = first; i < next; i++)
            assert_true(numbered_is_there(s->db, i));
        store_close(s->store);
        s->store = NULL;
    }
    shop_reopen(s);
    for (int i = 0; i < next; i++)
        assert_true(numbered_is_there(s->db, i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SHOP(test_one_server_many_commands),
        IN_SHOP(test_what_is_acknowledged_survives_a_kill),
    };

    return RUN(tests);
}
