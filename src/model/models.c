/* The models of the settings, and who asks which. */
#include "model/model.h"

struct models {
    struct model *scripted; /* owned, or NULL */
};

struct model_call *model_ask(struct model *m, const struct model_ask *ask,
                             const struct model_watcher *w, void *arg)
{
    return m->ops->ask(m, ask, w, arg);
}

void model_call_cancel(struct model_call *c)
{
    c->model->ops->cancel(c);
}

struct models *models_new(const struct models_config *config, struct err *e)
{
    struct models *ms = mem_zalloc(sizeof(*ms));

    if (config->script) {
        const char *path = strcmp(config->script, "-") == 0 ? NULL : config->script;

        ms->scripted = scripted_new(config->loop, path, e);
        if (!ms->scripted) {
            models_free(ms);
            return NULL;
        }
    }
    return ms;
}

void models_free(struct models *ms)
{
    if (!ms)
        return;
    if (ms->scripted)
        ms->scripted->ops->free(ms->scripted);
    mem_freep(&ms);
}

struct model *models_find(struct models *ms, const char *tenant, struct str wanted)
{
    (void)tenant;
    (void)wanted;
    return ms->scripted;
}
