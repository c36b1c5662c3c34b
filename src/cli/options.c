/* The one table of options. Parsing, --help and the error sentences are made from it. */
#include "cli/cli_int.h"

#define AT(field)   offsetof(struct settings, field)
#define RUN         (IN(COMMAND_RUN) | IN(COMMAND_REPL))
#define RUN_ONLY    IN(COMMAND_RUN)
#define DOCTOR      IN(COMMAND_DOCTOR)
#define SERVE       IN(COMMAND_SERVE)
#define KEYS        IN(COMMAND_KEYS)
#define MCP         IN(COMMAND_MCP)
#define ENVIRONMENT IN(COMMAND_ENVIRONMENT)
#define STORE       IN(COMMAND_STORE)
#define BENCH       IN(COMMAND_BENCH)
#define FLAG_ONLY   (IN(SOURCE_FILE) | IN(SOURCE_ENV))
#define YEARS_MS    (3650 * DAY_MS)
#define TiB         (1024 * GiB)

/* The least values are those with which a bare interpreter still comes up. */
// clang-format off
const struct option options[] = {
    {"code",  'c', OPTION_WORK, GROUP_WORK, RUN_ONLY, .work = WORK_CODE, .metavar = "CODE",
     .text = "Run CODE as one cell."},
    {"shell", 0,   OPTION_WORK, GROUP_WORK, RUN_ONLY, .work = WORK_SHELL, .metavar = "CMD",
     .text = "Run CMD with bash in the same session."},
    {"keep-going", 0, OPTION_BOOL, GROUP_WORK, RUN_ONLY, AT(keep_going),
     .text = "Continue after an execution that failed."},
    {"session", 0, OPTION_PATH, GROUP_WORK, RUN, AT(session), .metavar = "NAME",
     .not_from = FLAG_ONLY, .unset = "a new session, which ends with the command",
     .text = "Run in this session of a running server. The server makes the session if it is not there, and keeps it."},
    {"server", 0, OPTION_PATH, GROUP_WORK, RUN, AT(server), .metavar = "URL",
     .not_from = FLAG_ONLY, .unset = "RETORT_SERVER, else http://127.0.0.1:8000",
     .text = "Address of the server that has the session. If the server needs a key, put it into RETORT_KEY."},
    {"server", 0, OPTION_PATH, GROUP_WORK, BENCH, AT(server), .metavar = "URL",
     .not_from = FLAG_ONLY, .unset = "one of its own",
     .text = "Measure a server that runs, such as http://127.0.0.1:8000."},
    {"seconds", 0, OPTION_SECONDS, GROUP_WORK, BENCH, AT(bench_ms), 0, 10 * MINUTE_MS, .metavar = "S",
     .not_from = FLAG_ONLY,
     .text = "How long to go on with rounds of one client; starting and ending take some seconds more."},

    {"file", 'f', OPTION_LIST, GROUP_FILES, RUN, AT(files), .metavar = "FILE",
     .text = "Copy FILE into the workspace first; may be given again."},
    {"out",  'o', OPTION_PATH, GROUP_FILES, RUN, AT(out), .metavar = "DIR",
     .text = "Save the files and figures that the code makes in DIR."},

    {"folder", 0, OPTION_LIST, GROUP_FILES, RUN | MCP, AT(folders), .metavar = "PATH[:ro]",
     .not_from = FLAG_ONLY,
     .text = "Show this folder in the session, at /mnt/NAME. With :ro code can only read it. May be given again."},

    {"roots", 0, OPTION_CHOICE, GROUP_FILES, MCP, AT(roots), .metavar = "HOW", .choices = "ro|rw|off",
     .not_from = IN(SOURCE_FILE), .unset = "ro; off where code may reach the network",
     .text = "Show the folders that the client's user has opened (MCP roots) in the session, at "
             "/mnt/NAME: to read only, to write as well, or not at all."},

    {"tenant", 't', OPTION_PATH, GROUP_KEY, KEYS, AT(keys.tenant), .metavar = "NAME",
     .not_from = FLAG_ONLY, .text = "Tenant of the key; tenants cannot see each other's data."},
    {"name",   'n', OPTION_TEXT, GROUP_KEY, KEYS, AT(keys.name), .metavar = "TEXT",
     .not_from = FLAG_ONLY, .text = "A note on what the key is for."},
    {"admin",  0,   OPTION_BOOL, GROUP_KEY, KEYS, AT(keys.admin),
     .not_from = FLAG_ONLY, .text = "The key may manage keys and read every tenant's audit log."},
    {"approver", 0, OPTION_BOOL, GROUP_KEY, KEYS, AT(keys.approver),
     .not_from = FLAG_ONLY, .text = "The key may approve or decline code of its tenant."},
    {"pool",   0,   OPTION_PATH, GROUP_KEY, KEYS, AT(keys.pools), .metavar = "NAMES",
     .not_from = FLAG_ONLY, .text = "The key opens only these pools, such as data,web."},
    {"door",   0,   OPTION_PATH, GROUP_KEY, KEYS, AT(keys.doors), .metavar = "NAMES",
     .not_from = FLAG_ONLY, .text = "The key opens only these doors: rest, mcp, anthropic, azure, "
     "azure/mcp, ubik, prisme, qwen, operator."},
    {"read-only", 0, OPTION_BOOL, GROUP_KEY, KEYS, AT(keys.read_only),
     .not_from = FLAG_ONLY, .text = "The key changes nothing and runs nothing."},
    {"expires", 0,  OPTION_SECONDS, GROUP_KEY, KEYS, AT(keys.expires_ms),
     0, YEARS_MS, .metavar = "TIME", .unset = "never",
     .not_from = FLAG_ONLY, .text = "The key stops working after this time, such as 30d."},
    {"quiet",  'q', OPTION_BOOL, GROUP_KEY, KEYS, AT(keys.quiet),
     .not_from = FLAG_ONLY, .text = "Print the secret and nothing else."},

    {"packages", 0, OPTION_PATH, GROUP_ENVIRONMENT, ENVIRONMENT, AT(environment.packages), .metavar = "FILE",
     .not_from = FLAG_ONLY, .text = "File with one package per line, as pip reads it; or science, a list that comes with retort."},
    {"wheels",   0, OPTION_PATH, GROUP_ENVIRONMENT, ENVIRONMENT, AT(environment.wheels), .metavar = "DIR",
     .not_from = FLAG_ONLY, .text = "Directory of wheels to install from."},
    {"offline",  0, OPTION_BOOL, GROUP_ENVIRONMENT, ENVIRONMENT, AT(environment.offline),
     .not_from = FLAG_ONLY, .text = "Install from --wheels alone, without a package index."},
    {"system-packages", 0, OPTION_BOOL, GROUP_ENVIRONMENT, ENVIRONMENT, AT(environment.system_packages),
     .not_from = FLAG_ONLY, .text = "Code can also import the packages of the base Python."},
    {"base",     0, OPTION_PATH, GROUP_ENVIRONMENT, ENVIRONMENT, AT(environment.base), .metavar = "PYTHON",
     .not_from = FLAG_ONLY, .unset = "/usr/bin/python3, else from PATH",
     .text = "Python interpreter that the environment is based on."},

    {"listen",          0, OPTION_WORDS, GROUP_SERVER, SERVE, AT(serve.listen), .metavar = "ADDR",
     .unset = LISTEN_DEFAULT,
     .text = "PORT, HOST:PORT, [IPV6]:PORT or unix:PATH; may be given again."},
    {"socket-mode",     0, OPTION_MODE, GROUP_SERVER, SERVE, AT(serve.socket_mode),
     0, 0777, .metavar = "MODE", .text = "Permissions of Unix sockets that the server creates."},
    {"config",          0, OPTION_PATH, GROUP_SERVER, SERVE | KEYS | ENVIRONMENT, AT(config), .metavar = "FILE",
     .not_from = IN(SOURCE_FILE), .unset = CONFIG_DEFAULT " where there is one",
     .text = "Read settings from FILE."},
    {"check-config",    0, OPTION_BOOL, GROUP_SERVER, SERVE, AT(serve.check_config),
     .not_from = FLAG_ONLY, .text = "Print the effective settings and exit."},
    {"state",           0, OPTION_PATH, GROUP_SERVER, SERVE | KEYS, AT(state), .metavar = "DIR",
     .unset = "/var/lib/retort, or ~/.local/state/retort",
     .text = "Directory for sessions, files, records and keys."},
    {"store",           0, OPTION_TEXT, GROUP_SERVER, SERVE | DOCTOR | KEYS, AT(store), .metavar = "URL",
     .unset = "a database in the state directory",
     .text = "PostgreSQL database for sessions, records and keys, such as postgresql://retort@db.example/retort."},
    {"store-password-file", 0, OPTION_PATH, GROUP_SERVER, SERVE | DOCTOR | KEYS | STORE, AT(store_password_file),
     .metavar = "FILE", .unset = "none", .text = "File with the password of the database."},
    {"node-url",        0, OPTION_PATH, GROUP_SERVER, SERVE, AT(serve.node_url), .metavar = "URL",
     .unset = "none: nobody else serves from this store",
     .text = "Share the store with other servers, which reach this one at URL, such as http://10.0.0.7:8000."},
    {"node-name",       0, OPTION_PATH, GROUP_SERVER, SERVE, AT(serve.node_name), .metavar = "NAME",
     .unset = "the name of the machine", .text = "Name of this node, for people."},
    {"node-secret-file", 0, OPTION_PATH, GROUP_SERVER, SERVE, AT(serve.node_secret_file),
     .metavar = "FILE", .unset = "none",
     .text = "File with at least 32 bytes that all nodes share, and nobody else knows."},
    {"node-ca",         0, OPTION_PATH, GROUP_SERVER, SERVE, AT(serve.node_ca), .metavar = "FILE",
     .unset = "the system's", .text = "PEM file of authorities that vouch for other nodes at https URLs."},
    {"node-cert",       0, OPTION_PATH, GROUP_SERVER, SERVE, AT(serve.node_cert), .metavar = "FILE",
     .unset = "none", .text = "PEM file with the certificate that this node shows to others. Nodes then take nothing from one that shows none of node-ca."},
    {"node-key",        0, OPTION_PATH, GROUP_SERVER, SERVE, AT(serve.node_key), .metavar = "FILE",
     .unset = "none", .text = "PEM file with the private key of node-cert."},
    {"node-lease",      0, OPTION_SECONDS, GROUP_SERVER, SERVE, AT(serve.node_lease_ms),
     1000, 3600000, .metavar = "S",
     .text = "A node that has not reached the database for so long is gone, and others take over."},
    {"config",          0, OPTION_PATH, GROUP_SERVER, MCP, AT(config), .metavar = "FILE",
     .not_from = IN(SOURCE_FILE), .unset = "none",
     .text = "Read pools and limits from FILE, a server's configuration."},
    {"state",           0, OPTION_PATH, GROUP_SERVER, MCP, AT(state), .metavar = "DIR",
     .unset = "a temporary one, removed at the end",
     .text = "Directory for sessions, files and records."},
    {"user",            0, OPTION_PATH, GROUP_SERVER, SERVE | MCP | STORE, AT(serve.user), .metavar = "NAME",
     .unset = "retort where there is one, else 1879048191",
     .text = "User to run as when root starts the server."},
    {"sandbox-users",   0, OPTION_CHOICE, GROUP_SERVER, SERVE | MCP, AT(sandbox_users),
     .metavar = "WHICH", .choices = "own|one",
     .text = "User ids of sandboxes when an ordinary user starts the server. own: each sandbox has one of "
             "its own, where the system grants subordinate ids. one: all have the server's."},
    {"isolation-floor", 0, OPTION_CHOICE, GROUP_SERVER, SERVE | MCP, AT(serve.floor),
     .metavar = "WHAT", .choices = "namespaces+seccomp|all",
     .text = "Minimum isolation. With less the server does not start."},
    {"drain",           0, OPTION_SECONDS, GROUP_SERVER, SERVE, AT(serve.drain_ms),
     0, DAY_MS, .metavar = "S", .text = "Maximum time for running code to end when the server stops."},
    {"log-level",       0, OPTION_CHOICE, GROUP_SERVER, SERVE, AT(serve.log_level),
     .metavar = "LEVEL", .choices = "error|warn|info|debug", .text = "Minimum severity of lines in the log, on stderr."},
    {"log-format",      0, OPTION_CHOICE, GROUP_SERVER, SERVE, AT(serve.log_format),
     .metavar = "FORMAT", .choices = "text|json", .text = "Format of log lines."},

    {"tls-cert",        0, OPTION_PATH, GROUP_ACCESS, SERVE, AT(serve.tls_cert), .metavar = "FILE",
     .unset = "none", .text = "PEM file with the server's certificate chain; turns TLS on."},
    {"tls-key",         0, OPTION_PATH, GROUP_ACCESS, SERVE, AT(serve.tls_key), .metavar = "FILE",
     .unset = "none", .text = "PEM file with the private key of the certificate."},
    {"tls-client-ca",   0, OPTION_PATH, GROUP_ACCESS, SERVE, AT(serve.tls_client_ca),
     .metavar = "FILE", .unset = "none",
     .text = "PEM file with certificate authorities. Clients may use certificates signed by these authorities."},
    {"plain-http",      0, OPTION_BOOL, GROUP_ACCESS, SERVE, AT(serve.plain_http), .unset = "no",
     .text = "Serve other machines without TLS, because a proxy in front has TLS."},
    {"hosts",           0, OPTION_TEXT, GROUP_ACCESS, SERVE, AT(serve.hosts), .metavar = "NAMES",
     .unset = "none", .text = "Names of this server, besides localhost, that requests may use while no key exists."},
    {"origins",         0, OPTION_TEXT, GROUP_ACCESS, SERVE, AT(serve.origins), .metavar = "URLS",
     .unset = "none", .text = "Websites whose pages may call the server from a browser, such as https://app.example."},
    {"public-url",      0, OPTION_TEXT, GROUP_ACCESS, SERVE, AT(serve.public_url), .metavar = "URL",
     .unset = "none", .text = "Address of this server as clients see it, such as https://code.example."},
    {"oauth-servers",   0, OPTION_TEXT, GROUP_ACCESS, SERVE, AT(serve.oauth_servers),
     .metavar = "URLS", .unset = "none",
     .text = "OAuth servers that MCP clients are sent to for a token. A proxy in front checks the tokens."},
    {"max-connections", 0, OPTION_COUNT, GROUP_ACCESS, SERVE, AT(serve.max_connections),
     1, 1000000, .metavar = "N", .text = "Maximum number of connections."},
    {"max-per-address", 0, OPTION_COUNT, GROUP_ACCESS, SERVE, AT(serve.max_per_address),
     0, 1000000, .metavar = "N", .text = "Maximum number of connections per client address; 0 for no limit."},
    {"header-timeout",  0, OPTION_SECONDS, GROUP_ACCESS, SERVE, AT(serve.header_ms),
     100, HOUR_MS, .metavar = "S",
     .text = "Maximum time for the head of a request to arrive, and between two pieces of its body."},

    {"durability",      0, OPTION_CHOICE, GROUP_HOUSE, SERVE | MCP, AT(serve.durability),
     .metavar = "WHAT", .choices = "process|power",
     .text = "What an answered request survives: the death of the server process, or a power cut as well."},
    {"blobs",           0, OPTION_PATH, GROUP_HOUSE, SERVE | DOCTOR, AT(serve.blobs), .metavar = "URL",
     .unset = "in the state directory",
     .text = "Keep the bytes of files in S3, or in a server that speaks its protocol: s3://BUCKET/PREFIX."},
    {"s3-endpoint",     0, OPTION_PATH, GROUP_HOUSE, SERVE | DOCTOR | STORE, AT(serve.s3_endpoint), .metavar = "URL",
     .unset = "Amazon's, of the region", .text = "Address of the S3 server, such as https://s3.example:9000."},
    {"s3-region",       0, OPTION_PATH, GROUP_HOUSE, SERVE | DOCTOR | STORE, AT(serve.s3_region), .metavar = "NAME",
     .unset = "AWS_REGION, else us-east-1", .text = "Region of the bucket."},
    {"s3-style",        0, OPTION_CHOICE, GROUP_HOUSE, SERVE | DOCTOR | STORE, AT(serve.s3_style),
     .metavar = "WHERE", .choices = "path|virtual-host",
     .text = "Where an address has the name of the bucket: in its path, or before the name of the host."},
    {"s3-key-file",     0, OPTION_PATH, GROUP_HOUSE, SERVE | DOCTOR | STORE, AT(serve.s3_key_file), .metavar = "FILE",
     .unset = "AWS_ACCESS_KEY_ID and the like",
     .text = "File with aws_access_key_id = ..., aws_secret_access_key = ... and perhaps aws_session_token = ..."},
    {"s3-ca",           0, OPTION_PATH, GROUP_HOUSE, SERVE | DOCTOR | STORE, AT(serve.s3_ca), .metavar = "FILE",
     .unset = "the system's", .text = "PEM file with certificate authorities for the TLS of the S3 server."},
    {"blob-cache",      0, OPTION_SIZE, GROUP_HOUSE, SERVE, AT(serve.blob_cache_bytes),
     0, 64 * TiB, .metavar = "SIZE", .text = "Disk space for copies of what is in S3; 0 keeps none."},
    {"tenant-sessions", 0, OPTION_COUNT, GROUP_HOUSE, SERVE, AT(serve.tenant_sessions),
     1, 1000000, .metavar = "N", .text = "Maximum number of live sessions per tenant."},
    {"output-memory",   0, OPTION_SIZE, GROUP_HOUSE, SERVE | MCP, AT(serve.held_bytes),
     1 * MiB, 64 * TiB, .metavar = "SIZE",
     .text = "Memory for the code and output of all running executions. When it is full, code that prints waits."},
    {"retention",       0, OPTION_SECONDS, GROUP_HOUSE, SERVE | MCP, AT(serve.retention_ms),
     SECOND_MS, YEARS_MS, .metavar = "TIME", .text = "How long the files of an unused session are kept."},
    {"records",         0, OPTION_SECONDS, GROUP_HOUSE, SERVE | MCP, AT(serve.record_ms),
     0, YEARS_MS, .metavar = "TIME", .text = "How long the record of an execution is kept; 0 for ever."},
    {"home-size",       0, OPTION_SIZE, GROUP_HOUSE, SERVE | MCP, AT(serve.home_bytes),
     0, 64 * TiB, .metavar = "SIZE",
     .text = "Maximum size of the files in /tmp that are kept while a session sleeps; 0 keeps none."},
    {"file-size",       0, OPTION_SIZE, GROUP_HOUSE, SERVE | MCP, AT(serve.file_bytes),
     1, 64 * TiB, .metavar = "SIZE", .text = "Maximum size of one upload."},
    {"tenant-files",    0, OPTION_SIZE, GROUP_HOUSE, SERVE, AT(serve.tenant_bytes),
     0, 1024 * TiB, .metavar = "SIZE",
     .text = "Maximum total size of files, skills and batches per tenant; 0 for no limit."},
    {"fetch-size",      0, OPTION_SIZE, GROUP_HOUSE, SERVE | MCP, AT(serve.fetch_bytes),
     1, 64 * TiB, .metavar = "SIZE", .text = "Maximum size of one file fetched from a URL."},
    {"fetch-timeout",   0, OPTION_SECONDS, GROUP_HOUSE, SERVE | MCP, AT(serve.fetch_ms),
     SECOND_MS, HOUR_MS, .metavar = "S", .text = "Timeout of one fetch."},
    {"fetch-private",   0, OPTION_BOOL, GROUP_HOUSE, SERVE | MCP, AT(serve.fetch_private), .unset = "no",
     .text = "Allow fetches from private addresses."},
    {"fetch-allow",     0, OPTION_HOSTS, GROUP_HOUSE, SERVE | MCP, AT(serve.fetch_allow),
     .metavar = "HOSTS", .unset = "none",
     .text = "Private addresses that may be fetched from, such as 10.0.0.0/8, files.example:8080."},

    {"mcp-answer",      0, OPTION_SECONDS, GROUP_HOUSE, SERVE | MCP, AT(serve.answer_ms),
     100, DAY_MS, .metavar = "S",
     .text = "Maximum time that an MCP call waits for its code. Then the call is answered with the output so far."},

    {"tools",           0, OPTION_CHOICE, GROUP_SERVER, MCP, AT(tools), .metavar = "NAME",
     .choices = "native|qwen|prisme|azure|ubik", .not_from = IN(SOURCE_FILE),
     .text = "Tool set to offer: retort's own, or that of another system."},
    {"images-dir",      0, OPTION_PATH, GROUP_SERVER, MCP, AT(images_dir), .metavar = "DIR",
     .not_from = IN(SOURCE_FILE), .unset = "retort-images",
     .text = "Directory for the images that --tools qwen links to. The first image creates it."},
    {"pool",         0, OPTION_PATH, GROUP_POOL, MCP, AT(pool_name), .metavar = "NAME",
     .not_from = IN(SOURCE_FILE), .unset = "all pools; calls that name none use the first",
     .text = "Use only this pool of the configuration."},
    {"description",  0, OPTION_TEXT, GROUP_POOL, SERVE, AT(pool.text), .metavar = "TEXT",
     .unset = "none", .text = "One line on what the pool is for."},
    {"ready",        0, OPTION_COUNT, GROUP_POOL, SERVE, AT(pool.ready),
     0, 10000, .metavar = "N", .unset = "two for each core",
     .text = "Number of sandboxes kept ready for new sessions."},
    {"ready",        0, OPTION_COUNT, GROUP_POOL, MCP, AT(pool.ready),
     0, 10000, .metavar = "N", .unset = "1", .text = "Number of sandboxes kept ready for new sessions."},
    {"ready-max",    0, OPTION_COUNT, GROUP_POOL, SERVE, AT(pool.ready_max),
     0, 10000, .metavar = "N",
     .text = "Maximum number of sandboxes kept ready for some minutes after a rush; never more than eight times ready."},
    {"ready-max",    0, OPTION_COUNT, GROUP_POOL, MCP, AT(pool.ready_max),
     0, 10000, .metavar = "N", .unset = "1",
     .text = "Maximum number of sandboxes kept ready for some minutes after a rush; never more than eight times ready."},
    {"max-sessions", 0, OPTION_COUNT, GROUP_POOL, SERVE | MCP, AT(pool.max_sessions),
     1, 30000, .metavar = "N", .text = "Maximum number of live sessions. When all are taken, the session that was idle longest goes to sleep."},
    {"idle-timeout", 0, OPTION_SECONDS, GROUP_POOL, SERVE | MCP, AT(pool.idle_ms),
     SECOND_MS, YEARS_MS, .metavar = "TIME",
     .text = "An unused session goes to sleep after this time: variables are lost, files are kept."},
    {"lifetime",     0, OPTION_SECONDS, GROUP_POOL, SERVE | MCP, AT(pool.lifetime_ms),
     SECOND_MS, YEARS_MS, .metavar = "TIME", .text = "Maximum session age. An older session goes to sleep: variables are lost, files are kept."},
    {"recycle",      0, OPTION_SECONDS, GROUP_POOL, SERVE | MCP, AT(pool.recycle_ms),
     0, YEARS_MS, .metavar = "TIME",
     .text = "Maximum age of the warm interpreter that sessions are forked from; 0 for no limit."},
    {"learn",        0, OPTION_SECONDS, GROUP_POOL, SERVE, AT(pool.learn_ms),
     0, 30 * DAY_MS, .metavar = "TIME",
     .text = "Time after which modules that several sessions have imported are imported before a session starts; 0 for never."},
    {"learn",        0, OPTION_SECONDS, GROUP_POOL, MCP, AT(pool.learn_ms),
     0, 30 * DAY_MS, .metavar = "TIME", .unset = "0",
     .text = "Time after which modules that several sessions have imported are imported before a session starts; 0 for never."},
    {"egress",       0, OPTION_CHOICE, GROUP_POOL, SERVE | MCP, AT(pool.egress),
     .metavar = "WHAT", .choices = "none|allow-list",
     .text = "Network access: off, or an allow-list of hosts."},
    {"egress-hosts", 0, OPTION_HOSTS, GROUP_POOL, SERVE | MCP, AT(pool.egress_hosts), .metavar = "HOSTS",
     .unset = "none", .text = "Hosts on the allow-list, such as pypi.org, *.pythonhosted.org, host:8443."},
    {"approval",         0, OPTION_CHOICE, GROUP_POOL, SERVE | MCP, AT(pool.approval),
     .metavar = "WHAT", .choices = "auto|ask_first|always_ask|ask_external",
     .text = "Whether a person must approve code before it runs: never, once per conversation, each "
             "time, or each time for external MCP clients."},
    {"approval-by",      0, OPTION_CHOICE, GROUP_POOL, SERVE | MCP, AT(pool.approval_by),
     .metavar = "WHO", .choices = "client|either|approver",
     .text = "Who may approve: the client's user; the user or an approver; only an approver."},
    {"approval-when",    0, OPTION_TEXT, GROUP_POOL, SERVE | MCP, AT(pool.approval_when),
     .metavar = "RULES", .unset = "every call",
     .text = "Calls that need approval, such as language=shell, code~socket."},
    {"approval-timeout", 0, OPTION_SECONDS, GROUP_POOL, SERVE | MCP, AT(pool.approval_timeout_ms),
     SECOND_MS, 10 * MINUTE_MS, .metavar = "TIME", .text = "How long the client's user has to answer."},
    {"approval-wait",    0, OPTION_SECONDS, GROUP_POOL, SERVE | MCP, AT(pool.approval_wait_ms),
     SECOND_MS, 30 * DAY_MS, .metavar = "TIME",
     .text = "How long an approver has to decide, and how long the client then has to repeat the call."},
    {"python",       0, OPTION_PATH, GROUP_POOL, SERVE | MCP, AT(pool.python), .metavar = "PYTHON",
     .unset = "/usr/bin/python3, else from PATH",
     .text = "Python interpreter: a path, or the name of an environment."},
    {"environments", 0, OPTION_PATH, GROUP_POOL, SERVE | MCP | ENVIRONMENT, AT(environments_dir), .metavar = "DIR",
     .unset = "/var/lib/retort-environments, or below the user's home",
     .text = "Directory of the environments that `retort environment` makes."},
    {"preload",      0, OPTION_TEXT, GROUP_POOL, SERVE | MCP, AT(pool.preload), .metavar = "NAMES",
     .unset = PRELOAD_DEFAULT ", where the Python has them",
     .text = "Modules that are imported before a session starts."},

    {"images",       0, OPTION_TEXT, GROUP_POOL, SERVE, AT(pool.images), .metavar = "NAMES",
     .unset = "none",
     .text = "Names of container images that map to this Python, such as registry.example/ml:*."},

    {"timeout",       0, OPTION_SECONDS, GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.wall_ms),
     10, DAY_MS, .metavar = "S", .text = "Maximum wall time of one execution."},
    {"cpu-time",      0, OPTION_SECONDS, GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.cpu_ms),
     0, DAY_MS, .metavar = "S", .text = "Maximum CPU time of one execution; 0 for no limit."},
    {"cpus",          0, OPTION_CORES,   GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.cpu_percent),
     1, 102400, .metavar = "N", .text = "CPU cores of the session, such as 0.5 or 2."},
    {"memory",        0, OPTION_SIZE,    GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.memory_bytes),
     32 * MiB, 64 * TiB, .metavar = "SIZE", .text = "Maximum memory of the session, including its files."},
    {"pids",          0, OPTION_COUNT,   GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.pids),
     8, 32768, .metavar = "N", .text = "Maximum number of processes and threads of the session."},
    {"disk",          0, OPTION_SIZE,    GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.disk_bytes),
     64 * KiB, 64 * TiB, .metavar = "SIZE", .text = "Size of /workspace."},
    {"tmp",           0, OPTION_SIZE,    GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.tmp_bytes),
     64 * KiB, 64 * TiB, .metavar = "SIZE", .text = "Size of /tmp and of /dev/shm."},
    {"open-files",    0, OPTION_COUNT,   GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.open_files),
     32, 1048576, .metavar = "N", .text = "Maximum number of open files per process."},
    {"output",        0, OPTION_SIZE,    GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.output_bytes),
     1 * KiB, 1 * GiB, .metavar = "SIZE",
     .text = "Maximum output that is kept per execution. Of longer output the beginning and the end are kept."},
    {"artifacts",     0, OPTION_COUNT,   GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.artifact_count),
     0, 100000, .metavar = "N", .text = "Maximum number of files reported per execution."},
    {"artifact-size", 0, OPTION_SIZE,    GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.artifact_bytes),
     1, 64 * TiB, .metavar = "SIZE", .text = "Maximum size of a file that is handed out."},
    {"grace",         0, OPTION_SECONDS, GROUP_LIMITS, RUN | SERVE | MCP, AT(pool.limits.grace_ms),
     0, DAY_MS, .metavar = "S", .text = "When a limit is hit, time between the interrupt and the kill."},

    {"qwen-pool",       0, OPTION_PATH, GROUP_QWEN, SERVE | MCP, AT(qwen.pool), .metavar = "NAME",
     .unset = "the first", .text = "Pool for Qwen-Agent's tools."},
    {"qwen-timeout",    0, OPTION_SECONDS, GROUP_QWEN, SERVE | MCP, AT(qwen.timeout_ms),
     10, DAY_MS, .metavar = "S", .text = "Wall time of code_interpreter where the call gives none."},
    {"qwen-work-dir",   0, OPTION_PATH, GROUP_QWEN, SERVE | MCP, AT(qwen.work_dir), .metavar = "DIR",
     .also = "M6_CODE_INTERPRETER_WORK_DIR", .also_root = "QWEN_AGENT_DEFAULT_WORKSPACE",
     .also_unit = "/tools/code_interpreter", .unset = "none",
     .text = "Directory of this machine in which calls find their files, and leave files and images."},
    {"qwen-file-dirs",  0, OPTION_TEXT, GROUP_QWEN, SERVE | MCP, AT(qwen.file_dirs), .metavar = "DIRS",
     .unset = "none", .text = "Directories of this machine that calls may take files from."},
    {"qwen-static-url", 0, OPTION_TEXT, GROUP_QWEN, SERVE | MCP, AT(qwen.static_url), .metavar = "URL",
     .also = "M6_CODE_INTERPRETER_STATIC_URL", .unset = "/qwen/static of this server, or the work dir",
     .text = "First part of the links to images."},
    {"qwen-traceback",  0, OPTION_CHOICE, GROUP_QWEN, SERVE | MCP, AT(qwen.traceback),
     .metavar = "HOW", .choices = "brief|full", .text = "Errors as one line, or with their traceback."},
    {"qwen-executor-timeout", 0, OPTION_SECONDS, GROUP_QWEN, SERVE | MCP, AT(qwen.executor_ms),
     10, DAY_MS, .metavar = "S", .text = "Wall time of python_executor."},
    {"qwen-executor-chars", 0, OPTION_COUNT, GROUP_QWEN, SERVE | MCP, AT(qwen.executor_chars),
     0, 100000000, .metavar = "N", .text = "Maximum length of python_executor's output and report; 0 for all."},

    {"prisme-pool",     0, OPTION_PATH, GROUP_PRISME, SERVE | MCP, AT(prisme.pool), .metavar = "NAME",
     .unset = "the first", .text = "Pool for Prisme's scripts."},
    {"prisme-timeout",  0, OPTION_SECONDS, GROUP_PRISME, SERVE | MCP, AT(prisme.timeout_ms),
     10, DAY_MS, .metavar = "S", .also = "PYTHON_FUNCTIONS_RUN_TIMEOUT", .also_unit = "ms",
     .text = "Wall time of one script."},
    {"prisme-parallel", 0, OPTION_COUNT, GROUP_PRISME, SERVE | MCP, AT(prisme.parallel),
     1, 10000, .metavar = "N", .also = "KERNEL_POOL_SIZE",
     .text = "Maximum number of scripts at the same time. More scripts wait."},
    {"prisme-builtins", 0, OPTION_TEXT, GROUP_PRISME, SERVE | MCP, AT(prisme.builtins), .metavar = "NAMES",
     .also = "PYTHON_BUILTIN_MODULES", .unset = "a list without those that reach outside",
     .text = "Standard modules that scripts may import; * for all."},
    {"prisme-packages", 0, OPTION_TEXT, GROUP_PRISME, SERVE | MCP, AT(prisme.packages), .metavar = "NAMES",
     .also = "PYTHON_PACKAGES_WHITELIST_IMPORT",
     .unset = "numpy, pandas, openpyxl, tabulate, dateparser, urllib3, requests, pptx, docx",
     .text = "Packages that scripts may import; * for all."},
    {"prisme-packages-more", 0, OPTION_TEXT, GROUP_PRISME, SERVE | MCP, AT(prisme.packages_more),
     .metavar = "NAMES", .also = "PYTHON_PACKAGES_AUTO_INSTALL", .unset = "none",
     .text = "More packages that scripts may import; the pool's Python must have them."},
    {"prisme-activation", 0, OPTION_CHOICE, GROUP_PRISME, SERVE | MCP, AT(prisme.activation),
     .metavar = "WHEN", .choices = "auto|user_first",
     .text = "When execute_python is offered: always, or once a user has asked for it."},
    {"prisme-sources",  0, OPTION_TEXT, GROUP_PRISME, SERVE, AT(prisme.sources), .metavar = "NAMES",
     .unset = "none", .text = "Callers without a key: unix:UID=NAME, token:NAME, mtls:NAME."},
    {"prisme-source-key", 0, OPTION_PATH, GROUP_PRISME, SERVE, AT(prisme.source_key), .metavar = "FILE",
     .unset = "none", .text = "File with the secret that signs the tokens of prisme-sources."},

    {"anthropic-pool",    0, OPTION_PATH, GROUP_ANTHROPIC, SERVE, AT(anthropic.pool),
     .metavar = "NAME", .unset = "the first", .text = "Pool for containers."},
    {"anthropic-timeout", 0, OPTION_SECONDS, GROUP_ANTHROPIC, SERVE, AT(anthropic.timeout_ms),
     0, DAY_MS, .metavar = "S", .text = "Wall time of one command; 0 for the pool's limit."},
    {"anthropic-cell-timeout", 0, OPTION_SECONDS, GROUP_ANTHROPIC, SERVE, AT(anthropic.cell_ms),
     10, DAY_MS, .metavar = "S", .text = "Wall time of one cell, within the pool's limit."},
    {"anthropic-turns",   0, OPTION_COUNT, GROUP_ANTHROPIC, SERVE, AT(anthropic.turns),
     1, 100000, .metavar = "N", .text = "Maximum number of model replies per message. Then the message pauses."},
    {"anthropic-wall",    0, OPTION_SECONDS, GROUP_ANTHROPIC, SERVE, AT(anthropic.wall_ms),
     100, DAY_MS, .metavar = "S",
     .text = "Maximum time of one message. Then the message pauses. SDKs wait ten minutes."},
    {"anthropic-idle",    0, OPTION_SECONDS, GROUP_ANTHROPIC, SERVE, AT(anthropic.idle_ms),
     1000, DAY_MS, .metavar = "S",
     .text = "How long an unused container keeps its interpreter; files stay longer."},
    {"anthropic-answer-wait", 0, OPTION_SECONDS, GROUP_ANTHROPIC, SERVE, AT(anthropic.answer_ms),
     100, DAY_MS, .metavar = "S",
     .text = "How long code waits for the result of a client's tool. Then the code gets a TimeoutError."},
    {"anthropic-approval-wait", 0, OPTION_SECONDS, GROUP_ANTHROPIC, SERVE,
     AT(anthropic.approval_ms), 0, DAY_MS, .metavar = "S",
     .text = "How long a message waits for an approver before it pauses."},
    {"anthropic-capture-cwd", 0, OPTION_BOOL, GROUP_ANTHROPIC, SERVE, AT(anthropic.capture_cwd),
     .text = "Hand out new files of the working directory, not only of $OUTPUT_DIR."},
    {"anthropic-download-uploads", 0, OPTION_BOOL, GROUP_ANTHROPIC, SERVE,
     AT(anthropic.download_uploads),
     .text = "Let clients download their uploads (Anthropic does not)."},

    {"ubik-pool",       0, OPTION_PATH, GROUP_UBIK, SERVE | MCP, AT(ubik.pool), .metavar = "NAME",
     .unset = "the first", .text = "Pool for Ubik's sandboxes."},
    {"ubik-event-size", 0, OPTION_SIZE, GROUP_UBIK, SERVE, AT(ubik.event_bytes),
     1 * KiB, 16 * MiB, .metavar = "SIZE",
     .text = "Maximum size of one streamed event; larger ones are split."},

    {"model",           0, OPTION_PATH, GROUP_MODEL, SERVE | MCP, AT(model.standard), .metavar = "NAME",
     .unset = "the first", .text = "Default model when several are configured."},
    {"model-tenants",   0, OPTION_TEXT, GROUP_MODEL, SERVE | MCP, AT(model.tenants), .metavar = "PAIRS",
     .unset = "none", .text = "Default model per tenant, such as acme=fast, beta=local."},
    {"model-script",    0, OPTION_PATH, GROUP_MODEL, SERVE | MCP, AT(model.script), .metavar = "FILE",
     .unset = "none", .text = "Play this script instead of a model, for tests; - takes scripts from requests."},
    {"model-url",       0, OPTION_PATH, GROUP_MODEL, SERVE | MCP, AT(model.one.url), .metavar = "URL",
     .unset = "none", .text = "Address of the model, such as http://127.0.0.1:8080/v1."},
    {"model-api",       0, OPTION_CHOICE, GROUP_MODEL, SERVE | MCP, AT(model.one.api),
     .metavar = "WHAT", .choices = "openai|anthropic",
     .text = "API of the model: OpenAI's chat completions or Anthropic's Messages."},
    {"model-name",      0, OPTION_PATH, GROUP_MODEL, SERVE | MCP, AT(model.one.name), .metavar = "NAME",
     .unset = "as the request says", .text = "Name of the model at that address."},
    {"model-key-file",  0, OPTION_PATH, GROUP_MODEL, SERVE | MCP, AT(model.one.key_file),
     .metavar = "FILE", .unset = "none", .text = "File with the model's API key; or set RETORT_MODEL_KEY."},
    {"model-key",       0, OPTION_TEXT, GROUP_MODEL, SERVE | MCP, AT(model.one.key), .metavar = "KEY",
     .secret = true, .not_from = IN(SOURCE_FLAG), .unset = "none",
     .text = "API key of the model; not as an argument, which other users can read."},
    {"model-timeout",   0, OPTION_SECONDS, GROUP_MODEL, SERVE | MCP, AT(model.one.timeout_ms),
     100, HOUR_MS, .metavar = "S", .text = "Timeout of one reply."},
    {"model-max-tokens", 0, OPTION_COUNT, GROUP_MODEL, SERVE | MCP, AT(model.one.max_tokens),
     0, 10000000, .metavar = "N", .unset = "the endpoint's own; 8192 with anthropic",
     .text = "Maximum tokens of one reply."},
    {"model-images",    0, OPTION_BOOL, GROUP_MODEL, SERVE | MCP, AT(model.one.images), .unset = "no",
     .text = "The model can see images."},
    {"model-text-only", 0, OPTION_BOOL, GROUP_MODEL, SERVE | MCP, AT(model.one.text_only),
     .unset = "no", .text = "The model has no tool calls; ask for code in text."},
    {"model-proxy",     0, OPTION_PATH, GROUP_MODEL, SERVE | MCP, AT(model.one.proxy), .metavar = "URL",
     .unset = "none", .text = "Proxy for the model; proxies of the environment are ignored."},
    {"model-ca",        0, OPTION_PATH, GROUP_MODEL, SERVE | MCP, AT(model.one.ca_file), .metavar = "FILE",
     .unset = "the system's", .text = "PEM file with certificate authorities for the model's TLS."},

    {"agent-loops",     0, OPTION_COUNT, GROUP_AGENT, SERVE | MCP, AT(agent.tenant_loops),
     1, 10000, .metavar = "N", .text = "Maximum number of agent runs at the same time, per tenant."},
    {"agent-steps",     0, OPTION_COUNT, GROUP_AGENT, SERVE | MCP, AT(agent.budget.plan_steps),
     1, 20, .metavar = "N", .text = "Maximum number of steps of a plan."},
    {"agent-rounds",    0, OPTION_COUNT, GROUP_AGENT, SERVE | MCP, AT(agent.budget.rounds),
     1, 100, .metavar = "N", .text = "Maximum number of executions per request. A short plan is given fewer."},
    {"agent-attempts",  0, OPTION_COUNT, GROUP_AGENT, SERVE | MCP, AT(agent.budget.attempts),
     1, 20, .metavar = "N", .text = "Maximum number of failures of one step of a changed plan. Then the agent gives up."},
    {"agent-run-timeout", 0, OPTION_SECONDS, GROUP_AGENT, SERVE | MCP, AT(agent.budget.run_ms),
     100, DAY_MS, .metavar = "S", .text = "Maximum wall time of one execution of the agent."},
    {"agent-timeout",   0, OPTION_SECONDS, GROUP_AGENT, SERVE | MCP, AT(agent.budget.wall_ms),
     1000, DAY_MS, .metavar = "S", .text = "Maximum time of one request, without the time spent waiting for a person."},
    {"agent-model-timeout", 0, OPTION_SECONDS, GROUP_AGENT, SERVE | MCP, AT(agent.budget.model_ms),
     1000, DAY_MS, .metavar = "S", .text = "Timeout of one model reply. A shorter model-timeout wins."},
    {"agent-input",     0, OPTION_COUNT, GROUP_AGENT, SERVE | MCP, AT(agent.budget.input_chars),
     10000, 100000000, .metavar = "N", .text = "Maximum characters sent to a model at a time."},
    {"agent-tokens",    0, OPTION_COUNT, GROUP_AGENT, SERVE | MCP, AT(agent.budget.tokens),
     1000, 1000000000, .metavar = "N", .text = "Maximum tokens per request."},
    {"agent-wait",      0, OPTION_SECONDS, GROUP_AGENT, SERVE | MCP, AT(agent.budget.wait_ms),
     1000, 30 * DAY_MS, .metavar = "S", .text = "How long the agent waits for a person's answer."},

    {"python",  0,   OPTION_PATH, GROUP_OTHER, RUN | DOCTOR | BENCH, AT(pool.python), .metavar = "PYTHON",
     .unset = "/usr/bin/python3, else from PATH",
     .text = "Python interpreter: a path, or the name of an environment."},
    {"environments", 0, OPTION_PATH, GROUP_OTHER, RUN | DOCTOR | BENCH, AT(environments_dir), .metavar = "DIR",
     .unset = "/var/lib/retort-environments, or below the user's home",
     .text = "Directory of the environments that `retort environment` makes."},
    {"preload", 0,   OPTION_TEXT, GROUP_OTHER, RUN, AT(pool.preload), .metavar = "NAMES",
     .unset = "none", .text = "Modules that are imported before the code runs, separated by commas."},
    {"sandbox-users", 0, OPTION_CHOICE, GROUP_OTHER, RUN, AT(sandbox_users),
     .metavar = "WHICH", .choices = "own|one",
     .text = "User id of the sandbox when an ordinary user starts it. own: one of its own, where the "
             "system grants subordinate ids. one: the same as yours."},
    {"json",    0,   OPTION_BOOL, GROUP_OTHER, RUN_ONLY | DOCTOR | KEYS | ENVIRONMENT | BENCH, AT(json),
     .not_from = FLAG_ONLY, .text = "Print one JSON document in place of text."},
    {"verbose", 'v', OPTION_BOOL, GROUP_OTHER, RUN | DOCTOR | KEYS | MCP, AT(verbose),
     .not_from = FLAG_ONLY, .text = "Print details on stderr."},
    {"help",    'h', OPTION_BOOL, GROUP_OTHER, RUN | DOCTOR | SERVE | KEYS | MCP | ENVIRONMENT | STORE | BENCH, AT(help),
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
