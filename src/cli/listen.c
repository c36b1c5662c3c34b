/* Addresses and listening sockets. */
#include "cli/listen.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG       1024
#define ACTIVATION_FD 3
#define LISTENERS_MAX 32
#define LOCK_SUFFIX   ".lock"

/* --- addresses --- */

static int parse_unix(const char *path, struct address *ret, struct err *e)
{
    struct sockaddr_un *un = &ret->at.un;

    if (path[0] != '/')
        return err_set(e, ERR_CALLER, "a Unix socket needs a whole path: unix:/run/retort.sock");
    /* Its lock has a longer name. */
    if (strlen(path) + sizeof(LOCK_SUFFIX) > sizeof(un->sun_path))
        return err_set(e, ERR_CALLER, "the path of a Unix socket has at most %zu bytes",
                       sizeof(un->sun_path) - sizeof(LOCK_SUFFIX));
    un->sun_family = AF_UNIX;
    snprintf(un->sun_path, sizeof(un->sun_path), "%s", path);
    ret->size = sizeof(*un);
    return 0;
}

static bool is_port(const char *text)
{
    size_t n = strspn(text, "0123456789");

    return n > 0 && n <= 5 && text[n] == '\0' && strtoul(text, NULL, 10) <= 65535;
}

/* Takes "[host]:port" and "host:port" apart; a port alone is one of this machine's own. */
static bool split(const char *text, char *host, size_t size, const char **ret_port)
{
    const char *colon = strrchr(text, ':');
    bool brackets = text[0] == '[' && colon && colon > text && colon[-1] == ']';
    struct str name;

    if (!colon) {
        *ret_port = text;
        return str_to_cstr(STR("127.0.0.1"), host, size);
    }
    *ret_port = colon + 1;
    name = (struct str){text + brackets, (size_t)(colon - text) - (brackets ? 2 : 0)};
    if (!brackets && memchr(name.p, ':', name.n))
        return false; /* half of an IPv6 address would pass for a port */
    return name.n > 0 &&
           str_to_cstr(str_is(name, "localhost") ? STR("127.0.0.1") : name, host, size);
}

int address_parse(const char *text, struct address *ret, struct err *e)
{
    static const struct addrinfo hints = {
        .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
        .ai_socktype = SOCK_STREAM,
    };
    struct addrinfo *found = NULL;
    char host[64], shown[NAME_SHOWN];
    const char *port;

    *ret = (struct address){0};
    if (strncmp(text, "unix:", 5) == 0)
        return parse_unix(text + 5, ret, e);
    if (!split(text, host, sizeof(host), &port) || !is_port(port) ||
        getaddrinfo(host, port, &hints, &found) != 0)
        return err_set(e, ERR_CALLER,
                       "'%s' is no address; write 8000, 127.0.0.1:8000, [::1]:8000 or "
                       "unix:/run/retort.sock",
                       name_show(shown, str_of(text)));
    memcpy(&ret->at, found->ai_addr, found->ai_addrlen);
    ret->size = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

bool address_is_local(const struct address *a)
{
    const struct sockaddr_in *v4 = (const void *)&a->at;
    const struct sockaddr_in6 *v6 = (const void *)&a->at;

    if (a->at.any.sa_family == AF_INET)
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    if (a->at.any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) ||
               (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == 127);
    return a->at.any.sa_family == AF_UNIX;
}

void listener_show(const struct listener *l, bool tls, char ret[ADDRESS_SHOWN])
{
    const struct address *a = &l->address;
    char host[INET6_ADDRSTRLEN + 20] = "?", port[8] = "0";
    bool v6 = a->at.any.sa_family == AF_INET6;

    if (a->at.any.sa_family == AF_UNIX) {
        snprintf(ret, ADDRESS_SHOWN, "unix:%s", a->at.un.sun_path);
        return;
    }
    getnameinfo(&a->at.any, a->size, host, sizeof(host), port, sizeof(port),
                NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(ret, ADDRESS_SHOWN, "%s://%s%s%s:%s", tls ? "https" : "http", v6 ? "[" : "", host,
             v6 ? "]" : "", port);
}

/* --- sockets --- */

/* A socket that nobody listens on any more is in the way of the next one, and one that somebody
 * does listen on looks the same. The lock beside it tells: it goes with its holder. */
static int clear_the_way(const struct address *a, int *ret_lock, struct err *e)
{
    const char *path = a->at.un.sun_path;
    char name[sizeof(a->at.un.sun_path) + sizeof(LOCK_SUFFIX)];
    AUTO_CLOSE int lock = -1;
    struct stat st;

    snprintf(name, sizeof(name), "%s" LOCK_SUFFIX, path);
    lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0)
        return err_sys(e, "cannot make %s", name);
    if (flock(lock, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, ERR_CALLER, "another server listens on %s", path);
    if (lstat(path, &st) == 0) {
        if (!S_ISSOCK(st.st_mode))
            return err_set(e, ERR_CALLER, "%s is there already, and is no socket", path);
        if (unlink(path) < 0)
            return err_sys(e, "cannot remove the old socket %s", path);
    }
    *ret_lock = take_fd(&lock);
    return 0;
}

static int bind_unix(struct listener *l, mode_t mode, struct err *e)
{
    const char *path = l->address.at.un.sun_path;
    mode_t was;
    int rc;

    if (clear_the_way(&l->address, &l->lock, e) < 0)
        return -1;
    was = umask(~mode & 0777); /* never open to more, not even for a moment */
    rc = bind(l->fd, &l->address.at.any, l->address.size);
    umask(was);
    if (rc < 0)
        return err_sys(e, "cannot listen on unix:%s", path);
    if (chmod(path, mode) < 0)
        return err_sys(e, "set the mode of %s", path);
    return 0;
}

/* What the user can do about an address that cannot be had. NULL: nothing. */
static const char *remedy(int why)
{
    static const struct {
        int why;
        const char *remedy;
    } remedies[] = {
        {EADDRINUSE,    "another program serves there: stop it, or give another port with --listen"},
        {EACCES,        "ports below 1024 are root's: give a higher one with --listen"             },
        {EADDRNOTAVAIL, "this machine has no such address: give one of its own with --listen"      },
    };

    for (size_t i = 0; i < COUNT(remedies); i++)
        if (remedies[i].why == why)
            return remedies[i].remedy;
    return NULL;
}

static int bind_inet(struct listener *l, struct err *e)
{
    char shown[ADDRESS_SHOWN];
    int on = 1;

    (void)setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (l->address.at.any.sa_family == AF_INET6) /* [::] and 0.0.0.0 may stand side by side */
        (void)setsockopt(l->fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    if (bind(l->fd, &l->address.at.any, l->address.size) < 0) {
        int why = errno;
        listener_show(l, false, shown);
        if (remedy(why))
            return err_set(e, ERR_CALLER, "cannot listen on %s: %s; %s", shown + strlen("http://"),
                           strerror(why), remedy(why));
        errno = why;
        return err_sys(e, "cannot listen on %s", shown + strlen("http://"));
    }
    l->address.size = sizeof(l->address.at);
    if (getsockname(l->fd, &l->address.at.any, &l->address.size) < 0)
        return err_sys(e, "ask for the address");
    return 0;
}

static int open_one(struct listener *l, const struct settings *s, const char *text, struct err *e)
{
    if (address_parse(text, &l->address, e) < 0)
        return -1;
    l->local = address_is_local(&l->address);
    l->fd = socket(l->address.at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0)
        return err_sys(e, "make a socket for %s", text);
    if (l->address.at.any.sa_family == AF_UNIX ? bind_unix(l, (mode_t)s->serve.socket_mode, e) < 0
                                               : bind_inet(l, e) < 0)
        return -1;
    return 0;
}

int listener_begin(struct listener *l, struct err *e)
{
    char shown[ADDRESS_SHOWN];

    if (listen(l->fd, BACKLOG) == 0)
        return 0;
    listener_show(l, false, shown);
    err_sys(e, "cannot listen on %s", shown);
    e->kind = ERR_CALLER;
    return -1;
}

static int take_over(struct listener *l, int fd, struct err *e)
{
    int listening = 0, type = 0;
    socklen_t n = sizeof(int);

    l->fd = fd;
    l->inherited = true;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &n) < 0 || !listening ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) < 0 || type != SOCK_STREAM)
        return err_set(e, ERR_CALLER,
                       "fd %d of the service manager is not a listening stream socket", fd);
    l->address.size = sizeof(l->address.at);
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fd_set_nonblock(fd) < 0 ||
        getsockname(fd, &l->address.at.any, &l->address.size) < 0)
        return err_sys(e, "take over fd %d of the service manager", fd);
    l->local = address_is_local(&l->address);
    return 0;
}

static struct listener *add(struct listeners *ls)
{
    ls->item = mem_realloc(ls->item, (ls->count + 1) * sizeof(*ls->item));
    ls->item[ls->count] = (struct listener){.fd = -1, .lock = -1};
    return &ls->item[ls->count++];
}

int listeners_open(struct listeners *ret, const struct settings *s, struct err *e)
{
    const struct list *wanted = &s->serve.listen;
    int handed = activation_count();

    *ret = (struct listeners){0};
    if (handed > LISTENERS_MAX || wanted->count > LISTENERS_MAX)
        return err_set(e, ERR_CALLER, "there are more than %d addresses to listen on",
                       LISTENERS_MAX);
    for (int i = 0; i < handed; i++)
        if (take_over(add(ret), ACTIVATION_FD + i, e) < 0)
            return -1;
    if (handed > 0)
        return 0;
    for (size_t i = 0; i < wanted->count; i++)
        if (open_one(add(ret), s, wanted->item[i], e) < 0)
            return -1;
    return 0;
}

void listeners_done(struct listeners *ls)
{
    for (size_t i = 0; i < ls->count; i++) {
        struct listener *l = &ls->item[i];
        fd_closep(&l->fd);
        if (l->lock >= 0)
            (void)!unlink(l->address.at.un.sun_path); /* if not, the next server does */
        fd_closep(&l->lock);
    }
    free(ls->item);
    *ls = (struct listeners){0};
}
