/* Names of files: what clients may call one, and how they are told. Bytes in, no state. */
#include "doors/anthropic/anthropic_int.h"

#include <stdio.h>

/* What no system takes in a name, and a slash, which is not in the last part of one. */
static const char refused[] = "<>:\"|?*\\";

static struct str last_part(struct str name)
{
    const char *slash = name.n ? memrchr(name.p, '/', name.n) : NULL;

    return slash ? (struct str){slash + 1, name.n - (size_t)(slash + 1 - name.p)} : name;
}

int file_name_take(struct str given, struct str mime, char ret[FILE_NAME_MAX + 1], struct err *e)
{
    struct str name = last_part(given);

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
    const char *semicolon = given.n ? memchr(given.p, ';', given.n) : NULL;
    struct str mime = {given.p, semicolon ? (size_t)(semicolon - given.p) : given.n};

    while (mime.n > 0 && (mime.p[mime.n - 1] == ' ' || mime.p[mime.n - 1] == '\t'))
        mime.n--;
    for (size_t i = 0; i < mime.n; i++)
        if (mime.p[i] <= ' ' || mime.p[i] >= 0x7f)
            return (struct str){0};
    /* What clients say of what they do not know. */
    if (mime.n > 127 || str_is(mime, "application/octet-stream") ||
        !(mime.n && memchr(mime.p, '/', mime.n)))
        return (struct str){0};
    return mime;
}

static bool is_plain(unsigned char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
           (c && strchr("-._~", c));
}

void disposition_print(struct str name, char ret[DISPOSITION_MAX])
{
    static const char hex[] = "0123456789ABCDEF";
    char *at = stpcpy(ret, "attachment; filename*=utf-8''");

    for (size_t i = 0; i < name.n && i < FILE_NAME_MAX; i++) {
        unsigned char c = (unsigned char)name.p[i];
        if (is_plain(c)) {
            *at++ = (char)c;
            continue;
        }
        *at++ = '%';
        *at++ = hex[c >> 4];
        *at++ = hex[c & 15];
    }
    *at = '\0';
}
