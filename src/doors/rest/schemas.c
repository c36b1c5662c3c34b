/* Schemas of the answers in the OpenAPI document. An optional member may be null. */
#include "doors/rest/rest_int.h"

// clang-format off

/* --- what changes --- */

static const struct field change_fields[] = {
    {"type", FIELD_ENUM, REQUIRED, .of = "open|session|execution|file|approval|missed|ping",
     .text = "What has changed. open: the stream has begun. missed: so many events were left out, as "
             "nobody read; lists are to be read again. ping: nothing, for 15 seconds."},
    {"id", FIELD_TEXT, OPTIONAL, .text = "Of the session, execution or approval."},
    {"session", FIELD_TEXT, OPTIONAL,
     .text = "Of the execution, the file or the approval; null for an approval that is for none."},
    {"pool", FIELD_TEXT, OPTIONAL, .text = "The pool it is in."},
    {"state", FIELD_TEXT, OPTIONAL,
     .text = "Of a session or an approval, now. A session that is ended is deleted; one that has come "
             "or was renamed is told with the state it is in.", .example = "\"running\""},
    {"status", FIELD_TEXT, OPTIONAL,
     .text = "Of an execution: queued, or how it has ended. One that ends within milliseconds is told "
             "once, with its end.", .example = "\"ok\""},
    {"path", FIELD_TEXT, OPTIONAL, .text = "Of a file that was saved or deleted."},
    {"count", FIELD_INT, OPTIONAL, .text = "How many were missed."},
    {0},
};

/* --- sessions --- */

static const struct field session_fields[] = {
    {"id", FIELD_TEXT, REQUIRED, .text = "Its id.", .example = "\"sess_k3v9q2m7x4w8p5n6t2r7y3z4\""},
    {"object", FIELD_ENUM, REQUIRED, .of = "session", .text = "What this is."},
    {"pool", FIELD_TEXT, REQUIRED, .text = "The pool it was made from.", .example = "\"default\""},
    {"name", FIELD_TEXT, OPTIONAL, .text = "The client's own name for it, or null."},
    {"state", FIELD_ENUM, REQUIRED, .of = "starting|idle|running|asleep|ended",
     .text = "asleep: the interpreter is gone and the files are kept; an execution wakes it."},
    {"created_at", FIELD_TEXT, REQUIRED, .text = "When it was made: RFC 3339, UTC.",
     .example = "\"2026-01-31T12:00:00.000Z\""},
    {"last_used_at", FIELD_TEXT, REQUIRED, .text = "When it was last used: RFC 3339, UTC.",
     .example = "\"2026-01-31T12:00:05.250Z\""},
    {"sleeps_at", FIELD_TEXT, OPTIONAL,
     .text = "When the interpreter goes if nothing happens: RFC 3339, UTC; null when asleep."},
    {"expires_at", FIELD_TEXT, OPTIONAL, .text = "When its files go, too: RFC 3339, UTC, or null."},
    {"idle_timeout", FIELD_NUMBER, REQUIRED,
     .text = "Seconds without use after which the interpreter goes.", .example = "600"},
    {"lifetime", FIELD_NUMBER, REQUIRED,
     .text = "Seconds after which the interpreter goes in any case.", .example = "86400"},
    {"executions", FIELD_INT, REQUIRED, .text = "How many there have been.", .example = "3"},
    {"queued", FIELD_INT, REQUIRED, .text = "How many wait for their turn.", .example = "0"},
    {"metadata", FIELD_OBJECT, REQUIRED, .text = "What the client keeps with it.",
     .example = "{\"user\": \"ada\"}"},
    {"memory_bytes", FIELD_INT, OPTIONAL,
     .text = "The most that its sandbox has used, as of its last execution; null when asleep or unknown.",
     .example = "94371840"},
    {"note", FIELD_TEXT, OPTIONAL,
     .text = "A plain sentence to pass on, such as that variables are gone; or null."},
    {0},
};

/* --- executions --- */

static const struct field outcome_fields[] = {
    {"status", FIELD_ENUM, REQUIRED, .of = "ok|raised|timeout|memory|interrupted|died|session_lost",
     .text = "raised: the code raised, or the command's exit status is not 0."},
    {"limits_hit", FIELD_LIST, REQUIRED, .of = "string",
     .text = "The limits it ran into: wall_time, cpu_time, memory, processes, disk, tmp, "
             "open_files, output, artifact_count, artifact_size.",
     .example = "[\"wall_time\"]"},
    {"state_lost", FIELD_BOOL, REQUIRED,
     .text = "The interpreter was replaced: variables are gone, files are kept."},
    {"exit_code", FIELD_INT, REQUIRED,
     .text = "Of a command; 128 and the signal when a signal ended it.", .example = "0"},
    {"message", FIELD_TEXT, REQUIRED,
     .text = "One plain sentence; empty when there is nothing to add.",
     .example = "\"stopped at the time limit of 60 s; variables and files are kept\""},
    {"wall_ms", FIELD_NUMBER, REQUIRED, .text = "Milliseconds by the clock.", .example = "12.5"},
    {"cpu_ms", FIELD_NUMBER, OPTIONAL,
     .text = "Milliseconds of CPU that the sandbox used meanwhile; null where no cgroup counts it.",
     .example = "11.8"},
    {"memory_peak_bytes", FIELD_INT, OPTIONAL,
     .text = "The most memory that the sandbox has used at a time since it began; null where no "
             "cgroup counts it.",
     .example = "94371840"},
    {"output_bytes", FIELD_INT, REQUIRED, .text = "Bytes it printed.", .example = "17"},
    {"output_dropped", FIELD_INT, REQUIRED, .text = "Of these, not kept.", .example = "0"},
    {0},
};

static const struct field event_fields[] = {
    {"type", FIELD_ENUM, REQUIRED, .of = "stdout|stderr|display|result|clear|error|file|status",
     .text = "stdout, stderr and status have text; display and result have data; error has name, "
             "message, traceback and frames; file has path, change, size and mime."},
    {"text", FIELD_TEXT, OPTIONAL, .text = "What was printed, or a plain note.",
     .example = "\"hi\\n\""},
    {"late", FIELD_BOOL, OPTIONAL, .text = "Printed by an earlier execution that had ended."},
    {"data", FIELD_OBJECT, OPTIONAL,
     .text = "MIME type to text, or to base64 for what is no text. A picture with a side above 1568 "
             "pixels or above 525 kB also comes smaller, with \";preview=1\" behind its type.",
     .example = "{\"text/plain\": \"42\"}"},
    {"metadata", FIELD_OBJECT, OPTIONAL,
     .text = "How to show a display or result: {\"image/png\": {\"width\": 400}}, {\"isolated\": true}."},
    {"display_id", FIELD_TEXT, OPTIONAL, .text = "Of a display that may be replaced."},
    {"update", FIELD_BOOL, OPTIONAL, .text = "Replaces the display with the same display_id."},
    {"name", FIELD_TEXT, OPTIONAL, .text = "Of an error: its class.",
     .example = "\"ZeroDivisionError\""},
    {"message", FIELD_TEXT, OPTIONAL, .text = "Of an error: what it says.",
     .example = "\"division by zero\""},
    {"traceback", FIELD_TEXT, OPTIONAL, .text = "Of an error: as Python prints it."},
    {"frames", FIELD_LIST, OPTIONAL, .of = "frame",
     .text = "Of an error: the user's own code, outermost first."},
    {"path", FIELD_TEXT, OPTIONAL, .text = "Of a file: in the workspace.",
     .example = "\"plots/sales.png\""},
    {"change", FIELD_ENUM, OPTIONAL, .of = "created|changed|deleted",
     .text = "What happened to the file."},
    {"size", FIELD_INT, OPTIONAL, .text = "Bytes of the file.", .example = "20480"},
    {"mime", FIELD_TEXT, OPTIONAL, .text = "Of the file.", .example = "\"image/png\""},
    {"too_large", FIELD_BOOL, OPTIONAL, .text = "Larger than artifact_bytes: not to be had."},
    {"url", FIELD_TEXT, OPTIONAL, .text = "In streams, of a file: where to get it, or null."},
    {0},
};

static const struct field frame_fields[] = {
    {"file", FIELD_TEXT, REQUIRED, .text = "A cell or a path below /workspace.",
     .example = "\"<cell 3>\""},
    {"line", FIELD_INT, REQUIRED, .text = "From 1.", .example = "2"},
    {"function", FIELD_TEXT, REQUIRED, .text = "<module> at the top of a cell.",
     .example = "\"half\""},
    {"text", FIELD_TEXT, REQUIRED, .text = "The line.", .example = "\"return n / 0\""},
    {0},
};

static const struct field made_fields[] = {
    {"path", FIELD_TEXT, REQUIRED, .text = "In the workspace.", .example = "\"plots/sales.png\""},
    {"change", FIELD_ENUM, REQUIRED, .of = "created|changed|deleted", .text = "What happened."},
    {"size", FIELD_INT, REQUIRED, .text = "Bytes.", .example = "20480"},
    {"mime", FIELD_TEXT, REQUIRED, .text = "Guessed by its name.", .example = "\"image/png\""},
    {"url", FIELD_TEXT, OPTIONAL,
     .text = "Where to get it; null when it was deleted or is too large."},
    {0},
};

#define EXECUTION_COMMON \
    {"id", FIELD_TEXT, REQUIRED, .text = "Its id.", \
     .example = "\"exec_k3v9q2m7x4w8p5n6t2r7y3z4\""}, \
    {"object", FIELD_ENUM, REQUIRED, .of = "execution", .text = "What this is."}, \
    {"session", FIELD_TEXT, REQUIRED, .text = "The session it runs in."}, \
    {"pool", FIELD_TEXT, REQUIRED, .text = "The session's pool.", .example = "\"default\""}, \
    {"kind", FIELD_ENUM, REQUIRED, .of = "cell|command", .text = "Python or shell."}, \
    {"status", FIELD_ENUM, REQUIRED, \
     .of = "queued|running|ok|raised|timeout|memory|interrupted|died|session_lost", \
     .text = "The outcome's status once it has ended."}, \
    {"created_at", FIELD_TEXT, REQUIRED, .text = "When it was asked for: RFC 3339, UTC.", \
     .example = "\"2026-01-31T12:00:00.000Z\""}, \
    {"started_at", FIELD_TEXT, OPTIONAL, .text = "RFC 3339, UTC, or null."}, \
    {"ended_at", FIELD_TEXT, OPTIONAL, .text = "RFC 3339, UTC, or null."}, \
    {"outcome", FIELD_OBJECT, OPTIONAL, .of = "outcome", \
     .text = "An outcome, or null while it runs."}, \
    {"key", FIELD_TEXT, OPTIONAL, .text = "Id of the key that asked, or null."}, \
    {"door", FIELD_TEXT, OPTIONAL, .text = "Which interface that came through.", \
     .example = "\"rest\""}

static const struct field execution_fields[] = {
    EXECUTION_COMMON,
    {"code", FIELD_TEXT, REQUIRED, .text = "What ran.", .example = "\"6 * 7\""},
    {"stdout", FIELD_TEXT, REQUIRED, .text = "The text of its stdout events, joined."},
    {"stderr", FIELD_TEXT, REQUIRED, .text = "The text of its stderr events, joined."},
    {"result", FIELD_TEXT, OPTIONAL, .text = "The value of the last expression as text, or null.",
     .example = "\"42\""},
    {"files", FIELD_LIST, REQUIRED, .of = "file_made", .text = "Files it made or changed."},
    {"events", FIELD_LIST, REQUIRED, .of = "event", .text = "All it said, in order."},
    {0},
};

static const struct field execution_brief_fields[] = {EXECUTION_COMMON, {0}};

/* --- files --- */

static const struct field space_file_fields[] = {
    {"path", FIELD_TEXT, REQUIRED,
     .text = "In the workspace; bytes that are not UTF-8 show as U+FFFD, the url has them.",
     .example = "\"data/towns.csv\""},
    {"size", FIELD_INT, REQUIRED, .text = "Bytes.", .example = "31"},
    {"mime", FIELD_TEXT, REQUIRED, .text = "Guessed by its name.", .example = "\"text/csv\""},
    {"modified_at", FIELD_TEXT, OPTIONAL, .text = "RFC 3339, UTC.",
     .example = "\"2026-01-31T12:00:00.000Z\""},
    {"sha256", FIELD_TEXT, REQUIRED, .text = "Of its bytes, in hex. Also its ETag."},
    {"url", FIELD_TEXT, REQUIRED, .text = "Where to get it.",
     .example = "\"/v1/sessions/sess_k3v9q2m7x4w8p5n6t2r7y3z4/files/data/towns.csv\""},
    {0},
};

static const struct field file_fields[] = {
    {"id", FIELD_TEXT, REQUIRED, .text = "Its id.", .example = "\"file_k3v9q2m7x4w8p5n6t2r7y3z4\""},
    {"object", FIELD_ENUM, REQUIRED, .of = "file", .text = "What this is."},
    {"name", FIELD_TEXT, REQUIRED, .text = "Its name.", .example = "\"towns.csv\""},
    {"mime", FIELD_TEXT, REQUIRED, .text = "What it is.", .example = "\"text/csv\""},
    {"size", FIELD_INT, REQUIRED, .text = "Bytes.", .example = "31"},
    {"sha256", FIELD_TEXT, REQUIRED, .text = "Of its bytes, in hex. Also its ETag."},
    {"created_at", FIELD_TEXT, REQUIRED, .text = "RFC 3339, UTC.",
     .example = "\"2026-01-31T12:00:00.000Z\""},
    {"expires_at", FIELD_TEXT, OPTIONAL, .text = "When it goes: RFC 3339, UTC; null: never."},
    {0},
};

/* --- pools --- */

static const struct field limits_fields[] = {
    {"wall_s", FIELD_NUMBER, REQUIRED, .text = "Seconds one execution may take.", .example = "60"},
    {"cpu_s", FIELD_NUMBER, OPTIONAL,
     .text = "Seconds of CPU one execution may use; null: no limit."},
    {"cpus", FIELD_NUMBER, REQUIRED, .text = "Cores at a time.", .example = "1"},
    {"memory_bytes", FIELD_INT, REQUIRED, .text = "Per session, workspace and tmp included.",
     .example = "2147483648"},
    {"processes", FIELD_INT, REQUIRED, .text = "Processes and threads at a time.",
     .example = "128"},
    {"disk_bytes", FIELD_INT, REQUIRED, .text = "Of /workspace.", .example = "1073741824"},
    {"tmp_bytes", FIELD_INT, REQUIRED, .text = "Of /tmp and of /dev/shm.", .example = "268435456"},
    {"open_files", FIELD_INT, REQUIRED, .text = "Per process.", .example = "1024"},
    {"output_bytes", FIELD_INT, REQUIRED, .text = "Kept per execution: head and tail.",
     .example = "16777216"},
    {"artifact_count", FIELD_INT, REQUIRED, .text = "Files reported per execution.",
     .example = "200"},
    {"artifact_bytes", FIELD_INT, REQUIRED, .text = "Of one such file.", .example = "268435456"},
    {0},
};

static const struct field egress_fields[] = {
    {"mode", FIELD_ENUM, REQUIRED, .of = "none|allow-list", .text = "What the network is."},
    {"hosts", FIELD_LIST, REQUIRED, .of = "string", .text = "Names that may be reached.",
     .example = "[\"pypi.org\"]"},
    {0},
};

static const struct field pool_fields[] = {
    {"name", FIELD_TEXT, REQUIRED, .text = "Its name.", .example = "\"default\""},
    {"description", FIELD_TEXT, OPTIONAL, .text = "One line for people and models, or null."},
    {"python", FIELD_TEXT, REQUIRED, .text = "Its version; empty until it is known.",
     .example = "\"3.11.2\""},
    {"packages", FIELD_MAP, REQUIRED, .text = "Packages that can be imported, with versions.",
     .example = "{\"numpy\": \"1.24.2\", \"pandas\": \"1.5.3\"}"},
    {"preload", FIELD_LIST, REQUIRED, .of = "string",
     .text = "Modules that are imported before a session begins.",
     .example = "[\"pandas\"]"},
    {"learned", FIELD_LIST, REQUIRED, .of = "string",
     .text = "Modules that are imported then, too, because several sessions have imported them.",
     .example = "[\"sklearn.linear_model\"]"},
    {"limits", FIELD_OBJECT, REQUIRED, .of = "limits", .text = "What one session may use."},
    {"egress", FIELD_OBJECT, REQUIRED, .of = "egress", .text = "Where its code may connect to."},
    {"ready", FIELD_INT, REQUIRED, .text = "Sandboxes to be kept ready.", .example = "4"},
    {"parked", FIELD_INT, REQUIRED, .text = "Sandboxes that are ready now.", .example = "4"},
    {"sessions", FIELD_INT, REQUIRED, .text = "Live now.", .example = "12"},
    {"max_sessions", FIELD_INT, REQUIRED, .text = "Live at a time.", .example = "100"},
    {"idle_timeout", FIELD_NUMBER, REQUIRED, .text = "Seconds; the most a session can ask for.",
     .example = "600"},
    {"lifetime", FIELD_NUMBER, REQUIRED, .text = "Seconds; the most a session can ask for.",
     .example = "86400"},
    {"up", FIELD_BOOL, REQUIRED, .text = "Its interpreter is up."},
    {"problem", FIELD_TEXT, OPTIONAL, .text = "Why it is not up, or null."},
    {0},
};

/* --- approvals --- */

static const struct field approval_fields[] = {
    {"id", FIELD_TEXT, REQUIRED, .text = "Its id.", .example = "\"apr_k3v9q2m7x4w8p5n6t2r7y3z4\""},
    {"object", FIELD_TEXT, REQUIRED, .text = "approval", .example = "\"approval\""},
    {"state", FIELD_ENUM, REQUIRED, .of = "pending|approved|declined|expired|used",
     .text = "used: the one call it was for has run.", .example = "\"pending\""},
    {"tool", FIELD_TEXT, REQUIRED, .text = "What would run.", .example = "\"run_code\""},
    {"text", FIELD_TEXT, REQUIRED,
     .text = "The code and the other arguments, whole.",
     .example = "\"open('towns.csv').read()\""},
    {"text_size", FIELD_INT, REQUIRED, .text = "Characters of the code in text.", .example = "24"},
    {"digest", FIELD_TEXT, REQUIRED,
     .text = "SHA-256 of the tool, the session named, the pool and all arguments: what it stands for.",
     .example = "\"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\""},
    {"scope", FIELD_ENUM, REQUIRED, .of = "once|conversation",
     .text = "conversation: approved, it is good for the tool in the same session or conversation.",
     .example = "\"once\""},
    {"pool", FIELD_TEXT, REQUIRED, .text = "Where it would run.", .example = "\"default\""},
    {"session", FIELD_TEXT, OPTIONAL, .text = "In which session, or null."},
    {"execution", FIELD_TEXT, OPTIONAL, .text = "What last ran by it, or null."},
    {"key", FIELD_TEXT, OPTIONAL, .text = "Id of the key that asked, or null."},
    {"request_id", FIELD_TEXT, REQUIRED, .text = "Of the request that asked."},
    {"door", FIELD_TEXT, REQUIRED, .text = "Which interface that came through.",
     .example = "\"mcp\""},
    {"created_at", FIELD_TEXT, REQUIRED, .text = "RFC 3339, UTC.",
     .example = "\"2026-01-31T12:00:00.000Z\""},
    {"expires_at", FIELD_TEXT, OPTIONAL,
     .text = "Until when it can be decided, and when that is done, used."},
    {"decided_at", FIELD_TEXT, OPTIONAL, .text = "RFC 3339, UTC, or null."},
    {"decided_by", FIELD_TEXT, OPTIONAL,
     .text = "Id of the key that decided; null before that, and where there was no key."},
    {"decided_how", FIELD_TEXT, OPTIONAL,
     .text = "client: the user of the client that asked. approver: through this interface."},
    {"reason", FIELD_TEXT, OPTIONAL, .text = "The approver's, or null."},
    {0},
};

/* --- keys --- */

static const struct field key_fields[] = {
    {"id", FIELD_TEXT, REQUIRED, .text = "Its id.", .example = "\"key_k3v9q2m7x4w8p5n6t2r7y3z4\""},
    {"tenant", FIELD_TEXT, REQUIRED, .text = "Whose things it opens.", .example = "\"acme\""},
    {"name", FIELD_TEXT, REQUIRED, .text = "What it is for.", .example = "\"chat backend\""},
    {"hint", FIELD_TEXT, REQUIRED, .text = "How the secret begins.", .example = "\"rt_k3v9\""},
    {"admin", FIELD_BOOL, REQUIRED, .text = "May manage keys and export every tenant's log."},
    {"approver", FIELD_BOOL, REQUIRED, .text = "May decide approvals of its tenant."},
    {"pools", FIELD_LIST, OPTIONAL, .of = "string", .text = "The pools it opens; null: all."},
    {"doors", FIELD_LIST, OPTIONAL, .of = "string", .text = "The doors it opens; null: all."},
    {"read_only", FIELD_BOOL, REQUIRED, .text = "Changes nothing and runs nothing."},
    {"expires_at", FIELD_TEXT, OPTIONAL, .text = "RFC 3339, UTC, or null: it does not expire."},
    {"created_at", FIELD_TEXT, REQUIRED, .text = "RFC 3339, UTC.",
     .example = "\"2026-01-31T12:00:00.000Z\""},
    {"last_used_at", FIELD_TEXT, OPTIONAL, .text = "RFC 3339, UTC, or null."},
    {"revoked_at", FIELD_TEXT, OPTIONAL, .text = "RFC 3339, UTC, or null while it is good."},
    {"secret", FIELD_TEXT, OPTIONAL,
     .text = "The key itself: in the answer that made it, and nowhere after.",
     .example = "\"rt_...\""},
    {0},
};

/* --- lists --- */

#define LIST_OF(schema, last) \
    { \
        {"data", FIELD_LIST, REQUIRED, .of = (schema), .text = "One page of them."}, \
        {"has_more", FIELD_BOOL, REQUIRED, .text = "There is another page."}, \
        {"last_id", FIELD_TEXT, OPTIONAL, .text = (last)}, \
        {0}, \
    }
#define PAGED "Pass as after= for the next page; null when the page is empty."
#define WHOLE "Always null: this list has one page."

static const struct field session_list[] = LIST_OF("session", PAGED);
static const struct field execution_list[] = LIST_OF("execution_brief", PAGED);
static const struct field space_list[] = LIST_OF("workspace_file", WHOLE);
static const struct field file_list[] = LIST_OF("file", PAGED);
static const struct field pool_list[] = LIST_OF("pool", WHOLE);
static const struct field approval_list[] = LIST_OF("approval", PAGED);
static const struct field key_list[] = LIST_OF("key", WHOLE);

static const struct field node_fields[] = {
    {"id", FIELD_TEXT, REQUIRED, .text = "Its id, of this start of its.",
     .example = "\"writer_k3v9q2m7x4w8p5n6t2r7y3z4\""},
    {"name", FIELD_TEXT, REQUIRED, .text = "The setting node-name.", .example = "\"node-1\""},
    {"url", FIELD_TEXT, REQUIRED, .text = "Where other nodes reach it.",
     .example = "\"http://10.0.0.7:8000\""},
    {"tenants", FIELD_INT, REQUIRED, .text = "How many live there.", .example = "17"},
    {"lease_left", FIELD_NUMBER, REQUIRED,
     .text = "Seconds until others may take over, if it does not renew its lease; below 0: they may now.",
     .example = "11.2"},
    {"room", FIELD_OBJECT, REQUIRED,
     .text = "How many sandboxes each pool there may still have, those for other nodes among them.",
     .example = "{\"default\": 83}"},
    {"lent", FIELD_INT, REQUIRED,
     .text = "Sandboxes there whose sessions belong to tenants of other nodes.", .example = "12"},
    {0},
};
static const struct field node_list[] = LIST_OF("node", WHOLE);

/* --- what goes in --- */

static const struct field input_fields[] = {
    {"path", FIELD_TEXT, OPTIONAL, 1, SPACE_PATH_MAX - 1,
     .text = "Where in the workspace; without it a file or URL keeps its own name.",
     .example = "\"data/towns.csv\""},
    {"id", FIELD_TEXT, OPTIONAL, 1, ID_MAX, .text = "Of a file uploaded before.",
     .example = "\"file_k3v9q2m7x4w8p5n6t2r7y3z4\""},
    {"url", FIELD_TEXT, OPTIONAL, 1, URL_MAX, .text = "http, https or data; fetched by the server.",
     .example = "\"https://example.com/towns.csv\""},
    {"content", FIELD_TEXT, OPTIONAL, 0, BODY_EXECUTE_MAX, .text = "The file itself, as text.",
     .example = "\"city,people\\nLyon,522\\n\""},
    {"content_base64", FIELD_TEXT, OPTIONAL, 0, BODY_EXECUTE_MAX,
     .text = "The file itself, as base64: standard alphabet, padded, no line breaks.",
     .example = "\"aGkK\""},
    {0},
};

/* --- status --- */

static const struct field session_count_fields[] = {
    {"starting", FIELD_INT, REQUIRED, .text = "A sandbox is being made.", .example = "0"},
    {"idle", FIELD_INT, REQUIRED, .text = "With an interpreter.", .example = "3"},
    {"running", FIELD_INT, REQUIRED, .text = "Code runs.", .example = "1"},
    {"asleep", FIELD_INT, REQUIRED, .text = "Files alone, with something under way.", .example = "0"},
    {0},
};

static const struct field execution_count_fields[] = {
    {"ok", FIELD_INT, REQUIRED, .text = "Ended well.", .example = "40"},
    {"raised", FIELD_INT, REQUIRED, .text = "The code raised.", .example = "2"},
    {"timeout", FIELD_INT, REQUIRED, .text = "Out of time.", .example = "0"},
    {"memory", FIELD_INT, REQUIRED, .text = "Out of memory.", .example = "0"},
    {"interrupted", FIELD_INT, REQUIRED, .text = "Stopped by a client.", .example = "1"},
    {"died", FIELD_INT, REQUIRED, .text = "The interpreter died.", .example = "0"},
    {"session_lost", FIELD_INT, REQUIRED, .text = "The session was lost.", .example = "0"},
    {0},
};

static const struct field bucket_fields[] = {
    {"le", FIELD_NUMBER, OPTIONAL, .text = "Up to so many seconds; null: longer than all others.",
     .example = "0.001"},
    {"count", FIELD_INT, REQUIRED, .text = "How many took as long.", .example = "17"},
    {0},
};

static const struct field histogram_fields[] = {
    {"count", FIELD_INT, REQUIRED, .text = "How many there were.", .example = "43"},
    {"sum", FIELD_NUMBER, REQUIRED, .text = "Seconds of all of them.", .example = "12.25"},
    {"buckets", FIELD_LIST, REQUIRED, .of = "bucket", .text = "By how long they took."},
    {0},
};

static const struct field memory_fields[] = {
    {"server_bytes", FIELD_INT, REQUIRED, .text = "Resident memory of the server.",
     .example = "31457280"},
    {"host_used_bytes", FIELD_INT, REQUIRED, .text = "Of the machine, sandboxes included.",
     .example = "2147483648"},
    {"host_total_bytes", FIELD_INT, REQUIRED, .text = "That the machine has.",
     .example = "8589934592"},
    {0},
};

static const struct field status_fields[] = {
    {"version", FIELD_TEXT, REQUIRED, .text = "The version that runs.", .example = "\"0.1.0\""},
    {"tenant", FIELD_TEXT, REQUIRED, .text = "Whose things the caller sees.", .example = "\"local\""},
    {"key", FIELD_TEXT, OPTIONAL, .text = "Id of the caller's key, or null."},
    {"admin", FIELD_BOOL, REQUIRED, .text = "The caller may manage keys."},
    {"approver", FIELD_BOOL, REQUIRED, .text = "The caller may decide approvals."},
    {"read_only", FIELD_BOOL, REQUIRED, .text = "The caller changes nothing and runs nothing."},
    {"keys_needed", FIELD_BOOL, REQUIRED, .text = "There are keys, so every request needs one."},
    {"sessions", FIELD_OBJECT, REQUIRED, .of = "session_counts", .text = "In memory now, by state."},
    {"executions", FIELD_OBJECT, REQUIRED, .of = "execution_counts", .text = "By outcome."},
    {"cell_seconds", FIELD_OBJECT, REQUIRED, .of = "histogram", .text = "Time that executions took."},
    {"memory", FIELD_OBJECT, REQUIRED, .of = "memory", .text = "Of the server and its machine."},
    {0},
};

static const struct field openapi_fields[] = {
    {"openapi", FIELD_TEXT, REQUIRED, .text = "The version it follows.", .example = "\"3.1.0\""},
    {0},
};

const struct schema rest_schemas[] = {
    {"session", "A sealed interpreter and its files.", session_fields},
    {"session_list", "Sessions, newest first.", session_list},
    {"outcome", "How an execution ended.", outcome_fields},
    {"frame", "A line of the user's code on the way to an error.", frame_fields},
    {"event", "Something an execution said.", event_fields},
    {"file_made", "A file that an execution made or changed.", made_fields},
    {"execution", "One cell or command, and all that came of it.", execution_fields},
    {"execution_brief", "An execution without its code and events.", execution_brief_fields},
    {"execution_list", "Executions, newest first.", execution_list},
    {"execute_file",
     "A file to be there first: exactly one of id, url, content and content_base64. Content needs "
     "a path.",
     input_fields, .one_of = "id|url|content path|content_base64 path"},
    {"workspace_file", "A file of a session.", space_file_fields},
    {"workspace_list", "Files of a session, by path.", space_list},
    {"file", "An upload that sessions can use.", file_fields},
    {"file_list", "Uploads, newest first.", file_list},
    {"limits", "What one session may use.", limits_fields},
    {"egress", "Where code may connect to.", egress_fields},
    {"pool", "A named environment that sessions are made from.", pool_fields},
    {"pool_list", "Pools; the first is the default.", pool_list},
    {"approval", "What a person is asked before code runs.", approval_fields},
    {"approval_list", "Approvals, newest first.", approval_list},
    {"key", "An API key. Its secret is kept nowhere.", key_fields},
    {"key_list", "Keys, oldest first, revoked ones too.", key_list},
    {"node", "A server that shares the store.", node_fields},
    {"node_list", "Nodes.", node_list},
    {"change", "Something that has changed, in a stream of GET /v1/events.", change_fields},
    {"session_counts", "Sessions by state.", session_count_fields},
    {"execution_counts", "Executions by outcome.", execution_count_fields},
    {"bucket", "A range of durations.", bucket_fields},
    {"histogram", "Durations.", histogram_fields},
    {"memory", "Memory in use.", memory_fields},
    {"status", "Who asks, and how the server does.", status_fields},
    {"openapi", "An OpenAPI 3.1 document.", openapi_fields, .open = true},
};
// clang-format on

static_assert(COUNT(rest_schemas) == REST_SCHEMAS, "REST_SCHEMAS");
