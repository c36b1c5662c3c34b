/* A long answer that is made piece by piece, no faster than the client reads. */
#include "doors/rest/rest_int.h"

static void on_gone(void *arg)
{
    struct pump *p = arg;

    p->gone = true;
    if (!p->busy) /* else the step that is under way finds out in pump_back() */
        request_drop(p->r);
}

static void on_hold(void *arg, bool held)
{
    struct pump *p = arg;

    if (held || p->busy || p->gone)
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
    answer_stream_on_hold(p->r, on_hold, p);
}

/* Steps end in callbacks from the loop, so one calling the next does not pile up. */
void pump_next(struct pump *p)
{
    p->busy = !answer_stream_is_held(p->r);
    if (p->busy)
        p->step(p->arg);
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
