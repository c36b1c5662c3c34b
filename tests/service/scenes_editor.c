/* The text editor of the Anthropic door, on the files of real sessions. */
#include "stage.h"

#include "doors/anthropic/anthropic_int.h"

static struct edited {
    bool done;
    json_t *content; /* owned */
} got;

static void on_edited(void *arg, json_t *content)
{
    (void)arg;
    json_decref(got.content);
    got.content = json_incref(content);
    got.done = true;
}

/* The result of one call, as text: keys sorted. */
static const char *edit(const struct caller *c, const char *session, const char *input)
{
    static const struct editor_dirs dirs = {.input = "input"};
    static char *text;
    json_t *v = json_loads(input, 0, NULL);

    CHECK(v);
    got.done = false;
    editor_run(loop, service, c, session, &dirs, v, on_edited, NULL);
    json_decref(v);
    CHECK(!got.done); /* never from inside the call */
    wait_for(&got.done, "an edit");
    free(text);
    text = json_dumps(got.content, JSON_COMPACT | JSON_SORT_KEYS);
    return text;
}

#define SAYS(c, session, input, said) CHECK(strcmp(edit((c), (session), (input)), (said)) == 0)
#define HAS(c, session, input, part)  CHECK(strstr(edit((c), (session), (input)), (part)))
#define CREATED(update)                                                                            \
    "{\"is_file_update\":" update ",\"type\":\"text_editor_code_execution_create_result\"}"

void scene_editor(void)
{
    const char *id = keep(new_session());

    SAYS(&alice, id, "{\"command\":\"create\",\"path\":\"a/b.sh\",\"file_text\":\"1\\n2\\n\"}",
         CREATED("false"));
    SAYS(&alice, id, "{\"command\":\"create\",\"path\":\"/workspace/a/b.sh\",\"file_text\":\"\"}",
         CREATED("true"));
    CHECK(strcmp(run(id, "import os; os.chmod('a/b.sh', 0o755); open('a/b.sh').read()"), "''") ==
          0);
    run(id, "open('a/b.sh', 'w').write('1\\n2\\n3\\n4\\n5\\n')");
    SAYS(&alice, id, "{\"command\":\"view\",\"path\":\"a/b.sh\"}",
         "{\"content\":\"1\\n2\\n3\\n4\\n5\",\"file_type\":\"text\",\"num_lines\":5,"
         "\"start_line\":1,\"total_lines\":5,\"type\":\"text_editor_code_execution_view_result\"}");
    HAS(&alice, id, "{\"command\":\"view\",\"path\":\"a/b.sh\",\"view_range\":[4,-1]}",
        "\"content\":\"4\\n5\"");
    SAYS(&alice, id,
         "{\"command\":\"str_replace\",\"path\":\"a/b.sh\",\"old_str\":\"2\\n\","
         "\"new_str\":\"zwei\\n\"}",
         "{\"lines\":[\" 1\",\"-2\",\"+zwei\",\" 3\",\" 4\",\" 5\"],\"new_lines\":5,"
         "\"new_start\":1,\"old_lines\":5,\"old_start\":1,"
         "\"type\":\"text_editor_code_execution_str_replace_result\"}");
    /* the sandbox has it, too, and it can still be run */
    CHECK(strcmp(run(id, "open('a/b.sh').read(), oct(os.stat('a/b.sh').st_mode)"),
                 "('1\\nzwei\\n3\\n4\\n5\\n', '0o100755')") == 0);
    HAS(&alice, id, "{\"command\":\"str_replace\",\"path\":\"a/b.sh\",\"old_str\":\"zwei\\n\"}",
        "\"-zwei\",\" 3\"");
    run(id, "os.makedirs('input'); open('input/d.csv', 'w').write('x')");
    HAS(&alice, id, "{\"command\":\"view\",\"path\":\"$INPUT_DIR/d.csv\"}", "\"content\":\"x\"");
    HAS(&alice, id, "{\"command\":\"view\",\"path\":\".\"}", "\"a/b.sh\\ninput/d.csv\"");
    HAS(&alice, id, "{\"command\":\"view\",\"path\":\"a\"}", "\"content\":\"b.sh\"");
    run(id, "open('p.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n')");
    HAS(&alice, id, "{\"command\":\"view\",\"path\":\"p.png\"}", "\"content\":\"iVBORw0KGgo=\"");
}

void scene_editor_refuses(void)
{
    static const char *const wrong[] = {
        "{}",
        "{\"command\":\"insert\",\"path\":\"a\"}",
        "{\"command\":\"view\"}",
        "{\"command\":\"view\",\"path\":7}",
        "{\"command\":\"view\",\"path\":\"../x\"}",
        "{\"command\":\"view\",\"path\":\"/etc/passwd\"}",
        "{\"command\":\"view\",\"path\":\"$OUTPUT_DIR/x\"}",
        "{\"command\":\"view\",\"path\":\"a\",\"view_range\":[9,9]}",
        "{\"command\":\"create\",\"path\":\"a\"}",
        "{\"command\":\"create\",\"path\":\".\",\"file_text\":\"x\"}",
        "{\"command\":\"create\",\"path\":\"a/below\",\"file_text\":\"x\"}",
        "{\"command\":\"create\",\"path\":\"f\",\"file_text\":\"x\"}",
        "{\"command\":\"str_replace\",\"path\":\"a\",\"old_str\":\"\",\"new_str\":\"x\"}",
        "{\"command\":\"str_replace\",\"path\":\"a\",\"old_str\":\"no\",\"new_str\":\"x\"}",
        "{\"command\":\"str_replace\",\"path\":\"a\",\"old_str\":\"x\",\"new_str\":\"y\"}",
        "{\"command\":\"str_replace\",\"path\":\"a\",\"old_str\":\"x\",\"new_str\":\"x\"}",
        "{\"command\":\"str_replace\",\"path\":\"a\",\"old_str\":\"b\",\"new_str\":[]}",
        "{\"command\":\"str_replace\",\"path\":\"bin\",\"old_str\":\"b\",\"new_str\":\"c\"}",
        "{\"command\":\"view\",\"path\":\"bin\"}",
        "{\"command\":\"view\",\"path\":\"big\"}",
    };
    const char *id = keep(new_session());

    run(id, "import os; os.makedirs('f/g'); open('a', 'w').write('xbx'); open('f/g/h', 'w')\n"
            "open('bin', 'wb').write(b'a\\0b'); open('big', 'wb').truncate(17 << 20)");
    for (size_t i = 0; i < COUNT(wrong); i++) {
        const char *said = edit(&alice, id, wrong[i]);
        if (!strstr(said, "\"error_code\":\"invalid_tool_input\"") ||
            !strstr(said, "\"error_message\":\""))
            fprintf(stderr, "%s: %s\n", wrong[i], said);
        CHECK(strstr(said, "\"error_code\":\"invalid_tool_input\""));
        CHECK(strstr(said, "\"error_message\":\""));
    }
    CHECK(strcmp(run(id, "open('a').read()"), "'xbx'") == 0);
    HAS(&alice, id, "{\"command\":\"view\",\"path\":\"nope\"}",
        "\"error_code\":\"file_not_found\"");
    HAS(&alice, id, "{\"command\":\"str_replace\",\"path\":\"nope\",\"old_str\":\"x\"}",
        "\"error_code\":\"file_not_found\"");
    /* another tenant's */
    HAS(&bob, id, "{\"command\":\"view\",\"path\":\"a\"}", "\"error_code\":\"file_not_found\"");
    HAS(&bob, id, "{\"command\":\"create\",\"path\":\"a\",\"file_text\":\"\"}",
        "\"error_code\":\"file_not_found\"");
    CHECK(strcmp(run(id, "open('a').read()"), "'xbx'") == 0);
    json_decref(got.content);
}
