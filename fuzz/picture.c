/*
 * A picture from a guest: whatever is called whole has one of four types and a size, and
 * nothing is read past its end.
 *
 * links: src/doors/mcp/picture.c
 */
#include "doors/mcp/execution.h"

#include "support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct picture p;
    bool known = picture_look((struct str){(const char *)data, size}, &p);

    EXPECT(known == (p.mime != NULL));
    EXPECT(!p.whole || (p.width > 0 && p.height > 0 && size > 25));
    EXPECT(picture_why_not(&p, size) || p.whole);
    return 0;
}
