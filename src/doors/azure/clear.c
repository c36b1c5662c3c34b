/*
 * Where a pool has a person agree first. Clients of Azure cannot be asked, so somebody
 * else decides, and the client sends the same again.
 */
#include "doors/azure/azure_int.h"

#include <stdio.h>
#include <stdlib.h>

struct clearing {
    json_t *args; /* owned: what the approval is about */
    clear_fn *fn;
    void *arg;
};

static void on_verdict(void *arg, const struct approval_info *info, const struct err *failed)
{
    struct clearing *k = arg;
    char until[TIME_TEXT] = "";
    struct err e = {0};

    if (failed) {
        e = *failed;
    } else if (info->verdict == APPROVAL_NO || !info->row) {
        err_set(&e, ERR_DENIED, "nothing has run: this was declined, or nobody can be asked%s%s",
                info->row && info->row->reason ? ": " : "",
                info->row && info->row->reason ? info->row->reason : "");
    } else {
        time_print(info->row->expires_ms, until);
        err_set(&e, ERR_DENIED,
                "nothing has run yet: a person must agree first. The approval is pending as %s, "
                "until %s: an approver allows it with POST /v1/approvals/%s, and then the same "
                "request runs",
                info->row->id, until, info->row->id);
    }
    if (!failed && info->verdict == APPROVAL_CLEAR)
        k->fn(k->arg, &info->clearance, NULL);
    else
        k->fn(k->arg, NULL, &e);
    json_decref(k->args);
    free(k);
}

void clear_ask(struct service *sv, const struct caller *c, const struct clear_spec *spec,
               clear_fn *fn, void *arg)
{
    static const struct clearance none;
    struct clearing *k;
    bool shell = spec->kind == EXEC_COMMAND;

    if (!service_asks(sv)) {
        fn(arg, &none, NULL);
        return;
    }
    k = mem_zalloc(sizeof(*k));
    *k = (struct clearing){.fn = fn, .arg = arg};
    k->args = json_pack("{s:o, s:s, s:o}", "session", record_text(spec->session), "language",
                        shell ? "shell" : "python", "code", record_text(spec->code));
    const struct approval_spec asked = {
        .tool = shell ? STR("azure_shell") : STR("azure_python"),
        .language = shell ? STR("shell") : STR("python"),
        .code = json_view(json_object_get(k->args, "code")),
        .args = k->args,
        .session = spec->session,
        .pool = spec->pool,
    };
    service_approval_request(sv, c, &asked, on_verdict, k);
}
