/* Waits for the next output of an execution, or for its end. */
#include "service/service_int.h"

#include <stdlib.h>

struct exec_watch {
    struct exec_watch *next, **link; /* of its job; link NULL when it is not there any more */
    struct service *sv;              /* borrowed */
    loop_fn *fn;
    void *arg;
    bool talk; /* not only its end */
    bool due;  /* fn is about to be called */
    bool left; /* nobody wants that any more */
};

static void part(struct exec_watch *w)
{
    *w->link = w->next;
    if (w->next)
        w->next->link = w->link;
    w->link = NULL;
}

static void tell(void *arg)
{
    struct exec_watch *w = arg;

    w->sv->pending--;
    w->due = false;
    if (w->left)
        free(w);
    else
        w->fn(w->arg);
}

void job_wake(struct execution *j, bool over)
{
    for (struct exec_watch *w = j->watches, *next; w; w = next) {
        next = w->next;
        if (!over && !w->talk)
            continue;
        part(w);
        w->due = true;
        w->sv->pending++;
        loop_later(w->sv->loop, tell, w);
    }
}

struct exec_watch *service_exec_watch(struct service *sv, const struct caller *c, struct str id,
                                      bool talk, loop_fn *fn, void *arg)
{
    char name[ID_MAX];
    struct exec_watch *w;
    struct execution *j;

    if (!str_to_cstr(id, name, sizeof(name)))
        return NULL;
    j = table_get(&sv->jobs, name);
    if (!j || strcmp(j->row.tenant, c->tenant) != 0 || !service_sees_pool(sv, c, j->row.pool))
        return NULL;
    w = mem_zalloc(sizeof(*w));
    *w = (struct exec_watch){.sv = sv, .fn = fn, .arg = arg, .talk = talk};
    w->next = j->watches;
    w->link = &j->watches;
    if (w->next)
        w->next->link = &w->next;
    j->watches = w;
    return w;
}

void exec_watch_free(struct exec_watch *w)
{
    if (!w)
        return;
    if (w->link)
        part(w);
    w->left = true;
    if (!w->due)
        free(w);
}
