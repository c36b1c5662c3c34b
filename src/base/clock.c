/*
 * Clocks.
 *
 * Somebody can set the time of day, and data that was deleted for its age does not come back. So
 * code that deletes for age asks for the sure time. The sure time is the last time of day that was
 * believed, plus the time that has passed since then on a clock that nobody sets. A time of day
 * that is ahead of the sure time is believed after a day, if it is still ahead then.
 */
#include "base/base.h"

#include <pthread.h>
#include <time.h>

#define SLACK_MS 60000                   /* as time is set while it is kept right */
#define GRACE_MS ((int64_t)86400 * 1000) /* for somebody to notice */

static int64_t read_clock_us(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t time_mono_us(void)
{
    return read_clock_us(CLOCK_MONOTONIC);
}

int64_t time_now_ms(void)
{
    return read_clock_us(CLOCK_REALTIME) / 1000;
}

/* --- the sure time --- */

int64_t sure_clock_read(struct sure_clock *c, int64_t now_ms, int64_t boot_ms)
{
    int64_t sure_ms = c->sure_ms + boot_ms - c->boot_ms;

    if (c->sure_ms == 0 || now_ms <= sure_ms + SLACK_MS ||
        (c->is_ahead && boot_ms - c->ahead_ms >= GRACE_MS)) {
        *c = (struct sure_clock){.sure_ms = now_ms, .boot_ms = boot_ms};
        return now_ms;
    }
    if (!c->is_ahead) {
        c->is_ahead = true;
        c->ahead_ms = boot_ms;
        log_warn("the clock is %lld s ahead of what it was and what has gone by since: for a day "
                 "nothing is deleted because of that",
                 (long long)(now_ms - sure_ms) / 1000);
    }
    return sure_ms;
}

/* A server that was stopped for less than GRACE_MS believes the clock. */
void sure_clock_begin(struct sure_clock *c, int64_t last_ms, int64_t now_ms, int64_t boot_ms)
{
    bool long_ago = last_ms > 0 && now_ms - last_ms > GRACE_MS;

    *c = (struct sure_clock){.sure_ms = long_ago ? last_ms : now_ms, .boot_ms = boot_ms};
}

/* Counts while the machine is suspended, too. */
static int64_t boot_ms(void)
{
    return read_clock_us(CLOCK_BOOTTIME) / 1000;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct sure_clock sure;

int64_t time_sure_ms(void)
{
    int64_t ms;

    pthread_mutex_lock(&mutex);
    ms = sure_clock_read(&sure, time_now_ms(), boot_ms());
    pthread_mutex_unlock(&mutex);
    return ms;
}

void time_sure_begin(int64_t last_ms)
{
    pthread_mutex_lock(&mutex);
    if (sure.sure_ms == 0)
        sure_clock_begin(&sure, last_ms, time_now_ms(), boot_ms());
    pthread_mutex_unlock(&mutex);
}
