"""pydantic-ai: an agent with an MCP server. Reads url and key, or command, args and env; model; and calls, which the
model's script makes one after the other."""

import base64
import json

from ending import end
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import RetryPromptPart, ToolReturnPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


def shown(part):
    blocks = part.content if isinstance(part.content, list) else [part.content]
    images = [b for b in blocks if isinstance(b, BinaryContent)]
    text = "\n".join(b if isinstance(b, str) else json.dumps(b, default=str) for b in blocks if b not in images)
    return {"text": text, "is_error": None,
            "images": [{"mime": i.media_type, "data": base64.b64encode(i.data).decode()} for i in images]}


async def main(ask):
    if "url" in ask:
        tools = MCPToolset(ask["url"], headers={"Authorization": "Bearer " + ask["key"]})
    else:
        tools = MCPToolset(StdioTransport(command=ask["command"], args=ask["args"], env=ask["env"]))
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=ask["model"], api_key="none"))
    agent = Agent(model, toolsets=[tools], retries=3)
    async with agent:
        names = [tool.name for tool in await tools.list_tools()]
        result = await agent.run("Do it.")
    parts = [p for m in result.all_messages() for p in m.parts if isinstance(p, (ToolReturnPart, RetryPromptPart))]
    calls = {call["case"]: shown(part) for call, part in zip(ask["calls"], parts, strict=True)}
    return {"tools": names, "calls": calls, "answer": result.output}


end(json.loads(input()), main)
