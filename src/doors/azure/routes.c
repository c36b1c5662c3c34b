/*
 * The operations on a pool, and how a request finds its row in their table.
 *
 * The HTTP room knows one path with a rest. The rest is parsed into a target, the target
 * selects a row, and the row says what the operation needs: the pool, an administrator, a
 * session by its identifier.
 */
#include "doors/azure/azure_int.h"
#include "lenient/lenient.h"

#include <stdio.h>
#include <stdlib.h>

/* --- what can be asked; the first row that fits counts --- */

#define IN_SESSION (NEEDS_POOL | NEEDS_SESSION)
#define KNOWN      (NEEDS_POOL | NEEDS_KNOWN)
#define UPLOAD     (IN_SESSION | NEEDS_FORM)
#define CODE       (IN_SESSION | NEEDS_JSON)

#define MANAGED (NEEDS_POOL | NEEDS_ADMIN)

// clang-format off
const struct op azure_ops[] = {
    {HTTP_POST,   "code/execute",               CODE,                     op_code_execute      },
    {HTTP_POST,   "python/execute",             CODE,                     op_python_execute    },
    {HTTP_POST,   "executions",                 CODE,                     op_executions        },
    {HTTP_POST,   "execute",                    CODE,                     op_execute           },
    {HTTP_POST,   "shellExecute",               CODE,                     op_shell_execute     },
    {HTTP_GET,    "executions/**",              KNOWN,                    op_execution_get     },

    {HTTP_GET,    "files",                      IN_SESSION,               op_files_list        },
    {HTTP_GET,    "python/files",               IN_SESSION,               op_files_list_old    },
    {HTTP_POST,   "files/upload",               UPLOAD,                   op_files_upload_old  },
    {HTTP_POST,   "python/uploadFile",          UPLOAD,                   op_files_upload_old  },
    {HTTP_POST,   "upload",                     UPLOAD,                   op_files_upload_old  },
    {HTTP_POST,   "files",                      UPLOAD,                   op_files_upload      },
    {HTTP_GET,    "python/downloadFile",        IN_SESSION,               op_file_download     },
    {HTTP_GET,    "files/content/**",           IN_SESSION,               op_file_download     },
    {HTTP_GET,    "files/**/content",           IN_SESSION,               op_file_download     },
    {HTTP_GET,    "files/**",                   IN_SESSION,               op_file_stat         },
    {HTTP_DELETE, "files/**",                   IN_SESSION,               op_file_delete       },

    {HTTP_GET,    "session",                    KNOWN,                    op_session_get       },
    {HTTP_DELETE, "session",                    KNOWN,                    op_session_delete    },
    {HTTP_POST,   ".management/stopSession",    KNOWN,                    op_session_stop      },
    {HTTP_GET,    "listSessions",               NEEDS_POOL,               op_sessions_list     },
    {HTTP_GET,    "metadata",                   NEEDS_POOL,               op_metadata          },
    {HTTP_GET,    "health",                     NEEDS_POOL,               op_health            },
    {HTTP_GET,    "health/startup",             NEEDS_POOL,               op_health            },

    {HTTP_POST,   "mcp",                        NEEDS_POOL | PART_MCP,    op_mcp_post          },
    {HTTP_GET,    "mcp",                        NEEDS_POOL | PART_MCP,    op_mcp_refuse        },
    {HTTP_DELETE, "mcp",                        NEEDS_POOL | PART_MCP,    op_mcp_refuse        },

    {HTTP_POST,   "fetchMcpServerCredentials",  MANAGED,                  op_credentials_fetch },
    {HTTP_POST,   "rotateMcpServerCredentials", MANAGED,                  op_credentials_rotate},
    {HTTP_POST,   "regenerateCredentials",      MANAGED,                  op_credentials_rotate},
    {HTTP_GET,    "",                           NEEDS_POOL,               op_pool_get          },
    {HTTP_PUT,    "",                           NEEDS_ADMIN | NEEDS_JSON, op_pool_put          },
    {HTTP_PATCH,  "",                           MANAGED | NEEDS_JSON,     op_pool_patch        },
    {HTTP_DELETE, "",                           NEEDS_ADMIN,              op_pool_delete       },

    {HTTP_GET, "", 0, op_pool_list, TARGET_POOLS},
    {HTTP_GET, "", 0, op_provider, TARGET_PROVIDER},
    {HTTP_POST, "register", 0, op_provider, TARGET_PROVIDER},
    {HTTP_GET, "", 0, op_operation_status, TARGET_OPERATION},
    {HTTP_GET, "", 0, op_group, TARGET_GROUP},
    {HTTP_PUT, "", NEEDS_ADMIN | NEEDS_JSON, op_group, TARGET_GROUP},
    {HTTP_GET, "", 0, op_environment, TARGET_ENVIRONMENT},
    {HTTP_GET, "", NEEDS_ADMIN, op_deployment_list, TARGET_DEPLOYMENTS},
    {HTTP_PUT, "", NEEDS_ADMIN | NEEDS_JSON, op_deployment_put, TARGET_DEPLOYMENT},
    {HTTP_GET, "", NEEDS_ADMIN, op_deployment_get, TARGET_DEPLOYMENT},
    {HTTP_DELETE, "", NEEDS_ADMIN, op_deployment_delete, TARGET_DEPLOYMENT},
    {HTTP_POST, "validate", NEEDS_ADMIN | NEEDS_JSON, op_deployment_validate, TARGET_DEPLOYMENT},
    {HTTP_POST, "whatIf", NEEDS_ADMIN | NEEDS_JSON, op_deployment_what_if, TARGET_DEPLOYMENT},
    {HTTP_POST, "exportTemplate", NEEDS_ADMIN, op_deployment_export, TARGET_DEPLOYMENT},
    {HTTP_GET, "operations", NEEDS_ADMIN, op_deployment_operations, TARGET_DEPLOYMENT},
    {HTTP_GET, "operations/**", NEEDS_ADMIN, op_deployment_operations, TARGET_DEPLOYMENT},
};
// clang-format on

const size_t azure_op_count = COUNT(azure_ops);

/* --- the context of a request --- */

struct service *azure_service(struct azure_request *v)
{
    return request_service(v->r);
}

const struct caller *azure_caller(struct azure_request *v)
{
    return request_caller(v->r);
}

struct str azure_identifier(struct azure_request *v)
{
    return request_query(v->r, "identifier");
}

struct str azure_version(struct azure_request *v)
{
    struct str version = request_query(v->r, "api-version");

    if (version.n == 0 || strspn(version.p, "0123456789-abcdefghijklmnopqrstuvwxyz") != version.n)
        return STR("");
    return version;
}

bool azure_is_old(struct azure_request *v)
{
    struct str version = request_query(v->r, "api-version");

    return version.n >= 7 && memcmp(version.p, "2024-10", 7) < 0;
}

const char *azure_url(struct azure_request *v, char ret[URL_TEXT_MAX])
{
    const struct azure_target *p = &v->target;
    int n = snprintf(ret, URL_TEXT_MAX, "%.300s", request_base_url(v->r));

    if (p->subscription.p && p->group.n)
        snprintf(ret + n, URL_TEXT_MAX - (size_t)n,
                 "/subscriptions/%.*s/resourceGroups/%.*s/sessionPools/%s", (int)p->subscription.n,
                 p->subscription.p, (int)p->group.n, p->group.p, v->pool_name);
    else
        snprintf(ret + n, URL_TEXT_MAX - (size_t)n, "/azure/pools/%s", v->pool_name);
    return ret;
}

static void azure_request_free(void *p)
{
    struct azure_request *v = p;

    json_decref(v->body);
    free(v->room);
    free(v);
}

/* --- from a request to its row --- */

static bool request_is_arm(struct request *r)
{
    return strncmp(request_route_path(r), "/subscriptions", 14) == 0;
}

static const struct op *find_op(struct azure_request *v, enum http_method method, bool *ret_other)
{
    *ret_other = false;
    for (size_t i = 0; i < COUNT(azure_ops); i++) {
        if (azure_ops[i].of != v->target.kind ||
            !rest_fits(azure_ops[i].path, v->target.rest, &v->name))
            continue;
        if (azure_ops[i].method == method)
            return &azure_ops[i];
        *ret_other = true;
    }
    return NULL;
}

/* What a tool of the MCP server does is checked when it is called. */
static const char *azure_part(struct request *r, bool *ret_reads)
{
    struct str path = request_path(r, "path");
    AUTO_FREE char *room = mem_zalloc(path.n + 1);
    struct azure_request v = {0};
    const struct op *op = NULL;
    bool other;

    if (azure_target_read(path, request_is_arm(r), room, &v.target))
        op = find_op(&v, request_method(r), &other);
    if (!op || !(op->needs & PART_MCP))
        return "azure";
    *ret_reads = true;
    return "azure/mcp";
}

static void find_pool(struct azure_request *v)
{
    if (v->target.kind == TARGET_POOL && pool_find(v, v->target.pool, &v->pool))
        snprintf(v->pool_name, sizeof(v->pool_name), "%s", v->pool.pool->name);
}

static bool take_body(struct azure_request *v)
{
    struct err e;

    if (request_body(v->r).n == 0) {
        v->body = json_object();
        return true;
    }
    /* az puts a template into its request as the file has it, comments included, under a name
     * without quotes; Resource Manager takes that. */
    if (request_value(v->r, &v->body, &e) < 0 &&
        !(v->target.kind == TARGET_DEPLOYMENT && (v->body = json5_read(request_body(v->r))))) {
        azure_invalid(v, "body", "%s", e.text);
        return false;
    }
    if (!json_is_object(v->body)) {
        azure_invalid(v, "body", "the body must be a JSON object");
        return false;
    }
    return true;
}

static bool allowed(struct azure_request *v, const struct op *op)
{
    size_t count;

    if ((op->needs & NEEDS_ADMIN) && !azure_caller(v)->admin) {
        azure_fail(v, 403, "AuthorizationFailed", "this needs the key of an administrator");
        return false;
    }
    if ((op->needs & NEEDS_POOL) && !v->pool.pool) {
        azure_fail(v, 404, "SessionPoolNotFound", "there is no session pool of this name");
        return false;
    }
    if (op->needs & NEEDS_FORM) {
        if (request_uploads(v->r, &count) && count > 0)
            return true;
        azure_invalid(v, "file", "a file is needed, as multipart/form-data");
        return false;
    }
    return !(op->needs & NEEDS_JSON) || take_body(v);
}

static void serve(struct request *r)
{
    bool arm = request_is_arm(r);
    struct str path = request_path(r, "path");
    struct azure_request *v = mem_zalloc(sizeof(*v));
    const struct op *op = NULL;
    bool other = false;

    *v = (struct azure_request){.r = r, .azure = request_ctx(r), .began_us = time_mono_us()};
    v->room = mem_zalloc(path.n + 1);
    request_keep(r, azure_request_free, v);
    answer_header(r, "api-supported-versions", API_VERSIONS);
    if (azure_target_read(path, arm, v->room, &v->target))
        op = find_op(v, request_method(r), &other);
    if (op) {
        find_pool(v);
        v->then = op->run;
        if (!allowed(v, op))
            return;
        if (op->needs & (NEEDS_SESSION | NEEDS_KNOWN))
            session_reach(v, (op->needs & NEEDS_SESSION) && request_method(r) == HTTP_POST);
        else
            op->run(v);
    } else if (other) {
        azure_fail(v, 405, "MethodNotAllowed", "this method is not possible here");
    } else {
        azure_fail(v, 404, "ResourceNotFound", "there is nothing at this path");
    }
}

/* --- the table of the HTTP room --- */

#define ROUTE(m, prefix, kind)                                                                     \
    {                                                                                              \
        .method = (m), .path = prefix "/{path...}", .id = "azure",                                 \
        .flags = ROUTE_HIDDEN | ROUTE_QUERY, .body_kind = (kind), .body_max = BODY_AZURE_MAX,      \
        .status = 200, .handle = serve                                                             \
    }

static const struct route routes[] = {
    ROUTE(HTTP_GET, "/azure", BODY_NONE),
    ROUTE(HTTP_POST, "/azure", BODY_ANY),
    ROUTE(HTTP_PUT, "/azure", BODY_BYTES),
    ROUTE(HTTP_PATCH, "/azure", BODY_BYTES),
    ROUTE(HTTP_DELETE, "/azure", BODY_NONE),
    ROUTE(HTTP_GET, "/subscriptions", BODY_NONE),
    ROUTE(HTTP_POST, "/subscriptions", BODY_ANY),
    ROUTE(HTTP_PUT, "/subscriptions", BODY_BYTES),
    ROUTE(HTTP_PATCH, "/subscriptions", BODY_BYTES),
    ROUTE(HTTP_DELETE, "/subscriptions", BODY_NONE),
};

struct azure *azure_new(struct mcp *m, struct loop *l)
{
    struct azure *a = mem_zalloc(sizeof(*a));

    a->mcp = m;
    a->operations = operations_new();
    a->probes = probes_new(l);
    return a;
}

void azure_free(void *room)
{
    struct azure *a = room;

    operations_free(a->operations);
    probes_free(a->probes);
    free(a);
}

const struct door azure_door = {.name = "azure",
                                .routes = routes,
                                .route_count = COUNT(routes),
                                .error = azure_error,
                                .part = azure_part};
