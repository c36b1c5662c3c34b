/*
 * The models of the settings, their keys and their certificates, which are read before the server
 * gives up its rights.
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
    set->files = mem_zalloc(s->count * sizeof(*set->files));
    set->count = s->count;
    for (size_t i = 0; i < s->count; i++) {
        set->item[i] = config_of(&s->all[i]);
        set->files[i].ca = -1;
    }
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

static int read_files(struct model_files *f, struct model_config *item,
                      const struct endpoint_settings *m, struct err *e)
{
    if (m->key_file) {
        f->key = read_key(m, e);
        if (!f->key)
            return -1;
        item->key = f->key;
    }
    if (m->ca_file) {
        f->ca = file_keep("model-ca", m->ca_file, f->ca_path, e);
        if (f->ca < 0)
            return -1;
        item->ca_file = f->ca_path;
    }
    return 0;
}

int model_set_open(struct model_set *set, const struct settings *s, struct err *e)
{
    fill(set, &s->model);
    for (size_t i = 0; i < set->count; i++)
        if (read_files(&set->files[i], &set->item[i], &s->model.all[i], e) < 0)
            return -1;
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
        struct model_files *f = &set->files[i];
        if (f->key)
            explicit_bzero(f->key, strlen(f->key));
        free(f->key);
        fd_closep(&f->ca);
    }
    free(set->files);
    free(set->item);
    *set = (struct model_set){0};
}
