"""The MCP SDK for Python. Reads url and key, or command, args and env; and calls."""

import json

import httpx2
from ending import end
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


def shown(result):
    return {"text": "\n".join(c.text for c in result.content if c.type == "text"), "is_error": bool(result.is_error),
            "images": [{"mime": c.mime_type, "data": c.data} for c in result.content if c.type == "image"]}


async def main(ask):
    if "url" in ask:
        http = httpx2.AsyncClient(headers={"Authorization": "Bearer " + ask["key"]}, timeout=60)
        where = streamable_http_client(ask["url"], http_client=http)
    else:
        where = StdioServerParameters(command=ask["command"], args=ask["args"], env=ask["env"])
    heard, calls = [], {}

    async def hear(progress, total, message):
        heard.append(progress)

    async with Client(where) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        for call in ask["calls"]:
            calls[call["case"]] = shown(await client.call_tool(
                call["tool"], call["arguments"], progress_callback=hear if call["case"] == "progress" else None))
    return {"tools": tools, "calls": calls, "progress": heard}


end(json.loads(input()), main)
