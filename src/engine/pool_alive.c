/* Checks whether the warden and the zygote of a pool answer. A stopped process sends nothing, so
 * a caller that waits for a sandbox gets an error after some seconds, and can ask again later. */
#include "engine/pool_int.h"

#define PING_MS 1000 /* between two questions whether warden and zygote are there */
#define DEAF_MS 5000 /* without an answer for so long, one of them is stopped or stuck */
#define NO_BOX  "no sandbox can be made: "
#define OPEN_MS 10000 /* a session waits so long for the next zygote of a pool that was up */

/* Asked when somebody wants to know, so a server that nobody asks sleeps. */
bool pool_is_deaf(struct pool *p)
{
    int64_t now = time_mono_us();

    if (!p->pinged_us && now - p->pong_us > PING_MS * INT64_C(1000) &&
        engine_tell(p->engine, MSG_PING, p->zygote, (struct str){0}, -1) == 0)
        p->pinged_us = now;
    if (p->pinged_us && now - p->pinged_us > DEAF_MS * INT64_C(1000))
        err_set(&p->deaf, ERR_HOST,
                NO_BOX
                "the warden (retort-warden) or the interpreter that "
                "sandboxes are forked from (zygote.py) has not answered for %d s; perhaps it is "
                "stopped: look at its state with ps, and continue it with kill -CONT",
                (int)((now - p->pinged_us) / 1000000));
    return p->deaf.kind != ERR_NONE;
}

void pool_on_pong(struct pool *p)
{
    bool was_deaf = p->deaf.kind;

    p->pinged_us = 0;
    p->pong_us = time_mono_us();
    p->deaf = (struct err){0};
    if (was_deaf)
        parked_on_again(p);
}

static bool is_due(const struct guest *g)
{
    return guest_state(g) != GUEST_DEAD && !guest_is_spawned(g);
}

/* The sandboxes that were asked for and are not made, and who waits for them. */
static void give_up(struct pool *p)
{
    for (struct parked *k = TAILQ_FIRST(&p->parked[PARKED_BOOTING]); k; k = TAILQ_NEXT(k, next))
        if (is_due(k->guest))
            guest_end(k->guest, p->deaf.text + sizeof(NO_BOX) - 1); /* the owner hears it later */
    pool_fail_openings(p, INT64_MAX);
}

static bool is_awaited(const struct pool *p)
{
    for (const struct parked *k = TAILQ_FIRST(&p->parked[PARKED_BOOTING]); k;
         k = TAILQ_NEXT(k, next))
        if (is_due(k->guest))
            return true;
    return p->waiting_count > 0 && p->was_up;
}

void pool_on_listen(void *arg)
{
    struct pool *p = arg;
    int64_t late_us = time_mono_us() - OPEN_MS * INT64_C(1000);

    p->listening = false;
    if (p->zygote && is_awaited(p) && pool_is_deaf(p))
        give_up(p);
    if (!p->zygote && p->was_up)
        pool_fail_openings(p, late_us);
    if (is_awaited(p))
        pool_listen(p);
}

void pool_listen(struct pool *p)
{
    if (!p->listening)
        timer_set(p->listen, PING_MS);
    p->listening = true;
}
