/*
 * An order: a tool is to do something. Each step waits for the one before: which model is
 * preferred, which documents there are, which sandbox it is; then the agent has it.
 *
 * What is wrong with what a caller names (a document, a sandbox, a model that is not
 * there) is told as an execution that has failed, as clients look for it there; what is
 * wrong with us, or with how much there is to do already, is an error.
 */
#include "doors/ubik/ubik_int.h"

#include <stdio.h>
#include <stdlib.h>

struct order {
    struct ubik *u;     /* borrowed */
    struct service *sv; /* borrowed */
    struct caller caller;
    struct who who;
    const struct catalog_entry *tool;
    json_t *inputs;    /* owned */
    json_t *files;     /* owned: [{"name", "file_id"}], or NULL */
    json_t *there;     /* owned: object, paths in the workspace of a sandbox that was there */
    struct model *own; /* owned, if it is one of ours */
    bool own_is_ours;
    bool can_answer;
    char *parent; /* owned */
    char model[NAME_BYTES + 1];
    char sandbox[SANDBOX_CHARS + 1];
    char session[ID_MAX];
    bool made; /* the sandbox is new */
    char id[ID_MAX];
    struct str code; /* of a script: a view of embedded bytes, or of inputs */
    json_t *outputs; /* owned: of what is done already, or NULL */
    order_fn *fn;
    void *arg;
};

static void order_free(struct order *o)
{
    if (o->own_is_ours && o->own)
        o->own->ops->free(o->own);
    json_decref(o->inputs);
    json_decref(o->files);
    json_decref(o->there);
    json_decref(o->outputs);
    free(o->parent);
    free(o);
}

static void tell(struct order *o, const struct err *failed)
{
    o->fn(o->arg, failed ? NULL : o->id, failed);
    order_free(o);
}

/* --- on record --- */

static void on_kept(void *arg, const struct err *failed)
{
    tell(arg, failed);
}

/* error: takes it, or NULL. */
static void keep(struct order *o, bool agent, json_t *error)
{
    const uint64_t keep_ms = o->u->config.keep_ms;
    json_t *body =
        json_pack("{s:s, s:O, s:s, s:b, s:o*, s:O*}", "tool", o->tool->name, "inputs", o->inputs,
                  "sandbox", o->sandbox, "agent", agent, "error", error, "outputs", o->outputs);
    AUTO_FREE char *text = record_dump(body, false, NULL);
    char kind[] = "execution";
    const struct item_row row = {.id = o->id,
                                 .kind = kind,
                                 .owner = o->who.user,
                                 .parent = o->parent,
                                 .expires_ms = keep_ms ? clock_ms() + (int64_t)keep_ms : 0,
                                 .body = text};

    json_decref(body);
    service_item_put(o->sv, &o->caller, &row, on_kept, o);
}

static void on_dropped(void *arg, const struct err *failed)
{
    (void)arg;
    if (failed)
        log_warn("a sandbox that was made in vain stays: %s", failed->text);
}

/* An execution that has failed before anything was run. */
static void refuse(struct order *o, const char *code, const struct err *e)
{
    if (o->made)
        service_session_delete(o->sv, &o->caller, str_of(o->session), on_dropped, NULL);
    id_make(o->id, "toolu_");
    keep(o, false, json_pack("{s:s, s:o}", "code", code, "message", record_text(str_of(e->text))));
}

/* --- the agent --- */

#define NO_MODEL "NoModelConfigured: "

static void on_started(void *arg, const json_t *record, const struct err *failed)
{
    struct order *o = arg;
    struct err e;

    if (!failed) {
        snprintf(o->id, sizeof(o->id), "%s", json_string_value(json_object_get(record, "id")));
        follow_start(o->u, o->sv, &o->caller, o->who.user, o->id,
                     o->own_is_ours ? take_ptr(&o->own) : NULL);
        keep(o, true, NULL);
    } else if (failed->kind == ERR_CONFLICT &&
               strncmp(failed->text, NO_MODEL, sizeof(NO_MODEL) - 1) == 0) {
        err_set(&e, ERR_CONFLICT, "%s", failed->text + sizeof(NO_MODEL) - 1);
        refuse(o, "NoModelConfigured", &e);
    } else if (failed->kind == ERR_MISSING) {
        refuse(o, "SandboxNotFound", failed);
    } else {
        if (o->made)
            service_session_delete(o->sv, &o->caller, str_of(o->session), on_dropped, NULL);
        tell(o, failed);
    }
}

#define UPLOADS "uploaded_files/"

/* Each file twice: where the tool's own documentation says, and beside the code, by its bare name,
 * unless the code has one of that name already. Paths and files are owned by the caller. */
static size_t files_of(const struct order *o, struct file_input *ret,
                       char (*paths)[NAME_BYTES + 32])
{
    const json_t *one;
    size_t i, n = 0;

    json_array_foreach(o->files, i, one)
    {
        struct str id = json_view(json_object_get(one, "file_id"));
        struct str name = json_view(json_object_get(one, "name"));
        snprintf(paths[i], sizeof(paths[i]), UPLOADS "%.*s", (int)name.n, name.p);
        ret[n++] = (struct file_input){.path = str_of(paths[i]), .file_id = id};
        if (!json_object_get(o->there, paths[i] + sizeof(UPLOADS) - 1) &&
            strncmp(paths[i] + sizeof(UPLOADS) - 1, UPLOADS, sizeof(UPLOADS) - 2) != 0)
            ret[n++] = (struct file_input){.path = name, .file_id = id};
    }
    return n;
}

static void start(struct order *o)
{
    struct file_input files[2 * DOCUMENTS_MAX];
    char paths[DOCUMENTS_MAX][NAME_BYTES + 32];
    const json_t *rounds = json_object_get(o->inputs, "max_rounds");
    const uint64_t wanted_ms = json_ms(json_object_get(o->inputs, "timeout"));
    const uint64_t most_ms = o->u->config.run_ms;
    const struct agent_budget budget = {
        .run_ms = most_ms && (!wanted_ms || wanted_ms > most_ms) ? most_ms : wanted_ms,
        .rounds = rounds ? (uint64_t)json_integer_value(rounds) : 0,
    };
    const bool words = o->tool->kind == WORK_REQUEST;
    const struct agent_spec spec = {
        .tool = str_of(o->tool->name),
        .owner = user_of(&o->who),
        .request = words ? json_view(json_object_get(o->inputs, "request")) : STR("Run this code."),
        .context = json_view(json_object_get(o->inputs, "context")),
        .sandbox = str_of(o->session),
        .pool = str_of(o->u->config.pool),
        .input_dir = STR("/home/uploaded_files"),
        .files = files,
        .file_count = files_of(o, files, paths),
        .model = str_of(o->model),
        .own = o->own,
        .own_only = o->own_is_ours,
        .external = strcmp(o->caller.door, "mcp") == 0,
        .can_answer = o->can_answer,
        .no_replan = o->u->config.no_replan,
        .budget = &budget,
    };
    struct err e;
    struct agent *a = ubik_agent(o->u, &e);

    if (a)
        agent_start(a, &o->caller, &spec, on_started, o);
    else
        tell(o, &e);
}

/* --- the sandbox --- */

static void on_space(void *arg, const struct space_file *files, size_t count,
                     const struct err *failed)
{
    struct order *o = arg;

    if (failed) {
        tell(o, failed);
        return;
    }
    o->there = json_object();
    for (size_t i = 0; i < count; i++)
        if (str_utf8_len(files[i].path) == files[i].path.n)
            json_object_setn_new(o->there, files[i].path.p, files[i].path.n, json_true());
    start(o);
}

static void on_sandbox(void *arg, const char *sandbox, const char *session,
                       const struct err *failed)
{
    struct order *o = arg;

    snprintf(o->sandbox, sizeof(o->sandbox), "%s", sandbox);
    if (failed && failed->kind == ERR_MISSING && !o->made) {
        refuse(o, "SandboxNotFound", failed);
        return;
    }
    if (failed) {
        tell(o, failed);
        return;
    }
    snprintf(o->session, sizeof(o->session), "%s", session);
    if (o->made || !o->files)
        start(o);
    else
        service_space_list(o->sv, &o->caller, str_of(session), on_space, o);
}

static void find_sandbox(struct order *o)
{
    struct str id = json_view(json_object_get(o->inputs, "sandbox_id"));

    o->made = id.n == 0;
    if (o->made)
        sandbox_make(o->u, o->sv, &o->caller, user_of(&o->who), on_sandbox, o);
    else
        sandbox_find(o->u, o->sv, &o->caller, user_of(&o->who), id, on_sandbox, o);
}

/* --- the documents --- */

static void on_documents(void *arg, json_t *files, const struct err *failed)
{
    struct order *o = arg;

    if (failed && (failed->kind == ERR_MISSING || failed->kind == ERR_CONFLICT)) {
        refuse(o, failed->kind == ERR_MISSING ? "DocumentNotFound" : "DocumentNotReady", failed);
    } else if (failed) {
        tell(o, failed);
    } else {
        o->files = json_incref(files);
        find_sandbox(o);
    }
}

static void find_documents(struct order *o)
{
    const json_t *ids = json_object_get(o->inputs, "document_ids");

    if (json_array_size(ids) > 0)
        documents_find(o->sv, &o->caller, &o->who, ids, on_documents, o);
    else
        find_sandbox(o);
}

/* --- the model --- */

static bool take_preference(struct order *o, const struct item_row *item)
{
    json_t *body = item ? json_loads(item->body, 0, NULL) : NULL;
    struct str name = json_view(json_object_get(body, "code_generation_model"));
    bool taken = name.n > 0 && str_to_cstr(name, o->model, sizeof(o->model));

    json_decref(body);
    return taken;
}

static void on_of_account(void *arg, const struct item_row *item, const struct err *failed)
{
    struct order *o = arg;

    (void)failed;
    (void)take_preference(o, item);
    find_documents(o);
}

static void on_of_user(void *arg, const struct item_row *item, const struct err *failed)
{
    static const struct who account;
    struct order *o = arg;

    (void)failed;
    if (take_preference(o, item))
        find_documents(o);
    else
        service_item_get(o->sv, &o->caller, preference_kind(&account), STR("-"), on_of_account, o);
}

/* The one that is named, else the end user's preference, else the account's. */
static void find_model(struct order *o)
{
    struct str named = json_view(json_object_get(o->inputs, "model"));

    if (named.n && str_to_cstr(named, o->model, sizeof(o->model)))
        find_documents(o);
    else if (*o->who.user)
        service_item_get(o->sv, &o->caller, preference_kind(&o->who), user_of(&o->who), on_of_user,
                         o);
    else
        on_of_user(o, NULL, NULL);
}

/* --- what is run as it is --- */

static void give(struct order *o, const char *plan, struct str code)
{
    o->own = given_new(o->u->config.loop, str_of(plan), code);
    o->own_is_ours = true;
    find_documents(o);
}

static void give_script(struct order *o, const struct embedded *f)
{
    json_t *argv = json_pack("[s]", f->name);
    AUTO_FREE char *list = NULL, *code = NULL;
    int n;

    json_array_extend(argv, json_object_get(o->inputs, "args"));
    list = record_dump(argv, false, NULL); /* a list of plain strings is one in Python, too */
    json_decref(argv);
    n = asprintf(&code, "import sys\nsys.argv = %s\n%.*s", list, (int)f->bytes.n, f->bytes.p);
    assert(n > 0);
    give(o, "Run the script of the skill", str_of(code));
}

static void take_skill(struct order *o)
{
    struct str skill = json_view(json_object_get(o->inputs, "skill_id"));
    struct str path = json_view(json_object_get(o->inputs, "file_path"));
    char uri[2 * NAME_BYTES + 16];
    const struct embedded *f;
    struct err e;

    snprintf(uri, sizeof(uri), "skill://%.*s/%.*s", (int)skill.n, skill.p, (int)path.n, path.p);
    f = embedded_find(str_of(uri));
    if (!f) {
        err_set(&e, ERR_MISSING, "there is no such file of a skill: %.300s", uri);
        refuse(o, "SkillFileNotFound", &e);
    } else if (path.n > 3 && memcmp(path.p + path.n - 3, ".py", 3) == 0) {
        give_script(o, f);
    } else {
        id_make(o->id, "toolu_");
        o->outputs = json_pack("{s:s, s:s, s:o}", "status", "success", "action", "read", "content",
                               record_text(f->bytes));
        keep(o, false, NULL);
    }
}

void order_start(const struct order_spec *spec, order_fn *fn, void *arg)
{
    struct order *o = mem_zalloc(sizeof(*o));

    *o = (struct order){.u = spec->ubik,
                        .sv = spec->service,
                        .caller = *spec->caller,
                        .tool = spec->tool,
                        .inputs = json_incref(spec->inputs),
                        .own = spec->own,
                        .can_answer = spec->can_answer,
                        .parent = mem_strdup(spec->parent ? spec->parent : ""),
                        .fn = fn,
                        .arg = arg};
    (void)!str_to_cstr(spec->user, o->who.user, sizeof(o->who.user));
    if (spec->tool->kind == WORK_REQUEST)
        find_model(o);
    else if (spec->tool->kind == WORK_CODE)
        give(o, "Run the given code", json_view(json_object_get(o->inputs, "code")));
    else
        take_skill(o);
}

/* --- over HTTP --- */

// clang-format off
static const struct field execute_fields[] = {
    {"external_user_id", FIELD_TEXT, OPTIONAL, 0, USER_MAX, NULL,
     "For whom, where no header says so.", NULL},
    {"inputs", FIELD_OBJECT, REQUIRED, 0, 0, NULL, "What the tool is given.",
     "{\"request\": \"What is 17 * 23?\"}"},
    {0},
};
// clang-format on

static void on_ordered(void *arg, const char *id, const struct err *failed)
{
    struct request *r = arg;
    AUTO_FREE char *base = base_url(request_ctx(r), r);
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
    struct order_spec spec = {.ubik = request_ctx(r),
                              .service = request_service(r),
                              .caller = request_caller(r),
                              .tool = catalog_find(request_path(r, "tool")),
                              .can_answer = true};
    struct who w;
    json_t *body;

    if (!spec.tool) {
        detail(r, 404, "Tool not found");
        return;
    }
    if (!who_read(r, &w) || !(body = body_object(r, execute_fields)))
        return;
    spec.inputs = json_object_get(body, "inputs");
    if (who_take(r, &w, json_view(json_object_get(body, "external_user_id"))) &&
        check_inputs(r, spec.tool->params, spec.inputs)) {
        spec.user = user_of(&w);
        order_start(&spec, on_ordered, r);
    }
    json_decref(body);
}
