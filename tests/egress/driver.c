/*
 * Serves the proxy on a loopback port, for test_egress.py.
 *
 * usage: egress-driver HOSTS [private]
 *
 * Prints "port N", then each line of the log, and ends when its stdin does. Names
 * that end in .test are looked up in ../fetch/names.c.
 */
#include "egress/egress.h"
#include "loop/loop.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static void on_line(void *arg, const char *line)
{
    (void)arg;
    printf("%s\n", line);
    fflush(stdout);
}

static void on_stdin(void *arg)
{
    char byte;

    if (read(STDIN_FILENO, &byte, 1) == 0)
        loop_stop(arg);
}

static int open_listener(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&a, size) < 0 || listen(fd, 128) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &size) < 0)
        return -1;
    printf("port %u\n", ntohs(a.sin_port));
    fflush(stdout);
    return fd;
}

int main(int argc, char **argv)
{
    struct loop *l = loop_new(&(struct err){0});
    struct egress_policy *p;
    struct egress *g;
    struct watch *w;
    struct err e;

    p = egress_policy_new(argc > 1 ? argv[1] : "", argc > 2, &e);
    if (!p) {
        printf("refused %s\n", e.text);
        loop_free(l);
        return 1;
    }
    g = egress_open(l, p, open_listener(), on_line, NULL);
    w = watch_new(l, STDIN_FILENO, on_stdin, l);
    loop_run(l);
    watch_free(w);
    egress_close(g);
    loop_free(l);
    egress_policy_free(p);
    return 0;
}
