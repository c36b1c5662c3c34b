/* What the MCP server of a pool shows. */
#pragma once

#include "doors/mcp/mcp_int.h"

#define AZURE_SERVER_NAME "Microsoft Container Apps MCP Server"

/* Every face with these tools is within one of these: it tells them their pool. */
struct azure_face {
    struct face face;
    char pool[64]; /* "": the first */
};
extern const struct azure_face azure_face_usual;
