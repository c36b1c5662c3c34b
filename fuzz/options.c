/*
 * A command line: whatever is accepted is within the bounds of its option's row,
 * and a number that is shown is read back as the same number.
 *
 * links: src/cli/options.c src/cli/settings.c src/cli/parse.c src/cli/value.c src/engine/limits.c
 * links: src/fetch/hosts.c
 */
#include "cli/cli_int.h"

#include "support/fuzz.h"

#define ARGS_MAX 16

static void check_numbers(const struct settings *s)
{
    for (size_t i = 0; i < options_count; i++) {
        const struct option *o = &options[i];
        struct settings again;
        char shown[64];
        struct err e;
        uint64_t value, reread;
        if (o->type != OPTION_SIZE && o->type != OPTION_SECONDS && o->type != OPTION_CORES &&
            o->type != OPTION_COUNT)
            continue;
        memcpy(&value, (const char *)s + o->at, sizeof(value));
        EXPECT(value >= o->min && value <= o->max);
        option_show(o, s, shown, sizeof(shown));
        settings_init(&again);
        EXPECT(option_set(o, &again, "again", shown, &e) == 0);
        memcpy(&reread, (const char *)&again + o->at, sizeof(reread));
        EXPECT(reread == value);
        settings_done(&again);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct command command = {.name = "run", .id = COMMAND_RUN, .takes_work = true};
    AUTO_FREE char *text = mem_strndup((struct str){(const char *)data, size});
    const char *argv[ARGS_MAX + 1] = {0};
    struct settings s;
    struct err e = {0};
    int argc = 0;

    for (size_t at = 0; at < size && argc < ARGS_MAX; at += strlen(text + at) + 1)
        argv[argc++] = text + at;
    settings_init(&s);
    if (settings_parse(&s, &command, argc, argv, &e) == 0) {
        check_numbers(&s);
        for (size_t i = 0; i < s.work.count; i++)
            touch(str_of(s.work.item[i].arg));
        for (size_t i = 0; i < s.files.count; i++)
            EXPECT(*s.files.item[i]);
    } else {
        EXPECT(e.kind == ERR_CALLER && *e.text && memchr(e.text, '\0', sizeof(e.text)));
        for (const char *p = e.text; *p; p++)
            EXPECT((unsigned char)*p >= ' '); /* one line, whatever was quoted */
    }
    settings_done(&s);
    return 0;
}
