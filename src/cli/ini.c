/*
 * Reads the configuration file into rows with their line numbers. libinih splits the lines. It cuts
 * long lines, ignores a section without keys, and takes an indented "name = value" for more of the
 * value above. This file finds all three when it hands the lines to libinih, so that nothing is
 * lost.
 */
#include "cli/cli_int.h"

#include <fcntl.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX  (256 * KiB)
#define VALUE_MAX (16 * KiB)

struct reader {
    struct ini *ini;  /* borrowed */
    const char *path; /* borrowed */
    struct str left;
    unsigned line;
    bool more;       /* this line goes on with the value of the one before */
    struct err *err; /* borrowed; the first error counts */
};

static int refuse(struct reader *r, const char *what)
{
    if (r->err->kind == ERR_NONE)
        err_set(r->err, ERR_CALLER, "%s:%u: %s", r->path, r->line, what);
    return 0;
}

static void add(struct ini *ini, struct str section, const char *name, const char *value,
                unsigned line)
{
    ini->item = mem_realloc(ini->item, (ini->count + 1) * sizeof(*ini->item));
    ini->item[ini->count++] =
        (struct ini_entry){mem_strndup(section), mem_strdup(name), mem_strdup(value), line};
}

static void see_section(struct reader *r, const char *line)
{
    const char *from = line + strspn(line, " \t"), *to = strchr(from, ']');

    if (*from == '[' && to)
        add(r->ini, (struct str){from + 1, (size_t)(to - from) - 1}, "", "", r->line);
}

static bool is_pair(const char *line)
{
    const char *p = line + strspn(line, " \t");

    p += strspn(p, "abcdefghijklmnopqrstuvwxyz_-");
    return p[strspn(p, " \t")] == '=';
}

/* One line at a time, as fgets() would. NULL ends the reading. */
static char *next_line(char *ret, int size, void *arg)
{
    struct reader *r = arg;
    const char *newline = r->left.n ? memchr(r->left.p, '\n', r->left.n) : NULL;
    size_t n = newline ? (size_t)(newline - r->left.p) + 1 : r->left.n;

    if (n == 0 || r->err->kind != ERR_NONE)
        return NULL;
    r->line++;
    if (n + 1 > (size_t)size) {
        refuse(r, "the line is too long; go on in the next one, with a space in front");
        return NULL;
    }
    memcpy(ret, r->left.p, n);
    ret[n] = '\0';
    if (strlen(ret) < n) {
        refuse(r, "there is a NUL byte in the line");
        return NULL;
    }
    r->left.p += n;
    r->left.n -= n;
    see_section(r, ret);
    r->more = strchr(" \t", ret[0]) && !is_pair(ret);
    if (!r->more)
        memmove(ret, ret + strspn(ret, " \t"), n + 1 - strspn(ret, " \t"));
    return ret;
}

static int append(struct reader *r, struct ini_entry *last, const char *value)
{
    size_t had = strlen(last->value), n = strlen(value);

    if (had + n > VALUE_MAX)
        return refuse(r, "the value is too long");
    last->value = mem_realloc(last->value, had + n + 2);
    last->value[had] = ' ';
    memcpy(last->value + had + 1, value, n + 1);
    return 1;
}

static int on_pair(void *arg, const char *section, const char *name, const char *value)
{
    struct reader *r = arg;
    struct ini *ini = r->ini;

    if (r->more && ini->count > 0 && strcmp(ini->item[ini->count - 1].name, name) == 0)
        return append(r, &ini->item[ini->count - 1], value);
    add(ini, str_of(section), name, value, r->line);
    if (*name == '\0')
        return refuse(r, "there is no name before the '='");
    return 1;
}

static int read_file(const char *path, char *ret, size_t size, struct str *ret_text, struct err *e)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, "cannot read %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_CALLER, "%s is not a file", path);
    if (st.st_size >= (off_t)size)
        return err_set(e, ERR_CALLER, "%s is too large to be a configuration file", path);
    n = read(fd, ret, size - 1);
    if (n < 0)
        return err_sys(e, "cannot read %s", path);
    *ret_text = (struct str){ret, (size_t)n};
    return 0;
}

int ini_load(struct ini *ret, const char *path, struct err *e)
{
    AUTO_FREE char *text = mem_zalloc(FILE_MAX);
    struct reader r = {.ini = ret, .path = path, .err = e};
    int bad;

    *ret = (struct ini){0};
    *e = (struct err){0};
    if (read_file(path, text, FILE_MAX, &r.left, e) < 0) {
        e->kind = ERR_CALLER;
        return -1;
    }
    bad = ini_parse_stream(next_line, &r, on_pair, &r);
    if (e->kind == ERR_NONE && bad > 0)
        err_set(e, ERR_CALLER, "%s:%d: neither [section] nor name = value", path, bad);
    return e->kind == ERR_NONE ? 0 : -1;
}

void ini_done(struct ini *ini)
{
    for (size_t i = 0; i < ini->count; i++) {
        free(ini->item[i].section);
        free(ini->item[i].name);
        free(ini->item[i].value);
    }
    free(ini->item);
    *ini = (struct ini){0};
}
