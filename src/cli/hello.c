/* What a person sees first: where the server is, the page to open, and three commands to try. */
#include "cli/serve_int.h"
#include "doors/console/console.h"

#include <stdio.h>

#define LINE_MAX_ 512

/* curl's arguments up to the path, for the address that is the easiest to try. */
static void call_of(const struct settings *s, const struct listeners *ls, bool keys, char *ret,
                    size_t size)
{
    const struct listener *l = &ls->item[0];
    const char *key = keys ? " -H \"Authorization: Bearer $KEY\"" : "";
    char shown[ADDRESS_SHOWN];

    for (size_t i = 0; i < ls->count && !l->local; i++)
        l = &ls->item[i];
    listener_show(l, s->serve.tls_cert != NULL, shown);
    if (l->address.at.any.sa_family == AF_UNIX)
        snprintf(ret, size, "curl -s%s --unix-socket %s http://localhost", key,
                 l->address.at.un.sun_path);
    else
        snprintf(ret, size, "curl -s%s %s", key, shown);
}

/* The address of the console: that of a listener on TCP, the one of this machine if there is one.
 * A program that was built without node has no console to open. */
static void say_page(const struct settings *s, const struct listeners *ls)
{
    const struct listener *l = NULL;
    char shown[ADDRESS_SHOWN];

    if (!console_files[0].path)
        return;
    for (size_t i = 0; i < ls->count; i++) {
        const struct listener *one = &ls->item[i];
        if (one->address.at.any.sa_family != AF_UNIX && (!l || (one->local && !l->local)))
            l = one;
    }
    if (!l)
        return;
    listener_show(l, s->serve.tls_cert != NULL, shown);
    printf("\nOpen %s/ in a browser for the console.\n", shown);
}

void hello_say(const struct settings *s, const struct listeners *ls, bool keys)
{
    static const struct {
        const char *path, *rest, *text;
    } tries[] = {
        {"/v1/pools",   "",                                                            "what is there"       },
        {"/v1/execute", " --json '{\"code\": \"6 * 7\"}'",                             "an answer"           },
        {"/v1/execute",
         " -N --json '{\"code\": \"for i in range(9): print(i)\", \"stream\": true}'", "the same as it comes"},
    };
    char shown[ADDRESS_SHOWN], call[LINE_MAX_];

    for (size_t i = 0; i < ls->count; i++) {
        listener_show(&ls->item[i], s->serve.tls_cert != NULL, shown);
        printf("%s %s\n", i == 0 ? "retort " RETORT_VERSION " serves at" : "                   and",
               shown);
    }
    say_page(s, ls);
    call_of(s, ls, keys, call, sizeof(call));
    printf("\nTry%s:\n", keys ? ", with KEY set to a key's secret" : "");
    for (size_t i = 0; i < COUNT(tries); i++)
        printf("  # %s\n  %s%s%s\n", tries[i].text, call, tries[i].path, tries[i].rest);
    printf("\n");
    fflush(stdout);
}
