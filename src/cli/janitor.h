/* A private temporary directory, which is removed when the program ends, even when it is killed. */
#pragma once

#include "cli/state.h"

struct janitor {
    pid_t pid;
    int fd; /* owned; -1: there is none */
    char path[STATE_PATH_MAX];
};

/* Forks: with one thread. The directory is u's, and `command` is in its name. */
int janitor_start(struct janitor *j, const char *command, const struct server_user *u,
                  struct err *e) MUST_CHECK;
/* Returns when the directory is gone. */
void janitor_end(struct janitor *j);
