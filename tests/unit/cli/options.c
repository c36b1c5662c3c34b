/* The table of options and the parser of arguments. */
#include "cli/cli_int.h"
#include "unit.h"

static const struct command run = {.name = "run", .id = COMMAND_RUN, .takes_work = true};
static const struct command doctor = {.name = "doctor", .id = COMMAND_DOCTOR};

struct parsed {
    struct settings s;
    struct err e;
    int result;
};

static int open_parsed(void **state)
{
    static struct parsed p;

    settings_init(&p.s);
    *state = &p;
    return 0;
}

static int close_parsed(void **state)
{
    struct parsed *p = *state;

    settings_done(&p->s);
    return 0;
}

#define parse(p, c, ...)                                                                           \
    parse_args(p, c, (const char *[]){__VA_ARGS__},                                                \
               sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))

static int parse_args(struct parsed *p, const struct command *c, const char *const *argv,
                      size_t argc)
{
    settings_done(&p->s);
    settings_init(&p->s);
    p->e = (struct err){0};
    p->result = settings_parse(&p->s, c, (int)argc, argv, &p->e);
    return p->result;
}

static void test_table_is_sound(void **state)
{
    (void)state;
    for (size_t i = 0; i < options_count; i++) {
        const struct option *o = &options[i];
        assert_true(o->at < sizeof(struct settings));
        assert_true(o->commands != 0);
        assert_true(o->min <= o->max);
        assert_true((o->metavar == NULL) == (o->type == OPTION_BOOL));
        assert_true(strlen(o->text) > 10 && o->text[strlen(o->text) - 1] == '.');
        assert_true((o->choices == NULL) == (o->type != OPTION_CHOICE));
        for (size_t j = 0; j < i; j++) {
            if (!(o->commands & options[j].commands))
                continue;
            assert_string_not_equal(o->name, options[j].name);
            assert_true(o->letter == 0 || o->letter != options[j].letter);
        }
    }
}

/* What is the default could also have been given. */
static void test_defaults_are_in_range(void **state)
{
    struct parsed *p = *state;
    struct settings defaults;
    char value[64];

    settings_init(&defaults);
    for (size_t i = 0; i < options_count; i++) {
        if (options[i].max == 0)
            continue;
        option_show(&options[i], &defaults, value, sizeof(value));
        if (option_set(&options[i], &p->s, options[i].name, value, &p->e) < 0)
            fail_msg("%s", p->e.text);
    }
    assert_memory_equal(&p->s.pool.limits, &defaults.pool.limits, sizeof(defaults.pool.limits));
    settings_done(&defaults);
}

static void test_both_ways_to_write_a_value(void **state)
{
    struct parsed *p = *state;

    assert_int_equal(
        parse(p, &run, "--timeout", "1.5", "--memory=64M", "-fa", "-f", "b", "--file=c"), 0);
    assert_int_equal(p->s.pool.limits.wall_ms, 1500);
    assert_int_equal(p->s.pool.limits.memory_bytes, 64 * MiB);
    assert_int_equal(p->s.files.count, 3);
    assert_string_equal(p->s.files.item[0], "a");
    assert_string_equal(p->s.files.item[1], "b");
    assert_string_equal(p->s.files.item[2], "c");
}

static void test_order_of_work_is_kept(void **state)
{
    static const struct {
        enum work_kind kind;
        const char *arg;
    } want[] = {
        {WORK_SCRIPT, "one.py"},
        {WORK_CODE,   "x = 1" },
        {WORK_SHELL,  "ls -l" },
        {WORK_SCRIPT, "-"     },
        {WORK_CODE,   ""      },
        {WORK_CODE,   "-1"    },
        {WORK_SCRIPT, "-c"    },
        {WORK_SCRIPT, "--json"},
    };
    struct parsed *p = *state;

    assert_int_equal(parse(p, &run, "one.py", "-c", "x = 1", "--shell", "ls -l", "-",
                           "--code=", "-c-1", "--", "-c", "--json"),
                     0);
    assert_int_equal(p->s.work.count, COUNT(want));
    for (size_t i = 0; i < COUNT(want); i++) {
        assert_int_equal(p->s.work.item[i].kind, want[i].kind);
        assert_string_equal(p->s.work.item[i].arg, want[i].arg);
    }
    assert_false(p->s.json);
}

static void test_flags(void **state)
{
    struct parsed *p = *state;

    assert_int_equal(parse(p, &run, "--json", "--keep-going"), 0);
    assert_true(p->s.json && p->s.keep_going);
    assert_int_equal(parse(p, &run, "--json", "--json=no"), 0);
    assert_false(p->s.json);
    assert_int_equal(parse(p, &run, "--json=maybe"), -1);
    assert_string_equal(p->e.text, "--json: 'maybe' is neither yes nor no");
}

static void test_last_value_counts(void **state)
{
    struct parsed *p = *state;

    assert_int_equal(parse(p, &run, "--out", "a", "--out=b", "--pids=20", "--pids", "30"), 0);
    assert_string_equal(p->s.out, "b");
    assert_int_equal(p->s.pool.limits.pids, 30);
}

static void test_help_ends_the_reading(void **state)
{
    struct parsed *p = *state;

    assert_int_equal(parse(p, &run, "-c", "x", "-vh", "--no-such"), 0);
    assert_true(p->s.help && p->s.verbose);
}

static void test_mistakes(void **state)
{
    static const struct {
        const char *arg[3];
        const char *text;
    } rows[] = {
        {{"--memry", "1G"},      "there is no option --memry; did you mean --memory?"          },
        {{"--time-out=3"},       "there is no option --time-out; did you mean --timeout?"      },
        {{"--colour"},           "there is no option --colour; see retort run --help"          },
        {{"--a\033[2J"},         "there is no option --a\\x1b[2J; see retort run --help"       },
        {{"-x"},                 "there is no option -x; see retort run --help"                },
        {{"-c"},                 "-c needs a value: -c CODE"                                   },
        {{"--out"},              "--out needs a value: --out DIR"                              },
        {{"--out="},             "--out: DIR must not be empty"                                },
        {{"-f", ""},             "-f: FILE must not be empty"                                  },
        {{""},                   "the name of a script must not be empty"                      },
        {{"--memory", "lots"},   "--memory: 'lots' is not a size such as 512M or 2G"           },
        {{"--memory", "1M"},     "--memory: 1M is too little; the least is 32M"                },
        {{"--timeout", "0"},     "--timeout: 0 is too little; the least is 0.01"               },
        {{"--timeout", "-1"},    "--timeout: '-1' is not a number of seconds such as 30 or 0.5"},
        {{"--timeout", "86401"}, "--timeout: 86401 is too much; the most is 24h"               },
        {{"--pids", "-1"},       "--pids: '-1' is not a whole number"                          },
        {{"--pids", "1.5"},      "--pids: '1.5' is not a whole number"                         },
        {{"--cpus", "0"},        "--cpus: 0 is too little; the least is 0.01"                  },
    };
    struct parsed *p = *state;

    for (size_t i = 0; i < COUNT(rows); i++) {
        size_t argc = 0;
        while (argc < COUNT(rows[i].arg) && rows[i].arg[argc])
            argc++;
        assert_int_equal(parse_args(p, &run, rows[i].arg, argc), -1);
        assert_int_equal(p->e.kind, ERR_CALLER);
        assert_string_equal(p->e.text, rows[i].text);
    }
}

static void test_each_command_has_its_own(void **state)
{
    struct parsed *p = *state;

    assert_int_equal(parse(p, &doctor, "--python", "/usr/bin/python3"), 0);
    assert_int_equal(parse(p, &doctor, "--memory", "1G"), -1);
    assert_string_equal(p->e.text, "there is no option --memory; see retort doctor --help");
    assert_int_equal(parse(p, &doctor, "x"), -1);
    assert_string_equal(p->e.text, "doctor takes no argument; what is 'x'?");
}

static void test_nearest(void **state)
{
    (void)state;
    assert_int_equal(edit_distance(STR("kitten"), STR("sitting")), 3);
    assert_int_equal(edit_distance(STR(""), STR("abc")), 3);
    assert_int_equal(edit_distance(STR("same"), STR("same")), 0);
    assert_string_equal(option_nearest(STR("jason"), IN(COMMAND_RUN)), "json");
    assert_string_equal(option_nearest(STR("keepgoing"), IN(COMMAND_RUN)), "keep-going");
    assert_null(option_nearest(STR("zzzzzz"), IN(COMMAND_RUN)));
    assert_null(option_nearest(STR("memroy"), IN(COMMAND_DOCTOR)));
    assert_null(option_nearest(STR("an-option-longer-than-any-name-there-is"), IN(COMMAND_RUN)));
}

#define PARSES(t) cmocka_unit_test_setup_teardown(t, open_parsed, close_parsed)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_is_sound),
        PARSES(test_defaults_are_in_range),
        PARSES(test_both_ways_to_write_a_value),
        PARSES(test_order_of_work_is_kept),
        PARSES(test_flags),
        PARSES(test_last_value_counts),
        PARSES(test_help_ends_the_reading),
        PARSES(test_mistakes),
        PARSES(test_each_command_has_its_own),
        cmocka_unit_test(test_nearest),
    };

    return RUN(tests);
}
