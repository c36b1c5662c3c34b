/*
 * Ends of executions that nobody need wait for. What the store has taken into its log outlives this
 * process, so the client gets its answer, and the rows are written into the database soon after it.
 * Until then a copy of them is kept here.
 */
#include "service/service_int.h"

#include <stdlib.h>

struct soon {
    struct service *sv; /* borrowed: waits for this */
    struct exec_row row;
    struct session_row session;
};

static int write_rows(struct db *db, void *arg, struct err *e)
{
    const struct soon *n = arg;

    return db_exec_put(db, &n->row, e) < 0 ? -1 : db_session_put(db, &n->session, e);
}

static void on_written(void *arg, const struct err *failed)
{
    struct soon *n = arg;

    n->sv->pending--;
    if (failed)
        log_error("execution %s is not in the database yet: %s", n->row.id, failed->text);
    /* What will not pass stays in the store's log, and keeps no other record from being written. */
    if (failed && (failed->kind == ERR_FULL || failed->kind == ERR_AWAY))
        late_records_add(n->sv, &n->row);
    exec_row_done(&n->row);
    session_row_done(&n->session);
    free(n);
}

bool record_soon(struct execution *j)
{
    struct soon *n;

    if (j->orphan || j->journal.on || !j->row.events ||
        !store_log_exec(j->sv->store, &j->row, &j->session))
        return false;
    n = mem_zalloc(sizeof(*n));
    n->sv = j->sv;
    n->sv->pending++;
    exec_row_copy(&n->row, &j->row);
    session_row_copy(&n->session, &j->session);
    store_run_soon(j->sv->store, true, write_rows, on_written, n);
    return true;
}
