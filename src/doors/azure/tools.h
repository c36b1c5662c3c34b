/* The tools of a pool's MCP server. */
#pragma once

#include "doors/mcp/tool.h"

#define AZURE_SERVER_NAME "Microsoft Container Apps MCP Server"

extern const struct tool_set azure_tools;
/* The pool whose server was called; "": the first, where it is none of a pool. */
const char *azure_pool_of(const struct call *c);
