/* Checks before the server starts, and lookups for its start. */
#include "cli/serve_int.h"
#include "egress/egress.h"
#include "sandbox/probe.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define PEM_MAX    (1 * MiB)
#define ANSWER_MAX 256

/* --- isolation --- */

int floor_check(const struct settings *s, struct err *e)
{
    for (size_t i = 0; i < layers_count; i++) {
        const struct layer *l = &layers[i];
        struct layer_found found;
        if (!l->floor && s->serve.floor != FLOOR_ALL)
            continue;
        layer_try(l, &found);
        if (found.state == LAYER_OK || (found.state == LAYER_WEAKER && s->serve.floor != FLOOR_ALL))
            continue;
        return err_set(e, ERR_HOST,
                       "this machine is below the isolation floor: %s: %.200s%s%.200s; see retort "
                       "doctor",
                       l->name, found.detail, found.remedy[0] ? ". Help: " : "", found.remedy);
    }
    return 0;
}

/* --- who can reach us --- */

static const struct listener *first_open(const struct listeners *ls)
{
    for (size_t i = 0; i < ls->count; i++)
        if (!ls->item[i].local)
            return &ls->item[i];
    return NULL;
}

int access_check(const struct settings *s, const struct listeners *ls, struct err *e)
{
    const struct listener *l = first_open(ls);
    char shown[ADDRESS_SHOWN];

    if (!l || s->serve.tls_cert || s->serve.plain_http)
        return 0;
    listener_show(l, false, shown);
    return err_set(
        e, ERR_CALLER,
        "other machines can reach %s, and keys would travel in the open; give --tls-cert "
        "and --tls-key, or say --plain-http if a proxy in front of it speaks TLS",
        shown);
}

static int any_key(struct db *db, void *arg, struct err *e)
{
    struct key_row *keys = NULL;
    size_t count = 0;
    bool *any = arg;
    int rc = db_key_list(db, &keys, &count, e);

    for (size_t i = 0; i < count; i++) {
        *any |= keys[i].revoked_ms == 0;
        key_row_done(&keys[i]);
    }
    free(keys);
    return rc;
}

int keys_check(const struct store_config *config, const struct listeners *ls, bool *ret_any,
               struct err *e)
{
    const struct listener *l = first_open(ls);
    struct store *st = store_open(NULL, config, e);
    char shown[ADDRESS_SHOWN];
    int rc;

    *ret_any = false;
    if (!st)
        return -1;
    rc = store_call(st, any_key, ret_any, e);
    store_close(st);
    if (rc < 0 || *ret_any || !l)
        return rc;
    listener_show(l, false, shown);
    return err_set(e, ERR_CALLER,
                   "other machines can reach %s, and there is no key yet; first run: retort keys "
                   "create --tenant NAME %s %s",
                   shown, config->url ? "--store" : "--state",
                   config->url ? config->url : config->dir);
}

/* --- the way out of a sandbox --- */

int egress_check(const struct settings *s, struct err *e)
{
    for (size_t i = 0; i < s->pool_count; i++) {
        const struct service_pool *p = &s->pools[i];
        struct egress_policy *policy;
        if (p->egress != EGRESS_ALLOW_LIST)
            continue;
        policy = egress_policy_new(p->egress_hosts, false, e);
        if (!policy)
            return err_wrap(e, "pool %s: egress-hosts", p->name);
        egress_policy_free(policy);
    }
    return 0;
}

/* --- who must agree --- */

int approval_rules_check(const struct settings *s, struct err *e)
{
    bool rules = false, asks = false;

    for (size_t i = 0; i < s->pool_count; i++) {
        const struct service_pool *p = &s->pools[i];
        asks |= p->approval != POLICY_AUTO;
        if (!p->approval_when || !*p->approval_when)
            continue;
        rules = true;
        if (approval_when_check(p->approval_when, e) < 0)
            return err_wrap(e, "pool %s: approval-when", p->name);
    }
    if (rules && !asks)
        return err_set(e, ERR_CALLER,
                       "approval-when says about what to ask, but approval = auto asks nobody; set "
                       "it to ask_first or always_ask");
    return 0;
}

/* --- files --- */

/* The server reads it when it is somebody else already, who must not be able to read the original.
 */
int file_keep(const char *flag, const char *path, char ret[KEPT_PATH_MAX], struct err *e)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    AUTO_CLOSE int kept = -1;
    struct stat st;
    ssize_t n = -1;

    if (fd >= 0 && fstat(fd, &st) == 0 && (!S_ISREG(st.st_mode) || st.st_size > (off_t)PEM_MAX))
        return err_set(e, ERR_CALLER, "%s: %s is not a PEM file", flag, path);
    if (fd >= 0 && (kept = memfd_create("pem", MFD_CLOEXEC)) >= 0)
        n = sendfile(kept, fd, NULL, PEM_MAX);
    if (n < 0) {
        err_sys(e, "%s: cannot read %s", flag, path);
        e->kind = ERR_CALLER;
        return -1;
    }
    snprintf(ret, KEPT_PATH_MAX, "/proc/self/fd/%d", kept);
    return take_fd(&kept);
}

/* --- modules --- */

/* Looked up, not imported. */
static const char question[] =
    "from importlib import util\n"
    "def there(module):\n"
    "    try:\n"
    "        return util.find_spec(module.split('.')[0]) is not None\n"
    "    except Exception:\n"
    "        return False\n"
    "print(','.join(m for m in '" PRELOAD_DEFAULT "'.split(', ') if there(m)))\n";

int preload_default(struct service_pool *p, const struct server_user *as, struct err *e)
{
    char answer[ANSWER_MAX];

    if (python_ask(p->python, question, as, answer, sizeof(answer), e) < 0)
        return -1;
    answer[strcspn(answer, "\n")] = '\0';
    p->preload = mem_strdup(answer);
    return 0;
}
