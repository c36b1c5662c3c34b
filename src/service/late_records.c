/*
 * Ends of executions, and new sessions, that could not be put on record, because the disk failed
 * just then, or the database could not be reached.
 *
 * They wait in memory until the store accepts something again, and are then written in the order in
 * which they came. A server that is killed meanwhile finds executions without an end and says so,
 * as of any that it did not see the end of. What the store has in its log is there again.
 */
#include "service/service_int.h"

#include <stdlib.h>

#define LATE_MAX   1000       /* records that wait */
#define LATE_BYTES (16 * MiB) /* of them all: what they keep of code, outcome and events */

struct late_record {
    struct late_record *next;
    struct exec_row row;
    struct session_row session; /* instead, where it has an id */
    bool is_gone;               /* the session was deleted */
    size_t bytes;
};

struct late_records {
    struct late_record *list, **end; /* owned: oldest first */
    struct late_record *last; /* up to this one the store's thread writes them now; or NULL */
    size_t count, bytes;
    struct task task;
};

static size_t text_size(const char *text)
{
    return text ? strlen(text) : 0;
}

static void drop_oldest(struct late_records *all)
{
    struct late_record *l = all->list;

    all->list = l->next;
    if (!all->list)
        all->end = &all->list;
    all->count--;
    all->bytes -= l->bytes;
    exec_row_done(&l->row);
    session_row_done(&l->session);
    free(l);
}

static void lose_oldest(struct late_records *all)
{
    const struct late_record *l = all->list;

    log_error("%s is not on record: the store did not accept it in time",
              *l->session.id ? l->session.id : l->row.id);
    drop_oldest(all);
}

static void add(struct service *sv, struct late_record *l, size_t bytes)
{
    struct late_records *all = sv->late;

    if (!all) {
        sv->late = all = mem_zalloc(sizeof(*all));
        all->end = &all->list;
    }
    l->bytes = bytes;
    *all->end = l;
    all->end = &l->next;
    all->count++;
    all->bytes += l->bytes;
    while (!all->last && (all->count > LATE_MAX || all->bytes > LATE_BYTES))
        lose_oldest(all);
}

void late_records_add(struct service *sv, struct exec_row *row)
{
    struct late_record *l = mem_zalloc(sizeof(*l));

    l->row = *row;
    *row = (struct exec_row){0};
    add(sv, l, text_size(l->row.code) + text_size(l->row.outcome) + text_size(l->row.events));
}

void late_session_add(struct service *sv, const struct session_row *row)
{
    struct late_record *l = mem_zalloc(sizeof(*l));

    session_row_copy(&l->session, row);
    add(sv, l, text_size(row->metadata) + text_size(row->env));
}

/* What the store's thread writes now is written before whatever it is asked to delete from now on.
 */
void late_session_forget(struct service *sv, const char *id)
{
    const struct late_records *all = sv->late;
    struct late_record *l;

    if (!all)
        return;
    for (l = all->last ? all->last->next : all->list; l; l = l->next)
        if (strcmp(l->session.id, id) == 0)
            l->is_gone = true;
}

static int write_one(const struct late_record *l, struct db *db, struct err *e)
{
    if (*l->session.id)
        return l->is_gone ? 0 : db_session_add(db, &l->session, e);
    return db_exec_put(db, &l->row, e) < 0 ? -1 : db_exec_output_drop(db, l->row.id, e);
}

static int write_all(struct task *t, struct db *db, struct err *e)
{
    const struct late_records *all = OWNER(t, struct late_records, task);

    for (const struct late_record *l = all->list;; l = l->next) {
        if (write_one(l, db, e) < 0)
            return -1;
        if (l == all->last)
            return 0;
    }
}

static void on_written(struct task *t, const struct err *failed)
{
    struct late_records *all = OWNER(t, struct late_records, task);
    const struct late_record *last = take_ptr(&all->last);
    bool more = !failed;

    while (more) {
        more = all->list != last;
        drop_oldest(all);
    }
    if (!all->list)
        store_log_mend(t->sv->store);
}

void late_records_write(struct service *sv)
{
    static const struct step steps[] = {{.store = write_all}, {0}};
    struct late_records *all = sv->late;
    struct err why;

    if (!all || !all->list || all->last || store_is_full(sv->store, &why))
        return;
    all->last = OWNER(all->end, struct late_record, next);
    task_start(&all->task, sv, NULL, steps, on_written);
}

void late_records_free(struct service *sv)
{
    struct late_records *all = take_ptr(&sv->late);

    while (all && all->list)
        lose_oldest(all);
    free(all);
}
