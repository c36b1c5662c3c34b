/*
 * The environments that pools are made of. The settings name them; the engine asks their
 * interpreters once, at its start, and tells the warden with the fork. A pool that is made later
 * has one of these environments.
 */
#include "engine/engine_int.h"

#include "sandbox/server.h"
#include "warden/warden.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : !a && !b;
}

static const char *preload_of(const struct engine_environment *env)
{
    return env->preload ? env->preload : "";
}

static struct known_environment *find(const struct engine *en, const struct engine_environment *env)
{
    for (size_t i = 0; i < en->environment_count; i++)
        if (is_same(en->environments[i].python, env->python) &&
            strcmp(en->environments[i].preload, preload_of(env)) == 0)
            return &en->environments[i];
    return NULL;
}

/* The same interpreter with other modules has the same answer. */
static void ask(const struct engine *en, struct known_environment *k, const struct server_user *as)
{
    for (const struct known_environment *before = en->environments; before < k; before++) {
        if (is_same(before->python, k->python)) {
            k->info = before->info;
            k->failed = before->failed;
            return;
        }
    }
    (void)!python_probe(k->python, as, &k->info, &k->failed);
}

void environments_learn(struct engine *en, const struct engine_config *config)
{
    en->environments = mem_zalloc((config->environment_count + 1) * sizeof(*en->environments));
    for (size_t i = 0; i < config->environment_count; i++) {
        const struct engine_environment *env = &config->environments[i];
        struct known_environment *k = &en->environments[en->environment_count];
        if (find(en, env))
            continue;
        *k = (struct known_environment){.python = env->python ? mem_strdup(env->python) : NULL,
                                        .preload = mem_strdup(preload_of(env))};
        ask(en, k, config->ask_as);
        en->environment_count++;
    }
}

void environments_forget(struct engine *en)
{
    for (size_t i = 0; i < en->environment_count; i++) {
        free(en->environments[i].python);
        free(en->environments[i].preload);
    }
    free(en->environments);
}

int environment_number(const struct engine *en, const struct engine_environment *env, struct err *e)
{
    const struct known_environment *k = find(en, env);

    if (!k)
        return err_set(e, ERR_CALLER,
                       "Python '%s' with these modules was not among the settings when the server "
                       "started",
                       env->python ? env->python : "python3");
    if (k->failed.kind) {
        *e = k->failed;
        return -1;
    }
    return (int)(k - en->environments);
}

int engine_check_environment(const struct engine *en, const struct engine_environment *env,
                             struct err *e)
{
    return environment_number(en, env, e) < 0 ? -1 : 0;
}

/* --- what the warden is told --- */

/* Where caches may live; "" when there is no such place, which only costs time. */
static void find_cache(const char *wanted, char *ret, size_t size)
{
    const char *xdg = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");

    if (wanted)
        snprintf(ret, size, "%s", wanted);
    else if (geteuid() == 0)
        snprintf(ret, size, "/var/cache/retort");
    else if (xdg && *xdg == '/')
        snprintf(ret, size, "%s/retort", xdg);
    else if (home && *home == '/')
        snprintf(ret, size, "%s/.cache/retort", home);
    for (char *p = ret + 1; *ret; p++) {
        char was = *p;
        if (was != '/' && was != '\0')
            continue;
        *p = '\0';
        if (mkdir(ret, 0755) < 0 && errno != EEXIST) {
            *ret = '\0';
            return;
        }
        *p = was;
        if (was == '\0')
            return;
    }
}

static void tell(const struct known_environment *k, struct warden_environment *ret,
                 const char *ret_dirs[PYTHON_DIRS_MAX + 1])
{
    for (size_t i = 0; i < k->info.dir_count; i++)
        ret_dirs[i] = k->info.dirs[i];
    *ret = (struct warden_environment){
        .python = k->failed.kind ? NULL : k->info.executable,
        .preload = k->preload,
        .dirs = ret_dirs,
    };
}

/* --- whose sandboxes are --- */

/* What the sandboxes' own users could not read, the caller alone can: its sandboxes stay its own.
 */
static int check_public(const char *path, struct err *e)
{
    struct stat st;

    if (stat(path, &st) == 0 && (st.st_mode & (S_IROTH | S_IXOTH)) != (S_IROTH | S_IXOTH))
        return err_set(e, ERR_HOST, "others may not read '%s'", path);
    return 0;
}

static int check_all_public(const struct engine *en, const char *guest_dir, struct err *e)
{
    for (size_t i = 0; i < en->environment_count; i++) {
        const struct known_environment *k = &en->environments[i];
        for (size_t d = 0; !k->failed.kind && d < k->info.dir_count; d++)
            if (check_public(k->info.dirs[d], e) < 0)
                return -1;
        if (!k->failed.kind && check_public(k->info.executable, e) < 0)
            return -1;
    }
    return check_public(guest_dir, e);
}

/* Root's sandboxes get theirs from the warden; an ordinary user's from its subordinate ids. */
static struct uids find_users(struct engine *en, const struct engine_config *config)
{
    struct uids uids = {0};
    struct err *why = &en->shared_user;

    if (uids_are_mapped())
        return uids;
    if (config->one_user)
        err_set(why, ERR_HOST, "the setting sandbox-users is 'one'");
    else if (config->folder_count > 0)
        err_set(why, ERR_HOST, "folders of the user's own are shown to them");
    else if (check_all_public(en, config->guest_dir, why) == 0 &&
             subids_enter(&uids, &en->uid_lock, why) == 0)
        *why = (struct err){0};
    return uids;
}

int environments_hand_over(struct engine *en, const struct engine_config *config, struct err *e)
{
    size_t n = en->environment_count;
    struct warden_environment *envs = mem_zalloc((n + 1) * sizeof(*envs));
    const char *(*dirs)[PYTHON_DIRS_MAX + 1] = mem_zalloc((n + 1) * sizeof(*dirs));
    struct warden_folder folders[FOLDERS_MAX];
    char cache[PATH_MAX] = "";
    int sock;

    assert(config->folder_count <= FOLDERS_MAX);
    for (size_t i = 0; i < config->folder_count; i++)
        folders[i] = (struct warden_folder){config->folders[i].path, config->folders[i].where,
                                            config->folders[i].writable};
    find_cache(config->cache_dir, cache, sizeof(cache));
    for (size_t i = 0; i < n; i++)
        tell(&en->environments[i], &envs[i], dirs[i]);
    const struct warden_config warden = {
        .guest_dir = config->guest_dir,
        .folders = folders,
        .folder_count = config->folder_count,
        .cache_dir = *cache ? cache : NULL,
        .environments = envs,
        .environment_count = n,
        .uids = find_users(en, config),
    };
    sock = warden_start(&warden, &en->warden_pidfd, e);
    if (sock >= 0 && warden.uids.subordinate && server_rights_drop(e) < 0)
        fd_closep(&sock);
    free(envs);
    free(dirs);
    return sock;
}
