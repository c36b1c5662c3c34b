/* The settings of the door, and the list of modules that scripts may import. */
#include "doors/prisme/prisme_int.h"

#include <stdio.h>
#include <stdlib.h>

static const struct tool *const tools[] = {&tool_execute_python, NULL};
static const struct tool *const stubs[] = {&tool_execute_python_stub, NULL};

/* Names of a list, each up to its version: "pandas==2.0.0" is pandas. */
static void put_names(struct buf *b, const char *list)
{
    for (const char *p = list; p && *p;) {
        size_t n;
        p += strspn(p, ", \t\n");
        n = strcspn(p, ", \t\n=<>!~[;");
        if (n > 0 && b->n > 0)
            buf_put(b, STR(","));
        buf_put(b, (struct str){p, n});
        p += n + strcspn(p + n, ",\n");
    }
}

static int make_imports(struct prisme *p, struct err *e)
{
    const struct prisme_config *c = &p->config;
    AUTO(buf_done) struct buf b = BUF(IMPORTS_MAX);
    int rc;

    put_names(&b, c->builtins ? c->builtins : PRISME_BUILTINS);
    put_names(&b, c->packages ? c->packages : PRISME_PACKAGES);
    put_names(&b, c->packages_more);
    rc = buf_check(&b, e);
    p->imports = mem_strndup(buf_str(&b));
    return rc < 0 ? err_wrap(e, "the lists of modules to be imported are too long") : 0;
}

/* A model that knows the list does not have to try. */
static void make_instructions(struct prisme *p)
{
    int n = asprintf(&p->instructions,
                     "execute_python runs a complete script and gives its result back. Nothing is "
                     "kept from one script to the next. Modules that it may import: %s.",
                     strcmp(p->imports, "*") == 0 ? "all that are installed" : p->imports);

    assert(n > 0);
    p->tool_set.instructions = p->instructions;
}

struct prisme *prisme_new(const struct prisme_config *config, struct err *e)
{
    struct prisme *p = mem_zalloc(sizeof(*p));

    p->config = *config;
    p->lane = (struct exec_lane){(unsigned)config->parallel, SCRIPTS_WAITING_MAX};
    p->tool_set = (struct tool_set){
        .name = "retort-prisme",
        .title = "Code Interpreter of Prisme.ai, by retort",
        .tools = config->user_first ? stubs : tools,
        .pool = config->pool,
        .skill = "execute-python",
        .offers = OFFERS_SKILLS | OFFERS_RESOURCES,
    };
    if (make_imports(p, e) < 0 ||
        (config->sources &&
         !(p->sources = trusted_sources_new(config->sources, config->certificates, e)))) {
        prisme_free(p);
        return NULL;
    }
    make_instructions(p);
    return p;
}

void prisme_free(void *room)
{
    struct prisme *p = room;

    trusted_sources_free(p->sources);
    free(p->imports);
    free(p->instructions);
    free(p);
}

const struct tool_set *prisme_tool_set(void *room)
{
    return &((struct prisme *)room)->tool_set;
}

void prisme_think(struct prisme *p, const struct tool *tool, void *ctx, bool has_model)
{
    if (p->config.user_first)
        return;
    p->tool_set.agent_tool = tool;
    p->tool_set.ctx = ctx;
    p->tool_set.has_model = has_model;
}

void prisme_env(const struct prisme *p, struct env_var ret[PRISME_ENV])
{
    ret[0] = (struct env_var){STR("RETORT_PROFILE"), STR("prisme")};
    ret[1] = (struct env_var){STR("RETORT_IMPORTS"), str_of(p->imports)};
}
