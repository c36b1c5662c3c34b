/* The engine: the socket to the warden, and which guest each of its messages is about. */
#include "engine/engine_int.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define WARDEN_END_MS 5000

/* The server must not wait for the warden, which may be waiting for the server to read: a few
 * hundred messages fill a socket, and a thousand sessions close at once. What it does not take
 * waits here. */
struct letter {
    struct letter *next; /* owned */
    uint16_t type;
    uint64_t id;
    int fd; /* owned; -1: none */
    size_t n;
    char body[];
};

static void drop_first(struct engine *en)
{
    struct letter *l = en->letters;

    en->letters = l->next;
    fd_closep(&l->fd);
    free(l);
}

static void drop_letters(struct engine *en)
{
    while (en->letters)
        drop_first(en);
    watch_free(en->to_warden);
    en->to_warden = NULL;
}

static void on_warden_writable(void *arg)
{
    struct engine *en = arg;

    while (en->letters) {
        struct letter *l = en->letters;
        if (wire_send(en->warden_out, l->type, l->id, (struct str){l->body, l->n}, &l->fd,
                      l->fd >= 0) < 0 &&
            errno == EAGAIN)
            return;
        drop_first(en); /* sent, or there is no warden any more: on_warden() tells */
    }
    drop_letters(en);
}

static int keep_letter(struct engine *en, uint16_t type, uint64_t id, struct str body, int fd)
{
    struct letter *l = mem_zalloc(sizeof(*l) + body.n);
    struct letter **end = &en->letters;

    *l = (struct letter){.type = type, .id = id, .fd = -1, .n = body.n};
    if (body.n > 0)
        memcpy(l->body, body.p, body.n);
    if (fd >= 0 && (l->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0) {
        free(l);
        return -1;
    }
    while (*end)
        end = &(*end)->next;
    *end = l;
    if (!en->to_warden)
        en->to_warden = watch_new_writable(en->loop, en->warden_out, on_warden_writable, en);
    return 0;
}

int engine_tell(struct engine *en, uint16_t type, uint64_t id, struct str body, int fd)
{
    assert(body.n <= WIRE_BODY_MAX); /* one packet, sent whole or not at all */
    if (en->warden < 0)
        return -1;
    if (!en->letters && wire_send(en->warden_out, type, id, body, &fd, fd >= 0) == 0)
        return 0;
    return en->letters || errno == EAGAIN ? keep_letter(en, type, id, body, fd) : -1;
}

void engine_add_guest(struct engine *en, struct guest *g)
{
    *guest_next(g) = en->guests;
    en->guests = g;
}

void engine_drop_guest(struct engine *en, struct guest *g)
{
    struct guest **at = &en->guests;

    while (*at && *at != g)
        at = guest_next(*at);
    if (*at)
        *at = *guest_next(g);
}

bool engine_hold(struct engine *en, size_t n)
{
    if (n > en->held_max || en->held > en->held_max - n)
        return false;
    en->held += n;
    return true;
}

void engine_let_go(struct engine *en, size_t n)
{
    assert(en->held >= n);
    en->held -= n;
}

void engine_on_lost(struct engine *en, void (*fn)(void *arg), void *arg)
{
    en->on_lost = fn;
    en->lost_arg = arg;
}

const char *engine_shared_user(const struct engine *en)
{
    return en->shared_user.kind ? en->shared_user.text : NULL;
}

static struct guest *find_guest(struct engine *en, uint64_t id)
{
    struct guest *g = en->guests;

    while (g && guest_id(g) != id)
        g = *guest_next(g);
    return g;
}

static void to_pool(struct engine *en, uint64_t zygote, struct str modules, const struct err *down)
{
    for (struct pool *p = en->pools; p; p = *pool_next(p))
        if (pool_has_zygote(p, zygote))
            return pool_on_zygote(p, zygote, modules, down);
}

static void on_pong(struct engine *en, uint64_t zygote)
{
    for (struct pool *p = en->pools; p; p = *pool_next(p))
        if (pool_zygote(p) == zygote)
            return pool_on_pong(p);
}

static void close_warden(struct engine *en)
{
    drop_letters(en);
    watch_free(en->from_warden);
    en->from_warden = NULL;
    fd_closep(&en->warden);
    fd_closep(&en->warden_out);
}

/* Without the warden nothing can be made or measured, and its keepers have died with it. */
static void on_warden_lost(struct engine *en)
{
    struct err e;

    close_warden(en);
    log_error("the warden is gone, and every sandbox with it");
    err_set(&e, ERR_HOST, "the warden is gone");
    for (struct guest *g = en->guests; g; g = *guest_next(g))
        guest_on_warden(g, MSG_GONE, (struct str){0}, NULL);
    for (struct pool *p = en->pools; p; p = *pool_next(p))
        pool_on_zygote(p, pool_zygote(p), (struct str){0}, &e);
    if (en->on_lost)
        loop_later(en->loop, en->on_lost, en->lost_arg);
}

static void take_message(struct engine *en, const struct wire_head *head, struct str body,
                         int fds[METERS])
{
    struct str text = STR("no reason given"), modules = {0};
    uint64_t refused = 0;
    struct guest *g;
    struct err e;

    if (head->type == MSG_POOL_UP) {
        wire_find(body, TAG_NAME, &modules);
        return to_pool(en, head->id, modules, NULL);
    }
    if (head->type == MSG_PONG)
        return on_pong(en, head->id);
    if (head->type == MSG_POOL_DOWN) {
        wire_find(body, TAG_TEXT, &text);
        wire_find_num(body, TAG_STATUS, &refused);
        err_set(&e, refused ? ERR_CALLER : ERR_HOST, "%.*s", (int)(text.n < 500 ? text.n : 500),
                text.p);
        return to_pool(en, head->id, modules, &e);
    }
    g = find_guest(en, head->id);
    if (g)
        guest_on_warden(g, head->type, body, fds);
}

static void on_warden(void *arg)
{
    static char bytes[WIRE_BODY_MAX];
    struct engine *en = arg;
    struct wire_head head;
    int fds[METERS] = {-1, -1};
    size_t count;
    int rc = wire_recv(en->warden, &head, bytes, fds, METERS, &count);

    if (rc < 0 && errno == EAGAIN)
        return;
    if (rc <= 0)
        return on_warden_lost(en);
    take_message(en, &head, (struct str){bytes, head.len}, fds);
    for (int i = 0; i < METERS; i++)
        fd_closep(&fds[i]);
}

/* Seven descriptors a session: what the system gives by default is soon used up. */
static void raise_open_files(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        (void)!setrlimit(RLIMIT_NOFILE, &r);
    }
}

struct engine *engine_new(struct loop *l, const struct engine_config *config, struct err *e)
{
    struct engine *en = mem_zalloc(sizeof(*en));

    en->loop = l;
    en->next_id = 1;
    en->held_max = config->held_max ? config->held_max : HELD_DEFAULT;
    en->warden_pidfd = -1;
    en->uid_lock = -1;
    raise_open_files();
    environments_learn(en, config);
    en->warden_out = -1;
    en->warden = environments_hand_over(en, config, e);
    if (en->warden >= 0) {
        en->warden_out = fcntl(en->warden, F_DUPFD_CLOEXEC, 0);
        if (en->warden_out < 0 || fd_set_nonblock(en->warden) < 0)
            err_sys(e, "set up the warden's socket");
    }
    if (en->warden_out < 0) {
        fd_closep(&en->warden);
        fd_closep(&en->warden_pidfd);
        fd_closep(&en->uid_lock);
        environments_forget(en);
        free(en);
        return NULL;
    }
    en->from_warden = watch_new(l, en->warden, on_warden, en);
    return en;
}

static void free_later(void *arg)
{
    free(arg);
}

void engine_free(struct engine *en)
{
    struct pollfd gone;

    if (!en)
        return;
    while (en->pools) {
        struct pool *p = en->pools;
        en->pools = *pool_next(p);
        pool_free(p);
    }
    environments_forget(en);
    close_warden(en);
    gone = (struct pollfd){en->warden_pidfd, POLLIN, 0};
    if (en->warden_pidfd >= 0 && poll(&gone, 1, WARDEN_END_MS) != 1)
        log_warn("the warden takes long to end");
    fd_closep(&en->warden_pidfd);
    fd_closep(&en->uid_lock);
    /* Sessions closed from inside a callback may still be on their way out. */
    loop_later(en->loop, free_later, en);
}
