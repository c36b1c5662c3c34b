/* The tools of this door, as clients list them. */
#include "doors/ubik/ubik_int.h"

#include <stdlib.h>

// clang-format off
#define HOW                                                                                        \
    {"sandbox_id", FIELD_TEXT, OPTIONAL, 0, 64, NULL,                                              \
     "An existing sandbox to go on in: variables, functions and files are still there. Left out: " \
     "a new one.", NULL},                                                                          \
    {"timeout", FIELD_NUMBER, OPTIONAL, 1, TIMEOUT_MAX_S, NULL,                                    \
     "Seconds that one run of code may take.", "60"}

static const struct field request_fields[] = {
    {"request", FIELD_TEXT, REQUIRED, 1, REQUEST_BYTES, NULL,
     "What the code is to do, in plain words.", "\"Plot the sales trend from this CSV\""},
    {"document_ids", FIELD_LIST, OPTIONAL, 0, DOCUMENTS_MAX, "string",
     "UUIDs of documents that the code needs; they are in /home/uploaded_files.", NULL},
    {"context", FIELD_TEXT, OPTIONAL, 0, REQUEST_BYTES, NULL,
     "Further context or constraints.", "\"Use a dark theme for the plot\""},
    HOW,
    {"max_rounds", FIELD_INT, OPTIONAL, 1, ROUNDS_LIMIT, NULL,
     "Rounds of code at most.", "6"},
    {"model", FIELD_TEXT, OPTIONAL, 0, NAME_BYTES, NULL,
     "Which of this server's models writes the code.", NULL},
    {0},
};

static const struct field code_fields[] = {
    {"code", FIELD_TEXT, REQUIRED, 1, CODE_BYTES, NULL, "Python to be run as it is.",
     "\"print(6 * 7)\""},
    {"document_ids", FIELD_LIST, OPTIONAL, 0, DOCUMENTS_MAX, "string",
     "UUIDs of documents that the code needs; they are in /home/uploaded_files.", NULL},
    HOW,
    {0},
};

static const struct field skill_fields[] = {
    {"skill_id", FIELD_TEXT, REQUIRED, 1, NAME_BYTES, NULL, "The skill's name.",
     "\"code-interpreter\""},
    {"file_path", FIELD_TEXT, REQUIRED, 1, NAME_BYTES, NULL,
     "A file of the skill: a .py is run, any other file is read.", "\"scripts/profile_table.py\""},
    {"args", FIELD_LIST, OPTIONAL, 0, 64, "string", "Arguments of a script.", NULL},
    {"document_ids", FIELD_LIST, OPTIONAL, 0, DOCUMENTS_MAX, "string",
     "UUIDs of documents that a script needs; they are in /home/uploaded_files.", NULL},
    HOW,
    {0},
};

static const char *const pictures[] = {"artifacts", NULL};

static const struct catalog_entry tools[] = {
    {"code_execution", "code_interpreter",
     "Solves a task with Python in a sealed sandbox: plans, writes code, runs it, reads what it "
     "printed, corrects it, and returns the log, files and plots. For data analysis, charts, "
     "calculations and conversions of files.",
     CATALOG_REQUEST, request_fields, pictures,
     "{\"sandbox_id\":\"igy4shlkrl6z9sx2uagxz\",\"plan\":[\"Add the numbers\"],\"logs\":"
     "\"INFO: Started sandbox session: igy4shlkrl6z9sx2uagxz\\nINFO: Development plan: "
     "[\\\"Add the numbers\\\"]\\n\\n--- Round 1/4: Add the numbers ---\\nGENERATED CODE:\\n"
     "print(1 + 2)\\nSTDOUT:\\n3\\n\\nSTATUS: Execution successful\\n\",\"total_rounds\":1,"
     "\"generated_files\":[],\"artifacts\":[],\"execution_id\":\"toolu_...\",\"answer\":\"3\","
     "\"status\":\"completed\"}"},
    {"python_interpreter", NULL,
     "Runs the Python it is given in a sealed sandbox, without a model in between. The outputs "
     "are those of code_execution, with one round.",
     CATALOG_CODE, code_fields, pictures,
     "{\"sandbox_id\":\"igy4shlkrl6z9sx2uagxz\",\"plan\":[\"Run the given code\"],\"logs\":\"...\","
     "\"total_rounds\":1,\"generated_files\":[],\"artifacts\":[],\"execution_id\":\"toolu_...\"}"},
    {"read_execute_skill_file", NULL,
     "Reads a file of a skill of this server, or runs it where it is a Python script.",
     CATALOG_SKILL, skill_fields, pictures,
     "{\"status\":\"success\",\"action\":\"executed\",\"stdout\":\"...\",\"stderr\":\"\","
     "\"artifacts\":[],\"generated_files\":[]}"},
};
// clang-format on

const struct catalog_entry *catalog_find(struct str name)
{
    char id[UUID_MAX];

    for (size_t i = 0; i < COUNT(tools); i++) {
        uuid_of(id, "tool", tools[i].name);
        if (str_is(name, tools[i].name) || (tools[i].alias && str_is(name, tools[i].alias)) ||
            str_is(name, id))
            return &tools[i];
    }
    return NULL;
}

const struct catalog_entry *catalog_named(const char *name)
{
    const struct catalog_entry *t = catalog_find(str_of(name));

    return t ? t : &tools[0];
}

static json_t *show(const struct catalog_entry *t)
{
    char id[UUID_MAX];

    uuid_of(id, "tool", t->name);
    return json_pack("{s:s, s:s, s:s}", "id", id, "name", t->name, "description", t->text);
}

void handle_tools(struct request *r)
{
    struct pages p;
    json_t *items;

    if (!pages_read(r, &p))
        return;
    items = json_array();
    for (size_t i = 0; !*p.after && i < COUNT(tools); i++)
        if (i / p.limit == p.page - 1)
            json_array_append_new(items, show(&tools[i]));
    pages_answer(r, &p, items, COUNT(tools));
}

void handle_tool(struct request *r)
{
    const struct catalog_entry *t = catalog_find(request_path(r, "tool"));
    json_t *shown, *keys;

    if (!t) {
        detail(r, 404, "Tool not found");
        return;
    }
    shown = show(t);
    keys = json_array();
    for (const char *const *key = t->media; *key; key++)
        json_array_append_new(keys, json_string(*key));
    json_object_set_new(shown, "input_schema", fields_schema(t->params));
    json_object_set_new(shown, "media_output_keys", keys);
    json_object_set_new(shown, "example_responses",
                        json_pack("[o]", json_loads(t->example, 0, NULL)));
    json_object_set_new(shown, "aliases", t->alias ? json_pack("[s]", t->alias) : json_array());
    answer_json(r, 200, shown);
}
