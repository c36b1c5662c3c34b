/* The session a tool works in: the one it was told, that of its conversation, or a new one. */
#include "doors/mcp/mcp_int.h"

#include <stdio.h>
#include <stdlib.h>

struct finding {
    struct call *c; /* borrowed: held by whom we answer */
    place_fn *fn;
    void *arg;
};

static void on_made(void *arg, const struct session_info *info, const struct err *failed)
{
    struct finding *f = arg;
    struct conversation *v = f->c->conversation;

    if (!failed && v)
        snprintf(v->session, sizeof(v->session), "%s", info->row->id);
    f->fn(f->arg, failed ? "" : info->row->id, v ? RUN_FIRST : RUN_NEW, failed);
    free(f);
}

/* What is too long to be an id is nobody's. */
static void copy_id(char ret[ID_MAX], struct str given)
{
    if (!str_to_cstr(given, ret, ID_MAX))
        snprintf(ret, ID_MAX, "?");
}

void place_find(struct call *c, struct service *sv, struct str given, place_fn *fn, void *arg)
{
    struct conversation *v = c->conversation;
    struct session_spec spec = {.name = str_of(v ? v->id : NULL)};
    struct finding *f;
    char id[ID_MAX];

    if (given.n > 0) {
        copy_id(id, given);
        fn(arg, id, RUN_NAMED, NULL);
        return;
    }
    if (v && v->session[0]) {
        memcpy(id, v->session, sizeof(id));
        fn(arg, id, RUN_USUAL, NULL);
        return;
    }
    f = mem_zalloc(sizeof(*f));
    *f = (struct finding){c, fn, arg};
    /* By the name of the conversation: two calls at the same moment get one session. */
    service_session_create(sv, &c->caller, &spec, on_made, f);
}

const char *place_there(struct call *c, struct str given, char ret[ID_MAX])
{
    struct conversation *v = c->conversation;

    if (given.n > 0)
        copy_id(ret, given);
    else if (v && v->session[0])
        memcpy(ret, v->session, ID_MAX);
    else {
        tool_fail(c,
                  "session_id is needed here, as no code has been run yet in this conversation. "
                  "run_code and write_file make a session and name it; list_sessions shows those "
                  "there are.");
        return NULL;
    }
    return ret;
}

void place_refuse(struct call *c, const char *session, const struct err *failed)
{
    struct conversation *v = c->conversation;
    bool usual = v && strcmp(v->session, session) == 0;
    char shown[NAME_SHOWN];

    if (failed->kind == ERR_BUSY)
        tool_fail(c, "Not now: %s. Nothing was done; try again in %d s.", failed->text,
                  failed->retry_s > 0 ? failed->retry_s : 1);
    else if (failed->kind != ERR_MISSING)
        tool_refuse(c, failed);
    else {
        if (usual)
            v->session[0] = '\0';
        tool_fail(c,
                  "There is no session %s: it was closed, it expired with its files, or the id is "
                  "wrong. Call run_code or write_file without session_id to get a new one; "
                  "list_sessions shows those there are.",
                  name_show(shown, str_of(session)));
    }
}
