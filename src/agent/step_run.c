/* A round: one execution of code, from the model's call to what the model is told of it. */
#include "agent/step_int.h"

#include <ctype.h>
#include <stdio.h>

#define REFLECT_AT   3 /* failures in a row */
#define REPLAN_AT    5
#define WARN_AT      2 /* times the same code with the same result */
#define SAME_MAX     3
#define LOST_MAX     2
#define REFUSALS_MAX 2
#define BUSY_MAX     4
#define DIGITS_MAX   (128 * KiB)
#define TEXT_MAX     (64 * KiB)

static struct str step_text(const struct stepping *s)
{
    return json_text(json_array_get(s->r->plan, (size_t)s->r->step));
}

/* --- the code --- */

void step_run(struct stepping *s, const json_t *act)
{
    struct str code = json_str(act, "code"), title = step_text(s);
    int64_t round = ++s->r->total_rounds;
    AUTO(buf_done) struct buf b = BUF(2 * CODE_MAX); /* each line may get a blank */

    s->r->malformed = 0;
    buf_printf(&b, "--- Round %lld/%lld: %.*s ---\nGENERATED CODE:\n", (long long)round,
               (long long)s->r->rounds, (int)title.n, title.p);
    observe_quote(&b, code);
    buf_put(&b, STR("\n"));
    step_log(s, buf_str(&b));
    s->r->round_open = true;
    json_put(&s->r->code, text_value(code));
    json_put(&s->r->execution, NULL);
    s->r->busy = 0;
    s->r->state = RUN_EXEC;
    step_do(s, "run");
}

void step_close_round(struct stepping *s, const char *how)
{
    char text[96];

    if (!s->r->round_open)
        return;
    s->r->round_open = false;
    snprintf(text, sizeof(text), "STDOUT:\n\nSTATUS: Execution %s\n\n", how);
    step_log(s, str_of(text));
}

/* --- a person must agree --- */

void step_waited(struct stepping *s)
{
    if (s->r->state != RUN_WAIT)
        return;
    s->r->deadline_ms += s->now_ms - s->r->asked_ms;
    json_put(&s->r->question, NULL);
    s->r->status = RUN_RUNNING;
    s->r->state = RUN_EXEC;
}

void on_queued(struct stepping *s)
{
    step_waited(s);
    json_put(&s->r->execution, json_incref(json_object_get(s->ev, "execution")));
    step_phase(s, "run", step_text(s), json_string_value(s->r->code));
}

void on_asked(struct stepping *s)
{
    int64_t until = s->now_ms + (int64_t)s->r->budget.wait_ms;
    int64_t expires = json_num(s->ev, "expires_ms");

    json_put(&s->r->question,
             json_pack("{s:O, s:O, s:I}", "prompt", json_object_get(s->ev, "prompt"), "approval",
                       json_object_get(s->ev, "approval"), "expires_ms",
                       (json_int_t)(expires && expires < until ? expires : until)));
    s->r->lasting = json_on(s->ev, "lasting");
    step_phase(s, "gate", step_text(s), json_string_value(s->r->code));
    step_question(s);
}

static json_t *line_of(const struct stepping *s, const char *how, struct str more)
{
    AUTO(buf_done) struct buf b = BUF(4 * KiB);

    buf_printf(&b, "round %lld, step %lld: %.40s%s%.*s", (long long)s->r->total_rounds,
               (long long)s->r->step + 1, how, more.n ? "; " : "",
               (int)(more.n < 300 ? more.n : 300), more.n ? more.p : "");
    return line_value(buf_str(&b), 400);
}

void on_refused(struct stepping *s)
{
    struct str reason = json_text(json_object_get(s->ev, "reason"));
    AUTO(buf_done) struct buf b = BUF(4 * KiB);

    step_waited(s);
    step_close_round(s, "refused");
    buf_printf(&b,
               "STATUS: refused (approval)\nNothing was run: the person who must agree has "
               "refused%s%.*s. Do it in another way, or finish and say what was refused.",
               reason.n ? ": " : "", (int)(reason.n < 2000 ? reason.n : 2000), reason.p);
    s->r->last_failed = true;
    step_answer(s, text_value(buf_str(&b)), true, line_of(s, "refused", reason));
    if (++s->r->refusals >= REFUSALS_MAX)
        step_final(s, "what it wants to run was refused twice");
    else
        step_ask(s);
}

/* Tries again later when the service is full; any other failure ends the run. */
void on_unreachable(struct stepping *s)
{
    int64_t tries = ++s->r->busy;

    step_waited(s);
    if (s->r->stop) {
        step_close_round(s, "cancelled");
        step_end(s, RUN_CANCELLED);
    } else if (json_on(s->ev, "busy") && tries <= BUSY_MAX && s->now_ms < s->r->deadline_ms) {
        json_array_append_new(s->actions, json_pack("{s:s, s:I}", "do", "run", "after_ms",
                                                    (json_int_t)1000 << (tries - 1)));
    } else {
        step_fail(s, "CodeSandboxUnreachable", json_str(s->ev, "message"));
    }
}

/* --- the result --- */

/* Ignores blanks, and the addresses that Python prints. */
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

/* How often this code has had this result. What a failure says differs from run to run (numbers of
 * cells, times, addresses), so of a failure only its kind counts. */
static int64_t times_seen(struct stepping *s, const json_t *seen)
{
    uint64_t h = hash_of(14695981039346656037u, json_text(s->r->code));
    bool good = json_is(seen, "status", "ok");
    char key[24];
    int64_t times;

    h = hash_of(h, json_str(seen, good ? "log" : "status"));
    h = good ? h : hash_of(h, json_str(seen, "kind"));
    snprintf(key, sizeof(key), "%016llx", (unsigned long long)h);
    times = json_num(s->r->seen, key) + 1;
    json_put_num(s->r->seen, key, times);
    return times;
}

/* Keeps output for finish.c to look for numbers in, without their commas. */
static void keep_digits(struct stepping *s, struct str text)
{
    struct str old = json_text(s->r->seen_digits);
    AUTO(buf_done) struct buf b = BUF(DIGITS_MAX);

    if (old.n + text.n < DIGITS_MAX)
        buf_put(&b, old);
    for (size_t i = 0; i < text.n; i++)
        if (!(text.p[i] == ',' && i > 0 && isdigit((unsigned char)text.p[i - 1]) &&
              i + 1 < text.n && isdigit((unsigned char)text.p[i + 1])))
            buf_put(&b, (struct str){text.p + i, 1});
    json_put(&s->r->seen_digits, text_value(buf_str(&b)));
}

static size_t file_index(const json_t *files, const json_t *f)
{
    const json_t *v;
    size_t i;

    json_array_foreach(files, i, v) {
        if (str_eq(json_str(v, "path"), json_str(f, "path")))
            break;
    }
    return i;
}

static void keep_files(struct stepping *s, const json_t *news)
{
    json_t *files = s->r->files, *f;
    size_t i;

    json_array_foreach((json_t *)news, i, f) {
        size_t at = file_index(files, f);
        bool gone = json_is(f, "change", "deleted"), known = at < json_array_size(files);

        if (gone && known) {
            json_array_remove(files, at);
        } else if (!gone && (known || at < FILES_MAX)) {
            json_t *kept = json_copy(f);
            json_object_del(kept, "change");
            json_object_del(kept, "too_large");
            if (known)
                json_array_set_new(files, at, kept);
            else
                json_array_append_new(files, kept);
        }
    }
}

static void went_well(struct stepping *s, const json_t *seen)
{
    s->r->good_runs++;
    s->r->failures = s->r->attempts = 0;
    s->r->last_failed = false;
    json_put(&s->r->last_good, json_incref(json_object_get(seen, "text")));
    s->r->all_done = s->r->step + 1 >= (int64_t)json_array_size(s->r->plan);
    s->r->step += !s->r->all_done;
}

/* The first syntax error does not cost a round. */
static void went_wrong(struct stepping *s, const json_t *seen)
{
    bool parses =
        !json_is(seen, "kind", "SyntaxError") && !json_is(seen, "kind", "IndentationError");

    s->r->attempts++;
    s->r->failures++;
    s->r->last_failed = true;
    if (!parses && !s->r->syntax_free) {
        s->r->syntax_free = true;
        s->r->rounds++;
    }
}

static json_t *result_of(struct stepping *s, const json_t *seen, int64_t times)
{
    AUTO(buf_done) struct buf b = BUF(TEXT_MAX);
    AUTO(buf_done) struct buf advice = BUF(8 * KiB);

    buf_put(&b, json_str(seen, "text"));
    prompt_advice(&advice, s->r, seen);
    if (advice.n > 0)
        buf_printf(&b, "\n%.*s\n", (int)advice.n, advice.p);
    if (times == WARN_AT)
        buf_put(&b, STR("\nThis is the same code with the same end as before. Do something else: "
                        "once more, and the work ends.\n"));
    if (s->r->failures == REFLECT_AT)
        buf_put(&b, STR("\nThree runs in a row have failed. State what they have in common, then "
                        "take a different approach.\n"));
    return text_value(buf_str(&b));
}

static void go_on(struct stepping *s, int64_t times)
{
    bool replanned = s->r->replanned || s->r->no_replan;

    if (s->r->stop)
        step_end(s, RUN_CANCELLED);
    else if (s->r->lost > LOST_MAX)
        step_final(s, "the sandbox was lost again and again");
    else if (times >= SAME_MAX)
        step_final(s, "the same code was run again and again");
    else if (replanned && s->r->attempts >= (int64_t)s->r->budget.attempts)
        step_final(s, "it has failed too often");
    else if (s->r->failures >= REPLAN_AT && !replanned)
        step_replan(s);
    else
        step_ask(s);
}

void on_ran(struct stepping *s)
{
    const json_t *seen = json_object_get(s->ev, "seen");
    bool good = json_is(seen, "status", "ok");
    struct str text = json_str(seen, "text"), last = json_str(seen, "last");
    int64_t times = times_seen(s, seen);
    json_t *line;

    json_array_append_new(s->r->runs, s->r->execution ? json_incref(s->r->execution) : json_null());
    s->r->round_open = false;
    step_log(s, json_str(seen, "log"));
    step_log(s, STR("\n"));
    keep_files(s, json_object_get(seen, "files"));
    keep_digits(s, text);
    if (json_on(seen, "lost"))
        s->r->lost++;
    line = line_of(s, good ? "ok" : json_str(seen, "status").p, last);
    if (good)
        went_well(s, seen);
    else
        went_wrong(s, seen);
    step_phase(s, "observe", json_str(seen, "status"), NULL);
    step_answer(s, result_of(s, seen, times), !good, line);
    go_on(s, times);
}
