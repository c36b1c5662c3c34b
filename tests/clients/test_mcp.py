"""The SDKs of MCP and frameworks that have one inside, over HTTP with a key and over standard input and output."""

import os

import pytest

import mcp_cases
from rows import go, java, npm, python, rust
from servers import is_refusal
from support import retort
from support.stdio import SMALL

# (row, whether a model makes the calls, what the client does not hand on)
CLIENTS = [
    (python("mcp", "mcp", "mcp_sdk.py"), None, ()),
    (npm("@modelcontextprotocol/sdk", "mcp", "mcp_sdk.mjs", "v1"), None, ()),
    (npm("@modelcontextprotocol/client", "mcp", "mcp_sdk.mjs", "v2"), None, ()),
    (go("github.com/modelcontextprotocol/go-sdk", "mcp"), None, ()),
    (java("io.modelcontextprotocol.sdk:mcp", "McpSdk"), None, ()),
    (rust("rmcp"), None, ()),
    (java("dev.langchain4j:langchain4j-mcp", "LangChain4jMcp"), None, ()),
    (python("langchain-mcp-adapters", "langchain-mcp-adapters", "langchain_mcp.py"), None, {"progress"}),
    (python("openai-agents", "openai-agents", "openai_agents_mcp.py"), "calls", {"progress"}),
    (python("pydantic-ai-slim", "pydantic-ai", "pydantic_ai_mcp.py"), "calls", {"progress"}),
    # Its agents write Python that calls tools, and see the first block of an answer alone. With a wrong key it waits
    # for half a minute, and tells that it could not connect.
    (python("smolagents", "smolagents", "smolagents_mcp.py"), "code", {"progress", "plot", "key"}),
]


def turns(kind, calls):
    """The script of a model that makes these calls one after the other."""
    if kind == "code":
        texts = [f"<code>\nprint({c['tool']}(**{c['arguments']!r}))\n</code>" for c in calls]
        return [[{"text": text}] for text in [*texts, '<code>\nfinal_answer("done")\n</code>']]
    return [*([{"tool": {"name": c["tool"], "input": c["arguments"]}}] for c in calls), [{"text": "done"}]]


def ask(kind, model, calls, **where):
    more = {"model": model.desk(turns(kind, calls), in_order=True).openai} if kind else {}
    return {"calls": calls, **where, **more}


def walk(row, kind, way, server, model, place):
    if way == "stdio":
        command = {"command": str(retort.PROGRAM), "args": ["mcp", *SMALL], "env": {"PATH": os.environ["PATH"]}}
        return row.run(ask(kind, model, mcp_cases.calls(), **command), place)
    with server.client(server.key) as client, client.session() as session:
        return row.run(ask(kind, model, mcp_cases.calls(session.id), url=url(server), key=server.key), place)


def url(server):
    return f"http://127.0.0.1:{server.port}/mcp"


@pytest.mark.parametrize("way", ["http", "stdio"])
@pytest.mark.parametrize(("row", "kind", "case"), [
    pytest.param(row, kind, case, id=f"{row.id}-{case}")
    for row, kind, lacks in CLIENTS for case in mcp_cases.CHECKS if case not in lacks])
def test_walk(row, kind, way, case, server, model, place, walked):
    seen = walked(row, way, lambda: walk(row, kind, way, server, model, place))
    mcp_cases.CHECKS[case](seen)
    assert seen.get("answer", "done") == "done"


@pytest.mark.parametrize(("row", "kind"), [
    pytest.param(row, kind, id=row.id) for row, kind, lacks in CLIENTS if "key" not in lacks])
def test_a_wrong_key(row, kind, server, model, place):
    seen = row.run(ask(kind, model, mcp_cases.calls()[:1], url=url(server), key="wrong", may_fail=True), place)
    assert is_refusal(seen["refused"]), seen
