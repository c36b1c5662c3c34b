/* The record of an agent run as JSON: one table of fields drives the reader and the writer. */
#include "agent/agent_int.h"

const char *const run_state_names[] = {
    [RUN_BEGIN] = "begin", [RUN_PLAN] = "plan",   [RUN_CODE] = "code",
    [RUN_GATE] = "gate",   [RUN_WAIT] = "wait",   [RUN_EXEC] = "run",
    [RUN_READ] = "read",   [RUN_FINAL] = "final", [RUN_OVER] = "over",
};
const char *const run_status_names[] = {
    [RUN_PENDING] = "pending",           [RUN_RUNNING] = "running",
    [RUN_WAITING] = "waiting_for_input", [RUN_COMPLETED] = "completed",
    [RUN_INCOMPLETE] = "incomplete",     [RUN_FAILED] = "failed",
    [RUN_CANCELLED] = "cancelled",
};

/* The objects of the JSON, parents first. Callers see the first two. */
enum object { TOP, USAGE, INNER, BUDGET, CALLER, OBJECTS };
static const struct {
    enum object parent;
    const char *key;
} objects[] = {
    [USAGE] = {TOP,   "usage" },
    [INNER] = {TOP,   "inner" },
    [BUDGET] = {INNER, "budget"},
    [CALLER] = {INNER, "caller"},
};

enum kind { NUMBER, FLAG, VALUE, WORD, STATE, STATUS };

#define AT(member) (((struct run_record *)0)->member)
#define KIND(member)                                                                               \
    _Generic(AT(member), int64_t: NUMBER, uint64_t: NUMBER, bool: FLAG, json_t *: VALUE,           \
             char *: WORD, enum run_state: STATE, enum run_status: STATUS)
#define FIELD(object, path, name)                                                                  \
    {                                                                                              \
        object, #name, KIND(path name), offsetof(struct run_record, path name),                    \
            sizeof(AT(path name))                                                                  \
    }
#define SHOWN(name) FIELD(TOP, , name)
#define USED(name)  FIELD(USAGE, usage., name)
#define KEPT(name)  FIELD(INNER, , name)
#define MOST(name)  FIELD(BUDGET, budget., name)
#define BY(name)    FIELD(CALLER, caller., name)
#define VIA(name)   FIELD(CALLER, , name)

static const struct record_field {
    enum object object;
    const char *name;
    enum kind kind;
    size_t at, size;
} fields[] = {SHOWN(id),          SHOWN(tool),         SHOWN(owner),      SHOWN(status),
              SHOWN(request),     SHOWN(context),      SHOWN(sandbox_id), SHOWN(plan),
              SHOWN(logs),        SHOWN(total_rounds), SHOWN(files),      SHOWN(answer),
              USED(input_tokens), USED(output_tokens), USED(calls),       SHOWN(error),
              SHOWN(question),    SHOWN(created_ms),   SHOWN(started_ms), SHOWN(ended_ms),
              MOST(plan_steps),   MOST(rounds),        MOST(attempts),    MOST(run_ms),
              MOST(wall_ms),      MOST(model_ms),      MOST(input_chars), MOST(tokens),
              MOST(wait_ms),      BY(tenant),          BY(key),           BY(request),
              BY(admin),          BY(approver),        VIA(door),         KEPT(state),
              KEPT(pool),         KEPT(input_dir),     KEPT(model),       KEPT(can_answer),
              KEPT(external),     KEPT(own_only),      KEPT(no_replan),   KEPT(given),
              KEPT(session),      KEPT(facts),         KEPT(packages),    KEPT(inputs),
              KEPT(known),        KEPT(network),       KEPT(text_mode),   KEPT(compacted),
              KEPT(at_ms),        KEPT(deadline_ms),   KEPT(asked_ms),    KEPT(turns),
              KEPT(retries),      KEPT(nonsense),      KEPT(plan_tries),  KEPT(plan_why),
              KEPT(planned),      KEPT(step),          KEPT(all_done),    KEPT(rounds),
              KEPT(replanned),    KEPT(replans),       KEPT(attempts),    KEPT(failures),
              KEPT(good_runs),    KEPT(last_failed),   KEPT(last_good),   KEPT(syntax_free),
              KEPT(lost),         KEPT(refusals),      KEPT(nudges),      KEPT(malformed),
              KEPT(talk),         KEPT(pending),       KEPT(runs),        KEPT(seen),
              KEPT(seen_digits),  KEPT(page),          KEPT(code),        KEPT(execution),
              KEPT(lasting),      KEPT(busy),          KEPT(round_open),  KEPT(unbegun),
              KEPT(stop),         KEPT(plots),         KEPT(logs_full),   KEPT(final_why),
              SHOWN(untraced),    KEPT(said_no_run),   KEPT(said_failed), KEPT(said_no_file),
              KEPT(said_number)};

/* Index of v among names; the last for any other value. */
static unsigned name_index(const char *const *names, size_t count, const json_t *v)
{
    size_t i = 0;

    while (i + 1 < count && !str_is(json_text(v), names[i]))
        i++;
    return (unsigned)i;
}

bool record_read(struct run_record *r, const json_t *v)
{
    const json_t *object[OBJECTS] = {v};

    *r = (struct run_record){0};
    for (size_t i = TOP + 1; i < OBJECTS; i++)
        object[i] = json_object_get(object[objects[i].parent], objects[i].key);
    for (size_t i = 0; i < COUNT(fields); i++) {
        const struct record_field *f = &fields[i];
        json_t *member = json_object_get(object[f->object], f->name);
        void *at = (char *)r + f->at;

        if (f->kind == NUMBER)
            *(int64_t *)at = json_integer_value(member);
        else if (f->kind == FLAG)
            *(bool *)at = json_is_true(member);
        else if (f->kind == VALUE)
            *(json_t **)at = json_is_null(member) ? NULL : json_incref(member);
        else if (f->kind == WORD)
            (void)!str_to_cstr(json_text(member), at, f->size);
        else if (f->kind == STATE)
            r->state = name_index(run_state_names, COUNT(run_state_names), member);
        else
            r->status = name_index(run_status_names, COUNT(run_status_names), member);
    }
    r->caller.door = json_string_value(r->door);
    return r->state != RUN_OVER;
}

static json_t *field_value(const struct run_record *r, const struct record_field *f)
{
    const void *at = (const char *)r + f->at;

    switch (f->kind) {
    case NUMBER:
        return json_integer(*(const int64_t *)at);
    case FLAG:
        return json_boolean(*(const bool *)at);
    case VALUE: /* not set: null for callers, left out of inner */
        return *(json_t *const *)at || f->object != TOP ? json_incref(*(json_t *const *)at)
                                                        : json_null();
    case WORD:
        return json_string(at);
    case STATE:
        return json_string(run_state_names[r->state]);
    default:
        return json_string(run_status_names[r->status]);
    }
}

json_t *record_json(const struct run_record *r, bool inner)
{
    json_t *object[OBJECTS] = {json_object()};
    size_t count = inner ? OBJECTS : INNER;

    for (size_t i = TOP + 1; i < count; i++) {
        object[i] = json_object();
        json_object_set_new(object[objects[i].parent], objects[i].key, object[i]);
    }
    for (size_t i = 0; i < COUNT(fields); i++)
        if (fields[i].object < count)
            json_object_set_new(object[fields[i].object], fields[i].name,
                                field_value(r, &fields[i]));
    return object[TOP];
}

void record_done(struct run_record *r)
{
    for (size_t i = 0; i < COUNT(fields); i++)
        if (fields[i].kind == VALUE)
            json_decref(*(json_t **)((char *)r + fields[i].at));
    *r = (struct run_record){0};
}
