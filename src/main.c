/* retort: arguments in, exit status out. cli/cli.c has the commands. */
#include "cli/cli.h"

#include <fcntl.h>
#include <unistd.h>

/* A caller may start us with stdin, stdout or stderr closed. The next socket would then be
 * number 1, and the first line of output would go into it. */
static void fill_std_fds(void)
{
    int fd;

    while ((fd = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && fd <= STDERR_FILENO)
        (void)fcntl(fd, F_SETFD, 0); /* these three are there for our children too */
    fd_closep(&fd);
}

int main(int argc, char **argv)
{
    fill_std_fds();
    return cli_main(argc, argv);
}
