/*
 * Submits a tool's inputs as an execution. The steps, one after the other: choose the
 * model, find the documents, find or make the sandbox, start the agent.
 *
 * A document, sandbox or model that does not exist becomes a failed execution, because
 * clients look there. Errors of the server and limits are answered as errors.
 */
#include "doors/ubik/ubik_int.h"

#include <stdio.h>
#include <stdlib.h>

struct submission {
    struct end_user user;
    const struct catalog_entry *tool;
    json_t *inputs;      /* owned */
    json_t *files;       /* owned: [{"name", "file_id"}], or NULL */
    json_t *there;       /* owned: object, paths in the workspace of an older sandbox; or NULL */
    struct model *own;   /* borrowed: of the client, or NULL */
    struct model *fixed; /* owned: runs code that is given; or NULL */
    bool can_answer;
    bool of_account; /* the preference that is read is the account's */
    char *parent;    /* owned */
    char model[NAME_BYTES + 1];
    char sandbox[SANDBOX_CHARS + 1];
    char session[ID_MAX];
    bool made; /* the sandbox is new */
    char id[ID_MAX];
    json_t *outputs; /* owned: of a tool that runs nothing, or NULL */
    agent_started_fn *fn;
    void *arg;
};

static void submission_free(struct submission *s)
{
    if (s->fixed)
        s->fixed->ops->free(s->fixed);
    json_decref(s->inputs);
    json_decref(s->files);
    json_decref(s->there);
    json_decref(s->outputs);
    free(s->parent);
    free(s);
}

static void tell(void *arg, const struct err *failed)
{
    struct submission *s = arg;

    s->fn(s->arg, failed ? NULL : s->id, failed);
    submission_free(s);
}

/* --- on record --- */

/* Takes error, or NULL. */
static void keep(struct submission *s, bool agent, json_t *error)
{
    json_t *body =
        json_pack("{s:s, s:O, s:s, s:b, s:o*, s:O*}", "tool", s->tool->name, "inputs", s->inputs,
                  "sandbox", s->sandbox, "agent", agent, "error", error, "outputs", s->outputs);
    const struct item_row row = {.id = s->id,
                                 .owner = s->user.id,
                                 .parent = s->parent,
                                 .expires_ms = item_expiry_ms(s->user.u)};

    item_put(&s->user, "execution", row, 0, body, tell, s);
    json_decref(body);
}

static void on_dropped(void *arg, const struct err *failed)
{
    (void)arg;
    if (failed)
        log_warn("an unused sandbox could not be deleted: %s", failed->text);
}

/* Nothing runs. code: the execution is on record as failed; NULL: there is no execution. */
static void fail(struct submission *s, const char *code, const struct err *e)
{
    if (s->made && *s->session)
        service_session_delete(s->user.sv, &s->user.caller, str_of(s->session), on_dropped, NULL);
    if (!code) {
        tell(s, e);
        return;
    }
    id_make(s->id, "toolu_");
    keep(s, false, json_pack("{s:s, s:o}", "code", code, "message", record_text(str_of(e->text))));
}

/* --- the agent --- */

#define NO_MODEL "NoModelConfigured: "

static void on_started(void *arg, const json_t *record, const struct err *failed)
{
    struct submission *s = arg;
    struct err e;

    if (!failed) {
        snprintf(s->id, sizeof(s->id), "%s", json_string_value(json_object_get(record, "id")));
        follow_start(&s->user, s->id, take_ptr(&s->fixed));
        keep(s, true, NULL);
    } else if (failed->kind == ERR_CONFLICT &&
               strncmp(failed->text, NO_MODEL, sizeof(NO_MODEL) - 1) == 0) {
        err_set(&e, ERR_CONFLICT, "%s", failed->text + sizeof(NO_MODEL) - 1);
        fail(s, "NoModelConfigured", &e);
    } else {
        fail(s, failed->kind == ERR_MISSING ? "SandboxNotFound" : NULL, failed);
    }
}

#define UPLOADS "uploaded_files/"

/* Puts each file in two places: where Ubik's documentation says, and by its bare name beside the
 * code, unless the workspace has a file of that name. */
static size_t files_of(const struct submission *s, struct file_input *ret,
                       char (*paths)[NAME_BYTES + 32])
{
    const json_t *one;
    size_t i, n = 0;

    json_array_foreach(s->files, i, one) {
        struct str id = json_view(json_object_get(one, "file_id"));
        struct str name = json_view(json_object_get(one, "name"));
        snprintf(paths[i], sizeof(paths[i]), UPLOADS "%.*s", (int)name.n, name.p);
        ret[n++] = (struct file_input){.path = str_of(paths[i]), .file_id = id};
        if (!json_object_get(s->there, paths[i] + sizeof(UPLOADS) - 1) &&
            strncmp(paths[i] + sizeof(UPLOADS) - 1, UPLOADS, sizeof(UPLOADS) - 2) != 0)
            ret[n++] = (struct file_input){.path = name, .file_id = id};
    }
    return n;
}

static void start(struct submission *s)
{
    struct file_input files[2 * DOCUMENTS_MAX];
    char paths[DOCUMENTS_MAX][NAME_BYTES + 32];
    const json_t *rounds = json_object_get(s->inputs, "max_rounds");
    const uint64_t wanted_ms = json_ms(json_object_get(s->inputs, "timeout"));
    const uint64_t most_ms = s->user.u->config.run_ms;
    const struct agent_budget budget = {
        .run_ms = most_ms && (!wanted_ms || wanted_ms > most_ms) ? most_ms : wanted_ms,
        .rounds = rounds ? (uint64_t)json_integer_value(rounds) : 0,
    };
    const bool words = s->tool->kind == CATALOG_REQUEST;
    const struct agent_spec spec = {
        .tool = str_of(s->tool->name),
        .owner = str_of(s->user.id),
        .request = words ? json_view(json_object_get(s->inputs, "request")) : STR("Run this code."),
        .context = json_view(json_object_get(s->inputs, "context")),
        .sandbox = str_of(s->session),
        .pool = str_of(s->user.u->config.pool),
        .input_dir = STR("/home/uploaded_files"),
        .files = files,
        .file_count = files_of(s, files, paths),
        .model = str_of(s->model),
        .own = s->fixed ? s->fixed : s->own,
        .own_only = s->fixed,
        .external = strcmp(s->user.caller.door, "mcp") == 0,
        .can_answer = s->can_answer,
        .no_replan = s->user.u->config.no_replan,
        .budget = &budget,
    };
    struct err e;
    struct agent *a = ubik_agent(s->user.u, &e);

    if (a)
        agent_start(a, &s->user.caller, &spec, on_started, s);
    else
        tell(s, &e);
}

/* --- the sandbox --- */

static void on_space(void *arg, const struct space_file *files, size_t count,
                     const struct err *failed)
{
    struct submission *s = arg;

    if (failed) {
        tell(s, failed);
        return;
    }
    s->there = json_object();
    for (size_t i = 0; i < count; i++)
        if (str_utf8_len(files[i].path) == files[i].path.n)
            json_object_setn_new(s->there, files[i].path.p, files[i].path.n, json_true());
    start(s);
}

static void on_sandbox(void *arg, const char *sandbox, const char *session,
                       const struct err *failed)
{
    struct submission *s = arg;

    snprintf(s->sandbox, sizeof(s->sandbox), "%s", sandbox);
    if (failed) {
        fail(s, failed->kind == ERR_MISSING && !s->made ? "SandboxNotFound" : NULL, failed);
        return;
    }
    snprintf(s->session, sizeof(s->session), "%s", session);
    if (s->made || !s->files)
        start(s);
    else
        service_space_list(s->user.sv, &s->user.caller, str_of(session), on_space, s);
}

static void find_sandbox(struct submission *s)
{
    struct str id = json_view(json_object_get(s->inputs, "sandbox_id"));

    s->made = id.n == 0;
    if (s->made)
        sandbox_make(&s->user, on_sandbox, s);
    else
        sandbox_find(&s->user, id, on_sandbox, s);
}

/* --- the documents --- */

static void on_documents(void *arg, json_t *files, const struct err *failed)
{
    struct submission *s = arg;

    if (failed) {
        fail(s,
             failed->kind == ERR_MISSING    ? "DocumentNotFound"
             : failed->kind == ERR_CONFLICT ? "DocumentNotReady"
                                            : NULL,
             failed);
        return;
    }
    s->files = json_incref(files);
    find_sandbox(s);
}

static void find_documents(struct submission *s)
{
    const json_t *ids = json_object_get(s->inputs, "document_ids");

    if (json_array_size(ids) > 0)
        documents_find(&s->user, ids, on_documents, s);
    else
        find_sandbox(s);
}

/* --- the model --- */

static void read_preference(struct submission *s);

static void on_preference(void *arg, const struct item_row *item, const struct err *failed)
{
    struct submission *s = arg;
    json_t *body = item ? json_loads(item->body, 0, NULL) : NULL;
    struct str name = json_view(json_object_get(body, "code_generation_model"));

    (void)failed;
    if ((name.n && str_to_cstr(name, s->model, sizeof(s->model))) || s->of_account) {
        find_documents(s);
    } else {
        s->of_account = true;
        read_preference(s);
    }
    json_decref(body);
}

static void read_preference(struct submission *s)
{
    struct end_user of = s->user;

    if (s->of_account)
        *of.id = '\0';
    preference_get(&of, on_preference, s);
}

/* The model that the inputs name, else the end user's preference, else the account's. */
static void find_model(struct submission *s)
{
    struct str named = json_view(json_object_get(s->inputs, "model"));

    s->of_account = !*s->user.id;
    if (named.n && str_to_cstr(named, s->model, sizeof(s->model)))
        find_documents(s);
    else
        read_preference(s);
}

/* --- given code --- */

static void give(struct submission *s, const char *plan, struct str code)
{
    s->fixed = fixed_model_new(s->user.u->config.loop, str_of(plan), code);
    find_documents(s);
}

static void give_script(struct submission *s, const struct embedded *f)
{
    json_t *argv = json_pack("[s]", f->name);
    AUTO_FREE char *list = NULL, *code = NULL;
    int n;

    json_array_extend(argv, json_object_get(s->inputs, "args"));
    list = record_dump(argv, false, NULL); /* a list of plain strings is one in Python, too */
    json_decref(argv);
    n = asprintf(&code, "import sys\nsys.argv = %s\n%.*s", list, (int)f->bytes.n, f->bytes.p);
    assert(n > 0);
    give(s, "Run the script of the skill", str_of(code));
}

static void take_skill(struct submission *s)
{
    struct str skill = json_view(json_object_get(s->inputs, "skill_id"));
    struct str path = json_view(json_object_get(s->inputs, "file_path"));
    char uri[2 * NAME_BYTES + 16];
    const struct embedded *f;
    struct err e;

    snprintf(uri, sizeof(uri), "skill://%.*s/%.*s", (int)skill.n, skill.p, (int)path.n, path.p);
    f = embedded_find(str_of(uri));
    if (!f) {
        err_set(&e, ERR_MISSING, "there is no such file of a skill: %.300s", uri);
        fail(s, "SkillFileNotFound", &e);
    } else if (path.n > 3 && memcmp(path.p + path.n - 3, ".py", 3) == 0) {
        give_script(s, f);
    } else {
        id_make(s->id, "toolu_");
        s->outputs = json_pack("{s:s, s:s, s:o}", "status", "success", "action", "read", "content",
                               record_text(f->bytes));
        keep(s, false, NULL);
    }
}

void submission_start(const struct end_user *user, const struct agent_request *q,
                      const char *parent, agent_started_fn *fn, void *arg)
{
    struct submission *s = mem_zalloc(sizeof(*s));

    *s = (struct submission){.user = *user,
                             .tool = catalog_named(q->tool),
                             .inputs = json_incref(q->inputs),
                             .own = q->own,
                             .can_answer = q->can_answer,
                             .parent = mem_strdup(parent ? parent : ""),
                             .fn = fn,
                             .arg = arg};
    if (s->tool->kind == CATALOG_REQUEST)
        find_model(s);
    else if (s->tool->kind == CATALOG_CODE)
        give(s, "Run the given code", json_view(json_object_get(s->inputs, "code")));
    else
        take_skill(s);
}

/* --- over HTTP --- */

// clang-format off
static const struct field execute_fields[] = {
    {"external_user_id", FIELD_TEXT, OPTIONAL, 0, USER_MAX, NULL,
     "The end user, where no header names one.", NULL},
    {"inputs", FIELD_OBJECT, REQUIRED, 0, 0, NULL, "The inputs of the tool.",
     "{\"request\": \"What is 17 * 23?\"}"},
    {0},
};
// clang-format on

static void on_submitted(void *arg, const char *id, const struct err *failed)
{
    struct request *r = arg;
    AUTO_FREE char *base = base_url(request_base_url(r));
    char tool[UUID_MAX];

    if (failed) {
        detail_err(r, failed, NULL);
        return;
    }
    uuid_of(tool, "tool", catalog_find(request_path(r, "tool"))->name);
    answer_json(r, 202,
                json_pack("{s:s, s:s, s:s, s:o, s:o}", "execution_id", id, "status", "pending",
                          "tool_id", tool, "details_url",
                          json_sprintf("%s/tool-executions/%s", base, id), "stream_url",
                          json_sprintf("%s/tool-executions/%s/stream", base, id)));
}

void handle_tool_execute(struct request *r)
{
    const struct catalog_entry *tool = catalog_find(request_path(r, "tool"));
    struct agent_request q = {.can_answer = true};
    struct end_user user;
    json_t *body;

    if (!tool) {
        detail(r, 404, "Tool not found");
        return;
    }
    if (!end_user_read(r, &user) || !(body = body_object(r, execute_fields)))
        return;
    q.tool = tool->name;
    q.inputs = json_object_get(body, "inputs");
    if (end_user_take(r, &user, json_view(json_object_get(body, "external_user_id"))) &&
        check_inputs(r, tool->params, q.inputs))
        submission_start(&user, &q, NULL, on_submitted, r);
    json_decref(body);
}
