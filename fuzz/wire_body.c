/*
 * A message body: every field lies inside of it, and writing the fields again
 * gives the bytes they were read from.
 */
#include "wire/wire.h"

#include "support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct str whole = {(const char *)data, size};
    struct str rest = whole, found;
    struct wire_field f;
    struct buf again;
    uint64_t number;
    int rc;

    buf_init(&again, size + 1);
    while ((rc = wire_next(&rest, &f)) == 1) {
        EXPECT(f.data.p >= whole.p && f.data.p + f.data.n <= whole.p + whole.n);
        EXPECT(rest.p == f.data.p + f.data.n);
        touch(f.data);
        wire_put(&again, f.tag, f.data);
        EXPECT(again.n == size - rest.n && memcmp(again.p, whole.p, again.n) == 0);
        EXPECT(wire_find(whole, f.tag, &found) && found.p <= f.data.p);
        EXPECT((wire_num(f, &number) == 0) == (f.data.n == sizeof(number)));
    }
    EXPECT(rc == 0 ? rest.n == 0 : rest.n > 0);
    for (unsigned tag = 0; tag < 64; tag++) {
        if (wire_find(whole, (uint16_t)tag, &found))
            touch(found);
        if (wire_find_num(whole, (uint16_t)tag, &number))
            EXPECT(wire_find(whole, (uint16_t)tag, &found) && found.n == sizeof(number));
    }
    buf_done(&again);
    return 0;
}
