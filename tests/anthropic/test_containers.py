"""A container is made by the first call, and not before."""

import re

import pytest

from support.mcp import Legacy
from support.retort import wait_until
from support.server import Server
from talk import Talk, body, kinds, results, said, user


@pytest.fixture(scope="module")
def small():
    """One sandbox at a time."""
    with Server("--model-script", "-", "--max-sessions", "1", "--ready", "0") as one:
        yield one


@pytest.fixture
def talk(small):
    with Talk(small) as one:
        yield one


def containers(talk):
    return talk.get("/v1/containers?limit=100").expect(200).json["data"]


def test_text_takes_no_sandbox(talk):
    before = containers(talk)
    for n in range(20):
        message = talk.go([[{"text": f"answer {n}"}]])
        assert message["container"] is None and kinds(message) == ["text"]
    _, streamed = talk.stream(body([[{"text": "answer"}]]))
    assert streamed["container"] is None
    assert containers(talk) == before
    assert 'retort_sessions{state="starting"} 0' in talk.client.get("/metrics").text


def test_the_id_of_the_first_event_is_kept(talk):
    """Some SDKs remember the container of message_start, whatever the end of the message says."""
    with talk.begin(body([[{"text": "no code"}]])) as events:
        start = next(events)
        list(events)
    promised = start["message"]["container"]["id"]
    assert re.fullmatch("container_[0-9a-z]+", promised)
    assert promised not in [c["id"] for c in containers(talk)]
    message = talk.go([[{"bash": "echo made"}]], container=promised)
    assert message["container"]["id"] == promised and results(message)[0]["stdout"] == "made\n"
    talk.delete("/v1/containers/" + promised).expect(200)
    assert talk.ask_model(body([[{"text": "x"}]], container=promised)).status == 404, "a deleted one is no promise"


def test_a_promise_is_of_one_tenant(house):
    with Talk(house, house.key) as mine, Talk(house, house.other_key) as theirs:
        with mine.begin(body([[{"text": "no code"}]])) as events:
            promised = next(events)["message"]["container"]["id"]
            list(events)
        assert theirs.ask_model(body([[{"text": "x"}]], container=promised)).status == 404


@pytest.mark.parametrize("first", [{"bash": "cat $INPUT_DIR/data.csv"},
                                   {"edit": {"command": "view", "path": "$INPUT_DIR/data.csv"}}])
def test_uploads_come_with_the_first_call(talk, first):
    file = talk.upload("data.csv", b"a,b\n1,2\n")
    upload = {"type": "container_upload", "file_id": file["id"]}
    before = len(containers(talk))
    assert talk.go([[{"text": "no code"}]], upload)["container"] is None
    assert len(containers(talk)) == before
    message = talk.go([[{"text": "one"}, first], [{"bash": "ls $INPUT_DIR"}]], upload)
    one, two = results(message)
    assert "1,2" in one.get("stdout", "") + str(one.get("content", "")) and two["stdout"] == "data.csv\n"


def test_a_hundred_uploads(talk):
    files = [talk.upload(f"f{n}.txt", b"%d" % n) for n in range(100)]
    uploads = [{"type": "container_upload", "file_id": f["id"]} for f in files]
    [result] = results(talk.go([[{"bash": "cat $INPUT_DIR/*.txt | wc -c"}]], *uploads))
    assert result["stdout"] == "190\n"


def test_when_full_the_longest_idle_sleeps(talk):
    """--max-sessions 1: each message with a call has a container of its own, and none is refused."""
    first = talk.go([[{"bash": "echo one > f"}]])
    second = talk.go([[{"bash": "echo two > f"}]])
    assert first["container"]["id"] != second["container"]["id"]
    for message, text in ((first, "one\n"), (second, "two\n"), (first, "one\n")):
        assert results(talk.go([[{"bash": "cat f"}]], container=message["container"]["id"]))[0]["stdout"] == text


def test_nothing_is_made_before_the_yes():
    config = "[pool default]\napproval = always_ask\napproval-by = approver\n"
    with Server("--model-script", "-", "--anthropic-approval-wait", "0.3", config=config) as server, Talk(server) as talk:
        file = talk.upload("data.csv", b"a,b\n1,2\n")
        request = {**body([]), "messages": [user(
            [[{"edit": {"command": "create", "path": "x.sh", "file_text": "cat $INPUT_DIR/data.csv"}}],
             [{"bash": "sh x.sh"}], [{"edit": {"command": "view", "path": "x.sh"}}], [{"text": "end"}]],
            {"type": "container_upload", "file_id": file["id"]})]}
        first = talk.message(request)
        assert first["stop_reason"] == "pause_turn" and kinds(first) == ["server_tool_use"]
        assert talk.client.get("/v1/sessions").json["data"] == []
        [row] = talk.client.get("/v1/approvals?state=pending").json["data"]
        assert row["tool"] == "text_editor_code_execution" and "cat $INPUT_DIR" in row["text"]

        def agree(message):
            talk.client.post(f"/v1/approvals/{message['pending_approval']['id']}", {"decision": "approve"}).expect(200)
            request["messages"].append(said(message))
            return talk.message(request)

        second = agree(first)
        assert kinds(second) == ["text_editor_code_execution_tool_result", "server_tool_use"], "the command asks, too"
        third = agree(second)
        assert [r.get("stdout", r.get("content")) for r in results(third)] == ["a,b\n1,2\n", "cat $INPUT_DIR/data.csv"]
        assert third["stop_reason"] == "end_turn", "a view asks nobody"
        commands = talk.client.all("/v1/executions")
        assert len(commands) == 3 and all(c["kind"] == "command" for c in commands)


def test_other_doors_take_no_sandbox_before_code(small):
    """Files at the Azure door and the MCP tool that writes files: the session sleeps until code runs."""
    with small.client() as c:
        c.form("/azure/pools/default/files?api-version=2025-02-02-preview&identifier=azure-files-1",
               ("file", "a.txt", b"1")).expect(200)
        with Legacy(small) as tools:
            tools.call("write_file", path="b.txt", text="2")
        rows = c.all("/v1/sessions")
        mine = [row for row in rows if row["executions"] == 0]
        assert len(mine) >= 2 and {row["state"] for row in mine} == {"asleep"}, rows


def test_a_busy_house_says_so(small):
    with Talk(small) as talk, small.client() as c:
        with c.session() as busy:
            job = busy.background("import time\ntime.sleep(600)")
            wait_until(lambda: busy.get()["state"] == "running", "the code")
            [result] = results(talk.go([[{"bash": "true"}]]))
            assert result["error_code"] == "too_many_requests"
            c.post(f"/v1/executions/{job['id']}/interrupt")
