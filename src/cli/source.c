/*
 * The code to run and the files to copy, as the command line names them. All of them are
 * opened, read and checked before anything is started: after a mistake there is a
 * sentence, and nothing half done.
 */
#include "cli/cli_int.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- code --- */

static size_t line_of(struct str s, size_t at)
{
    size_t line = 1;

    for (size_t i = 0; i < at; i++)
        line += s.p[i] == '\n';
    return line;
}

static int check_text(struct str code, const char *shown, struct err *e)
{
    const char *nul = code.n ? memchr(code.p, '\0', code.n) : NULL;
    size_t good = str_utf8_len(code);

    if (code.n > EXEC_CODE_MAX)
        return err_set(e, ERR_CALLER, "%s is larger than %zu MiB, too large to be run", shown,
                       EXEC_CODE_MAX / MiB);
    if (nul)
        return err_set(e, ERR_CALLER, "%s is not text: there is a NUL byte in line %zu", shown,
                       line_of(code, (size_t)(nul - code.p)));
    if (good < code.n)
        return err_set(e, ERR_CALLER, "%s is not UTF-8 text: see line %zu", shown,
                       line_of(code, good));
    return 0;
}

/* Reads to the end or to one byte past what may be run, so that /dev/zero ends too. */
static int read_code(struct source *ret, int fd, const char *shown, struct err *e)
{
    struct buf b;

    buf_init(&b, EXEC_CODE_MAX + 1 + 64 * KiB);
    while (b.n <= EXEC_CODE_MAX) {
        char *at = buf_room(&b, 64 * KiB);
        ssize_t n = read(fd, at, 64 * KiB);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            err_sys(e, "cannot read %s", shown);
            buf_done(&b);
            return -1;
        }
        if (n == 0)
            break;
        b.n += (size_t)n;
    }
    ret->code = b.p; /* the buffer's bytes are the source's from here on */
    ret->n = b.n;
    return 0;
}

/* Windows editors put a byte order mark first; Python takes it in a file and not in a cell. */
static void drop_bom(struct source *src)
{
    if (src->n >= 3 && memcmp(src->code, "\xef\xbb\xbf", 3) == 0) {
        src->n -= 3;
        memmove(src->code, src->code + 3, src->n);
    }
}

static int load_file(struct source *ret, const char *path, struct err *e)
{
    char shown[NAME_SHOWN];
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;

    name_show(shown, str_of(path));
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_sys(e, "cannot open %s", shown);
    if (S_ISDIR(st.st_mode))
        return err_set(e, ERR_CALLER, "%s is a directory, not a script", shown);
    if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > EXEC_CODE_MAX)
        return err_set(e, ERR_CALLER, "%s is larger than %zu MiB, too large to be run", shown,
                       EXEC_CODE_MAX / MiB);
    if (read_code(ret, fd, shown, e) < 0 ||
        check_text((struct str){ret->code, ret->n}, shown, e) < 0)
        return -1;
    drop_bom(ret);
    return 0;
}

static int load_stdin(struct source *ret, struct err *e)
{
    static const char shown[] = "standard input";

    if (read_code(ret, STDIN_FILENO, shown, e) < 0 ||
        check_text((struct str){ret->code, ret->n}, shown, e) < 0)
        return -1;
    drop_bom(ret);
    return 0;
}

static int load(struct source *ret, const struct cli_work *w, bool *stdin_used, struct err *e)
{
    *ret = (struct source){.kind = w->kind == WORK_SHELL ? EXEC_COMMAND : EXEC_CELL};
    if (w->kind == WORK_SCRIPT) {
        ret->label = w->arg;
        if (strcmp(w->arg, "-") != 0)
            return load_file(ret, w->arg, e);
        if (*stdin_used)
            return err_set(e, ERR_CALLER, "- can be given once: there is one standard input");
        *stdin_used = true;
        return load_stdin(ret, e);
    }
    ret->label = w->kind == WORK_SHELL ? "--shell" : "-c";
    ret->code = mem_strdup(w->arg);
    ret->n = strlen(w->arg);
    return check_text((struct str){ret->code, ret->n}, ret->label, e);
}

int sources_load(struct sources *ret, const struct settings *s, struct err *e)
{
    bool stdin_used = false;

    *ret = (struct sources){0};
    if (s->work.count == 0)
        return err_set(e, ERR_CALLER, "nothing to run: give a SCRIPT, -c CODE, - or --shell CMD");
    ret->item = mem_zalloc(s->work.count * sizeof(*ret->item));
    for (size_t i = 0; i < s->work.count; i++) {
        ret->count++;
        if (load(&ret->item[i], &s->work.item[i], &stdin_used, e) < 0)
            return -1;
    }
    return 0;
}

void sources_done(struct sources *ss)
{
    for (size_t i = 0; i < ss->count; i++)
        free(ss->item[i].code);
    free(ss->item);
    *ss = (struct sources){0};
}

/* --- files --- */

/* O_NONBLOCK: opening a FIFO must not wait for a writer that never comes. */
static int open_input(struct input *ret, const char *path, uint64_t *room, struct err *e)
{
    char shown[NAME_SHOWN];
    struct stat st;

    name_show(shown, str_of(path));
    ret->name = path_base(path);
    ret->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (ret->fd < 0 || fstat(ret->fd, &st) < 0)
        return err_sys(e, "cannot open %s", shown);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_CALLER, "%s is %s, not a file", shown,
                       S_ISDIR(st.st_mode) ? "a directory" : "a device or pipe");
    if ((uint64_t)st.st_size > *room)
        return err_set(e, ERR_CALLER, "%s does not fit into the workspace; see --disk", shown);
    *room -= (uint64_t)st.st_size;
    return 0;
}

int inputs_open(struct inputs *ret, const struct settings *s, struct err *e)
{
    uint64_t room = s->pool.limits.disk_bytes;
    char shown[NAME_SHOWN];

    *ret = (struct inputs){.item = mem_zalloc(s->files.count * sizeof(*ret->item))};
    for (size_t i = 0; i < s->files.count; i++) {
        ret->count++;
        if (open_input(&ret->item[i], s->files.item[i], &room, e) < 0)
            return -1;
        for (size_t j = 0; j < i; j++)
            if (strcmp(ret->item[i].name, ret->item[j].name) == 0)
                return err_set(e, ERR_CALLER, "two files with the name %s",
                               name_show(shown, str_of(ret->item[i].name)));
    }
    return 0;
}

void inputs_done(struct inputs *in)
{
    for (size_t i = 0; i < in->count; i++)
        fd_closep(&in->item[i].fd);
    free(in->item);
    *in = (struct inputs){0};
}
