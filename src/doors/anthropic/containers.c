/*
 * Containers: sessions under another name. Their clients make one by the first message
 * that needs it; these routes, which Anthropic has not, let them see what there is and
 * give it back. Any session of the caller's is a container, whichever door made it.
 */
#include "doors/anthropic/anthropic_int.h"

#include <stdio.h>

#define SESSION_PREFIX "sess_"

void container_of_session(const char *session, char ret[ID_MAX])
{
    assert(id_is(str_of(session), SESSION_PREFIX));
    snprintf(ret, ID_MAX, CONTAINER_PREFIX "%s", session + strlen(SESSION_PREFIX));
}

bool container_to_session(struct str container, char ret[ID_MAX])
{
    size_t n = strlen(CONTAINER_PREFIX);

    if (!id_is(container, CONTAINER_PREFIX))
        return false;
    snprintf(ret, ID_MAX, SESSION_PREFIX "%.*s", (int)(container.n - n), container.p + n);
    return true;
}

json_t *container_value(const struct session_row *row)
{
    char id[ID_MAX];

    container_of_session(row->id, id);
    return json_pack("{s:s, s:o, s:n}", "id", id, "expires_at", stamp_value(row->expires_ms),
                     "skills");
}

/* --- routes of our own --- */

static json_t *render(const struct session_info *info)
{
    json_t *v = container_value(info->row);

    json_object_set_new(v, "type", json_string("container"));
    json_object_set_new(v, "status", json_string(session_state_name(info->state)));
    json_object_set_new(v, "created_at", stamp_value(info->row->created_ms));
    json_object_set_new(v, "last_used_at", stamp_value(info->row->used_ms));
    return v;
}

/* False when it has answered. */
static bool wanted(struct request *r, char ret[ID_MAX])
{
    struct str id = request_path(r, "container");
    char shown[NAME_SHOWN];

    if (container_to_session(id, ret))
        return true;
    answer_fail(r, 404, CODE_CONTAINER_EXPIRED, NULL, "Container %s not found or expired.",
                name_show(shown, id));
    return false;
}

static void fail(struct request *r, const struct err *failed)
{
    if (failed->kind == ERR_MISSING)
        answer_fail(r, 404, CODE_CONTAINER_EXPIRED, NULL, "Container %.*s not found or expired.",
                    (int)request_path(r, "container").n, request_path(r, "container").p);
    else
        answer_error(r, failed, NULL);
}

static void on_container(void *arg, const struct session_info *info, const struct err *failed)
{
    struct request *r = arg;

    if (failed)
        fail(r, failed);
    else
        answer_json(r, 200, render(info));
}

void handle_container(struct request *r)
{
    char session[ID_MAX];

    if (wanted(r, session))
        service_session_get(request_service(r), request_caller(r), str_of(session), on_container,
                            r);
}

static void on_deleted(void *arg, const struct err *failed)
{
    struct request *r = arg;
    char id[ID_MAX];

    if (failed)
        return fail(r, failed);
    snprintf(id, sizeof(id), "%s", request_path(r, "container").p);
    answer_json(r, 200, json_pack("{s:s, s:s}", "id", id, "type", "container_deleted"));
}

void handle_container_delete(struct request *r)
{
    char session[ID_MAX];

    if (wanted(r, session))
        service_session_delete(request_service(r), request_caller(r), str_of(session), on_deleted,
                               r);
}

static void on_containers(void *arg, const struct session_info *infos, size_t count, bool more,
                          const struct err *failed)
{
    struct request *r = arg;
    json_t *data;

    if (failed)
        return answer_error(r, failed, NULL);
    data = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(data, render(&infos[i]));
    answer_json(r, 200, listing_value(data, more, false));
}

void handle_containers(struct request *r)
{
    struct listing want;
    struct page page = {0};
    char after[ID_MAX];

    if (!listing_read(r, CONTAINER_PREFIX, &want))
        return;
    if (want.newer)
        return answer_fail(r, 400, CODE_INVALID, NULL,
                           "before_id: containers are listed by after_id");
    page.limit = want.limit;
    if (want.from.n > 0 && container_to_session(want.from, after))
        page.after = after;
    service_session_list(request_service(r), request_caller(r), page, on_containers, r);
}
