/* create_session, list_sessions, restart_session, close_session. */
#include "doors/mcp/execution.h"
#include "doors/mcp/transport.h"

#include <stdio.h>
#include <stdlib.h>

#define LIST_MAX 50

/* "45 s", "30 min", "2 h", "7 d" */
static const char *span_show(char ret[32], int64_t ms)
{
    static const struct {
        int64_t ms;
        const char *unit;
    } units[] = {
        {86400000, "d"  },
        {3600000,  "h"  },
        {60000,    "min"},
        {1000,     "s"  },
    };
    size_t i = 0;

    while (i + 1 < COUNT(units) && (ms < units[i].ms || ms % units[i].ms != 0))
        i++;
    snprintf(ret, 32, "%lld %s", (long long)(ms / units[i].ms), units[i].unit);
    return ret;
}

/* --- create_session --- */

static void on_created(void *arg, const struct session_info *info, const struct err *failed)
{
    struct call *c = arg;
    struct conversation *v = c->conversation;
    const struct session_row *row;
    char idle[32], life[32], name[NAME_SHOWN];

    if (!info)
        return tool_refuse_session(c, failed);
    row = info->row;
    if (v)
        snprintf(v->session, sizeof(v->session), "%s", row->id);
    tool_printf(c,
                "%ssession_id: %s\npool: %s%s%s\nstate: %s\nvariables are kept: until it is idle "
                "for %s, and for %s at most; then it starts anew with its files%s%s\n%s",
                info->existed ? "A session of this name was there already.\n" : "", row->id,
                row->pool, row->name ? "\nname: " : "",
                row->name ? name_show(name, str_of(row->name)) : "",
                session_state_name(info->state), span_show(idle, row->idle_ms),
                span_show(life, row->lifetime_ms), info->note ? "\nnote: " : "",
                info->note ? info->note : "",
                v ? "It is used from now on when session_id is left out."
                  : "Pass session_id to run_code, run_shell and the file tools.");
}

static void create_session(struct call *c, json_t *args)
{
    struct service *sv = call_service(c);
    AUTO(exec_inputs_done) struct exec_inputs g = {0};
    struct session_spec spec = {
        .pool = call_arg(c, "pool"),
        .name = call_arg(c, "name"),
        .idle_ms = json_ms(json_object_get(args, "idle_timeout_s")),
    };
    char param[PARAM_MAX];
    struct err e;

    if (!sv)
        return;
    if (exec_inputs_env(&g, json_object_get(args, "env"), param, &e) < 0) {
        tool_fail(c, "%s: %s", param, e.text);
        return;
    }
    spec.env = g.env;
    spec.env_count = g.env_count;
    service_session_create(sv, &c->caller, &spec, on_created, c);
}

/* --- list_sessions --- */

static void put_session(struct buf *b, const struct session_info *info, const char *usual)
{
    const struct session_row *row = info->row;
    bool named = row->name && !id_is(str_of(row->name), "mcp_"); /* that is a conversation's */
    char used[TIME_TEXT], name[NAME_SHOWN];

    time_print(row->used_ms ? row->used_ms : row->created_ms, used);
    buf_printf(b, "%s | %s | pool %s | %llu executions | last used %s%s%s%s\n", row->id,
               session_state_name(info->state), row->pool, (unsigned long long)row->executions,
               used, named ? " | name " : "", named ? name_show(name, str_of(row->name)) : "",
               strcmp(row->id, usual) == 0 ? " | used when session_id is left out" : "");
}

static void on_listed(void *arg, const struct session_info *infos, size_t count, bool more,
                      const struct err *failed)
{
    struct call *c = arg;
    AUTO(buf_done) struct buf b = BUF(1 * MiB);

    if (failed) {
        tool_refuse(c, failed);
        return;
    }
    if (count == 0)
        buf_printf(&b, "There are no sessions. run_code without session_id makes one.");
    for (size_t i = 0; i < count; i++)
        put_session(&b, &infos[i], c->conversation ? c->conversation->session : "");
    if (more)
        buf_printf(&b, "There are more: list_sessions with after=%s\n", infos[count - 1].row->id);
    tool_say(c, buf_str(&b));
}

static void list_sessions(struct call *c, json_t *args)
{
    struct service *sv = call_service(c);
    const char *after = json_string_value(json_object_get(args, "after"));

    if (sv)
        service_session_list(sv, &c->caller, (struct page){.after = after, .limit = LIST_MAX},
                             on_listed, c);
}

/* --- restart_session, close_session --- */

static void on_restarted(void *arg, const struct session_info *info, const struct err *failed)
{
    struct call *c = arg;

    if (failed)
        tool_refuse_session(c, failed);
    else
        tool_printf(c,
                    "Session %s has a fresh interpreter: variables and imports are gone, files in "
                    "/workspace are kept. What ran was ended.",
                    info->row->id);
}

static void restart_session(struct call *c, json_t *args)
{
    struct service *sv = call_service(c);

    (void)args;
    if (sv && call_session_exists(c))
        service_session_restart(sv, &c->caller, str_of(c->session), on_restarted, c);
}

static void on_closed(void *arg, const struct err *failed)
{
    struct call *c = arg;
    struct conversation *v = c->conversation;

    if (failed) {
        tool_refuse_session(c, failed);
        return;
    }
    if (v && strcmp(v->session, c->session) == 0)
        v->session[0] = '\0';
    tool_printf(c, "Session %s is closed; its variables and files are gone.", c->session);
}

static void close_session(struct call *c, json_t *args)
{
    struct service *sv = call_service(c);

    (void)args;
    if (sv && call_session_exists(c))
        service_session_delete(sv, &c->caller, str_of(c->session), on_closed, c);
}

/* --- rows --- */

static const struct field create_params[] = {
    {"pool",                                                                         FIELD_TEXT, OPTIONAL, 1, 64, NULL,
     "The environment to use, by its name in list_packages. Left out: the default.", NULL},
    {"name",                                                                      FIELD_TEXT, OPTIONAL, 1, 128, NULL,
     "A name of yours. Where a session has it already, that one is the answer.", "\"sales-2026\""},
    {"env",                                                                            FIELD_MAP, OPTIONAL, 0, ENV_COUNT_MAX, NULL,
     "Environment variables for everything that runs in it.", NULL},
    {"idle_timeout_s", FIELD_NUMBER, OPTIONAL, 1, SECONDS_MAX, NULL,
     "Let its variables go after so many idle seconds; at most the pool's own time.", NULL},
    {0                                                                             },
};

static const struct field list_params[] = {
    {"after",   FIELD_TEXT, OPTIONAL, 1, 64, NULL,
     "Go on after this session_id, where an earlier list ended.", NULL},
    {0},
};

static const struct field session_params[] = {
    {"session_id", FIELD_TEXT, OPTIONAL, 1, 64, NULL,
     "The session. Left out: the one of this conversation.", NULL},
    {0   },
};

const struct tool tool_create_session = {
    .name = "create_session",
    .title = "Create a session",
    .text = "Make a new, separate interpreter session with its own variables and its own "
            "/workspace. Usually not needed: run_code without session_id makes one by itself. Use "
            "it to work on two things side by side, to choose another pool (environment), to give "
            "the session a name to find it by later, or to set environment variables. A session "
            "that is idle loses its variables after a time and keeps its files; the answer says "
            "when.\n"
            "Example: {\"name\": \"sales-2026\"}",
    .params = create_params,
    .run = create_session,
};

const struct tool tool_list_sessions = {
    .name = "list_sessions",
    .title = "List sessions",
    .text =
        "List your interpreter sessions, newest first: id, state (idle, running, asleep), pool, "
        "name and last use. An asleep session has lost its variables and kept its files; "
        "running code in it wakes it up.\n"
        "Example: {}",
    .params = list_params,
    .hints = TOOL_READS | TOOL_REPEATABLE,
    .run = list_sessions,
};

const struct tool tool_restart_session = {
    .name = "restart_session",
    .title = "Restart a session",
    .text = "Give a session a fresh Python interpreter: variables and imports go, files in "
            "/workspace stay. Use it when the interpreter is in a bad state or holds too much "
            "memory. Code that runs in it is ended.\n"
            "Example: {\"session_id\": \"sess_...\"}",
    .params = session_params,
    .hints = TOOL_DESTROYS | TOOL_REPEATABLE,
    .run = restart_session,
};

const struct tool tool_close_session = {
    .name = "close_session",
    .title = "Close a session",
    .text =
        "End a session for good and delete its variables and its files. Sessions left alone end "
        "by themselves after a time, so this is only needed to tidy up. Read the files you want "
        "to keep first.\n"
        "Example: {\"session_id\": \"sess_...\"}",
    .params = session_params,
    .hints = TOOL_DESTROYS | TOOL_REPEATABLE,
    .run = close_session,
};
