/*
 * The protocol of the service manager: sockets that it hands over, and states that we report to
 * it. See sd_listen_fds(3) and sd_notify(3); without the library they are a few lines.
 */
#include "cli/listen.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int activation_count(void)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    long n = pid && count && strtol(pid, NULL, 10) == (long)getpid() ? strtol(count, NULL, 10) : 0;

    /* What we start must not think that they are for it. */
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return n > 0 && n < INT_MAX ? (int)n : 0;
}

int notify_open(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    AUTO_CLOSE int fd = -1;
    size_t n = path ? strlen(path) : 0;

    if (n < 2 || n >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
        return -1;
    memcpy(to.sun_path, path, n);
    if (path[0] == '@') /* of the abstract kind */
        to.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
        return -1;
    unsetenv("NOTIFY_SOCKET");
    return take_fd(&fd);
}

void notify_say(int fd, const char *text)
{
    if (fd >= 0 && send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        log_debug("the service manager was not told: %s", strerror(errno));
}
