/* A named session of a running server: remote.c opens it and runs code in it; repl.c asks for code.
 */
#pragma once

#include "cli/cli_int.h"

struct remote;
/* Opens the session s->session of the server, makes it where there is none, and puts files into it.
 */
struct remote *remote_open(const struct settings *s, const struct inputs *inputs, struct err *e);
void remote_close(struct remote *r);
/* Runs it and prints what it says. *ret_status: an exit status of ours. */
int remote_run(struct remote *r, const struct source *src, int *ret_status,
               struct err *e) MUST_CHECK;
int remote_main(const struct settings *s); /* retort run --session */
