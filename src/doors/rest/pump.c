/* A long answer, made piece by piece, no faster than its reader takes it. */
#include "doors/rest/rest_int.h"

static void on_gone(void *arg)
{
    struct pump *p = arg;

    p->gone = true;
    if (!p->busy) /* else the step that is under way finds out in pump_back() */
        request_drop(p->r);
}

static void on_low(void *arg)
{
    struct pump *p = arg;

    p->waits = 0;
    if (p->busy || p->gone)
        return;
    p->busy = true;
    p->step(p->arg);
}

void pump_start(struct pump *p, struct request *r, loop_fn *step, void *arg)
{
    *p = (struct pump){.r = r, .step = step, .arg = arg, .busy = true};
    request_on_gone(r, on_gone, p);
    step(arg);
}

bool pump_back(struct pump *p)
{
    bool gone = p->gone;

    assert(p->busy);
    if (gone)
        request_drop(p->r); /* p is gone, too */
    return !gone;
}

void pump_open(struct pump *p, int status, const char *mime)
{
    p->open = true;
    answer_stream(p->r, status, mime, (struct str){0});
    answer_stream_on_low(p->r, WAITING_LOW, on_low, p);
}

void pump_put(struct pump *p, struct str bytes)
{
    p->waits = answer_stream_put(p->r, bytes);
}

bool pump_put_some(struct pump *p, struct str all, size_t *at)
{
    while (*at < all.n && p->waits <= WAITING_HIGH) {
        size_t left = all.n - *at;
        size_t n = left < WAITING_HIGH ? left : WAITING_HIGH;
        pump_put(p, (struct str){all.p + *at, n});
        *at += n;
    }
    return *at == all.n;
}

/* Steps end in callbacks from the loop, so one calling the next does not pile up. */
void pump_next(struct pump *p)
{
    p->busy = p->waits <= WAITING_HIGH;
    if (p->busy)
        p->step(p->arg);
}

void pump_end(struct pump *p)
{
    answer_stream_end(p->r);
}

void pump_fail(struct pump *p, const struct err *e)
{
    if (!p->open) {
        answer_error(p->r, e, NULL);
        return;
    }
    log_error("%s: answer cut short: %s", request_caller(p->r)->request, e->text);
    request_drop(p->r);
}
