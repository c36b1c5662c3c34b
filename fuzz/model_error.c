/*
 * What an endpoint says when it gives no reply: a stranger's body becomes one short line
 * without the key, whatever it is.
 *
 * links: src/model/endpoint_error.c src/model/parts.c
 */
#include "model/model_int.h"

#include "support/fuzz.h"

#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char key[] = "sk-12";
    struct feed f = {data, size};
    int status = 300 + (int)feed_num(&f, 1);
    bool tools = feed_byte(&f) & 1;
    struct endpoint_error p;
    struct model_failure failed = {.status = status};

    endpoint_error_of_body(&p, feed_text(&f, size));
    EXPECT(p.text && p.words);
    failed.trouble = trouble_of(status, &p, tools);
    EXPECT(failed.trouble != MODEL_NO_TOOLS || tools);
    failure_say(&failed, "m", key, p.text);
    EXPECT(failed.err.kind != ERR_NONE && strlen(failed.err.text) < 400);
    EXPECT(!strcasestr(failed.err.text, key));
    for (const char *c = failed.err.text; *c; c++)
        EXPECT((unsigned char)*c >= ' ' && *c != 0x7f);
    EXPECT(str_utf8_len(str_of(failed.err.text)) == strlen(failed.err.text));
    endpoint_error_done(&p);
    return 0;
}
