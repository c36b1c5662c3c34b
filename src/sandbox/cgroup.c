/*
 * cgroups: memory, pids and cpu of a whole sandbox. Version 2 where the host has
 * it, version 1 where that is what there is, nothing where this process may make
 * no groups (then rlimits hold each process and init watches the sum).
 *
 * The tree is <own group>/retort/<instance>/<box>. A running instance holds a
 * lock on its directory, so a directory whose lock is free belongs to nobody
 * alive and is swept at the next start.
 *
 * Moving another process into a group takes a lock whose first writer waits for an
 * RCU grace period: 10 to 70 ms were measured. A process that is born in a group
 * (version 2) or that moves its own single thread there (version 1, `tasks`) takes
 * no such lock. So the warden opens the way and the new process goes it.
 */
#include "sandbox/box_int.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum controller { CTL_MEMORY, CTL_PIDS, CTL_CPU, CTL_ACCT, CTL__COUNT };

static const char *const v1_name[] = {"memory", "pids", "cpu", "cpuacct"};

struct cgroups {
    enum cgroup_mode mode;
    int dir[CTL__COUNT];    /* owned: our instance's directory per controller; v2: one in [0] */
    int parent[CTL__COUNT]; /* owned: .../retort; -1: the controller is mounted with another one */
    char instance[32];
    char why[256];
};

static int hierarchies(const struct cgroups *cg)
{
    return cg->mode == CGROUP_V2 ? 1 : CTL__COUNT;
}

bool cgroup_own_path(char *text, const char *controller, char *ret, size_t size)
{
    char *line, *save = NULL;

    for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *names = strchr(line, ':');
        char *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        names++;
        bool found = !*controller && !*names;
        for (char *inner = NULL, *n = strtok_r(names, ",", &inner); n && *controller && !found;
             n = strtok_r(NULL, ",", &inner))
            found = strcmp(n, controller) == 0;
        if (found)
            return (size_t)snprintf(ret, size, "%s", path) < size;
    }
    return false;
}

static bool own_path(const char *controller, char *ret, size_t size)
{
    char text[8192];

    return fd_read_file_at(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) >= 0 &&
           cgroup_own_path(text, controller, ret, size);
}

bool cgroup_mounted_at(const char *line, const char *controller, char *ret, size_t size)
{
    char root[512], where[512], type[32], super[512];
    const char *dash = strstr(line, " - ");
    bool found = !*controller;

    if (!dash || sscanf(line, "%*s %*s %*s %511s %511s", root, where) != 2 ||
        sscanf(dash, " - %31s %*s %511s", type, super) != 2 || strcmp(root, "/") != 0 ||
        strcmp(type, *controller ? "cgroup" : "cgroup2") != 0)
        return false;
    for (char *save = NULL, *o = strtok_r(super, ",", &save); o && !found;
         o = strtok_r(NULL, ",", &save))
        found = strcmp(o, controller) == 0;
    return found && (size_t)snprintf(ret, size, "%s", where) < size;
}

static bool mount_point(const char *controller, char *ret, size_t size)
{
    char line[1024];
    FILE *f = fopen("/proc/self/mountinfo", "re");
    bool found = false;

    while (f && !found && fgets(line, sizeof(line), f))
        found = cgroup_mounted_at(line, controller, ret, size);
    if (f)
        fclose(f);
    return found;
}

static int open_dir(int at, const char *name)
{
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int make_dir(int at, const char *name)
{
    if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
        return -1;
    return open_dir(at, name);
}

static void kill_all_in(int dir)
{
    char text[16384];

    if (fd_write_file_at(dir, "cgroup.kill", STR("1")) == 0)
        return;
    if (fd_read_file_at(dir, "cgroup.procs", text, sizeof(text)) < 0)
        return;
    for (char *save = NULL, *p = strtok_r(text, "\n", &save); p; p = strtok_r(NULL, "\n", &save)) {
        pid_t pid = (pid_t)strtol(p, NULL, 10);
        if (pid > 1)
            kill(pid, SIGKILL);
    }
}

/* Removes a group and the groups below it, ending what still runs there. */
static void sweep_tree(int parent, const char *name, int depth)
{
    int fd = open_dir(parent, name);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

    if (!d) {
        fd_closep(&fd);
        return;
    }
    kill_all_in(fd);
    for (struct dirent *entry; depth > 0 && (entry = readdir(d));)
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            sweep_tree(fd, entry->d_name, depth - 1);
    closedir(d);
    for (int tries = 0; tries < 50 && unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno == EBUSY;
         tries++)
        usleep(2000);
}

static void sweep(int parent)
{
    int fd = open_dir(parent, ".");
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

    if (!d)
        return fd_closep(&fd);
    for (struct dirent *entry; (entry = readdir(d));) {
        AUTO_CLOSE int instance = -1;
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        instance = open_dir(parent, entry->d_name);
        if (instance < 0 || flock(instance, LOCK_EX | LOCK_NB) < 0)
            continue;
        sweep_tree(parent, entry->d_name, 2);
    }
    closedir(d);
}

/* A group weighs as much as one process of the host, and all boxes together are in one: they get
 * the weight of a small crowd. Files of controllers that are not there are no loss. */
static void weigh(int dir)
{
    (void)!fd_write_file_at(dir, "cpu.shares", STR("16384")); /* version 1; 1024 is one */
    (void)!fd_write_file_at(dir, "cpu.weight", STR("1600"));  /* version 2; 100 is one */
}

/* Nobody sweeps between the making of a directory and the lock that says whose it is. */
static int open_locked(struct cgroups *cg, int i, int own)
{
    cg->parent[i] = make_dir(own, "retort");
    if (cg->parent[i] < 0 || flock(cg->parent[i], LOCK_EX) < 0)
        return -1;
    sweep(cg->parent[i]);
    cg->dir[i] = make_dir(cg->parent[i], cg->instance);
    return cg->dir[i];
}

#define TRIES 10 /* the common group may go before it is locked: with another's end */

static int open_instance(struct cgroups *cg, int i, const char *base)
{
    AUTO_CLOSE int own = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (own < 0)
        return -1;
    for (int tries = 0; open_locked(cg, i, own) < 0; tries++) {
        if (errno != ENOENT || tries == TRIES)
            return -1;
        fd_closep(&cg->parent[i]);
    }
    weigh(cg->parent[i]);
    weigh(cg->dir[i]);
    int rc = cg->dir[i] < 0 ? -1 : flock(cg->dir[i], LOCK_EX | LOCK_NB);
    (void)!flock(cg->parent[i], LOCK_UN);
    return rc;
}

static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = text; (p = strstr(p, word)); p += n)
        if ((p == text || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\n' || !p[n]))
            return true;
    return false;
}

/* Version 2 lets a group have processes or children with controllers, not both, so this process
 * moves into a leaf first. That works where the group is ours alone (Delegate=yes, a container). */
static bool open_v2_in(struct cgroups *cg, const char *base)
{
    char leaf[1200], text[256], pid[24];
    AUTO_CLOSE int own = -1;

    own = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (own < 0 || fd_read_file_at(own, "cgroup.controllers", text, sizeof(text)) < 0 ||
        !has_word(text, "memory") || !has_word(text, "pids"))
        return false;
    cg->mode = CGROUP_V2;
    snprintf(cg->why, sizeof(cg->why), "version 2 at %.200s", base);
    if (fd_write_file_at(own, "cgroup.subtree_control", STR("+memory +pids")) < 0) {
        snprintf(leaf, sizeof(leaf), "retort-main");
        snprintf(pid, sizeof(pid), "%d", (int)getpid());
        AUTO_CLOSE int dir = make_dir(own, leaf);
        if (dir < 0 || fd_write_file_at(dir, "cgroup.procs", str_of(pid)) < 0 ||
            fd_write_file_at(own, "cgroup.subtree_control", STR("+memory +pids")) < 0) {
            snprintf(cg->why, sizeof(cg->why),
                     "version 2, but %.120s is not delegated to this user (%s)", base,
                     strerror(errno));
            return false;
        }
    }
    (void)!fd_write_file_at(own, "cgroup.subtree_control", STR("+cpu"));
    if (open_instance(cg, 0, base) < 0 ||
        fd_write_file_at(cg->parent[0], "cgroup.subtree_control", STR("+memory +pids")) < 0 ||
        fd_write_file_at(cg->dir[0], "cgroup.subtree_control", STR("+memory +pids")) < 0)
        return false;
    (void)!fd_write_file_at(cg->parent[0], "cgroup.subtree_control", STR("+cpu"));
    (void)!fd_write_file_at(cg->dir[0], "cgroup.subtree_control", STR("+cpu"));
    return true;
}

static bool open_v2(struct cgroups *cg)
{
    char where[512], path[512], base[1100];

    if (!mount_point("", where, sizeof(where)) || !own_path("", path, sizeof(path)))
        return false;
    snprintf(base, sizeof(base), "%s%s", where, path);
    return open_v2_in(cg, base);
}

/* Most hosts have cpu and cpuacct in one hierarchy: the second takes the directory of the first. */
static int open_v1_at(struct cgroups *cg, int i, const char *const base[])
{
    for (int k = 0; k < i; k++)
        if (strcmp(base[k], base[i]) == 0) {
            cg->dir[i] = fcntl(cg->dir[k], F_DUPFD_CLOEXEC, 0);
            return cg->dir[i];
        }
    return open_instance(cg, i, base[i]);
}

static bool open_v1_in(struct cgroups *cg, const char *const base[])
{
    cg->mode = CGROUP_V1;
    for (int i = 0; i < CTL__COUNT; i++)
        if (open_v1_at(cg, i, base) < 0) {
            snprintf(cg->why, sizeof(cg->why), "version 1, but no group can be made in %.120s (%s)",
                     base[i], strerror(errno));
            return false;
        }
    snprintf(cg->why, sizeof(cg->why), "version 1: memory, pids, cpu");
    return true;
}

static bool open_v1(struct cgroups *cg)
{
    char where[512], path[512], base[CTL__COUNT][1100];
    const char *at[CTL__COUNT];

    for (int i = 0; i < CTL__COUNT; i++) {
        if (!mount_point(v1_name[i], where, sizeof(where)) ||
            !own_path(v1_name[i], path, sizeof(path)))
            return false;
        snprintf(base[i], sizeof(base[i]), "%s%s", where, path);
        at[i] = base[i];
    }
    return open_v1_in(cg, at);
}

/* The last instance takes the common group away. Whoever is about to make one of its own there
 * holds the lock, or finds that the group has gone and makes it again. */
static void leave_parent(const struct cgroups *cg, int parent)
{
    AUTO_CLOSE int above = open_dir(parent, "..");

    (void)!unlinkat(parent, cg->instance, AT_REMOVEDIR);
    if (above >= 0 && flock(parent, LOCK_EX | LOCK_NB) == 0)
        (void)!unlinkat(above, "retort", AT_REMOVEDIR);
}

static void close_dirs(struct cgroups *cg)
{
    for (int i = 0; i < CTL__COUNT; i++) {
        fd_closep(&cg->dir[i]);
        if (cg->parent[i] >= 0)
            leave_parent(cg, cg->parent[i]);
        fd_closep(&cg->parent[i]);
    }
}

static struct cgroups *new_cgroups(void)
{
    struct cgroups *cg = mem_zalloc(sizeof(*cg));

    for (int i = 0; i < CTL__COUNT; i++)
        cg->dir[i] = cg->parent[i] = -1;
    snprintf(cg->instance, sizeof(cg->instance), "%d-%" PRIx64, (int)getpid(),
             (uint64_t)time_mono_us());
    snprintf(cg->why, sizeof(cg->why), "none is mounted with memory and pids");
    return cg;
}

static struct cgroups *without(struct cgroups *cg)
{
    close_dirs(cg);
    cg->mode = CGROUP_NONE;
    return cg;
}

struct cgroups *cgroups_open(void)
{
    struct cgroups *cg = new_cgroups();

    if (open_v2(cg))
        return cg;
    close_dirs(cg);
    return open_v1(cg) ? cg : without(cg);
}

struct cgroups *cgroups_open_v2(const char *base)
{
    struct cgroups *cg = new_cgroups();

    return open_v2_in(cg, base) ? cg : without(cg);
}

struct cgroups *cgroups_open_v1(const char *const base[])
{
    struct cgroups *cg = new_cgroups();

    return open_v1_in(cg, base) ? cg : without(cg);
}

void cgroups_close(struct cgroups *cg)
{
    if (!cg)
        return;
    close_dirs(cg);
    free(cg);
}

enum cgroup_mode cgroups_mode(const struct cgroups *cg)
{
    return cg->mode;
}

const char *cgroups_why(const struct cgroups *cg)
{
    return cg->why;
}

#define CPU_PERIOD_US 100000u

struct setting {
    enum controller ctl; /* version 1 only */
    const char *file;
    uint64_t value;
    const char *suffix;
    bool needed; /* else a kernel without it loses a nicety, not the limit */
};

static int apply(const int dir[], bool v2, const struct setting *rows, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        char text[64];
        snprintf(text, sizeof(text), "%" PRIu64 "%s", rows[i].value, rows[i].suffix);
        if (fd_write_file_at(dir[v2 ? 0 : rows[i].ctl], rows[i].file, str_of(text)) < 0 &&
            rows[i].needed)
            return err_sys(e, "set %s to %s", rows[i].file, text);
    }
    return 0;
}

static int limit(struct cgroups *cg, const int dir[], const struct box_plan *p, struct err *e)
{
    uint64_t quota = p->cpu_percent * (CPU_PERIOD_US / 100);
    const struct setting v1[] = {
        {CTL_MEMORY, "memory.limit_in_bytes",          p->memory_bytes,     "", true },
        {CTL_MEMORY, "memory.memsw.limit_in_bytes",    p->memory_bytes,     "", false},
 /* Version 1 counts what is under way in connections apart, and not at all unless asked to.
  * Past it a write waits. */
        {CTL_MEMORY, "memory.kmem.tcp.limit_in_bytes", p->memory_bytes / 8, "", false},
        {CTL_PIDS,   "pids.max",                       p->pids,             "", true },
        {CTL_CPU,    "cpu.cfs_quota_us",               quota,               "", false},
    };
    const struct setting v2[] = {
        {CTL_MEMORY, "memory.max",      p->memory_bytes, "",        true },
        {CTL_MEMORY, "memory.swap.max", 0,               "",        false},
        {CTL_PIDS,   "pids.max",        p->pids,         "",        true },
        {CTL_CPU,    "cpu.max",         quota,           " 100000", false},
    };

    return cg->mode == CGROUP_V2 ? apply(dir, true, v2, COUNT(v2), e)
                                 : apply(dir, false, v1, COUNT(v1), e);
}

static void box_name(uint64_t id, char ret[24])
{
    snprintf(ret, 24, "b%" PRIu64, id);
}

static void close_fds(int *fd, int n)
{
    for (int i = 0; i < n; i++)
        fd_closep(&fd[i]);
}

int cgroup_make(struct cgroups *cg, uint64_t id, struct err *e)
{
    char name[24];

    if (cg->mode == CGROUP_NONE)
        return 0;
    box_name(id, name);
    for (int i = 0; i < hierarchies(cg); i++)
        if (cg->parent[i] >= 0 && mkdirat(cg->dir[i], name, 0755) < 0)
            return err_sys(e, "make cgroup %s", name);
    return 0;
}

int cgroup_limit(struct cgroups *cg, uint64_t id, const struct box_plan *plan, struct err *e)
{
    int dir[CTL__COUNT] = {-1, -1, -1, -1};
    char name[24];
    int rc = 0;

    if (cg->mode == CGROUP_NONE)
        return 0;
    box_name(id, name);
    for (int i = 0; i < hierarchies(cg) && rc == 0; i++) {
        dir[i] = open_dir(cg->dir[i], name);
        if (dir[i] < 0)
            rc = err_sys(e, "open cgroup %s", name);
    }
    if (rc == 0)
        rc = limit(cg, dir, plan, e);
    close_fds(dir, CTL__COUNT);
    return rc;
}

int cgroup_doors(struct cgroups *cg, uint64_t id, int ret[CGROUP_DOORS_MAX], struct err *e)
{
    char name[24], path[64];
    int n = cg->mode == CGROUP_NONE ? 0 : hierarchies(cg);

    static_assert((int)CTL__COUNT <= CGROUP_DOORS_MAX, "a door per hierarchy");
    box_name(id, name);
    snprintf(path, sizeof(path), "%s/tasks", name);
    for (int i = 0; i < n; i++) {
        ret[i] = cg->mode == CGROUP_V2 ? open_dir(cg->dir[i], name)
                                       : openat(cg->dir[i], path, O_WRONLY | O_CLOEXEC);
        if (ret[i] < 0) {
            err_sys(e, "open cgroup %s", name);
            close_fds(ret, i);
            return -1;
        }
    }
    return n;
}

/* "key value" lines, as in memory.events. */
static uint64_t get_key(int dir, const char *box, const char *file, const char *key)
{
    char path[96], text[4096];
    size_t n = strlen(key);

    snprintf(path, sizeof(path), "%s/%s", box, file);
    if (fd_read_file_at(dir, path, text, sizeof(text)) < 0)
        return 0;
    for (char *save = NULL, *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
        if (strncmp(l, key, n) == 0 && l[n] == ' ')
            return strtoull(l + n, NULL, 10);
    return 0;
}

void cgroup_usage(struct cgroups *cg, uint64_t id, struct box_usage *ret)
{
    char name[24];
    const int *d = cg->dir;

    *ret = (struct box_usage){0};
    box_name(id, name);
    if (cg->mode == CGROUP_V2)
        *ret = (struct box_usage){
            .oom_kills = get_key(d[0], name, "memory.events", "oom_kill"),
            .pid_hits = get_key(d[0], name, "pids.events", "max"),
        };
    if (cg->mode == CGROUP_V1)
        *ret = (struct box_usage){
            .oom_kills = get_key(d[CTL_MEMORY], name, "memory.oom_control", "oom_kill"),
            .pid_hits = get_key(d[CTL_PIDS], name, "pids.events", "max"),
        };
}

void cgroup_meters(struct cgroups *cg, uint64_t id, int ret[METERS])
{
    static const struct {
        int dir;
        const char *file;
    } files[][METERS] = {
        [CGROUP_V1] = {[METER_CPU] = {CTL_ACCT, "cpuacct.usage"},
                       [METER_MEMORY] = {CTL_MEMORY, "memory.max_usage_in_bytes"}                    },
        [CGROUP_V2] = {[METER_CPU] = {0, "cpu.stat"},             [METER_MEMORY] = {0, "memory.peak"}},
    };
    char name[24], path[96];

    box_name(id, name);
    for (int i = 0; i < METERS; i++) {
        ret[i] = -1;
        if (cg->mode == CGROUP_NONE)
            continue;
        snprintf(path, sizeof(path), "%s/%s", name, files[cg->mode][i].file);
        ret[i] = openat(cg->dir[files[cg->mode][i].dir], path, O_RDONLY | O_CLOEXEC);
    }
}

static bool read_meter(int fd, char *ret, size_t size)
{
    ssize_t n = fd < 0 ? -1 : pread(fd, ret, size - 1, 0);

    if (n <= 0)
        return false;
    ret[n] = '\0';
    return true;
}

/* Version 2 begins with the key and counts microseconds, version 1 counts nanoseconds. */
bool meter_read_cpu(int fd, uint64_t *ret_us)
{
    static const char key[] = "usage_usec ";
    char text[64];

    if (!read_meter(fd, text, sizeof(text)))
        return false;
    if (strncmp(text, key, sizeof(key) - 1) == 0)
        *ret_us = strtoull(text + sizeof(key) - 1, NULL, 10);
    else
        *ret_us = strtoull(text, NULL, 10) / 1000;
    return true;
}

bool meter_read_memory(int fd, uint64_t *ret_bytes)
{
    char text[64];

    if (!read_meter(fd, text, sizeof(text)))
        return false;
    *ret_bytes = strtoull(text, NULL, 10);
    return true;
}

int cgroup_remove(struct cgroups *cg, uint64_t id)
{
    char name[24];

    if (cg->mode == CGROUP_NONE)
        return 0;
    box_name(id, name);
    for (int i = 0; i < hierarchies(cg); i++)
        if (unlinkat(cg->dir[i], name, AT_REMOVEDIR) < 0 && errno != ENOENT)
            return -1;
    return 0;
}
