/*
 * Nodes: several servers with one store. A tenant lives on one of them, its home.
 *
 * All that is in memory about a tenant is there: awake sessions, what runs and waits, approvals,
 * streams, what doors remember. So nothing of it is ever asked of another node; instead a request
 * that comes to another node is forwarded to the tenant's (doors/http/forward.c), whichever door it
 * is for. Who may write about a tenant is decided in the database (store/postgres_nodes.c).
 *
 * A tenant that lives nowhere moves in where it first asks, and this is also when what its last
 * node has left is put in order: its sessions are asleep, and what ran there has ended. It stays
 * until this server ends. Once in a while a node looks for tenants that live nowhere although
 * something is to be done for them that nobody will ask for.
 *
 * The beat renews the lease, takes over from nodes whose lease is over, and reads the others.
 *
 * When the database has been away, every lease may be over, and who is connected first would take
 * over from all the others, which are well. So a node takes over from nobody until it has renewed
 * its own lease without a gap for as long as a lease is: by then the others have renewed theirs.
 * It is the same when it starts, but for the node that had its own URL.
 */
#include "service/service_int.h"

#include <stdio.h>
#include <stdlib.h>

#define BEATS      4  /* in a lease */
#define GAP        2  /* of so many beats: the database was away */
#define MARGIN     20 /* a part of the lease: no two clocks run at one speed */
#define AGAIN_MS   20 /* another node is taking the same tenant */
#define AGAIN_MAX  100
#define WANTED_MAX 20 /* tenants at a time */

/* --- the beat --- */

struct beat {
    struct task task;
    int64_t asked_us;
    int rc;
    bool takes_over;
    char *room; /* owned: as it was when this began, like the next */
    size_t lent;
    struct node_row *rows; /* owned */
    size_t count;
    char **wanted; /* owned, each of them, too */
    size_t wanted_count;
};

static void beat_free(struct beat *b)
{
    for (size_t i = 0; i < b->count; i++)
        node_row_done(&b->rows[i]);
    for (size_t i = 0; i < b->wanted_count; i++)
        free(b->wanted[i]);
    free(b->rows);
    free(b->room);
    free(b->wanted);
    free(b);
}

static int renew(struct task *t, struct db *db, struct err *e)
{
    struct beat *b = OWNER(t, struct beat, task);

    b->asked_us = time_mono_us();
    b->rc = db_node_renew(db, b->room, (int64_t)b->lent, e);
    if (b->rc == 0)
        return err_set(e, ERR_AWAY, "another node has taken over from this one");
    return b->rc < 0 ? -1 : 0;
}

/* Apart from the lease, which is not to wait for this. */
static int look(struct task *t, struct db *db, struct err *e)
{
    struct beat *b = OWNER(t, struct beat, task);
    const struct home_watch *w = t->sv->nodes->watches;
    int buried = b->takes_over ? db_node_bury(db, false, e) : 0;

    if (buried > 0)
        log_warn("%d %s gone: its tenants move to others", buried,
                 buried == 1 ? "node is" : "nodes are");
    if (buried < 0 || db_node_list(db, &b->rows, &b->count, e) < 0)
        return -1;
    if (t->sv->draining)
        return 0;
    while (w && !w->kind)
        w = w->next;
    return db_home_wanted(db, w ? w->kind : "", w ? w->parent : "", time_sure_ms(), WANTED_MAX,
                          &b->wanted, &b->wanted_count, e);
}

static int note_lease(struct task *t, struct err *e)
{
    struct beat *b = OWNER(t, struct beat, task);
    struct nodes *n = t->sv->nodes;
    int64_t now = time_mono_us(), lease_us = (int64_t)n->lease_ms * 1000;

    (void)e;
    if (now - n->renewed_us > lease_us / BEATS * GAP)
        n->steady_us = now;
    n->renewed_us = now;
    b->takes_over = now - n->steady_us >= lease_us;
    store_lease(t->sv->store, b->asked_us + lease_us - lease_us / MARGIN);
    return 0;
}

static const struct node_row *row_of(const struct nodes *n, const char *id)
{
    for (size_t i = 0; i < n->count; i++)
        if (strcmp(n->rows[i].id, id) == 0)
            return &n->rows[i];
    return NULL;
}

static void rows_take(struct service *sv, struct node_row **rows, size_t *count)
{
    const char *self = store_node(sv->store);
    struct nodes *n = sv->nodes;
    bool oldest = true;

    for (size_t i = 0; i < n->count; i++)
        node_row_done(&n->rows[i]);
    free(n->rows);
    n->rows = take_ptr(rows);
    n->count = *count;
    *count = 0;
    for (size_t i = 0; i < n->count; i++)
        oldest &= strcmp(n->rows[i].id, self) >= 0;
    atomic_store(&n->is_oldest, oldest);
}

static void home_drop(struct nodes *n, struct home *h)
{
    table_drop(&n->homes, h->tenant);
    timer_free(h->again);
    free(h);
}

/* Those who lived on a node that is gone live nowhere, or elsewhere. */
static void forget_gone(struct nodes *n)
{
    AUTO_FREE void **all = table_all(&n->homes);
    size_t count = n->homes.n;

    for (size_t i = 0; i < count; i++) {
        struct home *h = all[i];
        if (!h->here && !h->waits && !h->finding && !row_of(n, h->node))
            home_drop(n, h);
    }
}

static void on_moved_in(void *arg, const struct err *failed)
{
    (void)arg;
    (void)failed; /* the next beat finds it again */
}

static void on_beat_over(struct task *t, const struct err *failed)
{
    struct beat *b = OWNER(t, struct beat, task);
    struct service *sv = t->sv;
    struct nodes *n = sv->nodes;

    n->beating = false;
    if (store_is_fenced(sv->store)) {
        if (n->on_fenced)
            n->on_fenced(n->on_fenced_arg);
    } else if (failed) {
        log_debug("the lease: %s", failed->text);
    } else {
        rows_take(sv, &b->rows, &b->count);
        forget_gone(n);
        for (size_t i = 0; i < b->wanted_count && !sv->closing && !sv->draining; i++)
            service_home_find(sv, b->wanted[i], on_moved_in, NULL);
    }
    beat_free(b);
}

static void on_beat(void *arg)
{
    static const struct step steps[] = {
        {.store = renew}, {.loop = note_lease}, {.store = look}, {0}};
    struct service *sv = arg;
    struct beat *b;

    timer_set(sv->nodes->beat, sv->nodes->lease_ms / BEATS);
    if (sv->nodes->beating)
        return;
    sv->nodes->beating = true;
    b = mem_zalloc(sizeof(*b));
    b->room = place_room(sv);
    b->lent = sv->lending_count;
    task_start(&b->task, sv, NULL, steps, on_beat_over);
}

/* --- where a tenant lives --- */

struct home_wait {
    struct home_wait *next;
    done_fn *fn;
    void *arg;
};

/* What the process before us has left. */
int service_put_in_order(struct db *db, const char *tenant, struct err *e)
{
    const struct outcome lost = {.status = OUTCOME_SESSION_LOST,
                                 .state_lost = true,
                                 .line =
                                     "the server ended before this execution did; variables are "
                                     "lost, and so is what it said after these events"};
    json_t *outcome = record_outcome(&lost);
    AUTO_FREE char *text = record_dump(outcome, false, NULL);

    json_decref(outcome);
    return db_session_all_asleep(db, tenant, SESSION_IDLE, SESSION_ASLEEP, e) < 0 ||
                   db_exec_all_lost(db, tenant, time_now_ms(), text, e) < 0
               ? -1
               : 0;
}

static int find(struct task *t, struct db *db, struct err *e)
{
    struct home *h = OWNER(t, struct home, task);

    h->rc = db_home_find(db, h->tenant, !h->leaving, h->node, e);
    h->here = h->rc == 1 && strcmp(h->node, store_node(t->sv->store)) == 0;
    if (h->rc < 0 || !h->here)
        return h->rc < 0 ? -1 : 0;
    if (service_put_in_order(db, h->tenant, e) < 0)
        return -1;
    return db_session_count(db, h->tenant, &h->asleep, e);
}

/* A node may be newer than our list. */
static int is_listed(struct task *t, struct err *e)
{
    struct home *h = OWNER(t, struct home, task);

    (void)e;
    h->listed = h->rc != 1 || h->here || row_of(t->sv->nodes, h->node);
    return 0;
}

static int list_again(struct task *t, struct db *db, struct err *e)
{
    struct home *h = OWNER(t, struct home, task);

    return h->listed ? 0 : db_node_list(db, &h->rows, &h->count, e);
}

static void answer(struct home *h, const struct err *failed)
{
    struct home_wait *w, *waits = take_ptr(&h->waits);

    while ((w = waits)) {
        waits = w->next;
        w->fn(w->arg, failed);
        free(w);
    }
}

static void move_in(struct service *sv, struct home *h)
{
    sv->counts.sessions[SESSION_ASLEEP] += h->asleep;
    log_info("tenant %s lives here", h->tenant);
    for (struct home_watch *w = sv->nodes->watches; w; w = w->next)
        w->fn(w->arg, h->tenant);
}

static void on_again(void *arg);

static void on_found(struct task *t, const struct err *failed)
{
    struct home *h = OWNER(t, struct home, task);
    struct service *sv = t->sv;
    struct err e = {0};

    h->finding = false;
    h->here &= !failed;
    if (h->rows)
        rows_take(sv, &h->rows, &h->count);
    if (failed)
        e = *failed;
    else if (h->rc == 0 && !h->leaving && h->tries++ < AGAIN_MAX) {
        if (!h->again)
            h->again = timer_new(sv->loop, on_again, h);
        h->finding = true;
        timer_set(h->again, AGAIN_MS);
        return;
    } else if (h->rc == 0) {
        err_set(&e, ERR_AWAY, "this node is shutting down");
        e.retry_s = 1;
    }
    h->tries = 0;
    if (h->here)
        move_in(sv, h);
    answer(h, e.kind ? &e : NULL);
    if (e.kind)
        home_drop(sv->nodes, h);
}

static void go_find(struct home *h)
{
    static const struct step steps[] = {
        {.store = find}, {.loop = is_listed}, {.store = list_again}, {0}};

    h->finding = true;
    h->leaving = h->sv->draining || h->sv->closing;
    task_start(&h->task, h->sv, NULL, steps, on_found);
}

static void on_again(void *arg)
{
    go_find(arg);
}

enum home_place service_home(struct service *sv, const char *tenant, const char **ret_url)
{
    const struct home *h = sv->nodes ? table_get(&sv->nodes->homes, tenant) : NULL;
    const struct node_row *row;

    if (!sv->nodes || (h && h->here && !h->finding))
        return HOME_HERE;
    if (!h || h->finding)
        return HOME_UNKNOWN;
    row = row_of(sv->nodes, h->node);
    *ret_url = row ? row->url : NULL;
    return HOME_ELSEWHERE;
}

void service_home_find(struct service *sv, const char *tenant, done_fn *fn, void *arg)
{
    struct nodes *n = sv->nodes;
    struct home *h = table_get(&n->homes, tenant);
    struct home_wait *w = mem_zalloc(sizeof(*w));

    if (!h) {
        h = mem_zalloc(sizeof(*h));
        h->sv = sv;
        snprintf(h->tenant, sizeof(h->tenant), "%s", tenant);
        table_put(&n->homes, h->tenant, h);
    }
    *w = (struct home_wait){h->waits, fn, arg};
    h->waits = w;
    if (!h->finding)
        go_find(h);
}

bool service_node_is_there(const struct service *sv, const char *url)
{
    for (size_t i = 0; i < sv->nodes->count; i++)
        if (strcmp(sv->nodes->rows[i].url, url) == 0)
            return true;
    return false;
}

void service_home_forget(struct service *sv, const char *tenant)
{
    struct home *h = table_get(&sv->nodes->homes, tenant);

    if (h && !h->here && !h->finding)
        home_drop(sv->nodes, h);
}

bool nodes_is_home(struct service *sv, const char *tenant)
{
    const char *url;

    return service_home(sv, tenant, &url) == HOME_HERE;
}

/* The oldest does, as ids begin with their time. Were two of them to think so for a moment, both
 * would remove the same rows, which does no harm. From any thread: the row is read by a beat. */
bool nodes_sweeps(const struct service *sv)
{
    return !sv->nodes || atomic_load(&sv->nodes->is_oldest);
}

/* --- what doors ask --- */

bool service_has_nodes(const struct service *sv)
{
    return sv->nodes != NULL;
}

bool service_lease_holds(struct service *sv, struct err *e)
{
    return store_lease_holds(sv->store, e);
}

void service_on_home(struct service *sv, const char *kind, const char *parent, home_fn *fn,
                     void *arg)
{
    struct home_watch *w = mem_zalloc(sizeof(*w));

    *w = (struct home_watch){sv->nodes->watches, kind, parent, fn, arg};
    sv->nodes->watches = w;
}

void service_on_fenced(struct service *sv, loop_fn *fn, void *arg)
{
    sv->nodes->on_fenced = fn;
    sv->nodes->on_fenced_arg = arg;
}

const struct node_row *service_nodes(struct service *sv, size_t *ret_count, const char **ret_self)
{
    *ret_count = sv->nodes ? sv->nodes->count : 0;
    *ret_self = store_node(sv->store);
    return sv->nodes ? sv->nodes->rows : NULL;
}

/* --- beginning and end --- */

static int renew_now(struct db *db, void *arg, struct err *e)
{
    struct beat *b = arg;

    b->asked_us = time_mono_us();
    return db_node_renew(db, b->room, 0, e) < 0 || db_node_bury(db, true, e) < 0 ||
                   db_node_list(db, &b->rows, &b->count, e) < 0
               ? -1
               : 0;
}

int nodes_start(struct service *sv, uint64_t lease_ms, struct err *e)
{
    struct beat b = {.task.sv = sv};

    if (!store_has_nodes(sv->store))
        return 0;
    AUTO_FREE char *room = b.room = place_room(sv);
    sv->nodes = mem_zalloc(sizeof(*sv->nodes));
    sv->nodes->lease_ms = lease_ms;
    if (store_call(sv->store, renew_now, &b, e) < 0)
        return -1;
    (void)note_lease(&b.task, e);
    rows_take(sv, &b.rows, &b.count);
    sv->nodes->beat = timer_new(sv->loop, on_beat, sv);
    timer_set(sv->nodes->beat, lease_ms / BEATS);
    return 0;
}

/* Nobody is told of anything any more; the lease is renewed until nodes_free(). */
void nodes_free(struct service *sv)
{
    struct nodes *n = sv->nodes;
    AUTO_FREE void **all = n ? table_all(&n->homes) : NULL;

    if (!n)
        return;
    for (size_t i = 0, count = n->homes.n; i < count; i++)
        home_drop(n, all[i]);
    for (struct home_watch *w = n->watches, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    for (size_t i = 0; i < n->count; i++)
        node_row_done(&n->rows[i]);
    free(n->rows);
    timer_free(n->beat);
    table_done(&n->homes);
    free(n);
    sv->nodes = NULL;
}
