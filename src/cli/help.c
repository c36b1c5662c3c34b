/* --help, from the tables of commands and options. */
#include "cli/cli_int.h"

#include <stdio.h>

#define HELP_COLUMN 24
#define HELP_WIDTH  100

static const char *const headings[GROUP__COUNT] = {
    [GROUP_WORK] = "What to run",
    [GROUP_FILES] = "Files",
    [GROUP_KEY] = "The new key",
    [GROUP_ENVIRONMENT] = "The new environment",
    [GROUP_SERVER] = "Server",
    [GROUP_ACCESS] = "Access",
    [GROUP_HOUSE] = "Storage and quotas",
    [GROUP_POOL] = "Pools",
    [GROUP_LIMITS] = "Limits",
    [GROUP_QWEN] = "Qwen-Agent",
    [GROUP_UBIK] = "Ubik",
    [GROUP_PRISME] = "Prisme.ai",
    [GROUP_ANTHROPIC] = "Anthropic's SDKs",
    [GROUP_MODEL] = "Language models",
    [GROUP_AGENT] = "Agent: requests in plain words",
    [GROUP_OTHER] = "Other",
};

const char *help_heading(enum option_group g)
{
    return headings[g];
}

/* A flag and what it is for, on as many lines as it takes. A flag that is too long has a line of
 * its own. */
static void put_wrapped(struct buf *b, const char *flag, const char *text)
{
    const size_t room = HELP_WIDTH - HELP_COLUMN - 4;

    if (strlen(flag) > HELP_COLUMN) {
        buf_printf(b, "  %s\n", flag);
        flag = "";
    }
    buf_printf(b, "  %-*s  ", HELP_COLUMN, flag);
    while (strlen(text) > room) {
        size_t n = room;
        while (n > 0 && text[n] != ' ')
            n--;
        assert(n > 0); /* no word is that long */
        buf_printf(b, "%.*s\n  %-*s  ", (int)n, text, HELP_COLUMN, "");
        text += n + 1;
    }
    buf_printf(b, "%s\n", text);
}

static void put_option(struct buf *b, const struct option *o, const struct settings *defaults)
{
    char flag[64], value[128], choices[128] = "", text[600];
    int n;

    n = o->letter ? snprintf(flag, sizeof(flag), "-%c, ", o->letter)
                  : snprintf(flag, sizeof(flag), "    ");
    snprintf(flag + n, sizeof(flag) - (size_t)n, "--%s%s%s", o->name, o->metavar ? " " : "",
             o->metavar ? o->metavar : "");
    option_show_default(o, defaults, value, sizeof(value));
    for (const char *p = o->choices, *sep = " One of "; p && *p; sep = ", ") {
        size_t used = strlen(choices), len = strcspn(p, "|");
        snprintf(choices + used, sizeof(choices) - used, "%s%.*s%s", sep, (int)len, p,
                 p[len] ? "" : ".");
        p += len + (p[len] == '|');
    }
    snprintf(text, sizeof(text), "%s%s%s%s%s", o->text, choices, *value ? " [" : "", value,
             *value ? "]" : "");
    put_wrapped(b, flag, text);
}

static void put_group(struct buf *b, const struct command *c, enum option_group g,
                      const struct settings *defaults)
{
    bool any = false;

    for (size_t i = 0; i < options_count; i++) {
        if (options[i].group != g || !(options[i].commands & IN(c->id)) ||
            (options[i].not_from & IN(SOURCE_FLAG)))
            continue;
        if (!any)
            buf_printf(b, "\n%s:\n", headings[g]);
        any = true;
        if (g == GROUP_WORK && options[i].type == OPTION_WORK && options[i].work == WORK_CODE) {
            buf_printf(b, "  %-*s  Run the file SCRIPT as one cell.\n", HELP_COLUMN, "SCRIPT");
            buf_printf(b, "  %-*s  Run standard input as one cell.\n", HELP_COLUMN, "-");
        }
        put_option(b, &options[i], defaults);
    }
}

void help_command(const struct command *c, struct buf *ret)
{
    struct settings defaults;

    settings_init(&defaults);
    buf_printf(ret, "usage: retort %s %s\n\n%s\n", c->name, c->args, c->text);
    for (enum option_group g = 0; g < GROUP__COUNT; g++)
        put_group(ret, c, g, &defaults);
    if (c->notes)
        buf_printf(ret, "\n%s", c->notes);
    settings_done(&defaults);
}

void help_program(const struct command *const *commands, size_t count, struct buf *ret)
{
    buf_printf(ret, "usage: retort COMMAND [OPTION]...\n\n"
                    "Sealed, warm Python sessions, ready in milliseconds.\n\nCommands:\n");
    for (size_t i = 0; i < count; i++)
        buf_printf(ret, "  %-*s  %s\n", HELP_COLUMN, commands[i]->name, commands[i]->text);
    buf_printf(ret, "\n  %-*s  Print the options of a command.\n", HELP_COLUMN,
               "retort COMMAND --help");
    put_wrapped(ret, "retort help configuration",
                "Print every setting of a server, and the four places to set it.");
    buf_printf(ret, "  %-*s  Print the version.\n", HELP_COLUMN, "retort --version");
}
