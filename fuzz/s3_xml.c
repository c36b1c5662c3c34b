/*
 * A page of objects as an S3 server lists them: what is taken from it is the names of blobs, below
 * our prefix, and nothing else.
 *
 * links: src/store/s3_xml.c src/store/id.c
 */
#include "store/s3_int.h"

#include "support/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed f = {data, size};
    bool has_prefix = feed_byte(&f) & 1;
    struct str xml = feed_text(&f, size);
    struct s3_page page = {0};

    s3_page_parse(xml, has_prefix ? "p/" : "", &page);
    EXPECT(page.count <= 1000 && strlen(page.last) < sizeof(page.last));
    for (size_t i = 0; i < page.count; i++) {
        EXPECT(blob_is_hash(page.at[i].hash));
        EXPECT(page.at[i].modified_s != 0);
    }
    s3_page_done(&page);
    return 0;
}
