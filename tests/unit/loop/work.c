/* Work that takes long, and who gets to work meanwhile. Nothing here is judged by a clock. */
#include "loop/loop.h"
#include "unit.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HOGS  12 /* more than there are turns */
#define QUICK 20 /* one after the other, each of which waits for a turn */

struct scene {
    struct loop *loop;
    atomic_bool over;     /* hogs may end */
    atomic_int hogs;      /* at work */
    int ended;            /* hogs that were told */
    int quick, hogs_then; /* short ones that were told; hogs at work at that time */
    int left;             /* short ones to come, one after the other */
    struct whose whose;
};

static int open_scene(void **state)
{
    struct scene *s = mem_zalloc(sizeof(*s));

    s->loop = loop_new(&(struct err){0});
    *state = s;
    return 0;
}

static int close_scene(void **state)
{
    struct scene *s = *state;

    loop_free(s->loop);
    free(s);
    return 0;
}

static void work_long(void *arg)
{
    struct scene *s = arg;

    atomic_fetch_add(&s->hogs, 1);
    while (!atomic_load(&s->over))
        work_yield();
    atomic_fetch_sub(&s->hogs, 1);
}

static void wait_long(void *arg)
{
    struct scene *s = arg;

    atomic_fetch_add(&s->hogs, 1);
    work_wait_begin();
    while (!atomic_load(&s->over))
        usleep(1000);
    errno = EDOM;
    work_wait_end();
    assert_int_equal(errno, EDOM);
    atomic_fetch_sub(&s->hogs, 1);
}

static void on_long(void *arg)
{
    struct scene *s = arg;

    if (++s->ended == HOGS)
        loop_stop(s->loop);
}

static void work_short(void *arg)
{
    (void)arg;
}

static void on_short(void *arg)
{
    struct scene *s = arg;

    s->quick++;
    s->hogs_then = atomic_load(&s->hogs);
    if (--s->left > 0)
        return loop_work_for(s->loop, s->whose, work_short, on_short, s);
    atomic_store(&s->over, true);
}

/* The hogs end when the short ones have been told: were these made to wait, nothing would end. */
static void play(struct scene *s, loop_fn *hog, struct whose (*of_hog)(int i))
{
    for (int i = 0; i < HOGS; i++)
        loop_work_for(s->loop, of_hog(i), hog, on_long, s);
    s->left = QUICK;
    loop_work_for(s->loop, s->whose, work_short, on_short, s);
    loop_run(s->loop);
    assert_int_equal(s->ended, HOGS);
    assert_int_equal(s->quick, QUICK);
    assert_true(s->hogs_then > 0);
}

static struct whose of_one(int i)
{
    (void)i;
    return whose_of("tenant", "hog");
}

static struct whose of_many(int i)
{
    char name[16];

    snprintf(name, sizeof(name), "hog %d", i);
    return whose_of("tenant", name);
}

static struct whose of_nobody(int i)
{
    (void)i;
    return (struct whose){0};
}

static void test_another_session_of_the_tenant(void **state)
{
    struct scene *s = *state;

    s->whose = whose_of("tenant", "neighbour");
    play(s, work_long, of_many);
}

static void test_another_tenant(void **state)
{
    struct scene *s = *state;

    s->whose = whose_of("other", "neighbour");
    play(s, work_long, of_one);
}

static void test_the_same_session(void **state)
{
    struct scene *s = *state;

    s->whose = whose_of("tenant", "hog");
    play(s, work_long, of_one);
}

static void test_the_program_itself(void **state)
{
    play(*state, work_long, of_nobody);
}

static void test_a_wait_keeps_nobody(void **state)
{
    struct scene *s = *state;

    s->whose = whose_of("other", "neighbour");
    play(s, wait_long, of_one);
}

/* --- whose turn it is --- */

#define SHORT 300

struct order {
    struct scene *s;
    int *told; /* how many in all */
    int at;    /* its place among them */
};

static void on_told(void *arg)
{
    struct order *o = arg;

    o->at = (*o->told)++;
    if (*o->told == SHORT + 1)
        loop_stop(o->s->loop);
}

static void hold_all(void *arg)
{
    struct scene *s = arg;

    while (!atomic_load(&s->over))
        usleep(1000);
}

/* All turns are taken; hundreds wait of one session, and then one of another comes. */
static void test_many_short_ones_are_no_queue_for_others(void **state)
{
    struct scene *s = *state;
    struct order all[SHORT + 1];
    int told = 0;

    for (int i = 0; i < HOGS; i++)
        loop_work_for(s->loop, whose_of("third", ""), hold_all, on_long, s);
    for (int i = 0; i <= SHORT; i++) {
        all[i] = (struct order){s, &told, -1};
        loop_work_for(s->loop, whose_of(i < SHORT ? "many" : "one", ""), work_short, on_told,
                      &all[i]);
    }
    atomic_store(&s->over, true);
    loop_run(s->loop);
    if (told <= SHORT) /* the hogs were told last */
        loop_run(s->loop);
    assert_int_equal(told, SHORT + 1);
    assert_true(all[SHORT].at < SHORT / 2);
}

static void stop_loop(void *arg)
{
    loop_stop(((struct scene *)arg)->loop);
}

/* More hogs than there are threads for one group leave room for another. */
static void test_threads_are_left_for_others(void **state)
{
    struct scene *s = *state;

    for (int i = 0; i < 100; i++)
        loop_work_for(s->loop, whose_of("tenant", "x"), work_long, work_short, s);
    s->left = QUICK;
    s->whose = whose_of("other", "");
    loop_work_for(s->loop, s->whose, work_short, on_short, s);
    while (!atomic_load(&s->over)) {
        loop_later(s->loop, stop_loop, s);
        loop_run(s->loop);
    }
    assert_int_equal(s->quick, QUICK);
}

/* What is under way is finished and told before the loop goes. */
static void on_last(void *arg)
{
    atomic_store(&((struct scene *)arg)->over, true);
}

static void test_free_waits(void **state)
{
    struct scene *s = *state;

    loop_work(s->loop, work_short, on_last, s);
    loop_free(s->loop);
    assert_true(atomic_load(&s->over));
    s->loop = loop_new(&(struct err){0});
}

#define IN_SCENE(t) cmocka_unit_test_setup_teardown(t, open_scene, close_scene)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCENE(test_another_session_of_the_tenant),
        IN_SCENE(test_another_tenant),
        IN_SCENE(test_the_same_session),
        IN_SCENE(test_the_program_itself),
        IN_SCENE(test_a_wait_keeps_nobody),
        IN_SCENE(test_many_short_ones_are_no_queue_for_others),
        IN_SCENE(test_threads_are_left_for_others),
        IN_SCENE(test_free_waits),
    };

    return RUN(tests);
}
