/*
 * A model's reply, made into the one thing it wants done: whatever it says, there is one
 * act, its code and answers are text of a bounded length, and a plan has as many steps as
 * were allowed.
 *
 * links: src/agent/reply.c src/agent/python.c src/agent/values.c src/lenient/fences.c
 * links: src/lenient/json5.c src/lenient/python_strings.c
 */
#include "agent/agent_int.h"

#include "support/fuzz.h"

static void look(const json_t *parts, bool cut)
{
    static const char *const acts[] = {"run", "finish", "plan",  "read",
                                       "ask", "bad",    "prose", "nothing"};
    json_t *act = reply_read(parts, cut);
    struct str code = json_str(act, "code"), answer = json_str(act, "answer");
    bool known = false;

    for (size_t i = 0; i < COUNT(acts); i++)
        known |= json_is(act, "act", acts[i]);
    EXPECT(known && json_str(act, "text").p);
    EXPECT(!cut || json_is(act, "act", "bad"));
    EXPECT(code.n <= CODE_MAX && answer.n <= ANSWER_MAX);
    EXPECT(str_utf8_len(code) == code.n && str_utf8_len(answer) == answer.n);
    EXPECT(!json_is(act, "act", "run") || code.n > 0);
    EXPECT(!json_is(act, "act", "finish") || answer.n > 0);
    json_decref(act);
}

/* The first byte says what the rest is: text, the arguments of a call, or both. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"run_python",  "finish",   "update_plan",
                                        "read_output", "ask_user", "mystery"};
    struct feed f = {data, size};
    uint8_t kind = feed_byte(&f);
    struct str text = {(const char *)f.p, str_utf8_len((struct str){(const char *)f.p, f.n})};
    json_t *parts = json_array(), *plan;

    if (kind % 3 != 1)
        json_array_append_new(parts, json_pack("{s:s, s:o}", "type", "text", "text",
                                               json_stringn_nocheck(text.n ? text.p : "", text.n)));
    if (kind % 3 != 0)
        json_array_append_new(parts,
                              json_pack("{s:s, s:s, s:s, s:n, s:o}", "type", "call", "id", "c",
                                        "name", names[kind / 3 % COUNT(names)], "args", "raw",
                                        json_stringn_nocheck(text.n ? text.p : "", text.n)));
    look(parts, false);
    look(parts, true);
    plan = reply_plan(parts, 4);
    EXPECT(!plan || (json_array_size(plan) > 0 && json_array_size(plan) <= 4));
    json_decref(plan);
    json_decref(parts);
    return 0;
}
