/* What /mcp shows. */
#include "doors/mcp/mcp_int.h"

static const struct tool *const tools[] = {
    &tool_run_code,
    &tool_run_shell,
    &tool_get_execution,
    &tool_interrupt_execution,
    &tool_create_session,
    &tool_list_sessions,
    &tool_restart_session,
    &tool_close_session,
    &tool_list_files,
    &tool_read_file,
    &tool_write_file,
    &tool_list_packages,
    NULL,
};

const struct face face_native = {
    .name = "retort",
    .title = "retort code interpreter",
    .instructions =
        "A sealed Python and bash for computing, data analysis, plots and files. Use it whenever "
        "a number, a table or a chart has to be right: run code instead of guessing, and never "
        "invent a result.\n"
        "1. Bring data in with write_file (text, base64 or, best, a url); it lands in /workspace.\n"
        "2. run_code runs Python in a session: variables, imports and files stay for the next "
        "call. Pass the session_id from the first line of an answer to go on in the same "
        "session.\n"
        "3. Print compactly: about 10,000 characters of output are shown. plt.show() gives the "
        "plot as an image; files saved in /workspace are listed, and read_file shows them.\n"
        "4. On an error read the traceback, fix the code, and try again at most twice; then say "
        "what is wrong.\n"
        "5. Long work: background=true, then get_execution with wait_ms.\n"
        "There is usually no network in the sandbox; list_packages tells what is installed. More "
        "in skill://code-interpreter/SKILL.md.",
    .tools = tools,
    .has = FACE_PROMPTS | FACE_RESOURCES | FACE_COMPLETIONS | FACE_SKILLS | FACE_TASKS | FACE_UI,
    .changes = IN(CHANGE_RESOURCES) | IN(CHANGE_RESOURCE),
};
