/* The room itself: its settings, and the folders of the host that it may touch. */
#include "doors/qwen/qwen_int.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static const struct tool *const tools[] = {&tool_code_interpreter, &tool_python_executor, NULL};

static int add_root(struct qwen *q, struct str path, struct err *e)
{
    struct root *root = &q->roots[q->root_count];
    char text[PATH_MAX];

    while (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    if (path.n == 0)
        return 0;
    if (q->root_count == DIRS_MAX)
        return err_set(e, ERR_CALLER, "more than %d folders for files", DIRS_MAX);
    if (*path.p != '/' || !str_to_cstr(path, text, sizeof(text)))
        return err_set(e, ERR_CALLER, "%.*s is not the whole path of a folder", (int)path.n,
                       path.p);
    root->fd = open(text, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (root->fd < 0)
        return err_sys(e, "cannot open the folder %s", text);
    root->path = mem_strdup(text);
    q->root_count++;
    return 0;
}

static int open_roots(struct qwen *q, struct err *e)
{
    const char *rest = q->config.file_dirs;

    if (q->config.work_dir) {
        if (add_root(q, str_of(q->config.work_dir), e) < 0)
            return -1;
        q->has_work_dir = true;
    }
    while (rest && *rest) {
        size_t n = strcspn(rest, ",");
        struct str one = {rest, n};
        while (one.n > 0 && *one.p == ' ')
            one = (struct str){one.p + 1, one.n - 1};
        if (add_root(q, one, e) < 0)
            return -1;
        rest += n + (rest[n] == ',');
    }
    return 0;
}

struct qwen *qwen_new(const struct qwen_config *config, struct err *e)
{
    struct qwen *q = mem_zalloc(sizeof(*q));

    q->config = *config;
    q->face = (struct face){
        .name = "retort-qwen",
        .title = "Code interpreter of Qwen-Agent, by retort",
        .instructions = "code_interpreter runs Python and keeps variables and files from one call "
                        "to the next. python_executor keeps nothing.",
        .tools = tools,
        .pool = config->pool,
        .has = FACE_RESOURCES,
    };
    if (open_roots(q, e) < 0) {
        qwen_free(q);
        return NULL;
    }
    return q;
}

void qwen_free(struct qwen *q)
{
    if (!q)
        return;
    for (size_t i = 0; i < q->root_count; i++) {
        free(q->roots[i].path);
        close(q->roots[i].fd);
    }
    free(q);
}

const struct face *qwen_face(struct qwen *q)
{
    return &q->face;
}
