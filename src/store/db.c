/* The calls of struct db: each goes to the database behind it. */
#include "store/store_int.h"

/* --- key --- */

int db_key_put(struct db *db, const struct key_row *r, struct err *e)
{
    return db->ops->key_put(db, r, e);
}

int db_key_list(struct db *db, struct key_row **ret, size_t *ret_count, struct err *e)
{
    return db->ops->key_list(db, ret, ret_count, e);
}

int db_key_revoke(struct db *db, const char *id, int64_t now_ms, struct err *e)
{
    return db->ops->key_revoke(db, id, now_ms, e);
}

int db_key_used(struct db *db, const char *id, int64_t now_ms, struct err *e)
{
    return db->ops->key_used(db, id, now_ms, e);
}

/* --- session --- */

int db_session_put(struct db *db, const struct session_row *r, struct err *e)
{
    return db->ops->session_put(db, r, e);
}

int db_session_get(struct db *db, const char *tenant, const char *id, struct session_row *ret,
                   struct err *e)
{
    return db->ops->session_get(db, tenant, id, ret, e);
}

int db_session_named(struct db *db, const char *tenant, const char *pool, const char *name,
                     struct session_row *ret, struct err *e)
{
    return db->ops->session_named(db, tenant, pool, name, ret, e);
}

int db_session_list(struct db *db, const char *tenant, struct page page, struct session_row **ret,
                    size_t *ret_count, struct err *e)
{
    return db->ops->session_list(db, tenant, page, ret, ret_count, e);
}

int db_session_delete(struct db *db, const char *tenant, const char *id, struct err *e)
{
    return db->ops->session_delete(db, tenant, id, e);
}

int db_session_expired(struct db *db, int64_t now_ms, size_t limit, struct session_row **ret,
                       size_t *ret_count, struct err *e)
{
    return db->ops->session_expired(db, now_ms, limit, ret, ret_count, e);
}

int db_session_in_pool(struct db *db, const char *pool, size_t limit, struct session_row **ret,
                       size_t *ret_count, struct err *e)
{
    return db->ops->session_in_pool(db, pool, limit, ret, ret_count, e);
}

int db_session_count(struct db *db, uint64_t *ret, struct err *e)
{
    return db->ops->session_count(db, ret, e);
}

int db_session_all_asleep(struct db *db, int live_state, int asleep_state, struct err *e)
{
    return db->ops->session_all_asleep(db, live_state, asleep_state, e);
}

/* --- space --- */

int db_space_put(struct db *db, const char *session, const struct space_row *r, struct err *e)
{
    return db->ops->space_put(db, session, r, e);
}

int db_space_drop(struct db *db, const char *session, struct str path, struct err *e)
{
    return db->ops->space_drop(db, session, path, e);
}

int db_space_get(struct db *db, const char *session, struct str path, struct space_row *ret,
                 struct err *e)
{
    return db->ops->space_get(db, session, path, ret, e);
}

int db_space_list(struct db *db, const char *session, struct space_row **ret, size_t *ret_count,
                  struct err *e)
{
    return db->ops->space_list(db, session, ret, ret_count, e);
}

/* --- exec --- */

int db_exec_put(struct db *db, const struct exec_row *r, struct err *e)
{
    return db->ops->exec_put(db, r, e);
}

int db_exec_get(struct db *db, const char *tenant, const char *id, struct exec_row *ret,
                struct err *e)
{
    return db->ops->exec_get(db, tenant, id, ret, e);
}

int db_exec_list(struct db *db, const struct exec_filter *f, struct page page, bool whole,
                 struct exec_row **ret, size_t *ret_count, struct err *e)
{
    return db->ops->exec_list(db, f, page, whole, ret, ret_count, e);
}

int db_exec_all_lost(struct db *db, int64_t now_ms, struct err *e)
{
    return db->ops->exec_all_lost(db, now_ms, e);
}

int db_exec_forget(struct db *db, int64_t before_ms, size_t limit, struct err *e)
{
    return db->ops->exec_forget(db, before_ms, limit, e);
}

/* --- file --- */

int db_file_put(struct db *db, const struct file_row *r, struct err *e)
{
    return db->ops->file_put(db, r, e);
}

int db_file_get(struct db *db, const char *tenant, const char *id, struct file_row *ret,
                struct err *e)
{
    return db->ops->file_get(db, tenant, id, ret, e);
}

int db_file_list(struct db *db, const char *tenant, int64_t now_ms, struct page page,
                 struct file_row **ret, size_t *ret_count, struct err *e)
{
    return db->ops->file_list(db, tenant, now_ms, page, ret, ret_count, e);
}

int db_file_bytes(struct db *db, const char *tenant, int64_t now_ms, uint64_t *ret, struct err *e)
{
    return db->ops->file_bytes(db, tenant, now_ms, ret, e);
}

int db_file_delete(struct db *db, const char *tenant, const char *id, struct err *e)
{
    return db->ops->file_delete(db, tenant, id, e);
}

int db_file_expire(struct db *db, int64_t now_ms, int64_t forget_ms, size_t limit, struct err *e)
{
    return db->ops->file_expire(db, now_ms, forget_ms, limit, e);
}

/* --- approval --- */

int db_approval_put(struct db *db, const struct approval_row *r, struct err *e)
{
    return db->ops->approval_put(db, r, e);
}

int db_approval_get(struct db *db, const char *tenant, const char *id, struct approval_row *ret,
                    struct err *e)
{
    return db->ops->approval_get(db, tenant, id, ret, e);
}

int db_approval_open(struct db *db, const char *tenant, const char *key, const uint8_t digest[32],
                     int64_t now_ms, struct approval_row *ret, struct err *e)
{
    return db->ops->approval_open(db, tenant, key, digest, now_ms, ret, e);
}

int db_approval_lasting(struct db *db, const char *tenant, const char *key, const char *tool,
                        const char *session, const char *conversation, struct approval_row *ret,
                        struct err *e)
{
    return db->ops->approval_lasting(db, tenant, key, tool, session, conversation, ret, e);
}

int db_approval_count(struct db *db, const char *tenant, int64_t now_ms, uint64_t *ret_pending,
                      struct err *e)
{
    return db->ops->approval_count(db, tenant, now_ms, ret_pending, e);
}

int db_approval_list(struct db *db, const char *tenant, int state, struct page page,
                     struct approval_row **ret, size_t *ret_count, struct err *e)
{
    return db->ops->approval_list(db, tenant, state, page, ret, ret_count, e);
}

int db_approval_expire(struct db *db, int64_t now_ms, struct err *e)
{
    return db->ops->approval_expire(db, now_ms, e);
}

int db_approval_forget(struct db *db, int64_t before_ms, size_t limit, struct err *e)
{
    return db->ops->approval_forget(db, before_ms, limit, e);
}

/* --- pool --- */

int db_pool_put(struct db *db, const struct pool_row *r, struct err *e)
{
    return db->ops->pool_put(db, r, e);
}

int db_pool_list(struct db *db, struct pool_row **ret, size_t *ret_count, struct err *e)
{
    return db->ops->pool_list(db, ret, ret_count, e);
}

int db_pool_delete(struct db *db, const char *name, struct err *e)
{
    return db->ops->pool_delete(db, name, e);
}

int db_pool_key_put(struct db *db, const struct pool_key_row *r, struct err *e)
{
    return db->ops->pool_key_put(db, r, e);
}

int db_pool_key_get(struct db *db, const char *pool, const char *tenant, struct pool_key_row *ret,
                    struct err *e)
{
    return db->ops->pool_key_get(db, pool, tenant, ret, e);
}

/* --- item --- */

int db_item_put(struct db *db, const struct item_row *r, struct err *e)
{
    return db->ops->item_put(db, r, e);
}

int db_item_get(struct db *db, const char *tenant, const char *kind, const char *id,
                struct item_row *ret, struct err *e)
{
    return db->ops->item_get(db, tenant, kind, id, ret, e);
}

int db_item_list(struct db *db, const struct item_filter *f, struct item_row **ret,
                 size_t *ret_count, uint64_t *ret_total, struct err *e)
{
    return db->ops->item_list(db, f, ret, ret_count, ret_total, e);
}

int db_item_delete(struct db *db, const char *tenant, const char *kind, const char *id,
                   struct err *e)
{
    return db->ops->item_delete(db, tenant, kind, id, e);
}

int db_item_expire(struct db *db, int64_t now_ms, size_t limit, struct err *e)
{
    return db->ops->item_expire(db, now_ms, limit, e);
}

/* --- loop --- */

int db_loop_put(struct db *db, const struct loop_row *r, struct err *e)
{
    return db->ops->loop_put(db, r, e);
}

int db_loop_get(struct db *db, const char *tenant, const char *id, struct loop_row *ret,
                struct err *e)
{
    return db->ops->loop_get(db, tenant, id, ret, e);
}

int db_loop_list(struct db *db, const char *tenant, const char *owner, struct page page,
                 struct loop_row **ret, size_t *ret_count, struct err *e)
{
    return db->ops->loop_list(db, tenant, owner, page, ret, ret_count, e);
}

int db_loop_unfinished(struct db *db, size_t limit, struct loop_row **ret, size_t *ret_count,
                       struct err *e)
{
    return db->ops->loop_unfinished(db, limit, ret, ret_count, e);
}

int db_loop_forget(struct db *db, int64_t before_ms, size_t limit, struct err *e)
{
    return db->ops->loop_forget(db, before_ms, limit, e);
}
