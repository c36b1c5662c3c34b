/* What /mcp shows. */
#include "doors/mcp/mcp_int.h"

static const struct tool *const tools[] = {
    &tool_list_packages,
    NULL,
};

const struct face face_native = {
    .name = "retort",
    .title = "retort code interpreter",
    .instructions = "A sealed Python and shell for computing.",
    .tools = tools,
};
