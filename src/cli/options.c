/* The one table of options. Parsing, --help and the error sentences are made from it. */
#include "cli/cli_int.h"

#include <stdlib.h>
#include <unistd.h>

#define AT(field) offsetof(struct settings, field)
#define RUN       IN(COMMAND_RUN)
#define DOCTOR    IN(COMMAND_DOCTOR)
#define SERVE     IN(COMMAND_SERVE)
#define KEYS      IN(COMMAND_KEYS)
#define MCP       IN(COMMAND_MCP)
#define FLAG_ONLY (IN(SOURCE_FILE) | IN(SOURCE_ENV))
#define SECOND_MS 1000ull
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS   (60 * MINUTE_MS)
#define DAY_MS    (24 * HOUR_MS)
#define YEARS_MS  (3650 * DAY_MS)
#define TiB       (1024 * GiB)

/* The least values are those with which a bare interpreter still comes up. */
// clang-format off
const struct option options[] = {
    {"code",  'c', OPTION_WORK, GROUP_WORK, RUN, .work = WORK_CODE, .metavar = "CODE",
     .text = "Run CODE as one cell."},
    {"shell", 0,   OPTION_WORK, GROUP_WORK, RUN, .work = WORK_SHELL, .metavar = "CMD",
     .text = "Run CMD with bash in the same session."},
    {"keep-going", 0, OPTION_BOOL, GROUP_WORK, RUN, AT(keep_going),
     .text = "Go on after an execution that failed."},

    {"file", 'f', OPTION_LIST, GROUP_FILES, RUN, AT(files), .metavar = "FILE",
     .text = "Put a copy of FILE into the workspace first; may be given again."},
    {"out",  'o', OPTION_PATH, GROUP_FILES, RUN, AT(out), .metavar = "DIR",
     .text = "Keep the files and figures that the code makes in DIR."},

    {"tenant", 't', OPTION_PATH, GROUP_KEY, KEYS, AT(keys.tenant), .metavar = "NAME",
     .not_from = FLAG_ONLY, .text = "Whose key it is: tenants see nothing of each other."},
    {"name",   'n', OPTION_TEXT, GROUP_KEY, KEYS, AT(keys.name), .metavar = "TEXT",
     .not_from = FLAG_ONLY, .text = "What it is for, in your own words."},
    {"admin",  0,   OPTION_BOOL, GROUP_KEY, KEYS, AT(keys.admin),
     .not_from = FLAG_ONLY, .text = "It may manage keys and read every tenant's audit log."},
    {"approver", 0, OPTION_BOOL, GROUP_KEY, KEYS, AT(keys.approver),
     .not_from = FLAG_ONLY, .text = "It may decide what its tenant's clients ask approval for."},
    {"quiet",  'q', OPTION_BOOL, GROUP_KEY, KEYS, AT(keys.quiet),
     .not_from = FLAG_ONLY, .text = "Print the secret and nothing else."},

    {"listen",          0, OPTION_WORDS, GROUP_SERVER, SERVE, AT(serve.listen), .metavar = "ADDR",
     .unset = LISTEN_DEFAULT,
     .text = "PORT, HOST:PORT, [IPV6]:PORT or unix:PATH; may be given again."},
    {"socket-mode",     0, OPTION_MODE, GROUP_SERVER, SERVE, AT(serve.socket_mode),
     0, 0777, .metavar = "MODE", .text = "Permissions of a Unix socket that it makes."},
    {"config",          0, OPTION_PATH, GROUP_SERVER, SERVE | KEYS, AT(config), .metavar = "FILE",
     .not_from = IN(SOURCE_FILE), .unset = CONFIG_DEFAULT " where there is one",
     .text = "Read settings from FILE."},
    {"check-config",    0, OPTION_BOOL, GROUP_SERVER, SERVE, AT(serve.check_config),
     .not_from = FLAG_ONLY, .text = "Print the settings that are effective, and end."},
    {"state",           0, OPTION_PATH, GROUP_SERVER, SERVE | KEYS, AT(state), .metavar = "DIR",
     .unset = "/var/lib/retort, or ~/.local/state/retort",
     .text = "Keep sessions, files, records and keys in DIR."},
    {"config",          0, OPTION_PATH, GROUP_SERVER, MCP, AT(config), .metavar = "FILE",
     .not_from = IN(SOURCE_FILE), .unset = "none",
     .text = "Take pools and limits from FILE, the settings of a server."},
    {"state",           0, OPTION_PATH, GROUP_SERVER, MCP, AT(state), .metavar = "DIR",
     .unset = "a temporary one, removed at the end",
     .text = "Keep sessions, files and records in DIR."},
    {"user",            0, OPTION_PATH, GROUP_SERVER, SERVE | MCP, AT(serve.user), .metavar = "NAME",
     .unset = "retort where there is one, else 1879048191",
     .text = "Started by root: serve as this user."},
    {"isolation-floor", 0, OPTION_CHOICE, GROUP_SERVER, SERVE | MCP, AT(serve.floor),
     .metavar = "WHAT", .choices = "namespaces+seccomp|all",
     .text = "Do not start where fewer layers of isolation hold."},
    {"drain",           0, OPTION_SECONDS, GROUP_SERVER, SERVE, AT(serve.drain_ms),
     0, DAY_MS, .metavar = "S", .text = "Time for what still runs when the server is to end."},
    {"log-level",       0, OPTION_CHOICE, GROUP_SERVER, SERVE, AT(serve.log_level),
     .metavar = "LEVEL", .choices = "error|warn|info|debug", .text = "What is logged on stderr."},
    {"log-format",      0, OPTION_CHOICE, GROUP_SERVER, SERVE, AT(serve.log_format),
     .metavar = "FORMAT", .choices = "text|json", .text = "Lines for people, or for programs."},

    {"tls-cert",        0, OPTION_PATH, GROUP_ACCESS, SERVE, AT(serve.tls_cert), .metavar = "FILE",
     .unset = "none", .text = "Speak TLS with the certificates of this PEM file."},
    {"tls-key",         0, OPTION_PATH, GROUP_ACCESS, SERVE, AT(serve.tls_key), .metavar = "FILE",
     .unset = "none", .text = "The private key that belongs to it."},
    {"tls-client-ca",   0, OPTION_PATH, GROUP_ACCESS, SERVE, AT(serve.tls_client_ca),
     .metavar = "FILE", .unset = "none",
     .text = "Ask clients for certificates, and believe those of the authorities of this PEM file."},
    {"plain-http",      0, OPTION_BOOL, GROUP_ACCESS, SERVE, AT(serve.plain_http), .unset = "no",
     .text = "Serve other machines without TLS, such as a proxy that has it."},
    {"hosts",           0, OPTION_TEXT, GROUP_ACCESS, SERVE, AT(serve.hosts), .metavar = "NAMES",
     .unset = "none", .text = "Further Host names that need no key while there is none."},
    {"origins",         0, OPTION_TEXT, GROUP_ACCESS, SERVE, AT(serve.origins), .metavar = "URLS",
     .unset = "none", .text = "Web pages that may call, such as https://app.example."},
    {"public-url",      0, OPTION_TEXT, GROUP_ACCESS, SERVE, AT(serve.public_url), .metavar = "URL",
     .unset = "none", .text = "How clients reach this server, such as https://code.example."},
    {"oauth-servers",   0, OPTION_TEXT, GROUP_ACCESS, SERVE, AT(serve.oauth_servers),
     .metavar = "URLS", .unset = "none",
     .text = "Where clients of MCP get tokens that a proxy in front takes."},
    {"max-connections", 0, OPTION_COUNT, GROUP_ACCESS, SERVE, AT(serve.max_connections),
     1, 1000000, .metavar = "N", .text = "Connections at a time."},
    {"max-per-address", 0, OPTION_COUNT, GROUP_ACCESS, SERVE, AT(serve.max_per_address),
     0, 1000000, .metavar = "N", .text = "Of these, from one address; 0 for no limit."},
    {"header-timeout",  0, OPTION_SECONDS, GROUP_ACCESS, SERVE, AT(serve.header_ms),
     100, HOUR_MS, .metavar = "S",
     .text = "Time for the head of a request, and between pieces of its body."},

    {"tenant-sessions", 0, OPTION_COUNT, GROUP_HOUSE, SERVE, AT(serve.tenant_sessions),
     1, 1000000, .metavar = "N", .text = "Live sessions of one tenant."},
    {"retention",       0, OPTION_SECONDS, GROUP_HOUSE, SERVE | MCP, AT(serve.retention_ms),
     SECOND_MS, YEARS_MS, .metavar = "TIME", .text = "How long a workspace outlives its last use."},
    {"records",         0, OPTION_SECONDS, GROUP_HOUSE, SERVE | MCP, AT(serve.record_ms),
     0, YEARS_MS, .metavar = "TIME", .text = "How long an execution stays on record; 0 for ever."},
    {"file-size",       0, OPTION_SIZE, GROUP_HOUSE, SERVE | MCP, AT(serve.file_bytes),
     1, 64 * TiB, .metavar = "SIZE", .text = "Size of one upload."},
    {"tenant-files",    0, OPTION_SIZE, GROUP_HOUSE, SERVE, AT(serve.tenant_bytes),
     0, 1024 * TiB, .metavar = "SIZE",
     .text = "Size of all files of one tenant; 0 for as much as the disk has."},
    {"fetch-size",      0, OPTION_SIZE, GROUP_HOUSE, SERVE | MCP, AT(serve.fetch_bytes),
     1, 64 * TiB, .metavar = "SIZE", .text = "Size of one file that is fetched by its URL."},
    {"fetch-timeout",   0, OPTION_SECONDS, GROUP_HOUSE, SERVE | MCP, AT(serve.fetch_ms),
     SECOND_MS, HOUR_MS, .metavar = "S", .text = "Time for it."},
    {"fetch-private",   0, OPTION_BOOL, GROUP_HOUSE, SERVE | MCP, AT(serve.fetch_private), .unset = "no",
     .text = "Fetch from private addresses, too."},
    {"fetch-allow",     0, OPTION_HOSTS, GROUP_HOUSE, SERVE | MCP, AT(serve.fetch_allow),
     .metavar = "HOSTS", .unset = "none",
     .text = "Of private addresses only these, such as 10.0.0.0/8, files.example:8080."},

    {"mcp-answer",      0, OPTION_SECONDS, GROUP_HOUSE, SERVE | MCP, AT(serve.answer_ms),
     100, DAY_MS, .metavar = "S",
     .text = "Code that runs longer is answered for over MCP with what there is."},

    {"tools",           0, OPTION_CHOICE, GROUP_SERVER, MCP, AT(tools), .metavar = "NAME",
     .choices = "native|qwen|prisme|azure|ubik", .not_from = IN(SOURCE_FILE),
     .text = "Show these tools: our own, or those of another system."},
    {"pool",         0, OPTION_PATH, GROUP_POOL, MCP, AT(pool_name), .metavar = "NAME",
     .not_from = IN(SOURCE_FILE), .unset = "all, and the first for those who name none",
     .text = "Of the pools in the file, this one alone."},
    {"description",  0, OPTION_TEXT, GROUP_POOL, SERVE, AT(pool.text), .metavar = "TEXT",
     .unset = "none", .text = "What the pool is for, in one line."},
    {"ready",        0, OPTION_COUNT, GROUP_POOL, SERVE, AT(pool.ready),
     0, 10000, .metavar = "N", .unset = "two for each core",
     .text = "Sandboxes kept ready for the next sessions."},
    {"ready",        0, OPTION_COUNT, GROUP_POOL, MCP, AT(pool.ready),
     0, 10000, .metavar = "N", .unset = "1", .text = "Sandboxes kept ready for the next sessions."},
    {"max-sessions", 0, OPTION_COUNT, GROUP_POOL, SERVE | MCP, AT(pool.max_sessions),
     1, 30000, .metavar = "N", .text = "Live sessions."},
    {"idle-timeout", 0, OPTION_SECONDS, GROUP_POOL, SERVE | MCP, AT(pool.idle_ms),
     SECOND_MS, YEARS_MS, .metavar = "TIME",
     .text = "Unused for this long a session goes to sleep: variables go, files stay."},
    {"lifetime",     0, OPTION_SECONDS, GROUP_POOL, SERVE | MCP, AT(pool.lifetime_ms),
     SECOND_MS, YEARS_MS, .metavar = "TIME", .text = "So it does at this age at the latest."},
    {"recycle",      0, OPTION_SECONDS, GROUP_POOL, SERVE | MCP, AT(pool.recycle_ms),
     0, YEARS_MS, .metavar = "TIME",
     .text = "Age at which the interpreter behind the pool is replaced; 0 for never."},
    {"egress",       0, OPTION_CHOICE, GROUP_POOL, SERVE | MCP, AT(pool.egress),
     .metavar = "WHAT", .choices = "none|allow-list",
     .text = "Whether code reaches the network, and what of it."},
    {"egress-hosts", 0, OPTION_HOSTS, GROUP_POOL, SERVE | MCP, AT(pool.egress_hosts), .metavar = "HOSTS",
     .unset = "none", .text = "The allow-list, such as pypi.org, *.pythonhosted.org, host:8443."},
    {"approval",         0, OPTION_CHOICE, GROUP_POOL, SERVE | MCP, AT(pool.approval),
     .metavar = "WHAT", .choices = "auto|ask_first|always_ask|ask_external",
     .text = "Whether a person agrees before code runs: never, once per conversation, each time, or "
             "each time over MCP alone."},
    {"approval-by",      0, OPTION_CHOICE, GROUP_POOL, SERVE | MCP, AT(pool.approval_by),
     .metavar = "WHO", .choices = "client|either|approver",
     .text = "Whose word it takes: the client's user, else an approver, or only an approver."},
    {"approval-when",    0, OPTION_TEXT, GROUP_POOL, SERVE | MCP, AT(pool.approval_when),
     .metavar = "RULES", .unset = "every call",
     .text = "Only for these calls, such as language=shell, code~socket."},
    {"approval-timeout", 0, OPTION_SECONDS, GROUP_POOL, SERVE | MCP, AT(pool.approval_timeout_ms),
     SECOND_MS, 10 * MINUTE_MS, .metavar = "TIME", .text = "Time for the client's user to answer."},
    {"approval-wait",    0, OPTION_SECONDS, GROUP_POOL, SERVE | MCP, AT(pool.approval_wait_ms),
     SECOND_MS, 30 * DAY_MS, .metavar = "TIME",
     .text = "Time for an approver to decide, and then for the call to come again."},
    {"python",       0, OPTION_PATH, GROUP_POOL, SERVE | MCP, AT(pool.python), .metavar = "PATH",
     .unset = "/usr/bin/python3, else from PATH",
     .text = "The Python to run, such as that of a virtual environment."},
    {"preload",      0, OPTION_TEXT, GROUP_POOL, SERVE | MCP, AT(pool.preload), .metavar = "NAMES",
     .unset = "of " PRELOAD_DEFAULT ", those there are",
     .text = "Modules to import beforehand."},

    {"images",       0, OPTION_TEXT, GROUP_POOL, SERVE, AT(pool.images), .metavar = "NAMES",
     .unset = "none",
     .text = "Container images that this Python stands for, such as registry.example/ml:*."},

    {"timeout",       0, OPTION_SECONDS, GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.wall_ms),
     10, DAY_MS, .metavar = "S", .text = "Wall time of one execution."},
    {"cpu-time",      0, OPTION_SECONDS, GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.cpu_ms),
     0, DAY_MS, .metavar = "S", .text = "CPU time of one execution; 0 for no limit."},
    {"cpus",          0, OPTION_CORES,   GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.cpu_percent),
     1, 102400, .metavar = "N", .text = "Cores the session may keep busy, such as 0.5 or 2."},
    {"memory",        0, OPTION_SIZE,    GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.memory_bytes),
     32 * MiB, 64 * TiB, .metavar = "SIZE", .text = "Memory of the session, its files included."},
    {"pids",          0, OPTION_COUNT,   GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.pids),
     8, 32768, .metavar = "N", .text = "Processes and threads of the session."},
    {"disk",          0, OPTION_SIZE,    GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.disk_bytes),
     64 * KiB, 64 * TiB, .metavar = "SIZE", .text = "Size of /workspace."},
    {"tmp",           0, OPTION_SIZE,    GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.tmp_bytes),
     64 * KiB, 64 * TiB, .metavar = "SIZE", .text = "Size of /tmp, and of /dev/shm."},
    {"open-files",    0, OPTION_COUNT,   GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.open_files),
     32, 1048576, .metavar = "N", .text = "Open files of one process."},
    {"output",        0, OPTION_SIZE,    GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.output_bytes),
     1 * KiB, 1 * GiB, .metavar = "SIZE",
     .text = "Output kept of one execution: its beginning and its end."},
    {"artifacts",     0, OPTION_COUNT,   GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.artifact_count),
     0, 100000, .metavar = "N", .text = "Files reported of one execution."},
    {"artifact-size", 0, OPTION_SIZE,    GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.artifact_bytes),
     1, 64 * TiB, .metavar = "SIZE", .text = "Size of one file that is handed out."},
    {"grace",         0, OPTION_SECONDS, GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.grace_ms),
     0, DAY_MS, .metavar = "S", .text = "Time between the interrupt and the kill."},

    {"qwen-pool",       0, OPTION_PATH, GROUP_QWEN, SERVE | MCP, AT(qwen.pool), .metavar = "NAME",
     .unset = "the first", .text = "The pool in which its tools run."},
    {"qwen-timeout",    0, OPTION_SECONDS, GROUP_QWEN, SERVE | MCP, AT(qwen.timeout_ms),
     10, DAY_MS, .metavar = "S", .text = "Wall time of code_interpreter, unless a call says otherwise."},
    {"qwen-work-dir",   0, OPTION_PATH, GROUP_QWEN, SERVE | MCP, AT(qwen.work_dir), .metavar = "DIR",
     .also = "M6_CODE_INTERPRETER_WORK_DIR", .unset = "none",
     .text = "Write the files that code makes, and images, to this folder, too; read files from it."},
    {"qwen-file-dirs",  0, OPTION_TEXT, GROUP_QWEN, SERVE | MCP, AT(qwen.file_dirs), .metavar = "DIRS",
     .unset = "none", .text = "Files of this machine may be given from below these folders."},
    {"qwen-static-url", 0, OPTION_TEXT, GROUP_QWEN, SERVE | MCP, AT(qwen.static_url), .metavar = "URL",
     .also = "M6_CODE_INTERPRETER_STATIC_URL", .unset = "our own /qwen/static, or the work dir",
     .text = "Links to images begin with it."},
    {"qwen-traceback",  0, OPTION_CHOICE, GROUP_QWEN, SERVE | MCP, AT(qwen.traceback),
     .metavar = "HOW", .choices = "brief|full", .text = "Errors as one line, or with their frames."},
    {"qwen-executor-timeout", 0, OPTION_SECONDS, GROUP_QWEN, SERVE | MCP, AT(qwen.executor_ms),
     10, DAY_MS, .metavar = "S", .text = "Wall time of python_executor."},
    {"qwen-executor-chars", 0, OPTION_COUNT, GROUP_QWEN, SERVE | MCP, AT(qwen.executor_chars),
     0, 100000000, .metavar = "N", .text = "Characters of its output and of its report; 0 for all."},

    {"prisme-pool",     0, OPTION_PATH, GROUP_PRISME, SERVE | MCP, AT(prisme.pool), .metavar = "NAME",
     .unset = "the first", .text = "The pool in which its scripts run."},
    {"prisme-timeout",  0, OPTION_SECONDS, GROUP_PRISME, SERVE | MCP, AT(prisme.timeout_ms),
     10, DAY_MS, .metavar = "S", .also = "PYTHON_FUNCTIONS_RUN_TIMEOUT", .also_unit = "ms",
     .text = "Wall time of one script."},
    {"prisme-parallel", 0, OPTION_COUNT, GROUP_PRISME, SERVE | MCP, AT(prisme.parallel),
     1, 10000, .metavar = "N", .also = "KERNEL_POOL_SIZE",
     .text = "Scripts at a time; the next ones wait."},
    {"prisme-builtins", 0, OPTION_TEXT, GROUP_PRISME, SERVE | MCP, AT(prisme.builtins), .metavar = "NAMES",
     .also = "PYTHON_BUILTIN_MODULES", .unset = "those that do no harm",
     .text = "Modules of Python's own that scripts may import; * for all."},
    {"prisme-packages", 0, OPTION_TEXT, GROUP_PRISME, SERVE | MCP, AT(prisme.packages), .metavar = "NAMES",
     .also = "PYTHON_PACKAGES_WHITELIST_IMPORT",
     .unset = "numpy, pandas, openpyxl, tabulate, dateparser, urllib3, requests, pptx, docx",
     .text = "Packages that they may import; * for all."},
    {"prisme-packages-more", 0, OPTION_TEXT, GROUP_PRISME, SERVE | MCP, AT(prisme.packages_more),
     .metavar = "NAMES", .also = "PYTHON_PACKAGES_AUTO_INSTALL", .unset = "none",
     .text = "Further ones, with or without a version; the pool's Python has to have them."},
    {"prisme-activation", 0, OPTION_CHOICE, GROUP_PRISME, SERVE | MCP, AT(prisme.activation),
     .metavar = "WHEN", .choices = "auto|user_first",
     .text = "Whether execute_python is there always, or once a user has asked for it."},
    {"prisme-sources",  0, OPTION_TEXT, GROUP_PRISME, SERVE, AT(prisme.sources), .metavar = "NAMES",
     .unset = "none", .text = "Callers who need no key: unix:UID=NAME, token:NAME, mtls:NAME."},
    {"prisme-source-key", 0, OPTION_PATH, GROUP_PRISME, SERVE, AT(prisme.source_key), .metavar = "FILE",
     .unset = "none", .text = "The secret by which the tokens of such callers are signed."},

    {"anthropic-pool",    0, OPTION_PATH, GROUP_ANTHROPIC, SERVE, AT(anthropic.pool),
     .metavar = "NAME", .unset = "the first", .text = "The pool that containers are made in."},
    {"anthropic-timeout", 0, OPTION_SECONDS, GROUP_ANTHROPIC, SERVE, AT(anthropic.timeout_ms),
     0, DAY_MS, .metavar = "S", .text = "Wall time of one command; 0 for as much as the pool gives."},
    {"anthropic-cell-timeout", 0, OPTION_SECONDS, GROUP_ANTHROPIC, SERVE, AT(anthropic.cell_ms),
     10, DAY_MS, .metavar = "S", .text = "Wall time of one cell, within what the pool gives."},
    {"anthropic-turns",   0, OPTION_COUNT, GROUP_ANTHROPIC, SERVE, AT(anthropic.turns),
     1, 100000, .metavar = "N", .text = "Replies of the model in one message, before it pauses."},
    {"anthropic-wall",    0, OPTION_SECONDS, GROUP_ANTHROPIC, SERVE, AT(anthropic.wall_ms),
     100, DAY_MS, .metavar = "S",
     .text = "Time of one message, before it pauses; clients wait ten minutes."},
    {"anthropic-idle",    0, OPTION_SECONDS, GROUP_ANTHROPIC, SERVE, AT(anthropic.idle_ms),
     1000, DAY_MS, .metavar = "S",
     .text = "A container without use keeps its interpreter for so long, and its files for longer."},
    {"anthropic-answer-wait", 0, OPTION_SECONDS, GROUP_ANTHROPIC, SERVE, AT(anthropic.answer_ms),
     100, DAY_MS, .metavar = "S",
     .text = "Code that has called a tool of the client waits for so long; then: TimeoutError."},
    {"anthropic-approval-wait", 0, OPTION_SECONDS, GROUP_ANTHROPIC, SERVE,
     AT(anthropic.approval_ms), 0, DAY_MS, .metavar = "S",
     .text = "A message waits for an approver for so long, before it pauses."},
    {"anthropic-capture-cwd", 0, OPTION_BOOL, GROUP_ANTHROPIC, SERVE, AT(anthropic.capture_cwd),
     .text = "Hand out new files of the working directory, too, not of $OUTPUT_DIR alone."},
    {"anthropic-download-uploads", 0, OPTION_BOOL, GROUP_ANTHROPIC, SERVE,
     AT(anthropic.download_uploads),
     .text = "Let clients download what they have uploaded, which Anthropic does not."},

    {"ubik-pool",       0, OPTION_PATH, GROUP_UBIK, SERVE | MCP, AT(ubik.pool), .metavar = "NAME",
     .unset = "the first", .text = "The pool of its sandboxes."},
    {"ubik-event-size", 0, OPTION_SIZE, GROUP_UBIK, SERVE, AT(ubik.event_bytes),
     1 * KiB, 16 * MiB, .metavar = "SIZE",
     .text = "Of one event of a stream; a larger one comes in pieces."},

    {"model",           0, OPTION_PATH, GROUP_MODEL, SERVE | MCP, AT(model.standard), .metavar = "NAME",
     .unset = "the first", .text = "Of several models, the one for requests that name none."},
    {"model-tenants",   0, OPTION_TEXT, GROUP_MODEL, SERVE | MCP, AT(model.tenants), .metavar = "PAIRS",
     .unset = "none", .text = "The one for those of a tenant, such as acme=fast, beta=local."},
    {"model-script",    0, OPTION_PATH, GROUP_MODEL, SERVE | MCP, AT(model.script), .metavar = "FILE",
     .unset = "none", .text = "Play this script in place of a model; - for those in requests alone."},
    {"model-url",       0, OPTION_PATH, GROUP_MODEL, SERVE | MCP, AT(model.one.url), .metavar = "URL",
     .unset = "none", .text = "Where the model is asked, such as http://127.0.0.1:8080/v1."},
    {"model-api",       0, OPTION_CHOICE, GROUP_MODEL, SERVE | MCP, AT(model.one.api),
     .metavar = "WHAT", .choices = "openai|anthropic",
     .text = "What is spoken there: chat completions, or Messages."},
    {"model-name",      0, OPTION_PATH, GROUP_MODEL, SERVE | MCP, AT(model.one.name), .metavar = "NAME",
     .unset = "as the request says", .text = "What it is called there."},
    {"model-key-file",  0, OPTION_PATH, GROUP_MODEL, SERVE | MCP, AT(model.one.key_file),
     .metavar = "FILE", .unset = "none", .text = "Its key is in this file; or set RETORT_MODEL_KEY."},
    {"model-key",       0, OPTION_TEXT, GROUP_MODEL, SERVE | MCP, AT(model.one.key), .metavar = "KEY",
     .secret = true, .not_from = IN(SOURCE_FLAG), .unset = "none",
     .text = "Its key; never as an argument, which others can read."},
    {"model-timeout",   0, OPTION_SECONDS, GROUP_MODEL, SERVE | MCP, AT(model.one.timeout_ms),
     100, HOUR_MS, .metavar = "S", .text = "Time for one reply."},
    {"model-max-tokens", 0, OPTION_COUNT, GROUP_MODEL, SERVE | MCP, AT(model.one.max_tokens),
     0, 10000000, .metavar = "N", .unset = "the endpoint's own; 8192 with anthropic",
     .text = "Length of one reply."},
    {"model-images",    0, OPTION_BOOL, GROUP_MODEL, SERVE | MCP, AT(model.one.images), .unset = "no",
     .text = "It sees images."},
    {"model-text-only", 0, OPTION_BOOL, GROUP_MODEL, SERVE | MCP, AT(model.one.text_only),
     .unset = "no", .text = "It knows no tools: ask for code in text at once."},
    {"model-proxy",     0, OPTION_PATH, GROUP_MODEL, SERVE | MCP, AT(model.one.proxy), .metavar = "URL",
     .unset = "none", .text = "Ask through this proxy; those of the environment do not count."},
    {"model-ca",        0, OPTION_PATH, GROUP_MODEL, SERVE | MCP, AT(model.one.ca_file), .metavar = "FILE",
     .unset = "the system's", .text = "Certificates that its TLS is trusted by."},

    {"agent-loops",     0, OPTION_COUNT, GROUP_AGENT, SERVE | MCP, AT(agent.tenant_loops),
     1, 10000, .metavar = "N", .text = "Requests in plain words under way at a time, per tenant."},
    {"agent-steps",     0, OPTION_COUNT, GROUP_AGENT, SERVE | MCP, AT(agent.budget.plan_steps),
     1, 20, .metavar = "N", .text = "Steps of a plan."},
    {"agent-rounds",    0, OPTION_COUNT, GROUP_AGENT, SERVE | MCP, AT(agent.budget.rounds),
     1, 100, .metavar = "N", .text = "Runs of code for one request; a short plan has fewer."},
    {"agent-attempts",  0, OPTION_COUNT, GROUP_AGENT, SERVE | MCP, AT(agent.budget.attempts),
     1, 20, .metavar = "N", .text = "Failed runs of one step, once the plan was changed for them."},
    {"agent-run-timeout", 0, OPTION_SECONDS, GROUP_AGENT, SERVE | MCP, AT(agent.budget.run_ms),
     100, DAY_MS, .metavar = "S", .text = "Wall time of one run."},
    {"agent-timeout",   0, OPTION_SECONDS, GROUP_AGENT, SERVE | MCP, AT(agent.budget.wall_ms),
     1000, DAY_MS, .metavar = "S", .text = "Time for one request, without what it waits for people."},
    {"agent-model-timeout", 0, OPTION_SECONDS, GROUP_AGENT, SERVE | MCP, AT(agent.budget.model_ms),
     1000, DAY_MS, .metavar = "S", .text = "Time for one reply of a model."},
    {"agent-input",     0, OPTION_COUNT, GROUP_AGENT, SERVE | MCP, AT(agent.budget.input_chars),
     10000, 100000000, .metavar = "N", .text = "Characters that a model is sent at a time."},
    {"agent-tokens",    0, OPTION_COUNT, GROUP_AGENT, SERVE | MCP, AT(agent.budget.tokens),
     1000, 1000000000, .metavar = "N", .text = "Tokens of a model for one request."},
    {"agent-wait",      0, OPTION_SECONDS, GROUP_AGENT, SERVE | MCP, AT(agent.budget.wait_ms),
     1000, 30 * DAY_MS, .metavar = "S", .text = "How long it waits for somebody's answer."},

    {"python",  0,   OPTION_PATH, GROUP_OTHER, RUN | DOCTOR, AT(pool.python), .metavar = "PATH",
     .unset = "/usr/bin/python3, else from PATH",
     .text = "The Python to run, such as that of a virtual environment."},
    {"preload", 0,   OPTION_TEXT, GROUP_OTHER, RUN, AT(pool.preload), .metavar = "NAMES",
     .unset = "none", .text = "Modules to import beforehand, separated by commas."},
    {"json",    0,   OPTION_BOOL, GROUP_OTHER, RUN | DOCTOR | KEYS, AT(json),
     .not_from = FLAG_ONLY, .text = "Print one JSON document in place of text."},
    {"verbose", 'v', OPTION_BOOL, GROUP_OTHER, RUN | DOCTOR | KEYS | MCP, AT(verbose),
     .not_from = FLAG_ONLY, .text = "Tell on stderr what goes on behind the scenes."},
    {"help",    'h', OPTION_BOOL, GROUP_OTHER, RUN | DOCTOR | SERVE | KEYS | MCP, AT(help),
     .not_from = FLAG_ONLY, .text = "Print this text."},
};
// clang-format on

const size_t options_count = COUNT(options);
static_assert(COUNT(options) <= OPTIONS_MAX, "struct settings.from has a place for each");

bool option_is_pools(const struct option *o)
{
    return o->at >= AT(pool) && o->at < AT(pool) + sizeof(struct service_pool);
}

bool option_is_models(const struct option *o)
{
    return o->at >= AT(model.one) && o->at < AT(model.one) + sizeof(struct endpoint_settings);
}

size_t option_index(const struct option *o)
{
    return (size_t)(o - options);
}

const struct option *option_by_name(struct str name, unsigned commands)
{
    for (size_t i = 0; i < options_count; i++)
        if ((options[i].commands & commands) && str_is(name, options[i].name))
            return &options[i];
    return NULL;
}

const struct option *option_by_letter(char letter, unsigned commands)
{
    for (size_t i = 0; i < options_count; i++)
        if ((options[i].commands & commands) && letter != 0 && options[i].letter == letter)
            return &options[i];
    return NULL;
}

const char *option_nearest(struct str name, unsigned commands)
{
    const char *best = NULL;
    unsigned least = name.n < 5 ? 2 : 3; /* farther away it is a guess, not a slip */

    for (size_t i = 0; i < options_count; i++) {
        if (!(options[i].commands & commands))
            continue;
        unsigned d = edit_distance(name, str_of(options[i].name));
        if (d < least) {
            least = d;
            best = options[i].name;
        }
    }
    return best;
}

unsigned edit_distance(struct str a, struct str b)
{
    enum { LONGEST = 32 };
    unsigned row[LONGEST + 1];

    if (a.n > LONGEST || b.n > LONGEST)
        return LONGEST;
    for (unsigned j = 0; j <= b.n; j++)
        row[j] = j;
    for (unsigned i = 1; i <= a.n; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= b.n; j++) {
            unsigned change = diagonal + (a.p[i - 1] != b.p[j - 1]);
            unsigned skip = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = change < skip ? change : skip;
        }
    }
    return row[b.n];
}

/* --- settings --- */

static uint64_t ready_default(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    return cores > 0 ? 2 * (uint64_t)cores : 2;
}

void settings_init(struct settings *s)
{
    *s = (struct settings){0};
    s->pool = (struct service_pool){
        .ready = ready_default(),
        .max_sessions = 1000,
        .idle_ms = 15 * MINUTE_MS,
        .lifetime_ms = 12 * HOUR_MS,
        .recycle_ms = 12 * HOUR_MS,
        .approval_timeout_ms = 10 * MINUTE_MS,
        .approval_wait_ms = DAY_MS,
    };
    s->serve = (struct serve_settings){
        .socket_mode = 0600,
        .drain_ms = 30 * SECOND_MS,
        .log_level = LOG_INFO,
        .max_connections = 10000,
        .header_ms = 30 * SECOND_MS,
        .tenant_sessions = 1000,
        .retention_ms = 30 * DAY_MS,
        .record_ms = 90 * DAY_MS,
        .file_bytes = 4 * GiB,
        .fetch_bytes = 1 * GiB,
        .fetch_ms = 2 * MINUTE_MS,
        .answer_ms = 50 * SECOND_MS,
    };
    s->qwen = (struct qwen_settings){
        .timeout_ms = 30 * SECOND_MS, .executor_ms = 20 * SECOND_MS, .executor_chars = 256};
    s->prisme = (struct prisme_settings){.timeout_ms = 20 * SECOND_MS, .parallel = 10};
    s->anthropic = (struct anthropic_settings){.cell_ms = 90 * SECOND_MS,
                                               .turns = 100,
                                               .wall_ms = 9 * MINUTE_MS,
                                               .idle_ms = 5 * MINUTE_MS,
                                               .answer_ms = 270 * SECOND_MS,
                                               .approval_ms = 45 * SECOND_MS};
    s->ubik = (struct ubik_settings){.event_bytes = 64 * KiB};
    s->agent = (struct agent_settings){
        .budget = {.plan_steps = 6,
                   .rounds = 20,
                   .attempts = 3,
                   .run_ms = MINUTE_MS,
                   .wall_ms = 10 * MINUTE_MS,
                   .model_ms = 2 * MINUTE_MS,
                   .input_chars = 400000,
                   .tokens = 2000000,
                   .wait_ms = 5 * MINUTE_MS},
        .tenant_loops = 256
    };
    s->model.one.timeout_ms = 2 * MINUTE_MS;
    limits_default(&s->pool.limits);
}

void pool_copy(struct service_pool *to, const struct service_pool *from)
{
    char *const *in[] = {&from->name,         &from->python,        &from->preload, &from->text,
                         &from->egress_hosts, &from->approval_when, &from->images};
    char **out[] = {&to->name,         &to->python,        &to->preload, &to->text,
                    &to->egress_hosts, &to->approval_when, &to->images};

    *to = *from;
    for (size_t i = 0; i < COUNT(in); i++)
        *out[i] = *in[i] ? mem_strdup(*in[i]) : NULL;
}

void pool_done(struct service_pool *p)
{
    free(p->name);
    free(p->python);
    free(p->preload);
    free(p->text);
    free(p->egress_hosts);
    free(p->approval_when);
    free(p->images);
    *p = (struct service_pool){0};
}

void endpoint_copy(struct endpoint_settings *to, const struct endpoint_settings *from)
{
    char *const *in[] = {&from->label,   &from->url, &from->name,    &from->proxy,
                         &from->ca_file, &from->key, &from->key_file};
    char **out[] = {&to->label,   &to->url, &to->name,    &to->proxy,
                    &to->ca_file, &to->key, &to->key_file};

    *to = *from;
    for (size_t i = 0; i < COUNT(in); i++)
        *out[i] = *in[i] ? mem_strdup(*in[i]) : NULL;
}

void endpoint_done(struct endpoint_settings *m)
{
    char *texts[] = {m->label, m->url, m->name, m->proxy, m->ca_file, m->key, m->key_file};

    for (size_t i = 0; i < COUNT(texts); i++)
        free(texts[i]);
    *m = (struct endpoint_settings){0};
}

void list_done(struct list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->item[i]);
    free(l->item);
    *l = (struct list){0};
}

void settings_done(struct settings *s)
{
    char *texts[] = {s->pool_name,
                     s->out,
                     s->config,
                     s->state,
                     s->serve.user,
                     s->serve.tls_cert,
                     s->serve.tls_key,
                     s->serve.tls_client_ca,
                     s->serve.hosts,
                     s->serve.origins,
                     s->serve.public_url,
                     s->serve.oauth_servers,
                     s->keys.tenant,
                     s->keys.name,
                     s->serve.fetch_allow,
                     s->qwen.pool,
                     s->qwen.static_url,
                     s->qwen.work_dir,
                     s->qwen.file_dirs,
                     s->prisme.pool,
                     s->prisme.builtins,
                     s->prisme.packages,
                     s->prisme.packages_more,
                     s->prisme.sources,
                     s->prisme.source_key,
                     s->anthropic.pool,
                     s->ubik.pool,
                     s->model.script,
                     s->model.standard,
                     s->model.tenants};
    struct list *lists[] = {&s->files, &s->words, &s->serve.listen};

    for (size_t i = 0; i < COUNT(texts); i++)
        free(texts[i]);
    for (size_t i = 0; i < COUNT(lists); i++)
        list_done(lists[i]);
    for (size_t i = 0; i < s->work.count; i++)
        free(s->work.item[i].arg);
    free(s->work.item);
    for (size_t i = 0; i < s->pool_count; i++)
        pool_done(&s->pools[i]);
    free(s->pools);
    for (size_t i = 0; i < s->environment_count; i++)
        pool_done(&s->environments[i]);
    free(s->environments);
    for (size_t i = 0; i < s->model.count; i++)
        endpoint_done(&s->model.all[i]);
    free(s->model.all);
    endpoint_done(&s->model.one);
    pool_done(&s->pool);
    *s = (struct settings){0};
}
