"""openai-agents: an agent with an MCP server. Reads url and key, or command, args and env; model; and calls, which the
model's script makes one after the other."""

import json

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from ending import end
from openai import AsyncOpenAI

set_tracing_disabled(True)


def shown(output):
    """A tool's output: a block or a list of blocks, as the agent hands them to the model."""
    blocks = output if isinstance(output, list) else [output]
    blocks = [json.loads(b) if isinstance(b, str) and b.startswith("{") else b for b in blocks]
    text = "\n".join(b if isinstance(b, str) else b.get("text", "") for b in blocks)
    images = [b.get("image_url") for b in blocks if isinstance(b, dict) and b.get("image_url")]
    return {"text": text, "images": [{"mime": i[5:].split(";")[0], "data": i.split(",")[1]} for i in images]}


async def main(ask):
    if "url" in ask:
        server = MCPServerStreamableHttp(params={"url": ask["url"], "headers": {"Authorization": "Bearer " + ask["key"]}}, client_session_timeout_seconds=60)
    else:
        server = MCPServerStdio(params={k: ask[k] for k in ("command", "args", "env")}, client_session_timeout_seconds=60)
    async with server:
        model = OpenAIChatCompletionsModel("scripted", AsyncOpenAI(base_url=ask["model"], api_key="none"))
        agent = Agent(name="walk", model=model, mcp_servers=[server])
        tools = [tool.name for tool in await server.list_tools()]
        result = await Runner.run(agent, "Do it.", max_turns=len(ask["calls"]) + 2)
    outputs = [item.output for item in result.new_items if item.type == "tool_call_output_item"]
    calls = {call["case"]: shown(output) for call, output in zip(ask["calls"], outputs, strict=True)}
    return {"tools": tools, "calls": calls, "answer": result.final_output}


end(json.loads(input()), main)
