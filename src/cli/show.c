/* Events as text: what the code printed on the stream it was printed to, the rest beside it. */
#include "cli/cli_int.h"

#include <unistd.h>

void show_init(struct show *sh)
{
    outbox_init(&sh->box);
    term_init(&sh->out, &sh->box, STDOUT_FILENO, isatty(STDOUT_FILENO));
    term_init(&sh->err, &sh->box, STDERR_FILENO, isatty(STDERR_FILENO));
}

void show_done(struct show *sh)
{
    outbox_done(&sh->box);
}

static const struct mime_part *find_part(const struct event *ev, const char *mime)
{
    for (size_t i = 0; i < ev->bundle.count; i++)
        if (str_is(ev->bundle.part[i].mime, mime))
            return &ev->bundle.part[i];
    return NULL;
}

/* Something of the guest's that begins and ends a line. */
static void show_block(struct term *t, struct str s)
{
    if (s.n == 0)
        return;
    if (t->mid_line)
        term_guest(t, STR("\n"));
    term_guest(t, s);
    if (s.p[s.n - 1] != '\n')
        term_guest(t, STR("\n"));
}

static void show_image(struct show *sh, const struct mime_part *p, const char *figure)
{
    char mime[NAME_SHOWN], size[SIZE_SHOWN];
    uint32_t width, height;

    name_show(mime, p->mime);
    size_show(size, p->data.n);
    if (png_size(p->data, &width, &height))
        term_line(&sh->err, "[%s %ux%u, %s]%s%s", mime, width, height, size,
                  *figure ? " kept as " : "", figure);
    else
        term_line(&sh->err, "[%s, %s]%s%s", mime, size, *figure ? " kept as " : "", figure);
}

static void show_bundle(struct show *sh, const struct event *ev, const char *figure)
{
    const struct mime_part *text = find_part(ev, "text/plain");
    const struct mime_part *image = image_part(ev);

    if (image)
        show_image(sh, image, figure);
    if (text && (!image || ev->kind == EVENT_RESULT))
        show_block(&sh->out, text->data);
    else if (!image && ev->bundle.count > 0)
        show_image(sh, &ev->bundle.part[0], figure);
}

void show_event(struct show *sh, const struct event *ev, const char *figure)
{
    switch (ev->kind) {
    case EVENT_STDOUT:
        term_guest(&sh->out, ev->text);
        break;
    case EVENT_STDERR:
        term_guest(&sh->err, ev->text);
        break;
    case EVENT_DISPLAY:
    case EVENT_RESULT:
        show_bundle(sh, ev, figure);
        break;
    case EVENT_ERROR:
        show_block(&sh->err, ev->error.traceback);
        break;
    case EVENT_STATUS:
        term_line(&sh->err, "retort: %.*s", (int)ev->text.n, ev->text.p);
        break;
    case EVENT_CLEAR: /* what scrolled by is not taken back */
    case EVENT_FILE:  /* told of at the end, all together */
        break;
    }
}

void show_outcome(struct show *sh, const struct outcome *o)
{
    term_settle(&sh->out);
    term_settle(&sh->err);
    if (o->line[0])
        term_line(&sh->err, "retort: %s", o->line);
}
