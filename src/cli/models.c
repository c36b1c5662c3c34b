/*
 * The models of the settings, and their keys, which are read before the server gives up its rights.
 */
#include "cli/serve_int.h"

#include <fcntl.h>
#include <stdlib.h>

#define KEY_FILE_MAX (8 * KiB)

static_assert((int)API_OPENAI == (int)MODEL_OPENAI && (int)API_ANTHROPIC == (int)MODEL_ANTHROPIC,
              "the words of model-api stand in the order of enum model_api");

static struct model_config config_of(const struct endpoint_settings *m)
{
    return (struct model_config){
        .label = m->label,
        .api = (enum model_api)m->api,
        .url = m->url,
        .name = m->name,
        .key = m->key,
        .proxy = m->proxy,
        .ca_file = m->ca_file,
        .timeout_ms = m->timeout_ms,
        .max_tokens = m->max_tokens,
        .images = m->images,
        .text_only = m->text_only,
    };
}

static void fill(struct model_set *set, const struct model_settings *s)
{
    *set = (struct model_set){0};
    set->item = mem_zalloc(s->count * sizeof(*set->item));
    set->key = mem_zalloc(s->count * sizeof(*set->key));
    set->count = s->count;
    for (size_t i = 0; i < s->count; i++)
        set->item[i] = config_of(&s->all[i]);
    set->config = (struct models_config){
        .script = s->script,
        .models = set->item,
        .count = s->count,
        .standard = s->standard,
        .tenants = s->tenants,
    };
}

int models_settings_check(const struct settings *s, struct err *e)
{
    struct model_set set;
    int rc;

    fill(&set, &s->model);
    rc = models_check(&set.config, e);
    model_set_done(&set);
    return rc;
}

/* Blanks at its end are a text editor's. */
static char *read_key(const struct endpoint_settings *m, struct err *e)
{
    AUTO_FREE char *key = mem_zalloc(KEY_FILE_MAX);
    ssize_t n = fd_read_file_at(AT_FDCWD, m->key_file, key, KEY_FILE_MAX);

    if (n < 0) {
        err_sys(e, "model %s: cannot read key-file %s", m->label, m->key_file);
        e->kind = ERR_CALLER;
        return NULL;
    }
    while (n > 0 && strchr(" \t\r\n", key[n - 1]))
        key[--n] = '\0';
    if (n == 0) {
        err_set(e, ERR_CALLER, "model %s: key-file %s is empty", m->label, m->key_file);
        return NULL;
    }
    return take_ptr(&key);
}

int model_set_open(struct model_set *set, const struct settings *s, struct err *e)
{
    fill(set, &s->model);
    for (size_t i = 0; i < set->count; i++) {
        if (!s->model.all[i].key_file)
            continue;
        set->key[i] = read_key(&s->model.all[i], e);
        if (!set->key[i])
            return -1;
        set->item[i].key = set->key[i];
    }
    return models_check(&set->config, e);
}

struct models *model_set_start(struct model_set *set, struct loop *l, struct err *e)
{
    set->config.loop = l;
    return models_new(&set->config, e);
}

void model_set_done(struct model_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->key[i])
            explicit_bzero(set->key[i], strlen(set->key[i]));
        free(set->key[i]);
    }
    free(set->key);
    free(set->item);
    *set = (struct model_set){0};
}
