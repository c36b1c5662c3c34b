/* A kernel's message as an event. The bytes are the guest's: nothing in them is trusted. */
#include "engine/engine_int.h"

#define MIME_MAX    128
#define ID_MAX      256
#define NAME_MAX_   512
#define META_MAX    (16 * KiB)
#define TEXT_MAX    (64 * KiB)
#define FRAME_BYTES 4096

/* A blank may stand between parameters, as in "text/csv; header=present". */
static bool mime_is_sane(struct str m)
{
    if (m.n == 0 || m.n > MIME_MAX || !memchr(m.p, '/', m.n) || m.p[0] == ' ' ||
        m.p[m.n - 1] == ' ')
        return false;
    for (size_t i = 0; i < m.n; i++)
        if (m.p[i] < ' ' || m.p[i] >= 0x7f || m.p[i] == '"' || m.p[i] == '\\')
            return false;
    return true;
}

static struct str clip(struct str s, size_t max)
{
    return (struct str){s.p, s.n < max ? s.n : max};
}

/* MIME and DATA come in pairs. */
static int put_part(struct event *ev, struct wire_field f, bool *half)
{
    if (f.tag == TAG_MIME) {
        if (*half || ev->bundle.count == EVENT_PARTS_MAX || !mime_is_sane(f.data))
            return -1;
        ev->bundle.part[ev->bundle.count].mime = f.data;
        *half = true;
        return 0;
    }
    if (!*half)
        return -1;
    ev->bundle.part[ev->bundle.count++].data = f.data;
    *half = false;
    return 0;
}

static int parse_bundle(struct str body, struct event *ev)
{
    struct wire_field f;
    uint64_t flags = 0;
    bool half = false;
    int rc;

    while ((rc = wire_next(&body, &f)) == 1) {
        if (f.tag == TAG_MIME || f.tag == TAG_DATA) {
            if (put_part(ev, f, &half) < 0)
                return -1;
        } else if (f.tag == TAG_DISPLAY_ID) {
            if (f.data.n > ID_MAX)
                return -1;
            ev->bundle.display_id = f.data;
        } else if (f.tag == TAG_METADATA) {
            if (f.data.n > META_MAX)
                return -1;
            ev->bundle.metadata = f.data;
        } else if (f.tag == TAG_FLAGS) {
            if (wire_num(f, &flags) < 0)
                return -1;
            ev->bundle.update = flags & 1;
        } else {
            return -1;
        }
    }
    return rc < 0 || half ? -1 : 0;
}

/* A FRAME_FILE opens a frame, the other FRAME_* fields fill the one that is open. */
static int put_frame(struct event *ev, struct wire_field f)
{
    struct frame *last = ev->error.count ? &ev->error.frame[ev->error.count - 1] : NULL;

    if (f.tag == TAG_FRAME_FILE) {
        if (ev->error.count == EVENT_FRAMES_MAX)
            return -1;
        ev->error.frame[ev->error.count++] = (struct frame){.file = clip(f.data, FRAME_BYTES)};
        return 0;
    }
    if (!last)
        return -1;
    if (f.tag == TAG_FRAME_LINE)
        return wire_num(f, &last->line);
    if (f.tag == TAG_FRAME_NAME)
        last->function = clip(f.data, NAME_MAX_);
    else
        last->text = clip(f.data, FRAME_BYTES);
    return 0;
}

static int parse_error(struct str body, struct event *ev, int *ret_errno)
{
    struct wire_field f;
    uint64_t number = 0;
    int rc;

    while ((rc = wire_next(&body, &f)) == 1) {
        switch (f.tag) {
        case TAG_NAME:
            ev->error.type = clip(f.data, NAME_MAX_);
            break;
        case TAG_TEXT:
            ev->error.message = clip(f.data, TEXT_MAX);
            break;
        case TAG_TRACE:
            ev->error.traceback = clip(f.data, TEXT_MAX);
            break;
        case TAG_ERRNO:
            if (wire_num(f, &number) < 0)
                return -1;
            *ret_errno = number < 4096 ? (int)number : 0;
            break;
        case TAG_FRAME_FILE:
        case TAG_FRAME_LINE:
        case TAG_FRAME_NAME:
        case TAG_FRAME_TEXT:
            if (put_frame(ev, f) < 0)
                return -1;
            break;
        default:
            return -1;
        }
    }
    return rc;
}

int event_parse(uint16_t type, struct str body, struct event *ret, int *ret_errno)
{
    *ret_errno = 0;
    *ret = (struct event){0};
    switch (type) {
    case MSG_DISPLAY:
        ret->kind = EVENT_DISPLAY;
        return parse_bundle(body, ret);
    case MSG_RESULT:
        ret->kind = EVENT_RESULT;
        return parse_bundle(body, ret);
    case MSG_CLEAR:
        ret->kind = EVENT_CLEAR;
        return parse_bundle(body, ret);
    case MSG_ERROR:
        ret->kind = EVENT_ERROR;
        return parse_error(body, ret, ret_errno);
    default:
        return -1;
    }
}
