/* docs/configuration.md, from the table of options: `retort help configuration` prints it. */
#include "cli/cli_int.h"

#include <stdio.h>

static const char opening[] =
    "# Configuration\n"
    "\n"
    "*Printed by `retort help configuration`, from the table that `retort serve` reads.*\n"
    "\n"
    "Each setting has one name. It can be set in four places; the first of these wins:\n"
    "\n"
    "1. a flag: `--idle-timeout 1h`\n"
    "2. an environment variable: `RETORT_IDLE_TIMEOUT=1h`\n"
    "3. the configuration file: `idle-timeout = 1h`\n"
    "4. the default\n"
    "\n"
    "`retort serve --check-config` prints the effective settings in the format of the file, or the "
    "mistake\nwith its file and line. The server does not start with an unknown name or a value "
    "out of range. An empty value is\nthe same as none where the default is none.\n"
    "\n"
    "## The file\n"
    "\n"
    "`--config FILE`, else `" CONFIG_DEFAULT "` if it exists. [`deploy/retort.ini`]"
    "(../deploy/retort.ini)\nis an example to start from.\n"
    "\n"
    "```ini\n"
    "; a comment, at the start of a line or after a space\n"
    "[server]\n"
    "listen = 127.0.0.1:8000, unix:/run/retort.sock\n"
    "memory = 1G                      ; the default of every pool\n"
    "\n"
    "[pool data]                      ; the first pool is the default pool\n"
    "description = tables and charts\n"
    "\n"
    "[pool web]\n"
    "python = /srv/venvs/web/bin/python\n"
    "memory = 4G\n"
    "egress = allow-list\n"
    "egress-hosts = pypi.org,\n"
    "    files.pythonhosted.org       ; a line that begins with a space continues the value\n"
    "\n"
    "[environment ml]                 ; a Python for pools that are created at run time\n"
    "python = /srv/venvs/ml/bin/python\n"
    "images = registry.example/ml:*   ; container images that map to it\n"
    "\n"
    "[model local]                    ; a language model for requests in plain words\n"
    "url = http://127.0.0.1:8080/v1   ; the settings of models below, without `model-`\n"
    "```\n"
    "\n"
    "Lines before the first section belong to `[server]`. Settings of pools and limits may be in "
    "both:\n`[server]`, a flag or an environment variable sets the default of every pool, and a "
    "pool's "
    "own section\noverrides it. Without a `[pool NAME]` there is one pool, `default`.\n"
    "\n"
    "Sizes are numbers with `K`, `M`, `G` or `T` (powers of 1024). Times are seconds, or numbers "
    "with `ms`,\n`s`, `m`, `h` or `d`. Switches are `yes` or `no`. Lists are separated by commas.\n"
    "\n"
    "## While it runs\n"
    "\n"
    "`SIGHUP` reloads keys and the file. Changes of `log-level` and `log-format` take "
    "effect at\nonce; for any other change the log says that it needs a restart. A file with a "
    "mistake changes\nnothing, and the log names the mistake. A server started by root no longer "
    "runs as root, so its user\nmust be able to read the file.\n";

static void put_range(struct buf *b, const struct option *o)
{
    struct option bound = *o;
    struct settings s = {0};
    char least[64], most[64];

    if (o->choices) {
        buf_printf(b, " One of");
        for (const char *p = o->choices, *end; p; p = *end ? end + 1 : NULL) {
            end = p + strcspn(p, "|");
            buf_printf(b, "%s `%.*s`", p == o->choices ? "" : ",", (int)(end - p), p);
        }
        buf_printf(b, ".");
    }
    if (o->max == 0)
        return;
    bound.at = offsetof(struct settings, pool.limits.wall_ms); /* any number of theirs */
    s.pool.limits.wall_ms = o->min;
    option_show(&bound, &s, least, sizeof(least));
    s.pool.limits.wall_ms = o->max;
    option_show(&bound, &s, most, sizeof(most));
    buf_printf(b, " From %s to %s.", least, most);
}

static void put_row(struct buf *b, const struct option *o, const struct settings *defaults)
{
    char value[128], env[ENV_NAME_MAX];

    option_show_default(o, defaults, value, sizeof(value));
    option_env_name(o, env);
    buf_printf(b, "| `%s` | %s%s%s | %s | ", o->name, o->not_from & IN(SOURCE_ENV) ? "" : "`",
               o->not_from & IN(SOURCE_ENV) ? "flag only" : env,
               o->not_from & IN(SOURCE_ENV) ? "" : "`", *value ? value : "no");
    buf_printf(b, "%s", o->text);
    put_range(b, o);
    if (o->also_root)
        buf_printf(b, " Also `%s`, or `%s` below `%s`.", o->also, o->also_unit + 1, o->also_root);
    else if (o->also)
        buf_printf(b, " Also `%s`%s%s.", o->also, o->also_unit ? ", in " : "",
                   o->also_unit ? o->also_unit : "");
    buf_printf(b, " |\n");
}

void help_page(const struct command *c, struct buf *ret)
{
    struct settings defaults;

    settings_init(&defaults);
    if (buf_put(ret, STR(opening)) < 0)
        assert(!"the page fits");
    for (enum option_group g = 0; g < GROUP__COUNT; g++) {
        bool any = false;
        for (size_t i = 0; i < options_count; i++) {
            const struct option *o = &options[i];
            if (o->group != g || !(o->commands & IN(c->id)) ||
                o->at == offsetof(struct settings, help))
                continue;
            if (!any)
                buf_printf(
                    ret,
                    "\n## %s\n\n| name | environment variable | default | |\n|---|---|---|---|\n",
                    help_heading(g));
            any = true;
            put_row(ret, o, &defaults);
        }
    }
    settings_done(&defaults);
}
