/* The room itself: its settings, and the one list of what scripts may import. */
#include "doors/prisme/prisme_int.h"

#include <stdlib.h>

static const struct tool *const tools[] = {&tool_execute_python, NULL};
static const struct tool *const stubs[] = {&tool_execute_python_stub, NULL};

/* Names of a list, each up to its version: "pandas==2.0.0" is pandas. */
static int put_names(struct buf *b, const char *list, struct err *e)
{
    for (const char *p = list; p && *p;) {
        size_t n;
        p += strspn(p, ", \t\n");
        n = strcspn(p, ", \t\n=<>!~[;");
        if (n > 0 &&
            (buf_put(b, b->n ? STR(",") : STR(""), e) < 0 || buf_put(b, (struct str){p, n}, e) < 0))
            return -1;
        p += n + strcspn(p + n, ",\n");
    }
    return 0;
}

static int make_imports(struct prisme *p, struct err *e)
{
    const struct prisme_config *c = &p->config;
    struct buf b;
    int rc;

    buf_init(&b, IMPORTS_MAX);
    rc = put_names(&b, c->builtins ? c->builtins : PRISME_BUILTINS, e) < 0 ||
                 put_names(&b, c->packages ? c->packages : PRISME_PACKAGES, e) < 0 ||
                 put_names(&b, c->packages_more, e) < 0
             ? -1
             : 0;
    p->imports = mem_strndup(buf_str(&b));
    buf_done(&b);
    return rc < 0 ? err_wrap(e, "the lists of modules to be imported are too long") : 0;
}

struct prisme *prisme_new(const struct prisme_config *config, struct err *e)
{
    struct prisme *p = mem_zalloc(sizeof(*p));

    p->config = *config;
    p->waiting_end = &p->waiting;
    p->face = (struct face){
        .name = "retort-prisme",
        .title = "Code Interpreter of Prisme.ai, by retort",
        .instructions = "execute_python runs a complete script and gives its result back. Nothing "
                        "is kept from one script to the next.",
        .tools = config->user_first ? stubs : tools,
        .pool = config->pool,
        .has = FACE_SKILLS | FACE_RESOURCES,
    };
    if (make_imports(p, e) < 0 ||
        (config->sources &&
         !(p->sources = source_list_new(config->sources, config->certificates, e)))) {
        prisme_free(p);
        return NULL;
    }
    return p;
}

void prisme_free(struct prisme *p)
{
    if (!p)
        return;
    scripts_free(p);
    source_list_free(p->sources);
    free(p->imports);
    free(p);
}

const struct face *prisme_face(struct prisme *p)
{
    return &p->face;
}

void prisme_think(struct prisme *p, const struct tool *tool, void *ctx, bool has_model)
{
    if (p->config.user_first)
        return;
    p->face.thinks = tool;
    p->face.ctx = ctx;
    p->face.has_model = has_model;
}

void prisme_env(const struct prisme *p, struct env_var ret[PRISME_ENV])
{
    ret[0] = (struct env_var){STR("RETORT_PROFILE"), STR("prisme")};
    ret[1] = (struct env_var){STR("RETORT_IMPORTS"), str_of(p->imports)};
}
