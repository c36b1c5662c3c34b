#include "cli/cli_int.h"
#include "unit.h"

static const struct command run = {
    .name = "run", .id = COMMAND_RUN, .args = "ARGS", .text = "Runs.", .notes = "The end.\n"};
static const struct command doctor = {
    .name = "doctor", .id = COMMAND_DOCTOR, .args = "", .text = "Looks."};
static const struct command serve = {
    .name = "serve", .id = COMMAND_SERVE, .args = "", .text = "Serves."};
static const struct command *const commands[] = {&run, &serve, &doctor};

/* Every option of a command, with its value and its sentence, and none of another command. */
/* Texts that take several lines, on one again. */
static void join_lines(char *text)
{
    static const char indent[] = "\n                            ";
    char *to = text;

    for (const char *p = text; *p;) {
        if (strncmp(p, indent, strlen(indent)) == 0) {
            *to++ = ' ';
            p += strlen(indent);
        } else {
            *to++ = *p++;
        }
    }
    *to = '\0';
}

static void test_every_option_is_told(void **state)
{
    (void)state;
    for (size_t c = 0; c < COUNT(commands); c++) {
        struct buf b;
        buf_init(&b, 64 * KiB);
        help_command(commands[c], &b);
        assert_int_equal(buf_put(&b, (struct str){"", 1}), 0);
        join_lines(b.p);
        for (size_t i = 0; i < options_count; i++) {
            char flag[64];
            snprintf(flag, sizeof(flag), "--%s%s%s ", options[i].name,
                     options[i].metavar ? " " : "", options[i].metavar ? options[i].metavar : "");
            if (options[i].not_from & IN(SOURCE_FLAG)) {
                assert_null(strstr(b.p, flag)); /* it is no flag */
            } else if (options[i].commands & IN(commands[c]->id)) {
                assert_has(b.p, flag);
                assert_has(b.p, options[i].text);
            } else if (!option_by_name(str_of(options[i].name), IN(commands[c]->id))) {
                assert_null(strstr(b.p, flag));
            }
        }
        buf_done(&b);
    }
}

static void test_defaults_are_told(void **state)
{
    struct settings s;
    struct buf b;

    (void)state;
    settings_init(&s);
    buf_init(&b, 64 * KiB);
    help_command(&run, &b);
    assert_int_equal(buf_put(&b, (struct str){"", 1}), 0);
    join_lines(b.p);
    for (size_t i = 0; i < options_count; i++) {
        char value[64], want[512];
        if (!(options[i].commands & IN(COMMAND_RUN)))
            continue;
        option_show_default(&options[i], &s, value, sizeof(value));
        snprintf(want, sizeof(want), "%s [%s]\n", options[i].text, value);
        if (options[i].choices) /* these are named between the two */
            snprintf(want, sizeof(want), " [%s]\n", value);
        if (*value)
            assert_has(b.p, want);
    }
    assert_has(b.p, "The end.\n");
    buf_done(&b);
    settings_done(&s);
}

/* The page has a row for each setting of serve, and its name in the environment. */
static void test_page(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 64 * KiB);
    help_page(&serve, &b);
    assert_int_equal(buf_put(&b, (struct str){"", 1}), 0);
    for (size_t i = 0; i < options_count; i++) {
        char want[128], env[ENV_NAME_MAX];
        if (!(options[i].commands & IN(COMMAND_SERVE)) || strcmp(options[i].name, "help") == 0)
            continue;
        option_env_name(&options[i], env);
        if (options[i].not_from & IN(SOURCE_ENV))
            snprintf(want, sizeof(want), "| `%s` | flag only |", options[i].name);
        else
            snprintf(want, sizeof(want), "| `%s` | `%s` |", options[i].name, env);
        assert_has(b.p, want);
        assert_has(b.p, options[i].text);
    }
    assert_has(b.p, "`RETORT_IDLE_TIMEOUT`");
    buf_done(&b);
}

static void test_program(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 64 * KiB);
    help_program(commands, COUNT(commands), &b);
    assert_int_equal(buf_put(&b, (struct str){"", 1}), 0);
    assert_has(b.p, "  run ");
    assert_has(b.p, "Looks.\n");
    assert_has(b.p, "--version");
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_option_is_told),
        cmocka_unit_test(test_defaults_are_told),
        cmocka_unit_test(test_page),
        cmocka_unit_test(test_program),
    };

    return RUN(tests);
}
