"""Prompts, and the completion of their arguments and of templates' variables."""

import pytest
from support.mcp import RpcError

pytestmark = pytest.mark.once

PROMPTS = {"analyze_data": ["file", "question"], "fix_error": ["execution_id"], "make_chart": ["file", "kind"]}
FILES = "retort://sessions/{session_id}/files/{+path}"
OUTPUT = "retort://executions/{execution_id}/output"


@pytest.fixture
def session(server):
    with server.client() as client, client.session() as made:
        yield made


def get(client, name, **arguments):
    result = client.request("prompts/get", {"name": name, "arguments": arguments})
    assert result["description"]
    (message,) = result["messages"]
    assert message["role"] == "user" and message["content"]["type"] == "text"
    return message["content"]["text"]


def complete(client, ref, argument, value, **context):
    params = {"ref": ref, "argument": {"name": argument, "value": value}}
    if context:
        params["context"] = {"arguments": context}
    found = client.request("completion/complete", params)["completion"]
    assert len(found["values"]) <= 100 and isinstance(found["hasMore"], bool)
    assert all(v.startswith(value) for v in found["values"])
    return found


def of_prompt(name):
    return {"type": "ref/prompt", "name": name}


def of_template(uri):
    return {"type": "ref/resource", "uri": uri}


# --- prompts ---


def test_list(either):
    found = either.request("prompts/list")
    assert {p["name"]: [a["name"] for a in p["arguments"]] for p in found["prompts"]} == PROMPTS
    for prompt in found["prompts"]:
        assert prompt["description"] and prompt["title"]
        assert all(a["description"] for a in prompt["arguments"])
        assert prompt["arguments"][0]["required"] is True


def test_capabilities(legacy, modern):
    for found in (legacy.info["capabilities"], modern.request("server/discover")["capabilities"]):
        assert found["prompts"] == {} and found["completions"] == {}
    assert modern.request("prompts/list")["cacheScope"] == "public"


def test_each_has_the_rules_of_the_work(either):
    for name, arguments in PROMPTS.items():
        said = get(either, name, **{a: f"<{a}>" for a in arguments})
        assert all(f"<{a}>" in said for a in arguments)
        assert "at most twice" in said and "invent" in said and "session_id" in said
        assert "{" not in said


def test_without_what_may_be_left_out(either):
    assert "findings" in get(either, "analyze_data", file="a.csv")
    assert "says most" in get(either, "make_chart", file="a.csv", kind="")


def test_an_argument_is_text_and_nothing_else(either):
    said = get(either, "analyze_data", file="{question}", question="{file} %s %n\n\"quoted\" \u2028 \x07")
    assert "{question}" in said and "{file} %s %n" in said and "\x07" in said


@pytest.mark.parametrize(("name", "arguments", "says"), [
    ("none", {}, "none"), (None, {}, "prompt"), (5, {}, "prompt"),
    ("analyze_data", {}, "file"), ("analyze_data", None, "file"), ("fix_error", {"file": "x"}, "execution_id"),
    ("analyze_data", {"file": ""}, "file"), ("analyze_data", {"file": 5}, "file"),
    ("analyze_data", {"file": "x" * 5000}, "file"), ("analyze_data", {"file": "x", "question": []}, "question"),
    ("analyze_data", [], "object"),
])
def test_a_bad_request(either, name, arguments, says):
    params = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    with pytest.raises(RpcError) as e:
        either.request("prompts/get", params)
    assert e.value.code == -32602 and says in e.value.message


# --- completion ---


def test_files(either, session):
    session.put("rides.csv", b"x")
    session.put("rivers.csv", b"x")
    found = complete(either, of_prompt("analyze_data"), "file", "ri")
    assert {"rides.csv", "rivers.csv"} <= set(found["values"])
    assert "rides.csv" not in complete(either, of_prompt("make_chart"), "file", "riv")["values"]


def test_kinds(either):
    assert complete(either, of_prompt("make_chart"), "kind", "")["values"][:2] == ["line", "bar"]
    assert complete(either, of_prompt("make_chart"), "kind", "h") == {
        "values": ["histogram", "heatmap"], "total": 2, "hasMore": False}


def test_failures(either, session):
    good, bad = session.run("1"), session.run("1 / 0")
    found = complete(either, of_prompt("fix_error"), "execution_id", "exec_")
    assert bad["id"] in found["values"] and good["id"] not in found["values"]


def test_template_variables(either, session):
    session.put("dir/deep.txt", b"x")
    done = session.run("1")
    assert session.id in complete(either, of_template(FILES), "session_id", "sess_")["values"]
    assert complete(either, of_template(FILES), "path", "dir/", session_id=session.id) == {
        "values": ["dir/deep.txt"], "total": 1, "hasMore": False}
    assert complete(either, of_template(FILES), "path", "", session_id="sess_none")["values"] == []
    assert done["id"] in complete(either, of_template(OUTPUT), "execution_id", done["id"][:10])["values"]


def test_at_most_a_hundred(either, session):
    session.run("for i in range(150): open(f'many-{i:03}.txt', 'w').write('')")
    found = complete(either, of_template(FILES), "path", "many", session_id=session.id)
    assert len(found["values"]) == 100 and found["hasMore"] is True
    assert complete(either, of_prompt("analyze_data"), "file", "many")["hasMore"] is True


def test_nothing_to_offer_is_no_error(either):
    for ref, argument in ((of_prompt("analyze_data"), "question"), (of_prompt("analyze_data"), "none"),
                          (of_template("other://{x}"), "x"), (of_template(FILES), "none")):
        assert complete(either, ref, argument, "a")["values"] == []


@pytest.mark.parametrize("params", [
    {}, {"ref": {"type": "ref/prompt", "name": "none"}, "argument": {"name": "file", "value": ""}},
    {"ref": {"type": "ref/resource"}, "argument": {"name": "path", "value": ""}},
    {"ref": {"type": "ref/other", "uri": FILES}, "argument": {"name": "path", "value": ""}},
    {"ref": {"type": "ref/prompt", "name": "make_chart"}, "argument": {"name": "kind"}},
    {"ref": {"type": "ref/prompt", "name": "make_chart"}, "argument": {"name": "kind", "value": 5}},
    {"ref": {"type": "ref/prompt", "name": "make_chart"}, "argument": {"name": "kind", "value": "x" * 2000}},
    {"ref": "make_chart", "argument": []},
])
def test_a_bad_question(either, params):
    with pytest.raises(RpcError) as e:
        either.request("completion/complete", params)
    assert e.value.code == -32602
