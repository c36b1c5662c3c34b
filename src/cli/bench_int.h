/* Private to `retort bench`: its client (bench_http.c), its server (bench_server.c), the floor of
 * the machine (bench_floor.c), and what is printed (bench_print.c). bench.c goes through them. */
#pragma once

#include "cli/cli_int.h"
#include "cli/janitor.h"

#include <signal.h>
#include <sys/socket.h>

/* Set by Ctrl-C: whoever waits stops, and everything is cleaned up. */
extern volatile sig_atomic_t bench_stopped;

/* --- samples --- */

struct samples {
    double *v; /* owned */
    size_t n, cap;
};

void samples_add(struct samples *s, double v);
/* The nearest rank: a value that was measured. Sorts. share 0 is the least. */
double samples_rank(struct samples *s, double share);
double bench_now_us(void);

/* --- what is measured, and what it is held against --- */

enum series {
    SERIES_PIPE,
    SERIES_FORK,
    SERIES_HEALTH,
    SERIES_CELL,
    SERIES_CREATE,
    SERIES_COLD,
    SERIES_FIRST,
    SERIES_WARM,
    SERIES_PLOT,
    SERIES_PLOT_AGAIN,
    SERIES_ONE_SHOT,
    SERIES_HALVES,
    SERIES_RATE,
    SERIES_MEMORY,
    SERIES_ANSWERS,
    SERIES_READY,
    SERIES__COUNT
};

struct measured {
    struct samples of[SERIES__COUNT];
    const char *why_not[SERIES__COUNT]; /* why there are no samples; or NULL */
    struct samples spin;
    double spin_cpu_us; /* what all of it used of a processor */
    double load;        /* before we began */
    bool own;           /* the server is ours */
    char url[256], python[64], pool[64];
    unsigned ready;
    size_t clients; /* of SERIES_RATE */
};

/* The table, or one JSON document. */
void bench_put_text(struct measured *m, struct buf *ret);
void bench_put_json(struct measured *m, struct buf *ret);

/* --- the client: plain HTTP/1.1 on kept connections --- */

struct bench_target {
    struct sockaddr_storage at;
    socklen_t at_n;
    char host[256], prefix[256]; /* prefix: the path of the URL, without a slash at its end */
    char key[256];               /* or empty */
};

struct bench_conn {
    const struct bench_target *to; /* borrowed */
    int fd;                        /* owned */
    struct buf out, in;
    double begun_us;
};

struct bench_answer {
    int status;
    struct str body; /* borrowed: until the connection is asked again */
    double us;       /* from the request's first byte out to the answer's last byte in */
};

/* http://HOST[:PORT][/PREFIX] */
int bench_target_url(struct bench_target *ret, const char *url, struct err *e) MUST_CHECK;
int bench_target_unix(struct bench_target *ret, const char *path, struct err *e) MUST_CHECK;
void bench_conn_init(struct bench_conn *c, const struct bench_target *to);
void bench_conn_done(struct bench_conn *c);
int bench_ask(struct bench_conn *c, const char *method, const char *path, struct str body,
              struct bench_answer *ret, struct err *e) MUST_CHECK;

/* One of many that ask at a time: always the same. */
struct bench_asker {
    struct bench_conn conn;
    char path[128];
    bool asks;
};
/* All of them ask until so long is over, each again when it has its answer. `good` says whether an
 * answer is as it should be. Returns how many answers came; *ret_us is how long it took. */
long bench_ask_all(struct bench_asker *askers, size_t n, struct str body, double us,
                   bool (*good)(const struct bench_answer *a), double *ret_us,
                   struct err *e) MUST_CHECK;

/* --- a server of our own, on a Unix socket in a folder that nobody else can enter --- */

struct bench_server {
    struct janitor janitor;
    pid_t keeper;
    int held;         /* owned: the server ends when this is closed; -1: there is none */
    char socket[108]; /* as in struct sockaddr_un */
    double begun_us;
};

#define BENCH_COLD_POOL "cold"

int bench_server_start(struct bench_server *b, const struct settings *s, struct err *e) MUST_CHECK;
/* Whether it has ended by itself: then *e says why, as far as it told. */
bool bench_server_failed(struct bench_server *b, struct err *e);
void bench_server_end(struct bench_server *b);

/* --- the floor --- */

int bench_floor_pipe(struct samples *ret, unsigned count, struct err *e) MUST_CHECK;
int bench_floor_fork(struct samples *ret, unsigned count, struct err *e) MUST_CHECK;
/* The same piece of work again and again. What is more than the least is what others took; *cpu_us
 * grows by what we got. */
void bench_floor_spin(struct samples *ret, unsigned count, double *cpu_us);
double bench_load(void);
unsigned bench_cores(void);
