/*
 * How to connect to PostgreSQL. The URL names the server; libpq parses the URL, and reads its usual
 * environment (PGPASSWORD, PGPASSFILE, PGSSLMODE).
 *
 * A password in the URL would be seen in the list of processes, in unit files and in logs, so it is
 * refused. Over a network the certificate of the database is verified, unless the operator says
 * otherwise: without that anybody between the two could read the connection.
 */
#include "store/postgres_int.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CA_FILE "/etc/ssl/certs/ca-certificates.crt"

bool store_url_is(const char *url)
{
    return strncmp(url, "postgresql://", 13) == 0 || strncmp(url, "postgres://", 11) == 0;
}

static const char *value_of(const PQconninfoOption *options, const char *keyword)
{
    for (const PQconninfoOption *o = options; o->keyword; o++)
        if (strcmp(o->keyword, keyword) == 0)
            return o->val && *o->val ? o->val : NULL;
    return NULL;
}

static PQconninfoOption *parse(const char *url, struct err *e)
{
    static const char *const secret[] = {"password", "sslpassword"};
    char *why = NULL;
    PQconninfoOption *options = NULL;

    if (!store_url_is(url)) {
        err_set(e, ERR_CALLER, "say a URL that begins with postgresql://");
        return NULL;
    }
    options = PQconninfoParse(url, &why);
    if (!options) {
        err_set(e, ERR_CALLER, "%.*s", why ? (int)strcspn(why, "\n") : 0, why ? why : "");
        PQfreemem(why);
        return NULL;
    }
    for (size_t i = 0; i < COUNT(secret); i++)
        if (value_of(options, secret[i])) {
            err_set(
                e, ERR_CALLER,
                "there is a password in it, which every process of this machine could read; put "
                "it into a file and say --store-password-file FILE, or into PGPASSWORD");
            PQconninfoFree(options);
            return NULL;
        }
    return options;
}

int store_url_check(const char *url, struct err *e)
{
    PQconninfoOption *options = parse(url, e);

    PQconninfoFree(options);
    return options ? 0 : -1;
}

bool postgres_host_is_near(const char *host)
{
    struct in6_addr six;
    struct in_addr four;

    if (!*host || *host == '/' || *host == '@' || strcmp(host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, host, &four) == 1)
        return ntohl(four.s_addr) >> 24 == IN_LOOPBACKNET;
    return inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

/* Whether a name of the list is of another machine. None at all is a socket of this one. */
static bool is_far(const char *hosts)
{
    AUTO_FREE char *all = mem_strdup(hosts ? hosts : "");
    char *rest = all;

    for (const char *host; (host = strsep(&rest, ","));)
        if (!postgres_host_is_near(host))
            return true;
    return false;
}

struct postgres_params {
    char **keywords, **values;
    size_t count;
};

static void add(struct postgres_params *p, const char *keyword, const char *value)
{
    p->keywords[p->count] = mem_strdup(keyword);
    p->values[p->count++] = mem_strdup(value);
}

/* What neither the URL nor the environment says. */
static void add_defaults(struct postgres_params *p, const PQconninfoOption *options)
{
    const char *hosts = value_of(options, "host"), *home = getenv("HOME");
    char own_ca[1024];
    size_t i;
    const struct {
        const char *keyword, *env, *value;
    } defaults[] = {
        {"gssencmode",          "PGGSSENCMODE", "disable"}, /* asks for Kerberos at every start */
        {"connect_timeout",     "",             "3"      },
        {"keepalives_idle",     "",             "5"      },
        {"keepalives_interval", "",             "2"      },
        {"keepalives_count",    "",             "3"      },
        {"tcp_user_timeout",    "",             "10000"  },
        {"client_encoding",     "",             "UTF8"   },
    };

    for (i = 0; i < COUNT(defaults); i++)
        if (!value_of(options, defaults[i].keyword) && !getenv(defaults[i].env))
            add(p, defaults[i].keyword, defaults[i].value);
    if (!hosts)
        hosts = value_of(options, "hostaddr");
    if (!hosts)
        hosts = getenv("PGHOST");
    if (!is_far(hosts) || value_of(options, "sslmode") || getenv("PGSSLMODE"))
        return;
    add(p, "sslmode", "verify-full");
    snprintf(own_ca, sizeof(own_ca), "%s/.postgresql/root.crt", home ? home : "");
    if (!value_of(options, "sslrootcert") && !getenv("PGSSLROOTCERT") && access(own_ca, R_OK) < 0)
        add(p, "sslrootcert", CA_FILE);
}

int postgres_params(const char *url, const char *password, char ***ret_keywords, char ***ret_values,
                    struct err *e)
{
    PQconninfoOption *options = parse(url, e);
    size_t most = 16; /* our own */
    struct postgres_params p = {0};

    if (!options)
        return -1;
    for (const PQconninfoOption *o = options; o->keyword; o++)
        most++;
    p.keywords = mem_zalloc(most * sizeof(*p.keywords));
    p.values = mem_zalloc(most * sizeof(*p.values));
    for (const PQconninfoOption *o = options; o->keyword; o++)
        if (o->val && *o->val && strcmp(o->keyword, "application_name") != 0)
            add(&p, o->keyword, o->val);
    add_defaults(&p, options);
    if (password)
        add(&p, "password", password);
    PQconninfoFree(options);
    *ret_keywords = p.keywords;
    *ret_values = p.values;
    return 0;
}

void postgres_params_free(char **list)
{
    for (char **p = list; p && *p; p++)
        free(*p);
    free(list);
}
