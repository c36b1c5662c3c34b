/* Names and types of uploaded files, and the header that names a file in a download. */
#include "doors/anthropic/anthropic_int.h"

#include <stdio.h>

/* What some operating systems refuse in a name. A slash cannot be in the last part of one. */
static const char refused[] = "<>:\"|?*\\";

int file_name_take(struct str given, struct str mime, char ret[FILE_NAME_MAX + 1], struct err *e)
{
    struct str name = str_base(given, "/");

    if (name.n == 0) {
        snprintf(ret, FILE_NAME_MAX + 1, "unnamed%s", mime_suffix(mime));
        return 0;
    }
    if (name.n > FILE_NAME_MAX || str_utf8_len(name) != name.n)
        return err_set(e, ERR_CALLER, "filename: 1 to %d bytes of UTF-8 text are expected",
                       FILE_NAME_MAX);
    if (str_is(name, ".") || str_is(name, ".."))
        return err_set(e, ERR_CALLER, "filename: this names a folder");
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];
        if (c < ' ' || c == 0x7f || strchr(refused, c))
            return err_set(e, ERR_CALLER,
                           "filename: it holds a control character, or one of < > : \" | ? * \\ /");
    }
    memcpy(ret, name.p, name.n);
    ret[name.n] = '\0';
    return 0;
}

struct str file_mime_take(struct str given)
{
    struct str mime = {0};

    str_next(&given, ';', &mime);
    for (size_t i = 0; i < mime.n; i++)
        if (mime.p[i] <= ' ' || mime.p[i] >= 0x7f)
            return (struct str){0};
    /* Clients send application/octet-stream for any type that they do not know. */
    if (mime.n > 127 || str_is(mime, "application/octet-stream") ||
        !(mime.n && memchr(mime.p, '/', mime.n)))
        return (struct str){0};
    return mime;
}

void disposition_print(struct str name, char ret[DISPOSITION_MAX])
{
    if (name.n > FILE_NAME_MAX)
        name.n = FILE_NAME_MAX;
    url_encode(stpcpy(ret, "attachment; filename*=utf-8''"), name);
}
