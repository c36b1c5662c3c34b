/* Arguments into settings, by the table of options. */
#include "cli/cli_int.h"

#include <stdio.h>

/* The arguments not yet read. */
struct args {
    int argc;
    const char *const *argv;
    int at;
};

/* Sets the option from text attached to it ("--o=text", "-otext") or from the next argument. */
static int take(struct settings *s, const struct option *o, const char *origin,
                const char *attached, struct args *a, struct err *e)
{
    if (!attached && !o->metavar)
        attached = "yes";
    if (!attached) {
        if (a->at >= a->argc)
            return err_set(e, ERR_CALLER, "%s needs a value: %s %s", origin, origin, o->metavar);
        attached = a->argv[a->at++];
    }
    return setting_set(o, s, SOURCE_FLAG, origin, attached, e);
}

static int unknown(const struct command *c, const char *dashes, struct str name, struct err *e)
{
    const char *nearest = option_nearest(name, IN(c->id));
    char shown[NAME_SHOWN];

    name_show(shown, name);
    if (nearest)
        return err_set(e, ERR_CALLER, "there is no option %s%s; did you mean --%s?", dashes, shown,
                       nearest);
    return err_set(e, ERR_CALLER, "there is no option %s%s; see retort %s --help", dashes, shown,
                   c->name);
}

static int parse_long(struct settings *s, const struct command *c, const char *arg, struct args *a,
                      struct err *e)
{
    const char *equals = strchr(arg, '=');
    struct str name = {arg, equals ? (size_t)(equals - arg) : strlen(arg)};
    const struct option *o = option_by_name(name, IN(c->id));
    char origin[64];

    if (!o)
        return unknown(c, "--", name, e);
    if (o->not_from & IN(SOURCE_FLAG))
        return err_set(e, ERR_CALLER, "others could read --%s here; set it by its file, or by %s",
                       o->name, "the environment");
    snprintf(origin, sizeof(origin), "--%s", o->name);
    return take(s, o, origin, equals ? equals + 1 : NULL, a, e);
}

/* One or more letters; the first that takes a value takes the rest of the argument. */
static int parse_letters(struct settings *s, const struct command *c, const char *arg,
                         struct args *a, struct err *e)
{
    for (; *arg; arg++) {
        const struct option *o = option_by_letter(*arg, IN(c->id));
        char origin[] = {'-', *arg, '\0'};

        if (!o)
            return unknown(c, "-", str_of(arg), e);
        if (o->metavar)
            return take(s, o, origin, arg[1] ? arg + 1 : NULL, a, e);
        if (take(s, o, origin, NULL, a, e) < 0)
            return -1;
    }
    return 0;
}

static int parse_plain(struct settings *s, const struct command *c, const char *arg, struct err *e)
{
    char shown[NAME_SHOWN];

    if (c->takes_words) {
        list_add(&s->words, arg);
        return 0;
    }
    if (!c->takes_work)
        return err_set(e, ERR_CALLER, "%s takes no argument; what is '%s'?", c->name,
                       name_show(shown, str_of(arg)));
    if (*arg == '\0')
        return err_set(e, ERR_CALLER, "the name of a script must not be empty");
    work_add(s, WORK_SCRIPT, arg);
    return 0;
}

int settings_parse(struct settings *s, const struct command *c, int argc, const char *const *argv,
                   struct err *e)
{
    struct args a = {argc, argv, 0};
    bool plain = false; /* after "--" nothing is an option */

    while (a.at < argc && !s->help) {
        const char *arg = argv[a.at++];
        int done;

        if (plain || arg[0] != '-' || arg[1] == '\0')
            done = parse_plain(s, c, arg, e);
        else if (strcmp(arg, "--") == 0)
            done = plain = true;
        else if (arg[1] == '-')
            done = parse_long(s, c, arg + 2, &a, e);
        else
            done = parse_letters(s, c, arg + 1, &a, e);
        if (done < 0)
            return -1;
    }
    return 0;
}
