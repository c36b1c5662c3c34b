/* The table of routes. It routes requests, validates them and makes the OpenAPI document. */
#include "doors/rest/rest_int.h"

// clang-format off

/* --- bodies --- */

#define ENV_NAME "^[A-Za-z_][A-Za-z0-9_]{0,127}$" /* ENV_NAME_MAX */

static const struct field create_session_body[] = {
    {"pool", FIELD_TEXT, OPTIONAL, 1, 64,
     .text = "Which environment; the first one if left out.", .example = "\"default\""},
    {"name", FIELD_TEXT, OPTIONAL, 1, 128,
     .text = "Your own name for it. A session of the pool that has it already is the answer.",
     .example = "\"conversation-17\""},
    {"metadata", FIELD_OBJECT, OPTIONAL,
     .text = "Any object to be kept with it, up to 16 KiB as JSON.",
     .example = "{\"user\": \"ada\"}"},
    {"env", FIELD_MAP, OPTIONAL, 0, ENV_COUNT_MAX, .of = ENV_NAME,
     .text = "Environment variables for all its executions, up to 64: names of letters, digits and "
             "underscores, up to 128 bytes, values up to 8 KiB, 12 KiB in all. Never shown or logged.",
     .example = "{\"REPORT_YEAR\": \"2025\"}"},
    {"idle_timeout", FIELD_NUMBER, OPTIONAL, 1, SECONDS_MAX,
     .text = "Seconds without use after which the interpreter goes and the files stay; at most the "
             "pool's.",
     .example = "300"},
    {"lifetime", FIELD_NUMBER, OPTIONAL, 1, SECONDS_MAX,
     .text = "Seconds after which the interpreter goes in any case; at most the pool's.",
     .example = "3600"},
    {0},
};

static const struct field rename_session_body[] = {
    {"name", FIELD_TEXT, REQUIRED, 1, 128,
     .text = "Its new name. 409 when another session of the pool has it.",
     .example = "\"quarterly report\""},
    {0},
};

static const struct field extend_session_body[] = {
    {"idle_timeout", FIELD_NUMBER, OPTIONAL, 1, SECONDS_MAX,
     .text = "Seconds, from now on; at most the pool's. If left out, the time it has.",
     .example = "1200"},
    {0},
};

#define EXECUTE_FIELDS \
    {"code", FIELD_TEXT, REQUIRED, 0, CODE_MAX, \
     .text = "What to run, up to 16 MiB.", \
     .example = "\"import statistics\\nstatistics.mean([1, 2, 6])\""}, \
    {"language", FIELD_ENUM, OPTIONAL, .of = "python|shell", \
     .text = "python (the default): a cell that sees the session's variables. shell: bash in the " \
             "same workspace.", \
     .example = "\"python\""}, \
    {"timeout", FIELD_NUMBER, OPTIONAL, 0.001, SECONDS_MAX, \
     .text = "Seconds until it is interrupted; at most the pool's limit.", .example = "30"}, \
    {"files", FIELD_LIST, OPTIONAL, 0, INPUT_COUNT_MAX, .of = "execute_file", \
     .text = "Files to be in the workspace before it runs, up to 64.", \
     .example = "[{\"path\": \"towns.csv\", \"content\": \"city,people\\nLyon,522\\n\"}]"}, \
    {"env", FIELD_MAP, OPTIONAL, 0, ENV_COUNT_MAX, .of = ENV_NAME, \
     .text = "Environment variables for this execution alone, up to 64: names of letters, digits " \
             "and underscores, up to 128 bytes, values up to 8 KiB, 12 KiB in all. Never on record.", \
     .example = "{\"REPORT_YEAR\": \"2025\"}"}, \
    {"stream", FIELD_ANY, OPTIONAL, .of = "[true, false, \"sse\", \"ndjson\"]", \
     .text = "true or \"sse\": server-sent events as they happen. \"ndjson\": the same objects, " \
             "one a line.", \
     .example = "\"sse\""}, \
    {"background", FIELD_BOOL, OPTIONAL, \
     .text = "It goes on when nobody waits. Without stream the answer is 202 at once; with it, a " \
             "client that goes away leaves it running.", \
     .example = "false"}

static const struct field execute_body[] = {EXECUTE_FIELDS, {0}};

static const struct field execute_once_body[] = {
    EXECUTE_FIELDS,
    {"pool", FIELD_TEXT, OPTIONAL, 1, 64,
     .text = "Which environment; the first one if left out.", .example = "\"default\""},
    {0},
};

static const struct field create_file_body[] = {
    {"url", FIELD_TEXT, REQUIRED, 1, URL_MAX,
     .text = "http, https or data; fetched by the server.",
     .example = "\"https://example.com/towns.csv\""},
    {"name", FIELD_TEXT, OPTIONAL, 1, NAME_MAX_BYTES,
     .text = "Instead of the one the URL gives.", .example = "\"towns.csv\""},
    {0},
};

static const struct field create_key_body[] = {
    {"tenant", FIELD_TEXT, REQUIRED, 1, 63,
     .text = "Whose things it opens.", .example = "\"acme\""},
    {"name", FIELD_TEXT, OPTIONAL, 1, 128,
     .text = "What it is for, in your words.", .example = "\"chat backend\""},
    {"admin", FIELD_BOOL, OPTIONAL,
     .text = "May manage keys and export every tenant's log.", .example = "false"},
    {"approver", FIELD_BOOL, OPTIONAL,
     .text = "May decide what clients of its tenant ask approval for.", .example = "false"},
    {"pools", FIELD_LIST, OPTIONAL, 0, SCOPE_NAMES_MAX, .of = "string",
     .text = "The pools it opens. Left out: all of them.", .example = "[\"default\"]"},
    {"doors", FIELD_LIST, OPTIONAL, 0, SCOPE_NAMES_MAX, .of = "string",
     .text = "The doors it opens: rest, mcp, anthropic, azure, azure/mcp, ubik, prisme, qwen, "
             "operator. Left out: all of them.", .example = "[\"rest\"]"},
    {"read_only", FIELD_BOOL, OPTIONAL,
     .text = "It changes nothing and runs nothing.", .example = "false"},
    {"expires_in", FIELD_INT, OPTIONAL, 1, 315360000,
     .text = "Seconds from now after which it opens nothing. Left out: it does not expire.",
     .example = "86400"},
    {0},
};

static const struct field move_file_body[] = {
    {"path", FIELD_TEXT, REQUIRED, 1, SPACE_PATH_MAX - 1,
     .text = "Where it goes. What is there is replaced.", .example = "\"data/towns.csv\""},
    {0},
};

static const struct field decide_approval_body[] = {
    {"decision", FIELD_ENUM, REQUIRED, .of = "approve|decline",
     .text = "Whether it may run.", .example = "\"approve\""},
    {"reason", FIELD_TEXT, OPTIONAL, 0, APPROVAL_REASON_MAX,
     .text = "Why; kept with it, and told to whoever asked.", .example = "\"reads one file\""},
    {0},
};

/* --- queries --- */

#define PAGE_FIELDS \
    {"limit", FIELD_INT, OPTIONAL, 1, 1000, \
     .text = "How many at most; 100 if left out.", .example = "20"}, \
    {"after", FIELD_TEXT, OPTIONAL, 1, ID_MAX, \
     .text = "last_id of the page before."}

static const struct field page_query[] = {PAGE_FIELDS, {0}};

static const struct field executions_query[] = {
    {"session", FIELD_TEXT, OPTIONAL, 1, ID_MAX - 1,
     .text = "Those of this session alone."},
    {"status", FIELD_ENUM, OPTIONAL,
     .of = "queued|running|ok|raised|timeout|memory|interrupted|died|session_lost",
     .text = "Those with this status alone.", .example = "\"raised\""},
    {"key", FIELD_TEXT, OPTIONAL, 1, ID_MAX - 1,
     .text = "Those that this key has asked for alone: its id."},
    {"since", FIELD_TEXT, OPTIONAL, 1, 64,
     .text = "Asked for at this time or later: RFC 3339.",
     .example = "\"2026-01-31T00:00:00Z\""},
    {"until", FIELD_TEXT, OPTIONAL, 1, 64,
     .text = "Asked for before this time: RFC 3339.",
     .example = "\"2026-02-01T00:00:00Z\""},
    {"format", FIELD_ENUM, OPTIONAL, .of = "json|jsonl",
     .text = "jsonl: the audit log. Everything that matches, oldest first, one whole record a "
             "line, each with tenant, key, request_id and door; limit and after do not apply. An "
             "admin's key gets every tenant's.",
     .example = "\"json\""},
    PAGE_FIELDS,
    {0},
};

static const struct field approvals_query[] = {
    {"state", FIELD_ENUM, OPTIONAL, .of = "pending|approved|declined|expired|used",
     .text = "Those in this state alone.", .example = "\"pending\""},
    PAGE_FIELDS,
    {0},
};

static const struct field events_query[] = {
    {"format", FIELD_ENUM, OPTIONAL, .of = "sse|ndjson",
     .text = "sse (the default): server-sent events. ndjson: the same objects, one a line.",
     .example = "\"sse\""},
    {0},
};

static const struct field output_query[] = {
    {"stream", FIELD_ENUM, OPTIONAL, .of = "all|stdout|stderr",
     .text = "all (the default): both, in the order they came.", .example = "\"stdout\""},
    {0},
};

static const struct field archive_query[] = {
    {"format", FIELD_ENUM, OPTIONAL, .of = "tar|zip",
     .text = "tar if left out.", .example = "\"zip\""},
    {0},
};

/* --- routes --- */

#define EXECUTE_TEXT \
    " Without stream the answer comes when it has ended, also when the code raised or ran " \
    "into a limit: outcome tells. A stream begins at once with an event \"execution\", has " \
    "one event for each thing that happens, named by its type, and ends with \"done\"; or " \
    "with \"error\" and a member error when nothing could be executed. A client that goes " \
    "away interrupts it, unless it runs in the background. The whole body has up to 20 MiB; " \
    "larger files are uploaded first. Where the pool asks for approval, 403 with the type " \
    "approval_required names the approval; when it is given, the same request runs."
#define EXECUTE_ANSWER "The execution; 202 when it goes on in the background; or a stream."

static const struct also existed[] = {
    {200, "session", "The session that has this name already."},
    {0},
};
static const struct also executed[] = {
    {200, "text/event-stream",    NULL                                },
    {200, "application/x-ndjson", NULL                                },
    {202, "execution",            "It goes on in the background."     },
    {0},
};
static const struct also exported[] = {
    {200, "application/x-ndjson", NULL},
    {0},
};
static const struct also part_of_text[] = {
    {206, "text/plain; charset=utf-8", "The bytes that Range asks for."},
    {0},
};
static const struct also part_of_file[] = {
    {206, "*/*", "The bytes that Range asks for."      },
    {304, NULL,  "It is what If-None-Match says it is."},
    {0},
};
static const struct also followed[] = {
    {200, "application/x-ndjson", NULL},
    {0},
};
static const struct also zipped[] = {
    {200, "application/zip", NULL},
    {0},
};


static const struct route routes[] = {
    {HTTP_POST, "/v1/sessions", "create_session", "Sessions",
     "Make a session. With a name that is taken, get the session that has it: 200 then.",
     .body_kind = BODY_JSON, .body = create_session_body, .handle = handle_create_session,
     .status = 201, .answer = "session", .answer_text = "The session.", .also = existed},
    {HTTP_GET, "/v1/sessions", "list_sessions", "Sessions",
     "List sessions, newest first.",
     .query = page_query, .handle = handle_list_sessions,
     .status = 200, .answer = "session_list", .answer_text = "A page of sessions."},
    {HTTP_GET, "/v1/sessions/{session}", "get_session", "Sessions",
     "Get a session.",
     .handle = handle_get_session,
     .status = 200, .answer = "session", .answer_text = "The session."},
    {HTTP_PATCH, "/v1/sessions/{session}", "rename_session", "Sessions",
     "Give a session another name.",
     .body_kind = BODY_JSON, .body = rename_session_body, .handle = handle_rename_session,
     .status = 200, .answer = "session", .answer_text = "The session."},
    {HTTP_POST, "/v1/sessions/{session}/extend", "extend_session", "Sessions",
     "Start the idle clock anew.",
     .body_kind = BODY_JSON, .body = extend_session_body, .handle = handle_extend_session,
     .status = 200, .answer = "session", .answer_text = "The session."},
    {HTTP_POST, "/v1/sessions/{session}/interrupt", "interrupt_session", "Sessions",
     "Interrupt what runs. The code gets KeyboardInterrupt and keeps its variables; if it does not "
     "stop it is killed and loses them. Nothing running is no error.",
     .handle = handle_interrupt_session,
     .status = 200, .answer = "session", .answer_text = "The session."},
    {HTTP_POST, "/v1/sessions/{session}/restart", "restart_session", "Sessions",
     "Get a fresh interpreter. Variables are gone, files are kept.",
     .handle = handle_restart_session,
     .status = 200, .answer = "session", .answer_text = "The session."},
    {HTTP_DELETE, "/v1/sessions/{session}", "delete_session", "Sessions",
     "Delete a session with its files. Its executions stay on record.",
     .handle = handle_delete_session,
     .status = 204, .answer_text = "It is gone."},

    {HTTP_POST, "/v1/sessions/{session}/execute", "execute", "Executions",
     "Run code in a session." EXECUTE_TEXT,
     .body_kind = BODY_JSON, .body = execute_body, .body_max = BODY_EXECUTE_MAX,
     .handle = handle_execute,
     .status = 200, .answer = "execution", .answer_text = EXECUTE_ANSWER, .also = executed},
    {HTTP_POST, "/v1/execute", "execute_once", "Executions",
     "Run code in a session of its own. It goes to sleep afterwards and its id is in the answer, "
     "so its files can be had and it can be gone on with." EXECUTE_TEXT,
     .body_kind = BODY_JSON, .body = execute_once_body, .body_max = BODY_EXECUTE_MAX,
     .handle = handle_execute,
     .status = 200, .answer = "execution", .answer_text = EXECUTE_ANSWER, .also = executed},
    {HTTP_GET, "/v1/executions", "list_executions", "Executions",
     "List executions, newest first, or export them as JSON lines.",
     .query = executions_query, .handle = handle_list_executions,
     .status = 200, .answer = "execution_list",
     .answer_text = "A page of executions; application/x-ndjson with format=jsonl.", .also = exported},
    {HTTP_GET, "/v1/executions/{execution}", "get_execution", "Executions",
     "Get an execution, with what it has said so far while it runs.",
     .handle = handle_get_execution,
     .status = 200, .answer = "execution", .answer_text = "The execution."},
    {HTTP_GET, "/v1/executions/{execution}/output", "get_output", "Executions",
     "Get what it printed. While it runs, Range: bytes=N- goes on from there: 206 with what is "
     "new, 416 when nothing is.",
     .query = output_query, .handle = handle_get_output,
     .status = 200, .answer = "text/plain; charset=utf-8",
     .answer_text = "The text, or with 206 the bytes of it that Range asked for.", .also = part_of_text},
    {HTTP_POST, "/v1/executions/{execution}/interrupt", "interrupt_execution", "Executions",
     "Interrupt one execution. One that has ended stays as it is.",
     .handle = handle_interrupt_execution,
     .status = 200, .answer = "execution", .answer_text = "The execution."},

    {HTTP_GET, "/v1/sessions/{session}/files", "list_workspace", "Workspace",
     "List the files of a session, by path.",
     .handle = handle_list_workspace,
     .status = 200, .answer = "workspace_list", .answer_text = "All files."},
    {HTTP_PUT, "/v1/sessions/{session}/files/{path...}", "put_workspace_file", "Workspace",
     "Put a file into a session: the body is the file. Folders are made as needed; what was there "
     "is replaced. A path has up to 1,023 bytes and 32 parts.",
     .body_kind = BODY_RAW, .handle = handle_put_workspace_file,
     .status = 201, .answer = "workspace_file", .answer_text = "The file."},
    {HTTP_POST, "/v1/sessions/{session}/files", "upload_workspace_files", "Workspace",
     "Put files into a session by form. The filename of each part is its path, which may have "
     "slashes; a text field \"path\" is the folder they go to. They are stored one after the "
     "other; an error names the one that was not stored.",
     .body_kind = BODY_FORM, .handle = handle_upload_workspace_files,
     .status = 201, .answer = "workspace_list", .answer_text = "What was stored."},
    {HTTP_GET, "/v1/sessions/{session}/files/{path...}", "get_workspace_file", "Workspace",
     "Get a file of a session. Range and If-None-Match are honoured; the ETag is its SHA-256.",
     .handle = handle_get_workspace_file,
     .status = 200, .answer = "*/*", .answer_text = "The bytes of the file.",
     .also = part_of_file},
    {HTTP_PATCH, "/v1/sessions/{session}/files/{path...}", "move_workspace_file", "Workspace",
     "Give a file of a session another path. Folders are made as needed.",
     .body_kind = BODY_JSON, .body = move_file_body, .handle = handle_move_workspace_file,
     .status = 200, .answer = "workspace_file", .answer_text = "The file."},
    {HTTP_DELETE, "/v1/sessions/{session}/files/{path...}", "delete_workspace_file", "Workspace",
     "Delete a file of a session.",
     .handle = handle_delete_workspace_file,
     .status = 204, .answer_text = "It is gone."},
    {HTTP_GET, "/v1/sessions/{session}/workspace", "get_archive", "Workspace",
     "Get all files of a session as one tar or zip, made while it is sent.",
     .query = archive_query, .handle = handle_get_archive,
     .status = 200, .answer = "application/x-tar",
     .answer_text = "The archive; application/zip with format=zip.", .also = zipped},

    {HTTP_POST, "/v1/files", "create_file", "Files",
     "Upload a file to use in many sessions. A form with the file in \"file\" and, if wanted, its "
     "name in \"name\"; or JSON with a URL to fetch.",
     .body_kind = BODY_EITHER, .body = create_file_body, .handle = handle_create_file,
     .status = 201, .answer = "file", .answer_text = "The file."},
    {HTTP_GET, "/v1/files", "list_files", "Files",
     "List files, newest first.",
     .query = page_query, .handle = handle_list_files,
     .status = 200, .answer = "file_list", .answer_text = "A page of files."},
    {HTTP_GET, "/v1/files/{file}", "get_file", "Files",
     "Get what is known of a file.",
     .handle = handle_get_file,
     .status = 200, .answer = "file", .answer_text = "The file."},
    {HTTP_GET, "/v1/files/{file}/content", "get_file_content", "Files",
     "Get the file itself. Range and If-None-Match are honoured; the ETag is its SHA-256.",
     .handle = handle_get_file_content,
     .status = 200, .answer = "*/*", .answer_text = "The bytes of the file.",
     .also = part_of_file},
    {HTTP_DELETE, "/v1/files/{file}", "delete_file", "Files",
     "Delete a file. Copies in sessions stay.",
     .handle = handle_delete_file,
     .status = 204, .answer_text = "It is gone."},

    {HTTP_GET, "/v1/pools", "list_pools", "Pools",
     "List the environments there are, with their packages and limits.",
     .handle = handle_list_pools,
     .status = 200, .answer = "pool_list", .answer_text = "All pools."},
    {HTTP_GET, "/v1/pools/{pool}", "get_pool", "Pools",
     "Get one environment.",
     .handle = handle_get_pool,
     .status = 200, .answer = "pool", .answer_text = "The pool."},

    {HTTP_GET, "/v1/approvals", "list_approvals", "Approvals",
     "List what clients asked approval for, newest first.",
     .query = approvals_query, .handle = handle_list_approvals,
     .status = 200, .answer = "approval_list", .answer_text = "A page of approvals."},
    {HTTP_GET, "/v1/approvals/{approval}", "get_approval", "Approvals",
     "Get one approval.",
     .handle = handle_get_approval,
     .status = 200, .answer = "approval", .answer_text = "The approval."},
    {HTTP_POST, "/v1/approvals/{approval}", "decide_approval", "Approvals",
     "Approve or decline what is pending. This needs a key that was made for an approver, or an "
     "admin's. A call that waits goes on at once; else it runs when it comes again with the same "
     "arguments. 409 when it is not pending any more.",
     .body_kind = BODY_JSON, .body = decide_approval_body, .handle = handle_decide_approval,
     .status = 200, .answer = "approval", .answer_text = "The approval."},

    {HTTP_POST, "/v1/keys", "create_key", "Keys",
     "Make a key. Its secret is in this answer and nowhere after. Once there is a key, every "
     "request needs one.",
     .flags = ROUTE_ADMIN, .body_kind = BODY_JSON, .body = create_key_body,
     .handle = handle_create_key,
     .status = 201, .answer = "key", .answer_text = "The key, with its secret."},
    {HTTP_GET, "/v1/keys", "list_keys", "Keys",
     "List keys, oldest first, revoked ones too.",
     .flags = ROUTE_ADMIN, .handle = handle_list_keys,
     .status = 200, .answer = "key_list", .answer_text = "All keys."},
    {HTTP_DELETE, "/v1/keys/{key}", "delete_key", "Keys",
     "Revoke a key. It opens nothing from now on and stays in the list.",
     .flags = ROUTE_ADMIN, .handle = handle_delete_key,
     .status = 204, .answer_text = "It is revoked."},

    {HTTP_GET, "/v1/events", "get_events", "About",
     "Follow what changes in all sessions of the tenant, as server-sent events or JSON lines: "
     "sessions, executions, files and approvals. The first event is open; what changes from then on "
     "is told. An event names what has changed; its own address has the rest. A reader that is too "
     "slow gets missed in the place of events. 429 when there are as many streams as there may be.",
     .query = events_query, .handle = handle_get_events,
     .status = 200, .answer = "text/event-stream",
     .answer_text = "Objects of the schema change, one an event, until either side ends it.",
     .also = followed},
    {HTTP_GET, "/v1/status", "get_status", "About",
     "Say who asks, and how the server does. Counters are of all tenants, and begin at 0 with each "
     "start of the server.",
     .handle = handle_get_status,
     .status = 200, .answer = "status", .answer_text = "Who asks, and figures."},
    {HTTP_GET, "/v1/nodes", "list_nodes", "About",
     "List the nodes that share the store, as last seen a moment ago. Empty when this server shares "
     "it with nobody.",
     .flags = ROUTE_ADMIN, .handle = handle_list_nodes,
     .status = 200, .answer = "node_list", .answer_text = "All nodes."},
    {HTTP_GET, "/v1/nodes/channels/{channel}", "open_channel", "About",
     "What the lender of a sandbox says to the home of its session.",
     .flags = ROUTE_NODES | ROUTE_HIDDEN, .handle = handle_channel,
     .status = 200, .answer = "application/octet-stream", .answer_text = "Messages between nodes."},
    {HTTP_POST, "/v1/nodes/channels/{channel}", "feed_channel", "About",
     "What the home of a session says to the lender of its sandbox.",
     .flags = ROUTE_NODES | ROUTE_HIDDEN, .body_kind = BODY_RAW, .handle = handle_channel_end,
     .status = 204},
    {HTTP_GET, "/v1/openapi.json", "get_openapi", "About",
     "Get this document.",
     .flags = ROUTE_OPEN, .handle = handle_get_openapi,
     .status = 200, .answer = "openapi", .answer_text = "The document."},
};

// clang-format on

/* --- the door --- */

void handle_get_openapi(struct request *r)
{
    const struct rest *rest = request_ctx(r);

    answer_json(r, 200, http_openapi(rest->http));
}

const struct door rest_door = {.name = "rest",
                               .routes = routes,
                               .route_count = COUNT(routes),
                               .schemas = rest_schemas,
                               .schema_count = REST_SCHEMAS};
