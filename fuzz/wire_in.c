/*
 * Packets put together into messages: a whole message is its parts in their order,
 * never longer than the ceiling, never mixed from two.
 */
#include "wire/wire.h"

#include "support/fuzz.h"

#define CEILING 600

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = {data, size};
    struct wire_head begun = {0};
    struct wire_in in;
    char want[CEILING];
    size_t n = 0;
    bool open = false;

    wire_in_init(&in, CEILING);
    while (feed.n > 0) {
        struct wire_head head = {
            .type = feed_byte(&feed) & 3, .flags = feed_byte(&feed), .id = feed_byte(&feed) & 1};
        struct str part = feed_text(&feed, feed_byte(&feed));
        bool fits = (!open || (head.type == begun.type && head.id == begun.id)) &&
                    (open ? n : 0) + part.n <= CEILING;
        head.len = (uint32_t)part.n;
        int rc = wire_in_add(&in, head, part);
        EXPECT(fits ? rc == !(head.flags & WIRE_MORE) : rc == -1);
        if (rc < 0)
            break; /* whoever sent this is given up */
        n = open ? n : 0;
        if (part.n > 0)
            memcpy(want + n, part.p, part.n);
        n += part.n;
        begun = head;
        open = rc == 0;
        EXPECT(in.body.n == n && (n == 0 || memcmp(in.body.p, want, n) == 0));
    }
    wire_in_done(&in);
    return 0;
}
