/* The commands, and the way from the arguments to one of them. */
#include "cli/cli_int.h"

#include <stdio.h>
#include <unistd.h>

#define HELP_MAX (64 * KiB)

static const struct command run = {
    .name = "run",
    .id = COMMAND_RUN,
    .takes_work = true,
    .args = "[OPTION]... (SCRIPT | -c CODE | - | --shell CMD)...",
    .text = "Run Python cells and shell commands in one sealed session, in the order given.",
    .notes = "SIZE is a number with K, M, G or T; S is a number of seconds.\n"
             "Exit status: 0 ok, 1 the code failed, 2 usage, 3 retort failed, 124 out of time,\n"
             "130 interrupted, 137 out of memory.\n",
    .main = run_main,
};

static const struct command repl = {
    .name = "repl",
    .id = COMMAND_REPL,
    .args = "[OPTION]...",
    .text = "Type Python cells, !commands and %magics into a sealed session.",
    .notes = "SIZE is a number with K, M, G or T; S is a number of seconds.\n"
             "Ctrl-C interrupts the code, Ctrl-D ends the command. With --session the session "
             "stays, and the\n"
             "next command goes on with it.\n",
    .main = repl_main,
};

static const struct command doctor = {
    .name = "doctor",
    .id = COMMAND_DOCTOR,
    .args = "[OPTION]...",
    .text = "Show which layers of isolation this machine has, and which Python.",
    .notes = "Exit status: 0 good enough to run strangers' code, 1 not.\n",
    .main = doctor_main,
};

const struct command command_serve = {
    .name = "serve",
    .id = COMMAND_SERVE,
    .configured = true,
    .args = "[OPTION]...",
    .text = "Serve sessions over HTTP.",
    .notes =
        "Every option but --config, --check-config and --help is also a line \"name = value\" of\n"
        "the file, and RETORT_NAME in the environment. The options under Pools and Limits are for\n"
        "every pool; the section [pool NAME] of the file overrides them for one pool.\n"
        "SIZE is a number with K, M, G or T; S and TIME are seconds, or a number with m, h or d.\n"
        "SIGTERM stops the server when running code has ended. SIGHUP reads keys and settings "
        "again.\n"
        "Exit status: 0 stopped by a signal, 2 usage or settings, 3 retort failed, 130 stopped at\n"
        "once by a second signal.\n",
    .main = serve_main,
};

static const struct command keys = {
    .name = "keys",
    .id = COMMAND_KEYS,
    .takes_words = true,
    .configured = true,
    .args = "(create --tenant NAME | list | revoke ID) [OPTION]...",
    .text = "Make, list and revoke the keys of a server.",
    .notes =
        "A running server knows a new or revoked key within seconds. Once a key exists, every\n"
        "request needs one. TIME is a number with s, m, h or d.\n",
    .main = keys_main,
};

static const struct command mcp = {
    .name = "mcp",
    .id = COMMAND_MCP,
    .configured = true,
    .args = "[OPTION]...",
    .text = "Serve one MCP client on standard input and output; nothing else has to run.",
    .notes =
        "Every option but --folder, --help and --verbose is also RETORT_NAME in the environment.\n"
        "SIZE is a number with K, M, G or T; S and TIME are seconds, or a number with m, h or d.\n"
        "The server ends when its input ends, at SIGTERM, SIGINT or SIGHUP, and when the process "
        "that\n"
        "started it ends.\n",
    .main = mcp_main,
};

static const struct command environment = {
    .name = "environment",
    .id = COMMAND_ENVIRONMENT,
    .takes_words = true,
    .configured = true,
    .args = "(create NAME --packages FILE | list | delete NAME) [OPTION]...",
    .text = "Make, list and delete environments: Pythons with packages that you choose.",
    .notes = "To continue a creation that was interrupted, run the same command again.\n",
    .main = environment_main,
};

static const struct command store = {
    .name = "store",
    .id = COMMAND_STORE,
    .takes_words = true,
    .args = "copy FROM TO [OPTION]...",
    .text = "Copy what a server keeps to another place: rows, files, or both.",
    .notes =
        "FROM and TO are a state directory, a database (postgresql://...), a bucket\n"
        "(s3://BUCKET/PREFIX), or the last two with a comma between them. One of FROM and TO is a\n"
        "directory. What both can hold is copied: a directory and a database share rows alone.\n"
        "No server may use either of them. TO is empty. To continue a copy that was interrupted,\n"
        "run the same command again. In the end all that was copied is read and compared.\n"
        "Exit status: 0 all is there and right, 2 usage, 3 it is not.\n",
    .main = store_main,
};

static const struct command bench = {
    .name = "bench",
    .id = COMMAND_BENCH,
    .args = "[OPTION]...",
    .text = "Measure on this machine: sessions, cells, plots, throughput, beside its own floor.",
    .notes =
        "Without --server it starts a server of its own, on a Unix socket in a temporary folder, "
        "and\n"
        "takes both away in the end. On a server that runs it makes sessions of its own and "
        "deletes\n"
        "them; its executions stay on record. If that server needs a key, put it into RETORT_KEY.\n"
        "Exit status: 0 measured, 2 usage, 3 something did not run, 130 interrupted.\n",
    .main = bench_main,
};

static const struct command *const commands[] = {&run,         &repl,  &command_serve, &mcp,  &keys,
                                                 &environment, &store, &doctor,        &bench};

static int usage(const char *fmt, ...) PRINTF(1, 2);
static int usage(const char *fmt, ...)
{
    va_list ap;

    fputs("retort: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    return EXIT_USAGE;
}

int stdout_put(struct str text)
{
    struct err e;

    return fd_write_all(STDOUT_FILENO, text, &e) < 0 ? stdout_failed(&e) : EXIT_OK;
}

int status_of_err(const struct err *e)
{
    return e->kind == ERR_HOST || e->kind == ERR_AWAY ? EXIT_OURS : EXIT_USAGE;
}

int command_failed(const struct err *e)
{
    fprintf(stderr, "retort: %s\n", e->text);
    return status_of_err(e);
}

int stdout_failed(const struct err *e)
{
    if (e->sys == EPIPE)
        return EXIT_PIPE;
    fprintf(stderr, "retort: cannot write to standard output: %s\n",
            e->sys ? strerror(e->sys) : e->text);
    return EXIT_OURS;
}

static int print_help(const struct command *c)
{
    AUTO(buf_done) struct buf text = BUF(HELP_MAX);
    int status;

    if (c)
        help_command(c, &text);
    else
        help_program(commands, COUNT(commands), &text);
    status = stdout_put(buf_str(&text));
    return status;
}

static int print_page(void)
{
    AUTO(buf_done) struct buf text = BUF(HELP_MAX);
    int status;

    help_page(&command_serve, &text);
    status = stdout_put(buf_str(&text));
    return status;
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < COUNT(commands); i++)
        if (strcmp(name, commands[i]->name) == 0)
            return commands[i];
    return NULL;
}

static int unknown_command(const char *name)
{
    char shown[NAME_SHOWN];

    name_show(shown, str_of(name));
    if (name[0] == '-')
        return usage("there is no option %s before a command; see retort --help", shown);
    for (size_t i = 0; i < COUNT(commands); i++)
        if (edit_distance(str_of(name), str_of(commands[i]->name)) <= 2)
            return usage("there is no command '%s'; did you mean %s?", shown, commands[i]->name);
    return usage("there is no command '%s'; see retort --help", shown);
}

static int run_command(const struct command *c, int argc, char **argv)
{
    struct settings s;
    struct err e;
    int status;

    settings_init(&s);
    if (settings_load(&s, c, argc, (const char *const *)argv, &e) < 0) {
        status = usage("%s", e.text);
    } else if (s.help) {
        status = print_help(c);
    } else {
        log_set_level(s.verbose ? LOG_DEBUG : LOG_WARN);
        status = c->main(&s);
    }
    settings_done(&s);
    return status;
}

int cli_main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    const struct command *c = find(name);

    if (c)
        return run_command(c, argc - 2, argv + 2);
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return print_help(NULL);
    if (strcmp(name, "help") == 0 && argc > 2 && strcmp(argv[2], "configuration") == 0)
        return print_page();
    if (strcmp(name, "help") == 0 && argc > 2 && !find(argv[2]))
        return unknown_command(argv[2]);
    if (strcmp(name, "help") == 0)
        return print_help(argc > 2 ? find(argv[2]) : NULL);
    if (strcmp(name, "--version") == 0)
        return stdout_put(STR("retort " RETORT_VERSION "\n"));
    if (argc < 2)
        return usage("nothing to do; see retort --help");
    return unknown_command(name);
}
