"""The MCP SDK for Python. Reads url, or command, args and env; and calls."""

import asyncio
import json

from mcp import Client, StdioServerParameters


def shown(result):
    return {"text": "\n".join(c.text for c in result.content if c.type == "text"), "is_error": bool(result.is_error),
            "images": [{"mime": c.mime_type, "data": c.data} for c in result.content if c.type == "image"]}


async def main(ask):
    where = ask.get("url") or StdioServerParameters(command=ask["command"], args=ask["args"], env=ask["env"])
    heard, calls = [], {}

    async def hear(progress, total, message):
        heard.append(progress)

    async with Client(where) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        for call in ask["calls"]:
            calls[call["case"]] = shown(await client.call_tool(
                call["tool"], call["arguments"], progress_callback=hear if call["case"] == "progress" else None))
    print(json.dumps({"tools": tools, "calls": calls, "progress": heard}))


asyncio.run(main(json.loads(input())))
