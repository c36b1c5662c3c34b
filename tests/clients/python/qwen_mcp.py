"""Qwen-Agent: an Assistant and a ReActChat with tools of an MCP server. Reads servers, for mcpServers; assistant and
react: where each agent's script is played."""

import json

from ending import end
from qwen_agent.agents import Assistant, ReActChat


def walk(ask):
    def talk(kind, model):
        bot = kind(llm={"model": "scripted", "model_server": model, "api_key": "none"},
                   function_list=[{"mcpServers": ask["servers"]}])
        *_, last = bot.run([{"role": "user", "content": "Do it."}])
        return {"results": [m["content"] for m in last if m["role"] == "function"], "answer": last[-1]["content"]}

    return {"assistant": talk(Assistant, ask["assistant"]), "react": talk(ReActChat, ask["react"])}


end(json.loads(input()), walk)
