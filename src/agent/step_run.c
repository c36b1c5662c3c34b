/* A round: code that may have to be allowed, its run, and what is made of what came of it. */
#include "agent/step_int.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#define REFLECT_AT   3 /* failures in a row */
#define REPLAN_AT    5
#define WARN_AT      2 /* of the same code with the same end */
#define SAME_MAX     3
#define LOST_MAX     2
#define REFUSALS_MAX 2
#define BUSY_MAX     4
#define DIGITS_MAX   (128 * KiB)
#define TEXT_MAX     (64 * KiB)

static struct str step_text(const struct stepping *s)
{
    const json_t *plan = json_object_get(s->r, "plan");
    const json_t *v = json_array_get(plan, (size_t)json_num(s->in, "step"));

    return (struct str){json_string_value(v), json_string_length(v)};
}

/* --- the code --- */

void step_run(struct stepping *s, const json_t *act)
{
    struct str code = json_str(act, "code"), title = step_text(s);
    int64_t round = json_count(s->r, "total_rounds");
    struct buf b;
    struct err e;

    json_put_num(s->in, "malformed", 0);
    buf_init(&b, CODE_MAX + KiB);
    (void)!buf_printf(&b, &e, "--- Round %lld/%lld: %.*s ---\nGENERATED CODE:\n%.*s\n",
                      (long long)round, (long long)json_num(s->in, "rounds"), (int)title.n, title.p,
                      (int)code.n, code.p);
    step_log(s, buf_str(&b));
    buf_done(&b);
    json_put_on(s->in, "round_open", true);
    json_put_str(s->in, "code", code);
    json_object_del(s->in, "execution");
    json_put_num(s->in, "busy", 0);
    json_put_on(s->in, "held", false);
    if (json_on(s->in, "gated")) {
        step_go(s, "gate");
        step_phase(s, "gate", title, json_string_value(json_object_get(act, "code")));
        step_do(s, "gate");
        return;
    }
    step_go(s, "run");
    step_phase(s, "run", title, json_string_value(json_object_get(act, "code")));
    step_do(s, "run");
}

void step_close_round(struct stepping *s, const char *how)
{
    char text[96];

    if (!json_on(s->in, "round_open"))
        return;
    json_put_on(s->in, "round_open", false);
    snprintf(text, sizeof(text), "STDOUT:\n\nSTATUS: Execution %s\n\n", how);
    step_log(s, str_of(text));
}

/* --- the gate --- */

static void waited(struct stepping *s)
{
    if (!json_is(s->in, "state", "wait"))
        return;
    json_put_num(s->in, "deadline_ms",
                 json_num(s->in, "deadline_ms") + s->now_ms - json_num(s->in, "asked_ms"));
    json_object_set_new(s->r, "question", json_null());
    step_status(s, "running");
}

void on_clear(struct stepping *s)
{
    waited(s);
    json_object_set(s->in, "clearance", json_object_get(s->ev, "clearance"));
    step_go(s, "run");
    step_phase(s, "run", step_text(s), json_string_value(json_object_get(s->in, "code")));
    step_do(s, "run");
}

void on_asked(struct stepping *s)
{
    int64_t until = s->now_ms + step_budget(s, "wait_ms");
    int64_t expires = json_num(s->ev, "expires_ms");

    json_object_set_new(s->r, "question",
                        json_pack("{s:O, s:O, s:I}", "prompt", json_object_get(s->ev, "prompt"),
                                  "approval", json_object_get(s->ev, "approval"), "expires_ms",
                                  (json_int_t)(expires && expires < until ? expires : until)));
    json_put_on(s->in, "lasting", json_on(s->ev, "lasting"));
    step_question(s);
}

static json_t *line_of(const struct stepping *s, const char *how, struct str more)
{
    char head[96];
    struct buf b;
    struct err e;
    json_t *line;

    snprintf(head, sizeof(head), "round %lld, step %lld: %.40s",
             (long long)json_num(s->r, "total_rounds"), (long long)json_num(s->in, "step") + 1,
             how);
    buf_init(&b, 4 * KiB);
    (void)!buf_printf(&b, &e, "%s%s%.*s", head, more.n ? "; " : "",
                      (int)(more.n < 300 ? more.n : 300), more.p ? more.p : "");
    line = line_value(buf_str(&b), 400);
    buf_done(&b);
    return line;
}

void on_refused(struct stepping *s)
{
    struct str reason = json_str(s->ev, "reason");
    struct buf b;
    struct err e;

    waited(s);
    step_close_round(s, "refused");
    buf_init(&b, 4 * KiB);
    (void)!buf_printf(&b, &e,
                      "STATUS: refused (approval)\nNothing was run: the person who must agree has "
                      "refused%s%.*s. Do it in another way, or finish and say what was refused.",
                      reason.n ? ": " : "", (int)(reason.n < 2000 ? reason.n : 2000),
                      reason.p ? reason.p : "");
    json_put_on(s->in, "last_failed", true);
    step_answer(s, json_stringn_nocheck(b.p, str_utf8_len(buf_str(&b))), true,
                line_of(s, "refused", reason));
    buf_done(&b);
    if (json_count(s->in, "refusals") >= REFUSALS_MAX)
        step_final(s, "what it wants to run was refused twice");
    else
        step_ask(s);
}

/* The house is full: later. Anything else is told as it is, and nothing is tried again. */
void on_unreachable(struct stepping *s)
{
    int64_t tries = json_count(s->in, "busy");

    if (json_on(s->in, "stop")) {
        step_close_round(s, "cancelled");
        step_end(s, "cancelled");
    } else if (json_on(s->ev, "busy") && tries <= BUSY_MAX &&
               s->now_ms < json_num(s->in, "deadline_ms")) {
        json_t *again = json_pack("{s:O, s:I}", "do", json_object_get(s->in, "state"), "after_ms",
                                  (json_int_t)1000 << (tries - 1));
        json_put_on(s->in, "held", json_is(s->in, "state", "run"));
        json_array_append_new(s->actions, again);
    } else {
        step_fail(s, "CodeSandboxUnreachable", json_str(s->ev, "message"));
    }
}

/* --- what came of it --- */

/* The same whatever the blanks are, and the addresses that Python prints. */
static uint64_t hash_of(uint64_t h, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '0' && i + 1 < s.n && s.p[i + 1] == 'x')
            while (i + 2 < s.n && isxdigit((unsigned char)s.p[i + 2]))
                i++;
        else if (!isspace((unsigned char)s.p[i]))
            h = (h ^ (unsigned char)s.p[i]) * 1099511628211u;
    }
    return h;
}

/* How often this code has ended this way. */
static int64_t times_seen(struct stepping *s, struct str what)
{
    json_t *seen = json_object_get(s->in, "seen");
    char key[24];

    snprintf(
        key, sizeof(key), "%016llx",
        (unsigned long long)hash_of(hash_of(14695981039346656037u, json_str(s->in, "code")), what));
    return json_count(seen, key);
}

/* What numbers of an answer are looked for in, without the commas that people put into them. */
static void keep_digits(struct stepping *s, struct str text)
{
    struct str old = json_str(s->in, "seen_digits");
    struct buf b;
    struct err e;

    buf_init(&b, DIGITS_MAX);
    if (old.n + text.n < DIGITS_MAX)
        (void)!buf_put(&b, old, &e);
    for (size_t i = 0; i < text.n; i++)
        if (!(text.p[i] == ',' && i > 0 && isdigit((unsigned char)text.p[i - 1]) &&
              i + 1 < text.n && isdigit((unsigned char)text.p[i + 1])))
            (void)!buf_put(&b, (struct str){text.p + i, 1}, &e);
    json_put_str(s->in, "seen_digits", buf_str(&b));
    buf_done(&b);
}

static size_t file_index(const json_t *files, const json_t *f)
{
    const json_t *v;
    size_t i;

    json_array_foreach(files, i, v)
    {
        if (str_eq(json_str(v, "path"), json_str(f, "path")))
            break;
    }
    return i;
}

static void keep_files(struct stepping *s, const json_t *news)
{
    json_t *files = json_object_get(s->r, "files"), *f;
    size_t i;

    json_array_foreach((json_t *)news, i, f)
    {
        size_t at = file_index(files, f);
        bool gone = json_is(f, "change", "deleted"), known = at < json_array_size(files);

        if (gone && known) {
            json_array_remove(files, at);
        } else if (!gone && (known || at < FILES_MAX)) {
            json_t *kept =
                json_pack("{s:O, s:O, s:O, s:O, s:O}", "path", json_object_get(f, "path"), "name",
                          json_object_get(f, "name"), "mime", json_object_get(f, "mime"), "size",
                          json_object_get(f, "size"), "image", json_object_get(f, "image"));
            if (known)
                json_array_set_new(files, at, kept);
            else
                json_array_append_new(files, kept);
        }
    }
}

static void went_well(struct stepping *s, const json_t *seen)
{
    int64_t steps = (int64_t)json_array_size(json_object_get(s->r, "plan"));
    int64_t at = json_num(s->in, "step");

    json_count(s->in, "good_runs");
    json_put_num(s->in, "failures", 0);
    json_put_num(s->in, "attempts", 0);
    json_put_on(s->in, "last_failed", false);
    json_object_set(s->in, "last_good", json_object_get(seen, "text"));
    json_put_on(s->in, "all_done", at + 1 >= steps);
    if (at + 1 < steps)
        json_put_num(s->in, "step", at + 1);
}

/* That the first code of all does not parse costs nothing. */
static void went_wrong(struct stepping *s, const json_t *seen)
{
    bool parses =
        !json_is(seen, "kind", "SyntaxError") && !json_is(seen, "kind", "IndentationError");

    json_count(s->in, "attempts");
    json_count(s->in, "failures");
    json_put_on(s->in, "last_failed", true);
    if (!parses && !json_on(s->in, "syntax_free")) {
        json_put_on(s->in, "syntax_free", true);
        json_count(s->in, "rounds");
    }
}

static json_t *result_of(struct stepping *s, const json_t *seen, int64_t times)
{
    struct str text = json_str(seen, "text");
    struct buf b, advice;
    struct err e;
    json_t *v;

    buf_init(&b, TEXT_MAX);
    buf_init(&advice, 8 * KiB);
    (void)!buf_put(&b, text, &e);
    prompt_advice(&advice, s->r, seen);
    if (advice.n > 0)
        (void)!buf_printf(&b, &e, "\n%.*s\n", (int)advice.n, advice.p);
    if (times == WARN_AT)
        (void)!buf_put(
            &b,
            STR("\nThis is the same code with the same end as before. Do something else: "
                "once more, and the work ends.\n"),
            &e);
    if (json_num(s->in, "failures") == REFLECT_AT)
        (void)!buf_put(
            &b,
            STR("\nThree runs in a row have failed. State what they have in common, then "
                "take a different approach.\n"),
            &e);
    v = json_stringn_nocheck(b.n ? b.p : "", str_utf8_len(buf_str(&b)));
    buf_done(&b);
    buf_done(&advice);
    return v;
}

static void go_on(struct stepping *s, int64_t times)
{
    bool replanned = json_on(s->in, "replanned") || json_on(s->in, "no_replan");

    if (json_on(s->in, "stop"))
        step_end(s, "cancelled");
    else if (json_num(s->in, "lost") > LOST_MAX)
        step_final(s, "the sandbox was lost again and again");
    else if (times >= SAME_MAX)
        step_final(s, "the same code was run again and again");
    else if (replanned && json_num(s->in, "attempts") >= step_budget(s, "attempts"))
        step_final(s, "it has failed too often");
    else if (json_num(s->in, "failures") >= REPLAN_AT && !replanned)
        step_replan(s);
    else
        step_ask(s);
}

void on_ran(struct stepping *s)
{
    const json_t *seen = json_object_get(s->ev, "seen");
    bool good = json_is(seen, "status", "ok");
    struct str text = json_str(seen, "text"), last = json_str(seen, "last");
    int64_t times = times_seen(s, text);
    json_t *line, *result;

    json_array_append_new(json_object_get(s->in, "runs"),
                          json_is_string(json_object_get(s->in, "execution"))
                              ? json_incref(json_object_get(s->in, "execution"))
                              : json_null());
    json_put_on(s->in, "round_open", false);
    step_log(s, json_str(seen, "log"));
    step_log(s, STR("\n"));
    keep_files(s, json_object_get(seen, "files"));
    keep_digits(s, text);
    if (json_on(seen, "lost"))
        json_count(s->in, "lost");
    line = line_of(s, good ? "ok" : json_str(seen, "status").p, last);
    if (good)
        went_well(s, seen);
    else
        went_wrong(s, seen);
    step_phase(s, "observe", json_str(seen, "status"), NULL);
    result = result_of(s, seen, times);
    step_answer(s, result, !good, line);
    go_on(s, times);
}
