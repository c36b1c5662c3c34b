/*
 * Network, host name and cgroup view: what the new namespaces need before they are
 * closed.
 *
 * The network namespace is made by the zygote before it is asked for a box, since
 * it takes half a millisecond, and each box is born into one that no other box ever
 * sees. It belongs to the zygote's user namespace: whatever a process gains inside
 * the box, it has no rights over the network there.
 */
#include "sandbox/box_int.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Its own loopback is all the network there is: local servers work, nothing else is there. */
static int raise_loopback(struct err *e)
{
    AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0)
        return err_sys(e, "raise the loopback interface");
    return 0;
}

/* What is under way in a connection is the kernel's memory. A host allows megabytes for each, for
 * long ways; the way here is as long as a copy. init.c counts sockets by this size. */
static const char *const tcp_settings[] = {"/proc/sys/net/ipv4/tcp_rmem",
                                           "/proc/sys/net/ipv4/tcp_wmem"};

static int bound_buffers(struct err *e)
{
    for (size_t i = 0; i < COUNT(tcp_settings); i++)
        if (fd_write_file_at(AT_FDCWD, tcp_settings[i], STR("4096 65536 262144")) < 0 &&
            errno != ENOENT)
            return err_sys(e, "set %s", tcp_settings[i]);
    return 0;
}

int net_prepare(struct err *e)
{
    if (unshare(CLONE_NEWNET) < 0)
        return err_sys(e, "new network namespace");
    return raise_loopback(e) < 0 ? -1 : bound_buffers(e);
}

/* The one way out, where there is one: what connects here is answered by the server, which accepts
 * from its own side. The socket was made in this namespace and stays of it; the server's own are of
 * the server's. Nothing in the box can take the port, since it is taken. */
static int open_proxy(struct err *e)
{
    AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(BOX_PROXY_PORT)};

    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof(here)) < 0 || listen(fd, 64) < 0)
        return err_sys(e, "listen for the proxy");
    if (fd != BOX_PROXY_FD && dup3(fd, BOX_PROXY_FD, O_CLOEXEC) < 0)
        return err_sys(e, "keep the proxy's listener");
    if (fd == BOX_PROXY_FD)
        take_fd(&fd);
    return 0;
}

int net_enter(struct box *b, struct err *e)
{
    if (b->plan->proxy && open_proxy(e) < 0)
        return -1;
    if (sethostname("retort", 6) < 0 || setdomainname("", 0) < 0)
        return err_sys(e, "set the host name");
    /* Here and not in clone3(): the cgroup the box was put into becomes the root of its view. */
    if (unshare(CLONE_NEWCGROUP) < 0)
        return err_sys(e, "hide the cgroup tree");
    return 0;
}

/* connect() on a datagram socket looks up a route and sends nothing. */
int net_verify(struct box *b, struct err *e)
{
    AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in outside = {.sin_family = AF_INET, .sin_port = htons(9)};

    (void)b;
    outside.sin_addr.s_addr = htonl(0xcb007101); /* 203.0.113.1, reserved for examples */
    if (fd < 0)
        return err_sys(e, "socket");
    if (probe_refused(connect(fd, (struct sockaddr *)&outside, sizeof(outside)), ENETUNREACH,
                      "a route to the outside", e) < 0)
        return -1;
    if (getpid() != 1)
        return err_set(e, ERR_HOST, "not the first process of its pid namespace");
    return 0;
}
