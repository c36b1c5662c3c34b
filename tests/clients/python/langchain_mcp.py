"""langchain-mcp-adapters: tools as a LangChain agent calls them. Reads url and key, or command, args and env; and calls."""

import json

from ending import end
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools


def shown(message):
    blocks = message.content if isinstance(message.content, list) else [{"type": "text", "text": message.content}]
    return {"text": "\n".join(b["text"] for b in blocks if b["type"] == "text"), "is_error": message.status == "error",
            "images": [{"mime": b["mime_type"], "data": b["base64"]} for b in blocks if b["type"] == "image"]}


async def main(ask):
    where = ({"transport": "http", "url": ask["url"], "headers": {"Authorization": "Bearer " + ask["key"]}} if "url" in ask
             else {"transport": "stdio", **{k: ask[k] for k in ("command", "args", "env")}})
    client, calls = MultiServerMCPClient({"retort": where}), {}
    async with client.session("retort") as session:
        tools = {tool.name: tool for tool in await load_mcp_tools(session)}
        for n, call in enumerate(ask["calls"]):
            calls[call["case"]] = shown(await tools[call["tool"]].ainvoke(
                {"type": "tool_call", "id": str(n), "name": call["tool"], "args": call["arguments"]}))
    return {"tools": list(tools), "calls": calls}


end(json.loads(input()), main)
