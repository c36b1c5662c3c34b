/*
 * Whose process is at the other end of a Unix socket.
 *
 * Theory of operation: the kernel reports the user of a peer as the user namespace of the asking
 * process sees it. The server lives in a namespace with few users, and everybody else looks
 * alike there. So a child process stays outside of it, with no right at all and the server's own
 * user: it gets a connection, asks the kernel, and answers with a number. It reads no byte of a
 * client, and ends when the server does.
 */
#include "cli/serve_int.h"
#include "sandbox/server.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define PEERS_FD 3
#define ANSWER_S 1 /* it has nothing else to do */

/* Room for one descriptor. */
union fd_note {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
};

/* --- the child --- */

/* A connection, or -1 at the end. */
static int take_connection(void)
{
    union fd_note note = {0};
    char word;
    struct iovec iov = {&word, 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = note.room,
                         .msg_controllen = sizeof(note.room)};
    const struct cmsghdr *c;
    int fd = -1;

    if (recvmsg(PEERS_FD, &msg, MSG_CMSG_CLOEXEC) <= 0)
        return -1;
    c = CMSG_FIRSTHDR(&msg);
    if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(c), sizeof(fd));
    return fd;
}

static _Noreturn void live(const struct server_user *u)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    struct err e;
    int fd;

    for (size_t i = 0; i < COUNT(ignored); i++)
        signal(ignored[i], SIG_IGN);
    setsid();
    prctl(PR_SET_NAME, "retort-peers");
    if ((u->changes && server_user_become(u, &e) < 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        _exit(1);
    (void)!chdir("/");
    while ((fd = take_connection()) >= 0) {
        struct ucred peer = {.uid = (uid_t)-1};
        socklen_t n = sizeof(peer);
        uid_t uid = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 ? peer.uid : (uid_t)-1;
        close(fd);
        if (send(PEERS_FD, &uid, sizeof(uid), 0) < 0)
            break;
    }
    _exit(0);
}

/* --- our side --- */

int peers_start(const struct server_user *u, int *ret_fd, struct err *e)
{
    const struct timeval patience = {.tv_sec = ANSWER_S};
    int pair[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(e, "make a socket pair");
    pid = _Fork(); /* without the event loop's fork handlers */
    if (pid == 0) {
        if (dup2(pair[1], PEERS_FD) < 0)
            _exit(errno);
        syscall(SYS_close_range, PEERS_FD + 1, ~0u, 0);
        live(u);
    }
    close(pair[1]);
    *ret_fd = pair[0];
    if (pid < 0)
        return err_sys(e, "fork");
    if (setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0)
        return err_sys(e, "set a timeout");
    return 0;
}

/* A late answer would be taken for that of the next question: then nobody is asked any more. */
bool peers_ask(void *fd_of_peers, int connection, uid_t *ret)
{
    int *peers = fd_of_peers;
    union fd_note note = {0};
    char word = 0;
    struct iovec iov = {&word, 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = note.room,
                         .msg_controllen = sizeof(note.room)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

    if (*peers < 0)
        return false;
    *c = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(c), &connection, sizeof(connection));
    if (sendmsg(*peers, &msg, MSG_NOSIGNAL) == 1 &&
        recv(*peers, ret, sizeof(*ret), 0) == sizeof(*ret))
        return *ret != (uid_t)-1;
    log_error("the process that tells users of Unix sockets does not answer; sources of the kind "
              "unix: are not known until the server is started again");
    fd_closep(peers);
    return false;
}
