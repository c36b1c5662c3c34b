/*
 * The parameters of a request. Unknown ones are ignored: clients may be newer than this server, and
 * send back what other servers gave them.
 */
#include "doors/anthropic/messages_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define TOKENS_MAX  1000000000
#define BETAS_MAX   (4 * KiB)
#define SCHEMA_DEEP 64
#define REFS_DEEP   1024 /* levels of definitions that refer to definitions */

/* --- tools --- */

static bool is_tool_name(const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '-')
            return false;
    return n > 0 && n <= 128;
}

/* Whether the model, and whether code, may call the tool. */
static void read_callers(const json_t *tool, bool *ret_model, bool *ret_code)
{
    const json_t *callers = json_object_get(tool, "allowed_callers"), *one;
    size_t i;

    *ret_model = json_array_size(callers) == 0;
    *ret_code = false;
    json_array_foreach((json_t *)callers, i, one) {
        const char *name = json_string_value(one);
        *ret_model |= name && strcmp(name, "direct") == 0;
        *ret_code |= name && tool_version_find(name) && tool_version_find(name)->caller;
    }
}

/* Whether a schema refers to itself as a whole, with "$ref": "#", or is too deep. */
static bool is_recursive(const json_t *v, unsigned depth)
{
    const char *name, *ref = text_of(v, "$ref");
    json_t *one;
    size_t i;

    if (depth > SCHEMA_DEEP || (ref && strcmp(ref, "#") == 0))
        return true;
    json_array_foreach((json_t *)v, i, one)
        if (is_recursive(one, depth + 1))
            return true;
    json_object_foreach((json_t *)v, name, one)
        if (is_recursive(one, depth + 1))
            return true;
    return false;
}

/* Whether v refers to the definition `to`, directly or through other definitions. */
static bool refers(const json_t *v, const json_t *defs, const char *to, unsigned depth,
                   unsigned *left)
{
    const char *name, *ref = text_of(v, "$ref");
    json_t *one;
    size_t i;

    if (*left == 0 || depth > REFS_DEEP)
        return true; /* a schema that takes so long to check is refused, too */
    --*left;
    if (ref && (strncmp(ref, "#/$defs/", 8) == 0 || strncmp(ref, "#/definitions/", 14) == 0)) {
        ref = strrchr(ref, '/') + 1;
        if (strcmp(ref, to) == 0 || refers(json_object_get(defs, ref), defs, to, depth + 1, left))
            return true;
    }
    json_array_foreach((json_t *)v, i, one)
        if (refers(one, defs, to, depth + 1, left))
            return true;
    json_object_foreach((json_t *)v, name, one)
        if (refers(one, defs, to, depth + 1, left))
            return true;
    return false;
}

static bool schema_is_recursive(const json_t *schema)
{
    static const char *const where[] = {"$defs", "definitions"};
    unsigned left = 100000;
    const char *name;
    json_t *one;

    if (is_recursive(schema, 0))
        return true;
    for (size_t i = 0; i < COUNT(where); i++) {
        const json_t *defs = json_object_get(schema, where[i]);
        json_object_foreach((json_t *)defs, name, one)
            if (refers(one, defs, name, 0, &left))
                return true;
    }
    return false;
}

static int add_callable(struct request_params *k, const json_t *tool, size_t i, struct err *e)
{
    const json_t *schema = json_object_get(tool, "input_schema");
    char function[132];

    if (json_is_true(json_object_get(tool, "strict")))
        return err_set(e, ERR_CALLER,
                       "tools.%zu: `strict: true` is not supported with `allowed_callers` of code "
                       "execution",
                       i);
    if (schema_is_recursive(schema))
        return err_set(e, ERR_CALLER,
                       "tools.%zu.input_schema: recursive `$ref` is not supported with "
                       "`allowed_callers` of code execution",
                       i);
    if (json_array_size(k->callable) >= CALLABLE_MAX)
        return err_set(e, ERR_CALLER, "tools: more than %d can be called by code", CALLABLE_MAX);
    snprintf(function, sizeof(function), "%s", text_of(tool, "name"));
    for (char *p = function; *p; p++)
        if (*p == '-')
            *p = '_';
    json_array_append_new(k->callable,
                          json_pack("{s:O, s:s, s:O*, s:O*}", "name", json_object_get(tool, "name"),
                                    "function", function, "description",
                                    json_object_get(tool, "description"), "schema", schema));
    return 0;
}

static int add_client_tool(struct request_params *k, const json_t *tool, size_t i, struct err *e)
{
    const char *name = text_of(tool, "name");
    json_t *schema = json_object_get(tool, "input_schema");
    struct str text = view_of(tool, "description");
    bool model, code;

    if (!name || !is_tool_name(name))
        return err_set(e, ERR_CALLER,
                       "tools.%zu.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i);
    if (schema && !json_is_object(schema))
        return err_set(e, ERR_CALLER, "tools.%zu.input_schema: Input should be an object", i);
    if (server_tool_find(name) >= 0)
        return err_set(e, ERR_CALLER, "tools.%zu.name: `%s` is a tool of the server", i, name);
    read_callers(tool, &model, &code);
    if (model)
        json_array_append_new(
            k->tools,
            json_pack("{s:s, s:o, s:o, s:O*}", "name", name, "description", record_text(text),
                      "schema", schema ? json_incref(schema) : json_pack("{s:s}", "type", "object"),
                      "cache", json_object_get(tool, "cache_control")));
    return code ? add_callable(k, tool, i, e) : 0;
}

/* Tools of Anthropic that the client runs: it declares a type and a name, and models of any make
 * are told what they take. */
static const struct {
    const char *prefix, *text, *schema;
} client_types[] = {
    {"bash_",
     "Runs a command in a shell of the user that stays from one call to the next; restart "
     "begins a new one.",                                                "{\"type\": \"object\", \"properties\": {\"command\": {\"type\": \"string\"}, \"restart\": "
     "{\"type\": \"boolean\"}}}"                             },
    {"text_editor_", "Views, creates and edits text files of the user.",
     "{\"type\": \"object\", \"properties\": {\"command\": {\"type\": \"string\", \"enum\": "
     "[\"view\", \"create\", \"str_replace\", \"insert\"]}, \"path\": {\"type\": \"string\"}, "
     "\"file_text\": {\"type\": \"string\"}, \"old_str\": {\"type\": \"string\"}, \"new_str\": "
     "{\"type\": \"string\"}, \"insert_line\": {\"type\": \"integer\"}, \"insert_text\": "
     "{\"type\": \"string\"}, \"view_range\": {\"type\": \"array\", \"items\": {\"type\": "
     "\"integer\"}}}, \"required\": [\"command\", \"path\"]}"                         },
    {"memory_",
     "Keeps notes in files below /memories, which stay from one conversation to the next: "
     "view them first.",                                                 "{\"type\": \"object\", \"properties\": {\"command\": {\"type\": \"string\", \"enum\": "
     "[\"view\", \"create\", \"str_replace\", \"insert\", \"delete\", \"rename\"]}, \"path\": "
     "{\"type\": \"string\"}, \"old_path\": {\"type\": \"string\"}, \"new_path\": {\"type\": "
     "\"string\"}, \"file_text\": {\"type\": \"string\"}, \"old_str\": {\"type\": \"string\"}, "
     "\"new_str\": {\"type\": \"string\"}, \"insert_line\": {\"type\": \"integer\"}, "
     "\"insert_text\": {\"type\": \"string\"}, \"view_range\": {\"type\": \"array\", \"items\": "
     "{\"type\": \"integer\"}}}, \"required\": [\"command\"]}"},
    {"computer_2",
     "Looks at the screen of the user, and works its mouse and keyboard. Coordinates are pixels "
     "from the "
     "top left. Take a screenshot first.",                               "{\"type\": \"object\", \"properties\": {\"action\": {\"type\": \"string\", \"enum\": "
     "[\"screenshot\", \"key\", \"type\", \"mouse_move\", \"left_click\", \"left_click_drag\", "
     "\"right_click\", \"middle_click\", \"double_click\", \"triple_click\", \"left_mouse_down\", "
     "\"left_mouse_up\", \"scroll\", \"hold_key\", \"wait\", \"cursor_position\", \"zoom\"]}, "
     "\"coordinate\": {\"type\": \"array\", \"items\": {\"type\": \"integer\"}}, "
     "\"start_coordinate\": {\"type\": \"array\", \"items\": {\"type\": \"integer\"}}, \"text\": "
     "{\"type\": \"string\"}, \"duration\": {\"type\": \"number\"}, \"scroll_direction\": "
     "{\"type\": "
     "\"string\", \"enum\": [\"up\", \"down\", \"left\", \"right\"]}, \"scroll_amount\": "
     "{\"type\": "
     "\"integer\"}, \"region\": {\"type\": \"array\", \"items\": {\"type\": \"integer\"}}}, "
     "\"required\": [\"action\"]}"          },
};

/* What such a tool is told to be for. Of a screen also its size, which the client declares. */
static json_t *client_type_text(const char *text, const json_t *tool)
{
    json_int_t width = json_integer_value(json_object_get(tool, "display_width_px"));
    json_int_t height = json_integer_value(json_object_get(tool, "display_height_px"));

    if (width < 1 || height < 1)
        return json_string(text);
    return json_sprintf("%s The screen has %" JSON_INTEGER_FORMAT " x %" JSON_INTEGER_FORMAT
                        " pixels.",
                        text, width, height);
}

/* 1: it is none of them. */
static int add_client_type(struct request_params *k, const json_t *tool, size_t i, struct err *e)
{
    const char *type = text_of(tool, "type");
    json_t *full;
    int rc;

    for (size_t t = 0; t < COUNT(client_types); t++) {
        if (strncmp(type, client_types[t].prefix, strlen(client_types[t].prefix)) != 0)
            continue;
        full = json_copy((json_t *)tool);
        json_object_set_new(full, "description", client_type_text(client_types[t].text, tool));
        json_object_set_new(full, "input_schema", json_loads(client_types[t].schema, 0, NULL));
        rc = add_client_tool(k, full, i, e);
        json_decref(full);
        return rc;
    }
    return 1;
}

static int add_code_execution(struct request_params *k, const json_t *tool, size_t i, struct err *e)
{
    const char *type = text_of(tool, "type"), *name = text_of(tool, "name");
    const struct tool_version *v = tool_version_find(type);

    if (!v)
        return err_set(e, ERR_CALLER, "tools.%zu.type: `%.64s` is no version of the tool", i, type);
    if (!name || strcmp(name, "code_execution") != 0)
        return err_set(e, ERR_CALLER, "tools.%zu.name: Input should be 'code_execution'", i);
    if (k->version)
        return err_set(e, ERR_CALLER, "tools.%zu: code execution is declared twice", i);
    k->version = v;
    k->server_tools = v->server_tools;
    return 0;
}

static int read_tools(struct request_params *k, struct err *e)
{
    const json_t *tools = json_object_get(k->body, "tools"), *tool;
    size_t i;

    if (tools && !json_is_null(tools) && !json_is_array(tools))
        return err_set(e, ERR_CALLER, "tools: Input should be an array");
    if (json_array_size(tools) > TOOLS_SHOWN)
        return err_set(e, ERR_CALLER, "tools: more than %d", TOOLS_SHOWN);
    json_array_foreach((json_t *)tools, i, tool) {
        const char *type = text_of(tool, "type");
        int rc = 0;

        if (type && strncmp(type, "code_execution", 14) == 0)
            rc = add_code_execution(k, tool, i, e);
        else if (!type || strcmp(type, "custom") == 0)
            rc = add_client_tool(k, tool, i, e);
        else if ((rc = add_client_type(k, tool, i, e)) > 0)
            rc = err_set(e, ERR_CALLER, "tools.%zu.type: this server has no tool `%.64s`", i, type);
        if (rc < 0)
            return -1;
    }
    if (json_array_size(k->callable) > 0 && (!k->version || !k->version->caller))
        return err_set(e, ERR_CALLER,
                       "tools: `allowed_callers` names code execution, and no version of it that "
                       "calls tools is there");
    if (json_array_size(k->callable) > 0)
        k->server_tools |= IN(TOOL_PYTHON); /* version 20250825 has Python only for this */
    return 0;
}

/* --- tool_choice --- */

static int read_forced(struct request_params *k, const char *name, struct err *e)
{
    k->choice = MODEL_MUST_CALL;
    if (!name)
        return err_set(e, ERR_CALLER, "tool_choice.name: Field required");
    if (k->version && strcmp(name, "code_execution") == 0) {
        k->forced_server = true;
        if (k->server_tools == IN(TOOL_PYTHON))
            snprintf(k->forced, sizeof(k->forced), "%s", name);
        return 0;
    }
    if (!list_has(k->tools, "name", name))
        return err_set(e, ERR_CALLER,
                       list_has(k->callable, "name", name)
                           ? "tool_choice: `%.128s` is called by code alone and cannot be forced"
                           : "tool_choice: `%.128s` is not among the tools",
                       name);
    snprintf(k->forced, sizeof(k->forced), "%s", name);
    return 0;
}

static int read_choice(struct request_params *k, struct err *e)
{
    const json_t *choice = json_object_get(k->body, "tool_choice");
    const char *type = text_of(choice, "type");

    k->one_at_a_time = json_is_true(json_object_get(choice, "disable_parallel_tool_use"));
    if (k->one_at_a_time && json_array_size(k->callable) > 0)
        return err_set(e, ERR_CALLER,
                       "tool_choice: `disable_parallel_tool_use` is not supported with tools that "
                       "code calls");
    if (!choice || json_is_null(choice) || (type && strcmp(type, "auto") == 0))
        return 0;
    if (type && strcmp(type, "none") == 0)
        k->choice = MODEL_NO_CALL;
    else if (type && strcmp(type, "any") == 0)
        k->choice = MODEL_MUST_CALL;
    else if (type && strcmp(type, "tool") == 0)
        return read_forced(k, text_of(choice, "name"), e);
    else
        return err_set(e, ERR_CALLER,
                       "tool_choice.type: Input should be 'auto', 'any', 'tool' or 'none'");
    return 0;
}

/* --- the rest --- */

static int read_container(struct request_params *k, struct err *e)
{
    const json_t *c = json_object_get(k->body, "container"), *id;

    if (!c || json_is_null(c))
        return 0;
    id = json_is_object(c) ? json_object_get(c, "id") : c;
    if (id && !json_is_null(id) && !json_is_string(id))
        return err_set(e, ERR_CALLER, "container: Input should be a valid string");
    k->container = json_is_string(id) ? id : NULL;
    k->skills = json_is_object(c) ? json_object_get(c, "skills") : NULL;
    if (json_array_size(k->skills) > 0 && !k->version)
        return err_set(e, ERR_CALLER, "container.skills: they need the code_execution tool");
    return skills_check(k->skills, e);
}

static int read_system(struct request_params *k, struct err *e)
{
    const json_t *system = json_object_get(k->body, "system"), *block;
    size_t i;

    if (json_is_string(system))
        buf_put(&k->system, json_view(system));
    json_array_foreach((json_t *)system, i, block) {
        buf_put(&k->system, k->system.n > 0 ? STR("\n\n") : STR(""));
        buf_put(&k->system, view_of(block, "text"));
        if (json_is_object(json_object_get(block, "cache_control")))
            k->system_cache = json_object_get(block, "cache_control");
    }
    return buf_check(&k->system, e);
}

static int read_plain(struct request_params *k, struct err *e)
{
    const json_t *tokens = json_object_get(k->body, "max_tokens");
    const json_t *messages = json_object_get(k->body, "messages");
    const json_t *stop = json_object_get(k->body, "stop_sequences");

    k->model = text_of(k->body, "model");
    if (!k->model)
        return err_set(e, ERR_CALLER, "model: Field required");
    if (!json_is_integer(tokens) || json_integer_value(tokens) < 1 ||
        json_integer_value(tokens) > TOKENS_MAX)
        return err_set(e, ERR_CALLER,
                       tokens ? "max_tokens: Input should be greater than or equal to 1"
                              : "max_tokens: Field required");
    k->max_tokens = (uint64_t)json_integer_value(tokens);
    if (!json_is_array(messages))
        return err_set(e, ERR_CALLER,
                       messages ? "messages: Input should be an array"
                                : "messages: Field required");
    if (json_array_size(messages) == 0)
        return err_set(e, ERR_CALLER, "messages: at least one message is required");
    if (json_array_size(messages) > MESSAGES_LONG)
        return err_set(e, ERR_CALLER, "messages: more than %d", MESSAGES_LONG);
    if (json_array_size(json_object_get(k->body, "mcp_servers")) > 0)
        return err_set(e, ERR_CALLER, "mcp_servers: this server connects to none of them");
    k->stream = json_is_true(json_object_get(k->body, "stream"));
    if (json_array_size(stop) > 0)
        k->stop = (json_t *)stop;
    return 0;
}

int request_params_read(struct request_params *k, json_t *body, struct err *e)
{
    *k = (struct request_params){.body = body, .tools = json_array(), .callable = json_array()};
    buf_init(&k->system, MESSAGES_BODY_MAX);
    if (!json_is_object(body))
        return err_set(e, ERR_CALLER, "the body is no JSON object");
    if (read_plain(k, e) < 0 || read_tools(k, e) < 0 || read_choice(k, e) < 0 ||
        read_container(k, e) < 0)
        return -1;
    return read_system(k, e);
}

/* Features that this door serves by itself; the model's endpoint has no part in them. */
static const char *const own_betas[] = {"code-execution-", "files-api-", "skills-",
                                        "message-batches-", "message-threads-"};

static bool is_beta(struct str name)
{
    for (size_t i = 0; i < name.n; i++)
        if (!isalnum((unsigned char)name.p[i]) && !strchr("-_.", name.p[i]))
            return false;
    for (size_t i = 0; i < COUNT(own_betas); i++)
        if (name.n >= strlen(own_betas[i]) &&
            memcmp(name.p, own_betas[i], strlen(own_betas[i])) == 0)
            return false;
    return name.n > 0;
}

char *request_betas(struct str header)
{
    AUTO(buf_done) struct buf b = BUF(BETAS_MAX);
    struct str one;

    while (str_next(&header, ',', &one)) {
        if (!is_beta(one))
            continue;
        buf_put(&b, b.n > 0 ? STR(",") : STR(""));
        buf_put(&b, one);
    }
    return b.n > 0 && !b.full ? mem_strndup(buf_str(&b)) : NULL;
}

void request_params_done(struct request_params *k)
{
    json_decref(k->tools);
    json_decref(k->callable);
    buf_done(&k->system);
    json_decref(k->body);
    free(k->betas);
    *k = (struct request_params){0};
}
