"""smolagents: an agent that writes Python, in which tools of an MCP server are functions. Reads url and key, or command,
args and env; model; and calls, which the model's script makes one after the other."""

import json

from ending import end
from mcp import StdioServerParameters
from smolagents import CodeAgent, MCPClient, OpenAIServerModel
from smolagents.monitoring import LogLevel


def walk(ask):
    if "url" in ask:
        where = {"url": ask["url"], "transport": "streamable-http", "headers": {"Authorization": "Bearer " + ask["key"]}}
    else:
        where = StdioServerParameters(command=ask["command"], args=ask["args"], env=ask["env"])
    with MCPClient(where, structured_output=False) as tools:
        agent = CodeAgent(tools, OpenAIServerModel("scripted", api_base=ask["model"], api_key="none"),
                          verbosity_level=LogLevel.OFF, max_steps=len(ask["calls"]) + 2)
        answer = agent.run("Do it.")
        steps = [step.observations or str(step.error) for step in agent.memory.steps if hasattr(step, "observations")]
    calls = {call["case"]: {"text": text, "images": []} for call, text in zip(ask["calls"], steps)}
    return {"tools": [tool.name for tool in tools], "calls": calls, "answer": str(answer)}


end(json.loads(input()), walk)
