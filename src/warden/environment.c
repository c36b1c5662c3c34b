/*
 * The directories that zygotes are made of. The warden opens them at its start, while it has all
 * rights and before the server reads a byte from a stranger. From then on the open directory
 * counts: a path that leads elsewhere later, because somebody swapped a link, changes nothing.
 *
 * Without privilege there is nothing to protect, and a mount can only be made from a path (a
 * descriptor belongs to the old mount namespace). So directories stay paths then.
 */
#include "warden/warden_int.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIR_FLAGS (O_PATH | O_DIRECTORY)

static int add_dir(struct open_environment *env, struct root_dir dir, bool is_open, struct err *e)
{
    if (env->dir_count == COUNT(env->dirs))
        return err_set(e, ERR_LIMIT, "more than %d directories to show", DIRS_MAX);
    if (is_open && dir.fd < 0 && (dir.fd = open(dir.path, DIR_FLAGS | O_CLOEXEC)) < 0)
        return err_sys(e, "open '%s'", dir.path);
    env->dirs[env->dir_count++] = dir;
    return 0;
}

/* A name for this interpreter's cache. It belongs to the zygote's uid, so instances with other
 * blocks of uids have their own. */
static void cache_name(const char *python, uint32_t uid_base, char ret[48])
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */

    for (const char *c = python; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    if (uid_base > UID_BASE)
        snprintf(ret, 48, "%016" PRIx64 ".%u", hash, (uid_base - UID_BASE) / UID_COUNT);
    else
        snprintf(ret, 48, "%016" PRIx64, hash);
}

/* Below a directory that is open, across no link. */
static int make_cache(int base, const char *name, uint32_t uid_base, struct err *e)
{
    AUTO_CLOSE int fd = -1;

    if (mkdirat(base, name, 0755) < 0 && errno != EEXIST)
        return err_sys(e, "make the cache '%s'", name);
    fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "open the cache '%s'", name);
    if (uid_base && fchown(fd, uid_base, uid_base) < 0)
        return err_sys(e, "own the cache '%s'", name);
    return take_fd(&fd);
}

static int add_cache(struct open_environment *env, const char *dir, uint32_t uid_base,
                     struct err *e)
{
    AUTO_CLOSE int base = open(dir, DIR_FLAGS | O_CLOEXEC);
    AUTO_CLOSE int fd = -1;
    AUTO_FREE char *path = NULL;
    char name[48];

    cache_name(env->python, uid_base, name);
    if (base < 0)
        return err_sys(e, "open '%s'", dir);
    fd = make_cache(base, name, uid_base, e);
    if (fd < 0)
        return -1;
    if (asprintf(&path, "%s/%s", dir, name) < 0)
        return err_set(e, ERR_HOST, "out of memory");
    const struct root_dir cache = {path, BOX_CACHE_DIR, uid_base ? take_fd(&fd) : -1, true};
    take_ptr(&path); /* as long as the warden lives */
    return add_dir(env, cache, uid_base != 0, e);
}

static int environment_open(struct open_environment *env, const struct warden_environment *from,
                            const struct warden_config *config, uint32_t uid_base, struct err *e)
{
    const struct root_dir guest = {config->guest_dir, BOX_GUEST_DIR, -1, false};
    bool is_open = uid_base != 0;

    *env = (struct open_environment){.python = from->python, .preload = from->preload};
    if (!from->python)
        return err_set(e, ERR_CALLER, "this environment has no interpreter");
    for (const char *const *dir = from->dirs; dir && *dir; dir++)
        if (add_dir(env, (struct root_dir){*dir, NULL, -1, false}, is_open, e) < 0)
            return -1;
    for (size_t i = 0; i < config->folder_count; i++) {
        const struct warden_folder *f = &config->folders[i];
        if (add_dir(env, (struct root_dir){f->path, f->where, -1, f->writable}, is_open, e) < 0)
            return -1;
    }
    if (add_dir(env, guest, is_open, e) < 0)
        return -1;
    return config->cache_dir ? add_cache(env, config->cache_dir, uid_base, e) : 0;
}

struct open_environment *environments_open(const struct warden_config *config, uint32_t uid_base)
{
    struct open_environment *envs = mem_zalloc((config->environment_count + 1) * sizeof(*envs));

    for (size_t i = 0; i < config->environment_count; i++)
        (void)!environment_open(&envs[i], &config->environments[i], config, uid_base,
                                &envs[i].failed);
    return envs;
}
