/*
 * A request to the warden, from a server that may have been taken over: what is accepted has an id,
 * known flags and, where it brings limits, limits that hold; who a sandbox is never comes along.
 *
 * links: src/warden/request.c
 */
#include "warden/warden_int.h"

#include "support/fuzz.h"

static void check_plan(const struct warden_request *r)
{
    const struct box_plan *p = &r->plan;
    const uint64_t limits[] = {p->disk_bytes, p->tmp_bytes,    p->inodes,     p->pids,
                               p->open_files, p->memory_bytes, p->cpu_percent};

    EXPECT(p->init_uid == 0 && p->in_cgroup == 0);
    for (size_t i = 0; i < COUNT(limits) && !r->objection; i++)
        EXPECT(limits[i] > 0 && limits[i] <= 64ull * 1024 * GiB);
    EXPECT(r->objection || (p->proxy <= 1 && p->pids <= 32768 && p->cpu_percent <= 102400));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wire_head head;
    struct warden_request r;

    if (size < sizeof(head) || size - sizeof(head) > WIRE_BODY_MAX)
        return 0;
    memcpy(&head, data, sizeof(head));
    struct str body = {(const char *)data + sizeof(head), size - sizeof(head)};
    if (request_read(&head, body, &r) < 0)
        return 0;
    EXPECT(head.flags == 0 && r.id != 0 && r.id == head.id && r.type == head.type);
    EXPECT(r.type >= MSG_POOL_START && r.type <= MSG_KILL);
    EXPECT(r.type == MSG_SPAWN || r.type == MSG_POOL_START || body.n == 0);
    if (r.type == MSG_SPAWN)
        check_plan(&r);
    else
        EXPECT(!r.objection);
    return 0;
}
