/*
 * What sessions say that they have imported, and what interpreters say that they have, in any
 * order: what the next interpreter is asked for are modules, few enough, that somebody has named.
 *
 * links: src/engine/learn.c
 */
#include "engine/engine_int.h"

#include "support/fuzz.h"

#include <stdlib.h>

/* Up to the next zero byte. */
static struct str next_word(struct str *data)
{
    const char *end = memchr(data->p, '\0', data->n);
    struct str word = {data->p, end ? (size_t)(end - data->p) : data->n};

    *data = str_from(*data, end ? word.n + 1 : word.n);
    return word;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = {(const char *)data, size};
    struct learn *l = learn_new();

    while (rest.n > 1) {
        const char *learned[LEARNED_MAX];
        AUTO(buf_done) struct buf asked = BUF(WIRE_MODULES_MAX);
        uint8_t what = (uint8_t)rest.p[0];
        rest = str_from(rest, 1);
        struct str word = next_word(&rest);
        if (what & 1)
            learn_session(l);
        if (what & 2)
            EXPECT((learn_vote(l, what >> 4, word) == 0) == wire_are_modules(word));
        if (what & 4)
            learn_take(l, word);
        learn_ask(l, &asked);
        EXPECT(asked.n == 0 || wire_are_modules(buf_str(&asked)));
        if (what & 8)
            learn_give_up(l);
        EXPECT(learn_tell(l, learned) <= LEARNED_MAX);
        (void)!learn_is_due(l);
    }
    learn_free(l);
    return 0;
}
