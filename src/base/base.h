/*
 * base: what every room uses and no room should write again. Views of bytes,
 * growing buffers with a ceiling, errors with context, owned fds, log lines.
 *
 * Touches: libc. Never touches: anything that knows what this program is for.
 *
 * Include this one header. AUTO_* variables are released when their scope ends;
 * take_fd() and take_ptr() stand on the line that gives ownership away.
 */
#pragma once

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#define KiB ((size_t)1024)
#define MiB (1024 * KiB)
#define GiB (1024 * MiB)

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define IN(x)    (1u << (x))

#define AUTO(fn)       __attribute__((cleanup(fn), unused))
#define AUTO_CLOSE     AUTO(fd_closep)
#define AUTO_FREE      AUTO(mem_freep)
#define MUST_CHECK     __attribute__((warn_unused_result))
#define PRINTF(fmt, a) __attribute__((format(printf, fmt, a)))

/* --- str: a view of bytes; owns nothing, trusts no NUL --- */

struct str {
    const char *p;
    size_t n;
};

#define STR(lit) ((struct str){(lit), sizeof(lit) - 1})

struct str str_of(const char *cstr); /* NULL gives the empty view */
bool str_eq(struct str a, struct str b);
bool str_is(struct str a, const char *cstr);
struct str str_from(struct str s, size_t at);                 /* without its first `at` bytes */
struct str str_trim(struct str s);                            /* without blanks at its ends */
struct str str_base(struct str path, const char *separators); /* what follows the last of them */
const char *path_base(const char *path);                      /* what follows the last slash */
/* Cuts the next item off a list, blanks trimmed; false at the end. */
bool str_next(struct str *list, char separator, struct str *ret);
/* Copies into a NUL-terminated buffer; false when it does not fit or holds a NUL. */
bool str_to_cstr(struct str s, char *ret, size_t size) MUST_CHECK;
/* Length of the longest prefix of s that is whole, valid UTF-8. */
size_t str_utf8_len(struct str s);

/* --- err: what went wrong, whose fault it is, with context --- */

enum err_kind {
    ERR_NONE,
    ERR_CALLER,   /* the request is wrong */
    ERR_LIMIT,    /* something is too long or too large */
    ERR_MISSING,  /* there is no such thing, or it is not the caller's */
    ERR_CONFLICT, /* it is there already, or in the wrong state */
    ERR_BUSY,     /* a limit is reached: later it may work */
    ERR_DENIED,   /* this caller may not, or not before somebody has agreed */
    ERR_FULL,     /* the disk takes nothing more: an operator can help */
    ERR_DAMAGED,  /* what was stored has changed on the disk: to store it again helps */
    ERR_AWAY,     /* what keeps our data does not answer: it comes back, and later it works */
    ERR_SETUP,    /* what an operator has set up does not work: the text says what to change */
    ERR_HOST,     /* the kernel, the disk, or our own bug */
};

struct err {
    enum err_kind kind;
    int sys;     /* errno, or 0 */
    int retry_s; /* ERR_BUSY, ERR_AWAY: when to try again; 0: unknown */
    char text[512];
};

/* Whether to try again later helps, with nothing changed. */
bool err_will_pass(const struct err *e);
/* All three return -1, so that a failure is one line: return err_set(e, ...). */
int err_set(struct err *e, enum err_kind kind, const char *fmt, ...) PRINTF(3, 4);
int err_sys(struct err *e, const char *fmt, ...) PRINTF(2, 3);  /* ERR_HOST plus strerror(errno) */
int err_wrap(struct err *e, const char *fmt, ...) PRINTF(2, 3); /* puts context in front */

/* --- memory --- */

void mem_freep(void *pp);
void *mem_zalloc(size_t n); /* never NULL: aborts, as nothing sensible is left to do */
void *mem_realloc(void *p, size_t n);
char *mem_strdup(const char *s);
char *mem_strndup(struct str s);

#define take_ptr(pp)                                                                               \
    ({                                                                                             \
        __typeof__(*(pp)) taken_ = *(pp);                                                          \
        *(pp) = NULL;                                                                              \
        taken_;                                                                                    \
    })

/* --- buf: growing bytes with a ceiling. What does not fit is left out, and so is everything after
 * it: buf_check() at the end tells whether something was. --- */

struct buf {
    char *p; /* owned */
    size_t n;
    size_t cap;
    size_t max;
    bool full; /* something was left out */
};

#define BUF(ceiling)                                                                               \
    ((struct buf){.max = (ceiling)}) /* AUTO(buf_done) struct buf b = BUF(4 * KiB); */
void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);
void buf_clear(struct buf *b);            /* empty, with its memory kept */
int buf_put(struct buf *b, struct str s); /* -1 when it does not fit; so do the next two */
int buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
/* ERR_LIMIT when something did not fit. */
int buf_check(const struct buf *b, struct err *e) MUST_CHECK;
/* Room for n more bytes at b->p + b->n, or NULL past the ceiling. The caller adds to b->n. */
char *buf_room(struct buf *b, size_t n);
struct str buf_str(const struct buf *b);

/* --- fd --- */

void fd_closep(int *fd); /* keeps errno */
int take_fd(int *fd);
int fd_write_all(int fd, struct str s, struct err *e) MUST_CHECK;
/* Reads a small file whole into ret (NUL-terminated); returns its length or -1. */
ssize_t fd_read_file_at(int dir, const char *path, char *ret, size_t size) MUST_CHECK;
int fd_write_file_at(int dir, const char *path, struct str s) MUST_CHECK;
int fd_set_nonblock(int fd) MUST_CHECK;
/* The next run of data in a file, at `at` or after it; the rest is holes. False when there is none.
 * Where the file system knows no holes all is data. Moves the file's position. */
bool fd_data_run(int fd, off_t at, off_t *ret_from, off_t *ret_to);

/* --- log: one line per call on stderr, whatever it quotes; from any thread --- */

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };
enum log_format { LOG_TEXT, LOG_JSON }; /* {"ts":"2024-...Z","level":"info","pid":1,"msg":"..."} */
void log_set_level(enum log_level level);
void log_set_format(enum log_format format);
void log_line(enum log_level level, const char *fmt, ...) PRINTF(2, 3);
#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

/* The number that stands at place n (from 0) in a line of words, as in /proc; 0 if there is none.
 */
uint64_t text_number_at(const char *text, unsigned n);

/* --- text: bytes made fit to be shown --- */

#define NAME_SHOWN 200
#define SIZE_SHOWN 16

/* A name on one line: control characters, backslashes and what is not UTF-8 escaped, the middle
 * left out when it is long. Returns ret. */
const char *name_show(char ret[NAME_SHOWN], struct str name);
/* "12.3 kB". Returns ret. */
const char *size_show(char ret[SIZE_SHOWN], uint64_t bytes);
/* Bytes at the end of s that begin a UTF-8 sequence and do not finish it. */
size_t utf8_torn(struct str s);
/* Puts what a terminal would show of s in the end: after a carriage return the line is written
 * over. A progress bar becomes its last state. */
void text_settle(struct buf *b, struct str s);
/* Puts s with everything that is not UTF-8 replaced by U+FFFD. */
int utf8_put(struct buf *b, struct str s);
/* Length of the character at the start of s (not empty), or 0 when it is not UTF-8. */
size_t utf8_char(struct str s);
/* How many characters there are in UTF-8 text. */
size_t utf8_count(struct str s);

/* Looks through a text that may be JSON before it is parsed: whether it stays within so many levels
 * and values. */
enum json_size { JSON_FITS, JSON_TOO_DEEP, JSON_TOO_MANY };
enum json_size json_measure(struct str text, unsigned depth_max, size_t values_max);

/* --- encode: bytes written as text, and read back --- */

int hex_digit(char c); /* -1 when it is none */
/* Writes 2 * n digits and a NUL. Returns where the NUL is. */
char *hex_print(char *to, const void *bytes, size_t n);
/* Writes s percent-encoded, but for letters, digits, "-._~/", and a NUL: up to 3 * s.n + 1 bytes.
 * Returns where the NUL is. */
char *url_encode(char *to, struct str s);
/* The byte that the escape %XX at this place of s stands for; -1: there is no escape. */
int percent_at(struct str s, size_t at);
/* Standard alphabet, padded, no blanks, no stray bits. ret has room for text.n / 4 * 3. */
bool base64_decode(struct str text, char *ret, size_t *ret_n);
/* Four characters of base64 as one to three bytes; -1 when they are not base64. Bits that no byte
 * takes must be zero, so that each value has one spelling. */
int base64_group(const char *quad, char ret[3]);
/* Writes one to four bytes and returns how many. What is no character becomes U+FFFD. */
size_t utf8_print(char *to, uint32_t c);

/* --- random --- */

void random_bytes(void *ret, size_t n); /* at most 256 */

/* --- clock --- */

int64_t time_mono_us(void);
int64_t time_now_ms(void); /* since 1970 */
/* The sure time: the same, for deciding what is old enough to be deleted. A clock that was set
 * forward is not believed for a day. From any thread. */
int64_t time_sure_ms(void);
/* At start: the time was last known to be this; 0: nothing is known. The first call counts. */
void time_sure_begin(int64_t last_ms);

/* The state behind both functions, for their tests. boot_ms: of a clock that nobody sets. */
struct sure_clock {
    int64_t sure_ms, boot_ms; /* when the time of day was last believed; 0: not yet */
    bool is_ahead;            /* the time of day is ahead of the sure time, and not believed, */
    int64_t ahead_ms;         /* since this boot_ms */
};
int64_t sure_clock_read(struct sure_clock *c, int64_t now_ms, int64_t boot_ms);
void sure_clock_begin(struct sure_clock *c, int64_t last_ms, int64_t now_ms, int64_t boot_ms);
