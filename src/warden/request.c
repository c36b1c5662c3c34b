/*
 * Parses the requests of the server: the table of requests, and the range of every number in them.
 * The parser is strict, because an attacker may have taken the server over: each field comes once,
 * no field is unknown, no byte is left over.
 */
#include "warden/warden_int.h"

/* What a limit can be. Zero is none of them: to the kernel it often means that there is no limit.
 * The upper ends are those of the settings. */
static const struct plan_range {
    size_t at;
    uint64_t max;
} ranges[] = {
    {offsetof(struct box_plan, disk_bytes),   64ull * 1024 * GiB},
    {offsetof(struct box_plan, tmp_bytes),    64ull * 1024 * GiB},
    {offsetof(struct box_plan, inodes),       UINT32_MAX        },
    {offsetof(struct box_plan, pids),         32768             },
    {offsetof(struct box_plan, open_files),   1048576           },
    {offsetof(struct box_plan, memory_bytes), 64ull * 1024 * GiB},
    {offsetof(struct box_plan, cpu_percent),  102400            },
};

static bool plan_holds(const struct box_plan *p)
{
    for (size_t i = 0; i < COUNT(ranges); i++) {
        uint64_t value;
        memcpy(&value, (const char *)p + ranges[i].at, sizeof(value));
        if (value == 0 || value > ranges[i].max)
            return false;
    }
    return p->proxy <= 1;
}

static int read_number(struct wire_field f, struct warden_request *r, size_t at)
{
    return wire_num(f, (uint64_t *)(void *)((char *)r + at));
}

/* Who the box is and where it is held is for the warden to say. */
static int read_plan(struct wire_field f, struct warden_request *r, size_t at)
{
    (void)at;
    if (f.data.n != sizeof(r->plan))
        return -1;
    memcpy(&r->plan, f.data.p, sizeof(r->plan));
    r->plan.init_uid = r->plan.in_cgroup = 0;
    r->plan.nice = 0;
    if (!plan_holds(&r->plan))
        r->objection = "a limit that is none";
    return 0;
}

static int read_modules(struct wire_field f, struct warden_request *r, size_t at)
{
    (void)at;
    r->modules = f.data;
    return wire_are_modules(f.data) ? 0 : -1;
}

#define FIELDS_MAX 2

static const struct request_rule {
    uint16_t type;
    struct field_rule {
        uint16_t tag;
        int (*read)(struct wire_field f, struct warden_request *r, size_t at);
        size_t at;
        bool optional; /* the last one alone */
    } field[FIELDS_MAX];
} rules[] = {
    {MSG_POOL_START,
     {{TAG_NUMBER, read_number, offsetof(struct warden_request, environment)},
      {TAG_NAME, read_modules, .optional = true}}},
    {MSG_POOL_STOP,  {{0}}                       },
    {MSG_SPAWN,
     {{TAG_ZYGOTE, read_number, offsetof(struct warden_request, zygote)},
      {TAG_BLOB, read_plan, 0}}                  },
    {MSG_USAGE,      {{0}}                       },
    {MSG_KILL,       {{0}}                       },
    {MSG_PING,       {{0}}                       },
};

static int read_fields(const struct request_rule *rule, struct str body, struct warden_request *r)
{
    struct wire_field f;

    for (size_t i = 0; i < FIELDS_MAX && rule->field[i].read; i++)
        if (rule->field[i].optional && body.n == 0)
            break;
        else if (wire_next(&body, &f) != 1 || f.tag != rule->field[i].tag ||
                 rule->field[i].read(f, r, rule->field[i].at) < 0)
            return -1;
    return body.n == 0 ? 0 : -1;
}

int request_read(const struct wire_head *head, struct str body, struct warden_request *ret)
{
    const struct request_rule *rule = rules;

    *ret = (struct warden_request){.type = head->type, .id = head->id};
    while (rule < rules + COUNT(rules) && rule->type != head->type)
        rule++;
    if (rule == rules + COUNT(rules) || head->flags != 0 || head->id == 0)
        return -1;
    return read_fields(rule, body, ret);
}
