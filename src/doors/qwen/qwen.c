/* The settings of the door, and the folders of the host that it may touch. */
#include "doors/qwen/qwen_int.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct tool *const tools[] = {&tool_code_interpreter, &tool_python_executor, NULL};

/* A path from the working directory as a whole path; owned. */
static char *whole_path(const char *path)
{
    char here[PATH_MAX], *text = NULL;

    if (*path == '/' || !getcwd(here, sizeof(here)))
        return mem_strdup(path);
    if (asprintf(&text, "%s/%s", here, path) < 0)
        abort();
    return text;
}

/* The folder and those above it, as Qwen-Agent does. What fails shows when it is opened. */
static void make_folder(char *path)
{
    for (char *p = path + 1; *p; p++)
        if (*p == '/') {
            *p = '\0';
            (void)mkdir(path, 0755);
            *p = '/';
        }
    (void)mkdir(path, 0755);
}

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
    struct str rest = str_of(q->config.file_dirs), one;

    if (q->config.work_dir) {
        AUTO_FREE char *path = whole_path(q->config.work_dir);
        make_folder(path);
        if (add_root(q, str_of(path), e) < 0)
            return -1;
        q->has_work_dir = true;
    }
    while (str_next(&rest, ',', &one))
        if (one.n && add_root(q, one, e) < 0)
            return -1;
    return 0;
}

const char *tenant_folder(const char *tenant, char ret[TENANT_FOLDER_MAX])
{
    size_t n = 0;

    for (const char *p = tenant; *p; p++) {
        bool plain = isalnum((unsigned char)*p) || *p == '_' || *p == '-';
        n += (size_t)snprintf(ret + n, TENANT_FOLDER_MAX - n, plain ? "%c" : "%%%02X",
                              (unsigned char)*p);
    }
    return ret;
}

int tenant_folder_open(const struct qwen *q, const char *tenant, struct err *e)
{
    char name[TENANT_FOLDER_MAX];
    int fd;

    tenant_folder(tenant, name);
    if (mkdirat(q->roots[0].fd, name, 0755) < 0 && errno != EEXIST)
        return err_sys(e, "make the folder %s in the work dir", name);
    fd = openat(q->roots[0].fd, name, O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "open the folder %s in the work dir", name) : fd;
}

struct qwen *qwen_new(const struct qwen_config *config, struct err *e)
{
    struct qwen *q = mem_zalloc(sizeof(*q));

    q->config = *config;
    q->images_fd = -1;
    if (config->images_dir)
        q->images_dir = whole_path(config->images_dir);
    q->lane = (struct exec_lane){.seats = SNIPPETS_AT_ONCE, .waiting_max = SIZE_MAX};
    q->tool_set = (struct tool_set){
        .name = "retort-qwen",
        .title = "Code interpreter of Qwen-Agent, by retort",
        .instructions = "code_interpreter runs Python and keeps variables and files from one call "
                        "to the next. python_executor keeps nothing.",
        .tools = tools,
        .pool = config->pool,
        .ctx = q,
        .offers = OFFERS_RESOURCES,
    };
    if (open_roots(q, e) < 0) {
        qwen_free(q);
        return NULL;
    }
    return q;
}

void qwen_free(void *room)
{
    struct qwen *q = room;

    for (size_t i = 0; i < q->root_count; i++) {
        free(q->roots[i].path);
        close(q->roots[i].fd);
    }
    fd_closep(&q->images_fd);
    free(q->images_dir);
    free(q);
}

void qwen_images_give(void *room, uid_t uid, gid_t gid)
{
    struct qwen *q = room;

    if (!q->images_dir || mkdir(q->images_dir, 0755) < 0)
        return; /* a folder that is there stays whose it is */
    q->images_fd = open(q->images_dir, O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);
    if (q->images_fd >= 0 && fchown(q->images_fd, uid, gid) < 0)
        fd_closep(&q->images_fd);
}

void qwen_images_settle(void *room)
{
    struct qwen *q = room;

    if (q->images_fd >= 0 && rmdir(q->images_dir) == 0)
        fd_closep(&q->images_fd);
}

const struct tool_set *qwen_tool_set(void *room)
{
    return &((struct qwen *)room)->tool_set;
}
