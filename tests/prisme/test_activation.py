"""P29: a tool that is user_first is there for the message whose user asked for it."""

import json

import pytest
from support.mcp import Legacy, Modern, RpcError, text_of

FLAGS = ["--prisme-activation", "user_first", "--approval", "always_ask", "--approval-by", "approver",
         "--model-script", "-"]
BLOCKED = {"result": None, "logs": [], "duration": 0, "blocked": "user_first"}
CHOICE = {"tool_choice": "execute_python"}


@pytest.fixture(params=["legacy", "modern"])
def agent(request, server):
    if request.param == "modern":
        yield Modern(server, path="/prisme/mcp")
    else:
        with Legacy(server, path="/prisme/mcp") as one:
            yield one


def call(agent, code, meta=None, **more):
    params = {"name": "execute_python", "arguments": {"code": code, **more}}
    return agent.request("tools/call", {**params, **({"_meta": meta} if meta else {})})


def listed(agent, meta=None):
    return agent.request("tools/list", {"_meta": meta} if meta else {})


def test_p29_the_tool_is_a_stub(agent):
    tool, = listed(agent)["tools"]
    assert tool["name"] == "execute_python" and tool["inputSchema"] == {"type": "object"}
    assert tool["description"].startswith("Disabled")


def test_p29_a_tool_that_thinks_is_no_way_around(agent):
    with pytest.raises(RpcError, match="code_execution"):
        agent.call("code_execution", request="x")


def test_p29_summoned_it_is_whole(agent):
    for choice in ("execute_python", ["x", "execute_python"], {"name": "execute_python"}):
        found = listed(agent, {"tool_choice": choice})
        tool, = found["tools"]
        assert tool["inputSchema"]["required"] == ["code"]
        assert found.get("cacheScope", "private") == "private"
    assert listed(agent)["tools"][0]["inputSchema"] == {"type": "object"}


def test_p29_an_unsummoned_call_is_blocked_silently(agent, client):
    before = len(client.all("/v1/executions")), len(client.all("/v1/approvals"))
    for meta in (None, {"tool_choice": "another"}, {"tool_choice": []}, {"tool_choice": None},
                 {"tool_choice": {"execute_python": True}}):
        result = call(agent, "return 1", meta)
        assert json.loads(text_of(result)) == BLOCKED and not result.get("isError")
    # What a model writes summons nothing.
    assert json.loads(text_of(call(agent, "return 1", _meta=CHOICE, **CHOICE))) == BLOCKED
    assert (len(client.all("/v1/executions")), len(client.all("/v1/approvals"))) == before


def test_p29_a_summoned_call_comes_to_the_approval(agent, client):
    before = len(client.all("/v1/approvals"))
    result = call(agent, f"return {before}", CHOICE)
    assert result["isError"] and "a person must agree first" in text_of(result)
    assert len(client.all("/v1/approvals")) == before + 1
    wrong = call(agent, 5, CHOICE)
    assert wrong["isError"] and "code" in text_of(wrong)


def test_p29_over_plain_http(client):
    path, code = "/prisme/execute_python", {"code": "return 2"}
    for more in ({}, {"metadata": {}}, {"metadata": {"tool_choice": "x"}}):
        assert client.post(path, {**code, **more}).expect(200).json == BLOCKED
    asked = client.post(path, {**code, "metadata": CHOICE}).expect(202).json
    client.post(f"/prisme/v1/agents/a/tasks/{asked['task_id']}/resolve", {"approved": True}).expect(200)
    assert client.post(path, {**code, "metadata": CHOICE}).expect(200).json["result"] == 2


def test_p29_functions_are_not_tools(client):
    client.post("/prisme/v2/functions/w", {"functions": {"f": {"code": "return 3"}}}).expect(200)
    assert client.post("/prisme/v2/functions/w/run/f", {}).status == 202
