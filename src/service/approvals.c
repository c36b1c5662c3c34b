/*
 * Approvals, from the side of the caller that needs one.
 *
 * Theory of operation: a call is checked against the policy of the pool that it would run in. Where
 * the policy asks for a person, a row is written before anybody is asked. Each step in the life of
 * that row is one transaction: pending, decided, taken. The caller takes a decision once, and an
 * approval that was taken cannot be used again, unless the approver made it last. So a client that
 * asks its user, a client that comes again later, and a server that was killed in between all find
 * the same state.
 */
#include "service/service_int.h"

#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const state_names[] = {
    [APPROVAL_PENDING] = "pending",   [APPROVAL_APPROVED] = "approved",
    [APPROVAL_DECLINED] = "declined", [APPROVAL_EXPIRED] = "expired",
    [APPROVAL_USED] = "used",
};

const char *approval_state_name(int state)
{
    assert(state >= 0 && state < APPROVAL__STATES);
    return state_names[state];
}

int approval_state_find(struct str name)
{
    for (int i = 0; i < APPROVAL__STATES; i++)
        if (str_is(name, state_names[i]))
            return i;
    return -1;
}

int approval_when_check(const char *text, struct err *e)
{
    struct when *w = when_new(text, e);

    when_free(w);
    return w ? 0 : -1;
}

/* --- what is asked --- */

struct approval_op {
    struct task task;
    struct caller caller;
    struct approval_spec spec; /* its texts are those below, or of args */
    char session[SESSION_NAME_MAX], name[SESSION_NAME_MAX];
    char pool[64], conversation[ID_MAX], tool[64];
    json_t *args, *rest; /* owned; rest: a copy without the code */
    char place[64];      /* the pool it would run in: "" until known, or when there is none */
    enum approval_policy policy;
    enum approval_by by;
    int64_t timeout_ms, wait_ms;
    struct when *when; /* held, or NULL */
    bool free_to_run;  /* nobody need be asked */
    struct approval_scene scene;
    bool has_scene; /* a yes counts in it alone */
    json_t *shown;  /* owned, or NULL: of the scene */
    uint8_t digest[32];
    char *text; /* owned */
    int64_t text_chars;
    enum approval_answer answer; /* of a settlement */
    char id[ID_MAX];
    struct approval_row row; /* owned */
    enum approval_verdict verdict;
    uint64_t counts[APPROVAL__STATES];
    approval_fn *fn;
    void *arg;
};

static void op_free(struct approval_op *op)
{
    approval_row_done(&op->row);
    json_decref(op->args);
    json_decref(op->rest);
    json_decref(op->shown);
    when_free(op->when);
    free(op->text);
    free(op);
}

static void on_done(struct task *t, const struct err *failed)
{
    struct approval_op *op = OWNER(t, struct approval_op, task);
    struct approval_info info = {.row = *op->row.id ? &op->row : NULL, .verdict = op->verdict};

    for (size_t i = 0; i < APPROVAL__STATES && !failed; i++)
        t->sv->counts.approvals[i] += op->counts[i];
    if (!failed && info.row && op->counts[op->row.state] > 0)
        feed_approval(t->sv, &op->row);
    if (info.verdict == APPROVAL_CLEAR)
        memcpy(info.pool, op->place, sizeof(op->place));
    info.lasting = op->policy == POLICY_ASK_FIRST;
    info.scene = op->has_scene ? &op->scene : NULL;
    op->fn(op->arg, failed ? NULL : &info, failed);
    op_free(op);
}

/* --- its pool --- */

static int find_session(struct task *t, struct db *db, struct err *e)
{
    struct approval_op *op = OWNER(t, struct approval_op, task);
    struct session_row row = {0};
    int rc = 0;

    if (!*op->place && *op->session)
        rc = db_session_get(db, op->caller.tenant, op->session, &row, e);
    if (rc > 0)
        snprintf(op->place, sizeof(op->place), "%s", row.pool);
    session_row_done(&row);
    return rc < 0 ? -1 : 0;
}

/* Pools come and go, but not while the loop does this. A session that is not there is no way
 * around: what is made in its place is of the first pool. */
static int find_pool(struct task *t, struct err *e)
{
    struct approval_op *op = OWNER(t, struct approval_op, task);
    struct err denied; /* its execution will be, too */
    const struct pool_entry *env = scope_pool_entry(
        t->sv, &op->caller, *op->place ? str_of(op->place) : op->spec.pool, &denied);
    const struct service_pool *p = env ? &env->config : NULL;

    (void)e;
    op->place[0] = '\0';
    op->free_to_run = !p || p->approval == POLICY_AUTO ||
                      (p->approval == POLICY_ASK_EXTERNAL && !op->spec.external);
    if (!p)
        return 0;
    snprintf(op->place, sizeof(op->place), "%s", p->name);
    op->policy = p->approval;
    op->by = p->approval_by;
    op->timeout_ms = (int64_t)p->approval_timeout_ms;
    op->wait_ms = (int64_t)p->approval_wait_ms;
    op->when = when_hold(env->when);
    return 0;
}

/* --- what the session has already --- */

static int read_scene(struct task *t, struct db *db, struct err *e)
{
    struct approval_op *op = OWNER(t, struct approval_op, task);

    if (op->free_to_run)
        return 0;
    snprintf(op->scene.session, sizeof(op->scene.session), "%s",
             *op->session ? op->session : op->name);
    snprintf(op->scene.pool, sizeof(op->scene.pool), "%s", op->place);
    op->has_scene = true;
    return scene_read(db, op->caller.tenant, &op->scene, &op->shown, e);
}

/* --- on a worker: the code may be long --- */

static int add_json(const char *p, size_t n, void *arg)
{
    return gnutls_hash(arg, p, n);
}

/* The parts end with a NUL, which none of them has. */
void approval_digest(const struct approval_spec *spec, const char *pool, const uint8_t scene[32],
                     uint8_t ret[32])
{
    gnutls_hash_hd_t h;
    int rc = gnutls_hash_init(&h, GNUTLS_DIG_SHA256);

    assert(rc == 0);
    gnutls_hash(h, spec->tool.p, spec->tool.n);
    gnutls_hash(h, "", 1);
    if (!spec->implied && spec->session.n)
        gnutls_hash(h, spec->session.p, spec->session.n);
    gnutls_hash(h, "", 1);
    gnutls_hash(h, pool, strlen(pool) + 1);
    gnutls_hash(h, scene, 32);
    json_dump_callback(spec->args, add_json, h, JSON_COMPACT | JSON_SORT_KEYS);
    gnutls_hash_deinit(h, ret);
}

/* Characters that nobody sees, or that change how others are shown: where text is read from right
 * to left, or a line is written over, what is read is not what runs ("Trojan Source",
 * CVE-2021-42574).
 */
static const struct {
    uint32_t from, to;
} unseen[] = {
    {0,       0x8    },
    {0xb,     0x1f   },
    {0x7f,    0x9f   },
    {0xad,    0xad   },
    {0x61c,   0x61c  },
    {0x180e,  0x180e },
    {0x200b,  0x200f },
    {0x2028,  0x202e },
    {0x2060,  0x206f },
    {0xfeff,  0xfeff },
    {0xfff9,  0xfffb },
    {0xe0000, 0xe007f},
};

static bool is_unseen(struct str s, uint32_t *ret)
{
    static const uint32_t lead[] = {0x7f, 0x7f, 0x1f, 0xf, 0x7}; /* bits of the first byte */
    size_t n = utf8_char(s);
    uint32_t c = (unsigned char)s.p[0] & lead[n];

    for (size_t i = 1; i < n; i++)
        c = c << 6 | ((unsigned char)s.p[i] & 0x3f);
    *ret = c;
    for (size_t i = 0; i < COUNT(unseen); i++)
        if (c >= unseen[i].from && c <= unseen[i].to)
            return c != '\r' || s.n < 2 || s.p[1] != '\n';
    return false;
}

/* Puts s with the unseen written as their numbers. */
static void put_seen(struct buf *b, struct str s)
{
    while (s.n > 0 && !b->full) {
        size_t n = utf8_char(s);
        uint32_t c;
        if (n > 0 && is_unseen(s, &c))
            buf_printf(b, c > 0xffff ? "\\U%08x" : "\\u%04x", c);
        else
            buf_put(b, (struct str){s.p, n ? n : 1});
        s = str_from(s, n ? n : 1);
    }
}

/* All that decides what runs, or nothing: code may be harmless, and what comes with it not. */
static int make_text(struct approval_op *op, struct err *e)
{
    AUTO_FREE char *rest = json_dumps(op->rest, JSON_COMPACT | JSON_SORT_KEYS);
    AUTO(buf_done) struct buf out = BUF(APPROVAL_TEXT_MAX);

    put_seen(&out, op->spec.code);
    op->text_chars = (int64_t)utf8_count(buf_str(&out));
    if (json_object_size(op->rest) > 0) {
        buf_put(&out, STR("\n\nwith "));
        put_seen(&out, str_of(rest));
    }
    if (out.full)
        return err_set(e, ERR_LIMIT,
                       "a person must agree before code runs here, and more than %zu bytes are too "
                       "much to be read: the code and all that comes with it count",
                       APPROVAL_TEXT_MAX);
    op->text = mem_strndup(buf_str(&out));
    return 0;
}

static int read_call(struct task *t, struct err *e)
{
    struct approval_op *op = OWNER(t, struct approval_op, task);

    if (!op->free_to_run && !when_holds(op->when, &op->spec))
        op->free_to_run = true;
    if (op->free_to_run)
        return 0;
    approval_digest(&op->spec, op->place, op->scene.hash, op->digest);
    json_object_update(op->rest, op->shown);
    return make_text(op, e);
}

/* --- what is on record --- */

static void set(char **field, const char *text)
{
    free(*field);
    *field = mem_strdup(text);
}

static int put(struct approval_op *op, struct db *db, struct err *e)
{
    return db_approval_put(db, &op->row, e);
}

/* The asker has heard of the decision now. */
static int take(struct approval_op *op, struct db *db, struct err *e)
{
    struct approval_row *r = &op->row;

    if (r->taken_ms)
        return err_set(e, ERR_CONFLICT, "the approval %s has been used already", r->id);
    op->verdict = r->state == APPROVAL_APPROVED ? APPROVAL_CLEAR : APPROVAL_NO;
    r->taken_ms = time_now_ms();
    if (r->state == APPROVAL_APPROVED && !r->lasting) {
        r->state = APPROVAL_USED;
        op->counts[APPROVAL_USED]++;
    } else if (r->state == APPROVAL_APPROVED && op->spec.tool.n) {
        set(&r->session, op->session);
        set(&r->conversation, op->conversation);
    }
    return put(op, db, e);
}

static int write_new(struct approval_op *op, bool asks, struct db *db, struct err *e)
{
    struct approval_row *r = &op->row;
    uint64_t pending;

    if (db_approval_count(db, op->caller.tenant, time_now_ms(), &pending, e) < 0)
        return -1;
    if (pending >= APPROVALS_PENDING)
        return err_set(e, ERR_BUSY,
                       "%d approvals of this tenant are pending already: they must be decided "
                       "first, or run out of time",
                       APPROVALS_PENDING);
    id_make(r->id, "apr_");
    r->tenant = mem_strdup(op->caller.tenant);
    r->key = mem_strdup(op->caller.key);
    r->pool = mem_strdup(op->place);
    r->session = mem_strdup(op->session);
    r->conversation = mem_strdup(op->conversation);
    r->tool = mem_strdup(op->tool);
    r->door = mem_strdup(op->caller.door ? op->caller.door : "");
    r->request = mem_strdup(op->caller.request);
    memcpy(r->digest, op->digest, sizeof(r->digest));
    r->lasting = op->policy == POLICY_ASK_FIRST;
    r->created_ms = id_ms(str_of(r->id)); /* so a list can go on after one that is gone */
    r->expires_ms = r->created_ms + (asks ? op->timeout_ms : op->wait_ms);
    r->text = take_ptr(&op->text);
    r->text_chars = op->text_chars;
    op->verdict = asks ? APPROVAL_ASK : APPROVAL_WAIT;
    op->counts[APPROVAL_PENDING]++;
    return put(op, db, e);
}

static int expire(struct approval_op *op, struct db *db, struct err *e)
{
    int rc = db_approval_expire(db, time_now_ms(), e);

    if (rc > 0)
        op->counts[APPROVAL_EXPIRED] += (uint64_t)rc;
    return rc < 0 ? -1 : 0;
}

/* The client comes with an answer. It counts for the call that was asked about, and once. */
static int find_answered(struct approval_op *op, struct db *db, struct err *e)
{
    struct approval_row *r = &op->row;
    int rc = db_approval_get(db, op->caller.tenant, op->id, r, e);

    if (rc < 0)
        return -1;
    if (rc == 0 || strcmp(r->key, op->caller.key) != 0 ||
        memcmp(r->digest, op->digest, sizeof(r->digest)) != 0)
        return err_set(e, ERR_CONFLICT, "the answer is about another call than this one");
    if (r->taken_ms)
        return err_set(e, ERR_CONFLICT, "the approval %s has been used already", r->id);
    op->verdict = r->state == APPROVAL_EXPIRED     ? APPROVAL_NO
                  : op->by == APPROVAL_BY_APPROVER ? APPROVAL_WAIT
                                                   : APPROVAL_ASK;
    return 0;
}

static int look_up(struct task *t, struct db *db, struct err *e)
{
    struct approval_op *op = OWNER(t, struct approval_op, task);
    const struct caller *c = &op->caller;
    bool asks = op->spec.can_ask && op->by != APPROVAL_BY_APPROVER;
    int rc = 0;

    op->verdict = APPROVAL_CLEAR;
    if (op->free_to_run)
        return 0;
    if (expire(op, db, e) < 0)
        return -1;
    if (op->policy == POLICY_ASK_FIRST)
        rc = db_approval_lasting(db, c->tenant, c->key, op->tool, op->place, op->session,
                                 op->conversation, &op->row, e);
    if (rc != 0)
        return rc < 0 ? -1 : 0;
    if (*op->id)
        return find_answered(op, db, e);
    rc = db_approval_open(db, c->tenant, c->key, op->digest, time_now_ms(), &op->row, e);
    if (rc < 0)
        return -1;
    if (rc > 0 && op->row.state != APPROVAL_PENDING)
        return take(op, db, e);
    op->verdict = APPROVAL_WAIT;
    if (rc > 0 && !asks)
        return 0;
    approval_row_done(&op->row); /* a call that asks has an approval of its own */
    if (!asks && op->by == APPROVAL_BY_CLIENT) {
        op->verdict = APPROVAL_NO;
        return 0;
    }
    return write_new(op, asks, db, e);
}

/* --- asking --- */

static struct approval_op *op_new(const struct caller *c, struct str id, approval_fn *fn, void *arg)
{
    struct approval_op *op = mem_zalloc(sizeof(*op));

    *op = (struct approval_op){.caller = *c, .fn = fn, .arg = arg};
    if (!str_to_cstr(id, op->id, sizeof(op->id)))
        snprintf(op->id, sizeof(op->id), "?"); /* which is nobody's */
    return op;
}

/* One that is too long is nobody's either. */
static struct str keep(char *ret, size_t size, struct str s)
{
    if (!str_to_cstr(s, ret, size))
        snprintf(ret, size, "?");
    return str_of(ret);
}

/* The arguments without the code itself, which they hold. */
static json_t *without_code(json_t *args, struct str code)
{
    json_t *rest = json_copy(args), *v;
    const char *name;
    void *tmp;

    json_object_foreach_safe(rest, tmp, name, v)
        if (json_string_value(v) == code.p && code.p)
            json_object_del(rest, name);
    return rest;
}

void approval_request(struct service *sv, const struct caller *c, const struct approval_spec *spec,
                      approval_fn *fn, void *arg)
{
    static const struct step steps[] = {{.store = find_session}, {.loop = find_pool},
                                        {.store = read_scene},   {.work = read_call},
                                        {.store = look_up},      {0}};
    struct approval_op *op = op_new(c, spec->answers, fn, arg);
    struct loaded *l = spec->session.n ? loaded_get(sv, c, spec->session) : NULL;

    op->spec = *spec;
    op->spec.tool = keep(op->tool, sizeof(op->tool), spec->tool);
    op->spec.session = keep(op->session, sizeof(op->session), spec->session);
    op->spec.name = keep(op->name, sizeof(op->name), spec->name);
    op->spec.pool = keep(op->pool, sizeof(op->pool), spec->pool);
    op->spec.conversation = keep(op->conversation, sizeof(op->conversation), spec->conversation);
    op->args = json_incref(spec->args);
    op->rest = without_code(spec->args, spec->code);
    if (l)
        snprintf(op->place, sizeof(op->place), "%s", l->row.pool);
    task_start(&op->task, sv, NULL, steps, on_done);
}

/* --- the answer of the client's user --- */

static void decide(struct approval_op *op)
{
    struct approval_row *r = &op->row;

    r->state = op->answer == ANSWER_NO ? APPROVAL_DECLINED : APPROVAL_APPROVED;
    r->lasting = r->lasting && op->answer == ANSWER_LASTING;
    set(&r->decided_by, op->caller.key);
    set(&r->decided_how, "client");
    r->decided_ms = time_now_ms();
    op->counts[r->state]++;
}

/* Where an approver decides, the yes of whoever asks does not count. */
static bool counts(struct task *t, const struct approval_op *op)
{
    const struct pool_entry *env = pool_entry_find(t->sv, str_of(op->row.pool));

    return op->answer == ANSWER_NO ||
           (op->answer != ANSWER_NONE && env && env->config.approval_by != APPROVAL_BY_APPROVER);
}

/* A yes is for what was shown. */
static int check_scene(struct approval_op *op, struct db *db, struct err *e)
{
    struct approval_scene now = op->scene;

    if (op->row.state != APPROVAL_APPROVED || !op->has_scene)
        return 0;
    if (scene_read(db, op->caller.tenant, &now, NULL, e) < 0)
        return -1;
    if (memcmp(now.hash, op->scene.hash, sizeof(now.hash)) != 0)
        return err_set(e, ERR_CONFLICT, SCENE_CHANGED);
    return 0;
}

/* What an approver has said meanwhile stands; but a no is a no, whoever says it. */
static int settle(struct task *t, struct db *db, struct err *e)
{
    struct approval_op *op = OWNER(t, struct approval_op, task);
    struct approval_row *r = &op->row;
    int rc = expire(op, db, e);

    if (rc == 0)
        rc = db_approval_get(db, op->caller.tenant, op->id, r, e);
    if (rc < 0)
        return -1;
    if (rc == 0 || strcmp(r->key, op->caller.key) != 0)
        return err_set(e, ERR_MISSING, "there is no such approval");
    snprintf(op->place, sizeof(op->place), "%s", r->pool);
    if ((r->state == APPROVAL_PENDING && counts(t, op)) ||
        (r->state == APPROVAL_APPROVED && !r->taken_ms && op->answer == ANSWER_NO))
        decide(op);
    op->verdict = r->state == APPROVAL_PENDING ? APPROVAL_WAIT : APPROVAL_NO;
    if (r->state == APPROVAL_PENDING || r->state == APPROVAL_EXPIRED)
        return 0;
    return check_scene(op, db, e) < 0 ? -1 : take(op, db, e);
}

void approval_settle(struct service *sv, const struct caller *c, struct str id,
                     enum approval_answer answer, const struct approval_scene *scene,
                     approval_fn *fn, void *arg)
{
    static const struct step steps[] = {{.store = settle}, {0}};
    struct approval_op *op = op_new(c, id, fn, arg);

    op->answer = answer;
    op->scene = *scene;
    op->has_scene = true;
    task_start(&op->task, sv, NULL, steps, on_done);
}

/* --- what came of it --- */

struct approval_use {
    struct task task;
    char tenant[sizeof(((struct caller *)0)->tenant)];
    char approval[ID_MAX], execution[ID_MAX], session[ID_MAX];
};

static int write_use(struct task *t, struct db *db, struct err *e)
{
    struct approval_use *u = OWNER(t, struct approval_use, task);
    struct approval_row r = {0};
    int rc = db_approval_get(db, u->tenant, u->approval, &r, e);

    if (rc > 0) {
        set(&r.execution, u->execution);
        if (!*r.session)
            set(&r.session, u->session);
        rc = db_approval_put(db, &r, e);
    }
    approval_row_done(&r);
    return rc;
}

static void on_used(struct task *t, const struct err *failed)
{
    struct approval_use *u = OWNER(t, struct approval_use, task);

    if (failed)
        log_warn("approval %s: its use is not on record: %s", u->approval, failed->text);
    free(u);
}

void approval_note_use(struct execution *j)
{
    static const struct step steps[] = {{.store = write_use}, {0}};
    struct approval_use *u;

    if (!j->row.approval)
        return;
    u = mem_zalloc(sizeof(*u));
    snprintf(u->tenant, sizeof(u->tenant), "%s", j->row.tenant);
    snprintf(u->approval, sizeof(u->approval), "%s", j->row.approval);
    memcpy(u->execution, j->row.id, ID_MAX);
    snprintf(u->session, sizeof(u->session), "%s", j->row.session);
    task_start(&u->task, j->sv, NULL, steps, on_used);
}
