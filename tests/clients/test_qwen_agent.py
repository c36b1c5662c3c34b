"""Qwen-Agent with code_interpreter of an MCP server: over both HTTP transports, and over standard input and output."""

import json
import os

import pytest

from rows import python
from servers import is_refusal
from support import retort
from support.stdio import SMALL

ROW = python("qwen-agent", "qwen-agent", "qwen_mcp.py")
TOOL = "retort-code_interpreter"
CODES = {"run": "print('six times seven is', 6 * 7)", "keep": "kept = [5, 7]", "state": "print('sum', sum(kept))",
         "plot": "import matplotlib.pyplot as plt\nplt.plot([3, 1, 2])\nplt.show()", "error": "1 / 0"}
WAYS = {"http": "/qwen/mcp", "sse": "/qwen/mcp/sse", "stdio": None}


def servers(way, server, key):
    """As a user writes them: a URL without a type is one of the older transport."""
    if way == "stdio":
        command = {"command": str(retort.PROGRAM), "args": ["mcp", "--tools", "qwen", *SMALL], "env": {"PATH": os.environ["PATH"]}}
        return {"retort": command}
    return {"retort": {"url": f"http://127.0.0.1:{server.port}{WAYS[way]}", "headers": {"Authorization": "Bearer " + key},
                       **({"type": "streamable-http"} if way == "http" else {})}}


def assistant_turns():
    return [*([{"text": "<tool_call>\n" + json.dumps({"name": TOOL, "arguments": {"code": code}}) + "\n</tool_call>"}]
              for code in CODES.values()), [{"text": "done"}]]


def react_turns():
    return [*([{"text": f"Thought: I compute.\nAction: {TOOL}\nAction Input: {json.dumps({'code': code})}\n"}]
              for code in CODES.values()), [{"text": "Thought: I know.\nFinal Answer: done"}]]


def ask(model, servers):
    return {"servers": servers, "assistant": model.desk(assistant_turns(), in_order=True).openai,
            "react": model.desk(react_turns(), in_order=True).openai}


# --- one check for each case: the results of an Assistant in the order of CODES, and what ReActChat said ---

def check_run(results, react):
    assert "six times seven is 42" in results["run"]


def check_state(results, react):
    assert "sum 12" in results["state"]


def check_plot(results, react):
    """It hands on texts alone; this one names the picture."""
    assert results["plot"].startswith("![fig-")


def check_error(results, react):
    assert "ZeroDivisionError" in results["error"]


def check_react(results, react):
    assert react["answer"].rstrip().endswith("done")
    for said in ("six times seven is 42", "sum 12", "ZeroDivisionError"):
        assert said in react["answer"]


CHECKS = {name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")}


@pytest.mark.parametrize("case", CHECKS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("row", [ROW], ids=lambda row: row.id)
def test_agents(row, way, case, server, model, place, walked):
    seen = walked(row, way, lambda: row.run(ask(model, servers(way, server, server.key)), place))
    results = dict(zip(CODES, seen["assistant"]["results"], strict=True))
    CHECKS[case](results, seen["react"])


@pytest.mark.parametrize("row", [ROW], ids=lambda row: row.id)
def test_a_wrong_key(row, server, model, place):
    """Over the older transport: over the newer one it tells that it was cancelled, and not why."""
    seen = row.run({**ask(model, servers("sse", server, "wrong")), "may_fail": True}, place)
    assert is_refusal(seen["refused"]), seen
