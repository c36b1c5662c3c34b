/*
 * Operations: the ids that clients choose for their executions, with the options of each. A client
 * asks for the result by its own id and gets it in the form of these options. The last few thousand
 * are kept in memory. An older execution is found by the server's id, in the default form.
 */
#include "doors/azure/azure_int.h"

#include <stdio.h>
#include <stdlib.h>

#define KEPT 4096

struct operation {
    char tenant[64];
    char execution[ID_MAX];
    struct azure_exec_options options;
};

struct operations {
    struct operation at[KEPT];
    size_t next;
};

struct operations *operations_new(void)
{
    return mem_zalloc(sizeof(struct operations));
}

void operations_free(struct operations *o)
{
    free(o);
}

void operations_put(struct operations *o, const char *tenant, const char *execution,
                    const struct azure_exec_options *w)
{
    struct operation *op = &o->at[o->next++ % KEPT];

    snprintf(op->tenant, sizeof(op->tenant), "%s", tenant);
    snprintf(op->execution, sizeof(op->execution), "%s", execution);
    op->options = *w;
}

/* Newest first: an id that was used again is the later one. */
bool operations_get(struct operations *o, const char *tenant, struct str id,
                    char ret_execution[ID_MAX], struct azure_exec_options *ret)
{
    for (size_t i = 1; i <= KEPT; i++) {
        const struct operation *op = &o->at[(o->next - i) % KEPT];
        if (strcmp(op->tenant, tenant) != 0 || !*op->execution ||
            !(str_is(id, op->options.operation) || str_is(id, op->execution)))
            continue;
        memcpy(ret_execution, op->execution, ID_MAX);
        *ret = op->options;
        return true;
    }
    return false;
}
