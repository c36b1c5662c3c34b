"""Sections 2, 3, 5 and 7: what a message asks for, and what comes back. Named after their rows."""

import hashlib
import json
import re
import sqlite3
import time
from datetime import datetime

import pytest

from api import refused
from support import retort
from support.server import TIME, Server, together
from talk import Talk, answer, body, kinds, results, said, tool, user

LOCAL = {"name": "local", "description": "d", "input_schema": {"type": "object"}}


# --- 2: requests ---

@pytest.mark.parametrize("version, steps", [
    ("20250522", ["code_execution"]), ("20250825", ["bash_code_execution", "text_editor_code_execution"]),
    ("20260120", ["bash_code_execution", "text_editor_code_execution", "code_execution"]),
    ("20260521", ["bash_code_execution", "text_editor_code_execution", "code_execution"])])
def test_2_1_versions(talk, version, steps):
    made = {"bash_code_execution": {"bash": "echo 1"}, "code_execution": {"python": "print(1)"},
            "text_editor_code_execution": {"edit": {"command": "create", "path": "a", "file_text": "1"}}}
    message = talk.go([[made[s] for s in steps]], tools=[tool(version)])
    assert [b["name"] for b in message["content"] if b["type"] == "server_tool_use"] == steps
    assert kinds(message)[len(steps):] == [s + "_tool_result" for s in steps]
    assert message["usage"]["server_tool_use"]["code_execution_requests"] == len(steps)


@pytest.mark.parametrize("tools, wrong", [
    ([{"type": "code_execution_19990101", "name": "code_execution"}], "code_execution_19990101"),
    ([{"type": "code_execution_20250825", "name": "python"}], "tools.0.name"),
    ([tool(), tool()], "twice"),
    ([{"type": "web_search_20250305", "name": "web_search"}], "web_search_20250305"),
    ([{"type": "computer_toolset_20260801"}], "no tool `computer_toolset_20260801`"),
    ([{"type": "browser_toolset_20260801"}], "no tool `browser_toolset_20260801`"),
    ([{"name": "a b", "input_schema": {}}], "tools.0.name"),
    ([{"name": "x", "input_schema": []}], "input_schema"),
    ([{"name": "bash_code_execution"}], "tool of the server"),
    ("none", "array")])
def test_2_1_tools_that_are_refused(talk, tools, wrong):
    assert wrong in refused(talk.ask_model(body([], tools=tools)), 400)


def test_2_1_what_is_not_known_is_left_alone(talk):
    more = {**tool(), "allowed_callers": ["direct"], "cache_control": None, "defer_loading": False, "strict": False,
            "use_web_search_purpose": 1}
    message = talk.go([[{"text": "hi"}]], tools=[more], thinking={"type": "disabled"}, metadata={"user_id": "u"},
                      service_tier="auto", context_management={}, mcp_servers=[], temperature=0.5, unheard_of=1)
    assert kinds(message) == ["text"]


@pytest.mark.parametrize("change, wrong", [
    ({"model": None}, "model"), ({"max_tokens": 0}, "max_tokens"), ({"max_tokens": None}, "max_tokens"),
    ({"messages": []}, "messages"), ({"messages": "x"}, "messages"), ({"container": 7}, "container"),
    ({"messages": [{"role": "robot", "content": "x"}]}, "role"), ({"messages": [{"role": "user"}]}, "content"),
    ({"messages": [{"role": "user", "content": [{"text": "x"}]}]}, "type"),
    ({"tool_choice": {"type": "sometimes"}}, "tool_choice"), ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
    ({"tool_choice": {"type": "tool", "name": "nobody"}}, "nobody"),
    ({"mcp_servers": [{"type": "url", "url": "https://x.example", "name": "x"}]}, "mcp_servers"),
    ({"container": {"skills": [{"type": "anthropic", "skill_id": "s"}] * 21}}, "skills")])
def test_2_6_fields_that_are_refused(talk, change, wrong):
    assert wrong in refused(talk.ask_model({**body([[{"text": "x"}]]), **change}), 400)


def test_2_2_container_in_every_form(talk):
    first = talk.go([[{"bash": "echo 42 > keep"}]], container=None)["container"]
    for form in (first["id"], {"id": first["id"]}, {"id": first["id"], "skills": None}):
        message = talk.go([[{"bash": "cat keep"}]], container=form)
        assert results(message)[0]["stdout"] == "42\n" and message["container"]["id"] == first["id"]
    assert talk.go([[{"bash": "true"}]], container={"skills": []})["container"]["id"] != first["id"]


def test_2_3_uploads_are_there_whenever_they_were_named(talk):
    """9.6: also in a new container, and in both tools."""
    one, two = talk.upload("data.csv", b"a\n1\n"), talk.upload("data.csv", b"b\n2\n")
    put = [{"type": "container_upload", "file_id": f["id"]} for f in (one, two, one)]
    old = [user([[{"text": "old"}]], *put), {"role": "assistant", "content": "ok"}]
    message = talk.message({**body([]), "messages": [*old, user([[
        {"bash": 'cd "$INPUT_DIR" && ls && cat *.csv'},
        {"edit": {"command": "view", "path": "$INPUT_DIR/data.csv"}}]])]})
    other = f"data-{two['id'][-6:]}.csv"
    assert sorted(results(message)[0]["stdout"].split()) == sorted([other, "data.csv", "a", "1", "b", "2"])
    assert results(message)[1]["content"] == "a\n1"


def test_2_3_an_upload_is_put_there_once(talk):
    """What code has made of it stays, and the upload itself can still be had."""
    upload = {"type": "container_upload", "file_id": talk.upload("n.txt", b"1\n")["id"]}
    first = talk.go([[{"bash": 'echo 2 >> "$INPUT_DIR/n.txt"'}]], upload)
    again = talk.go([[{"bash": 'cat "$INPUT_DIR/n.txt"'}]], upload, container=first["container"]["id"])
    assert results(again)[0]["stdout"] == "1\n2\n"


def test_2_3_the_longest_name_twice(talk):
    names = ["n" * 251 + ".csv", "é" * 125 + ".csv", "." + "x" * 254]
    files = [talk.upload(name, data) for name in names for data in (b"1", b"2")]
    uploads = [{"type": "container_upload", "file_id": f["id"]} for f in files]
    [result] = results(talk.go([[{"bash": "cat $INPUT_DIR/* $INPUT_DIR/.x*; ls -A $INPUT_DIR | wc -l"}]], *uploads))
    assert sorted(result["stdout"]) == sorted("1212126\n"), result


def test_2_3_a_file_that_is_not_there(talk, stranger):
    assert "file_01missing" in refused(talk.ask_model(body([], {"type": "container_upload",
                                                                "file_id": "file_01missing"})), 404)
    theirs = {"type": "container_upload", "file_id": stranger.upload()["id"]}
    refused(talk.ask_model(body([], theirs)), 404)
    assert "file_id" in refused(talk.ask_model(body([], {"type": "container_upload"})), 400)
    assert "code_execution" in refused(talk.ask_model(body([], theirs, tools=[])), 400)


def test_2_3_a_file_that_has_expired(talk, house):
    upload = talk.upload("old.txt", b"x", ("expires_in_seconds", None, b"3600"))
    with sqlite3.connect(house.state / "retort.db", timeout=20) as db:
        db.execute("UPDATE files SET expires_ms = 1 WHERE id = ?", (upload["id"],))
    db.close()
    block = {"type": "container_upload", "file_id": upload["id"]}
    assert "expired" in refused(talk.ask_model(body([[{"bash": "true"}]], block)), 404, "file_expired")


def test_2_4_system_messages_and_plain_strings(talk):
    request = {**body([]), "system": [{"type": "text", "text": "be brief"}],
               "messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"},
                            {"role": "system", "content": "and kind"}, user([[{"bash": "echo 1"}]])]}
    assert results(talk.message(request))[0]["stdout"] == "1\n"


def test_2_4_two_assistant_messages_in_a_row(talk):
    """A result in a later message than its call."""
    first = talk.go([[{"bash": "echo 1"}]])["content"]
    request = {**body([]), "messages": [user([]), {"role": "assistant", "content": first[:1]},
                                        {"role": "assistant", "content": first[1:]}, user([[{"bash": "echo 2"}]])]}
    assert [r["stdout"] for r in results(talk.message(request))] == ["2\n"]


# --- 3: blocks ---

def test_3_1_envelope(talk):
    message = talk.go([[{"usage": {"input_tokens": 7, "output_tokens": 3}}, {"bash": "true"}],
                       [{"usage": {"input_tokens": 9, "output_tokens": 4}}, {"text": "x"}]], model="any name")
    assert re.fullmatch(r"msg_\w+", message["id"]) and message["model"] == "any name"
    assert (message["type"], message["role"], message["stop_sequence"]) == ("message", "assistant", None)
    assert (message["usage"]["input_tokens"], message["usage"]["output_tokens"]) == (16, 7)
    assert re.fullmatch(r"container_\w+", message["container"]["id"])
    assert TIME.fullmatch(message["container"]["expires_at"])


def test_3_1_without_the_tool_there_is_no_container(talk):
    message = talk.go([[{"text": "x"}]], tools=[])
    assert message["container"] is None and kinds(message) == ["text"]


def test_3_3_bash_result_is_exact(talk):
    assert talk.bash("printf out; printf err >&2; exit 3") == {
        "type": "bash_code_execution_result", "stdout": "out", "stderr": "err", "return_code": 3, "content": []}


def test_3_3_true_exit_status(talk):
    """9.19: also by a signal."""
    assert talk.bash("kill -9 $$")["return_code"] == 137


def test_3_5_python_results(talk):
    ran = talk.python("import sys\nprint('a')\nprint('b', file=sys.stderr)\n1 + 1")
    assert ran == {"type": "code_execution_result", "stdout": "a\n2\n", "stderr": "b\n", "return_code": 0,
                   "content": []}
    failed = talk.python("1 / 0")
    assert failed["return_code"] == 1 and "ZeroDivisionError" in failed["stderr"]


def test_a_display_that_was_updated_comes_once(talk):
    ran = talk.python("h = display('first', display_id=True)\nprint('between')\nh.update('last')")
    assert ran["stdout"] == "'last'\nbetween\n"


def test_3_7_server_tools_wait_for_the_clients(talk):
    request = body([[{"bash": "echo later"}, {"tool": {"name": "local", "input": {"n": 1}}}], [{"text": "fin"}]],
                   tools=[tool(), LOCAL])
    first = talk.message(request)
    assert first["stop_reason"] == "tool_use" and kinds(first) == ["server_tool_use", "tool_use"]
    use = first["content"][1]
    assert (use["name"], use["input"], use["caller"]) == ("local", {"n": 1}, {"type": "direct"})
    request["messages"] += [said(first), answer(use, "r")]
    second = talk.message(request)
    assert kinds(second) == ["bash_code_execution_tool_result", "text"] and second["stop_reason"] == "end_turn"
    assert second["content"][0]["tool_use_id"] == first["content"][0]["id"]
    assert second["container"]["id"] == first["container"]["id"], "found by the id of the call"


def test_3_7_pause_turn_after_so_many_turns(talk):
    request = body([*([{"bash": f"echo {i} >> n"}] for i in range(10)), [{"bash": "cat n"}], [{"text": "end"}]])
    messages = []
    while not messages or messages[-1]["stop_reason"] == "pause_turn":
        messages.append(talk.message(request))
        request["messages"].append(said(messages[-1]))
    assert [m["stop_reason"] for m in messages] == ["pause_turn", "end_turn"]
    assert results(messages[-1])[-1]["stdout"] == "".join(f"{i}\n" for i in range(10))
    assert messages[0]["container"]["id"] == messages[1]["container"]["id"]


# --- 5: errors ---

@pytest.mark.parametrize("step, code", [
    ({"raw_call": {"name": "bash_code_execution", "raw": "{"}}, "invalid_tool_input"),
    ({"tool": {"name": "bash_code_execution", "input": {"cmd": "x"}}}, "invalid_tool_input"),
    ({"bash": "sleep 600"}, "execution_time_exceeded"),
    ({"bash": 'head -c 2000000 /dev/zero > "$OUTPUT_DIR/big"'}, "output_file_too_large")])
def test_5_1_error_blocks(talk, step, code):
    [result] = results(talk.go([[step]]))
    assert result == {"type": "bash_code_execution_tool_result_error", "error_code": code}


def test_5_1_a_legacy_cell_without_time(talk):
    assert talk.python("import time; time.sleep(600)", "20250522") == {
        "type": "code_execution_tool_result_error", "error_code": "execution_time_exceeded"}


def test_7_a_repl_cell_without_time_is_a_result(talk):
    result = talk.python("print('so far')\nimport time; time.sleep(600)")
    assert result["return_code"] != 0 and "detection_timeout" in result["stderr"]
    assert result["stdout"] == "so far\n"


def test_5_1_out_of_memory_is_a_result(talk):
    result = talk.bash("python3 -c 'x = bytearray(1 << 30); print(len(x))'")
    assert result["return_code"] == (137 if retort.has_groups() else 1) and result["stderr"]


def test_5_3_threads_are_refused(talk):
    answer_ = talk.ask_model(body([], thread={"type": "create"}))
    refused(answer_, 400, "thread_unsupported_request")
    assert answer_.json["error"]["details"]["unsupported"] is None
    refused(talk.ask_model(body([], thread="continue")), 400, "thread_unsupported_request")
    assert talk.go([[{"text": "x"}]], thread=None)["stop_reason"] == "end_turn"


@pytest.mark.parametrize("messages, wrong", [
    ([{"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "local", "input": {}}]},
      {"role": "user", "content": "well?"}], "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1"),
    ([{"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "local", "input": {}, "caller": {
        "type": "code_execution_20260120", "tool_id": "srvtoolu_x"}}]}], "source tool `srvtoolu_x` not found for tool use block `toolu_1`"),
    ([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_9", "content": "x"}]}], "toolu_9"),
    ([{"role": "assistant", "content": [
        {"type": "server_tool_use", "id": "srvtoolu_foreign", "name": "code_execution", "input": {"code": "1"}},
        {"type": "tool_use", "id": "toolu_1", "name": "local", "input": {}, "caller": {
            "type": "code_execution_20260120", "tool_id": "srvtoolu_foreign"}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]}],
     "container_id is required when there are pending tool uses generated by code execution with tools.")])
def test_5_4_messages_that_clients_know(talk, messages, wrong):
    request = {**body([], tools=[tool("20260120"), LOCAL]), "messages": [user([]), *messages]}
    assert wrong in refused(talk.ask_model(request), 400)


def test_5_4_a_container_that_is_not_there(talk, stranger):
    for name in ("container_01doesnotexist", "nonsense", stranger.go([[{"bash": "true"}]])["container"]["id"]):
        assert name in refused(talk.ask_model(body([[{"bash": "true"}]], container=name)), 404, "container_expired")


def test_5_4_a_foreign_id_leads_nowhere(talk, stranger):
    """The session in the id of a call is looked up by the tenant, too."""
    theirs = stranger.go([[{"bash": "echo secret > s"}]])
    request = {**body([]), "messages": [user([]), said(theirs), user([[{"bash": "cat s"}]])]}
    mine = talk.message(request)
    assert mine["container"]["id"] != theirs["container"]["id"] and results(mine)[0]["return_code"] == 1


# --- 7: containers ---

def test_7_output_dir_is_captured_as_documented(talk):
    message = talk.go([[{"bash": 'cd "$OUTPUT_DIR"; printf 12 > a.csv; mkdir d; echo n > d/n; ln -s a.csv l; '
                                 'echo x > "$OLDPWD/elsewhere"; pwd'}], [{"bash": 'ls -A "$OUTPUT_DIR"; pwd'}]])
    first, second = results(message)
    [made] = first["content"]
    assert {k: made[k] for k in ("type", "filename", "size_bytes", "mime_type")} == {
        "type": "bash_code_execution_output", "filename": "a.csv", "size_bytes": 2, "mime_type": "text/csv"}
    assert second["stdout"] == "/workspace\n" and second["content"] == []
    assert talk.get(f"/v1/files/{made['file_id']}").expect(200).json["downloadable"] is True
    assert talk.get(f"/v1/files/{made['file_id']}/content").expect(200).body == b"12"
    assert f"/{message['id']}/1" in first["stdout"], "the job is the message"


def test_7_cells_have_the_same_folders(talk):
    result = talk.python("import os\nopen(os.environ['OUTPUT_DIR'] + '/p.txt', 'w').write('x')\n"
                         "print(os.path.isdir(os.environ['INPUT_DIR']))")
    assert result["stdout"] == "True\n" and [f["filename"] for f in result["content"]] == ["p.txt"]
    assert result["content"][0]["type"] == "code_execution_output"


def test_7_a_file_outlives_its_container(talk):
    message = talk.go([[{"bash": 'echo kept > "$OUTPUT_DIR/f"'}]])
    talk.delete("/v1/containers/" + message["container"]["id"]).expect(200)
    [made] = results(message)[0]["content"]
    assert talk.get(f"/v1/files/{made['file_id']}/content").expect(200).body == b"kept\n"
    refused(talk.ask_model(body([], container=message["container"]["id"])), 404, "container_expired")
    request = {**body([]), "messages": [user([]), said(message), user([[{"bash": "echo on"}]])]}
    assert results(talk.message(request))[0]["stdout"] == "on\n", "the work goes on without it"


def test_7_a_container_that_lost_its_sandbox_goes_on(talk, house):
    """Files are kept, and the next result says that variables are not."""
    tools = [tool("20260120")]
    first = talk.go([[{"python": "x = 1\nopen('f', 'w').write('kept')"}]], tools=tools)
    container = first["container"]["id"]
    session = container.replace("container_", "sess_")
    talk.client.post(f"/v1/sessions/{session}/restart").expect(200)
    second = results(talk.go([[{"python": "print(open('f').read(), 'x' in globals())"}]], tools=tools,
                             container=container))[0]
    assert second["stdout"] == "kept False\n" and second["return_code"] == 0


def test_7_expires_at_is_the_deadline(talk):
    message = talk.go([[{"bash": "true"}]])
    shown = datetime.fromisoformat(message["container"]["expires_at"]).timestamp()
    session = talk.client.get("/v1/sessions/" + message["container"]["id"].replace("container_", "sess_")).json
    assert abs(datetime.fromisoformat(session["expires_at"]).timestamp() - shown) < 5
    assert shown - time.time() > 86400


def test_7_calls_of_one_turn_run_in_order(talk):
    """9.14: no race of a create and a view."""
    message = talk.go([[{"bash": "sleep 0.2; echo one > seq"}, {"edit": {"command": "view", "path": "seq"}}]])
    assert results(message)[1]["content"] == "one"


def test_7_requests_in_one_container_take_turns(house, talk):
    """What each has made is given to the one that made it."""
    container = talk.go([[{"bash": "true"}]])["container"]["id"]

    def ask(name):
        with Talk(house, house.key) as one:
            return one.bash(f'echo {name} > "$OUTPUT_DIR/{name}"; sleep 0.3; cat busy; echo {name} > busy; sleep 0.3; '
                            'rm busy', container=container)

    for name, result in zip("abc", together(*(lambda n=n: ask(n) for n in "abc"))):
        assert [f["filename"] for f in result["content"]] == [name] and result["stdout"] == ""


def test_7_truncation_is_marked(talk):
    """9.15: head and tail, and how much is missing."""
    result = talk.bash("echo first; head -c 1000000 /dev/zero | tr '\\0' x; echo; echo last")
    assert result["stdout"].startswith("first\n") and result["stdout"].endswith("last\n")
    assert re.search(r"\[\.\.\. \d+ bytes of output left out \.\.\.\]", result["stdout"])
    assert len(result["stdout"]) < 300_000


def test_7_a_command_of_any_length(talk):
    result = talk.bash(": " + "x" * 100_000 + "\necho done; echo $OUTPUT_DIR")
    assert result["stdout"].startswith("done\n/workspace/msg_")


def test_seed_the_manifest_lists_what_was_made(talk):
    first = talk.go([[{"bash": 'echo 1 > "$OUTPUT_DIR/a.txt"; printf "%4000s" é >&2; exit 2'}],
                     [{"bash": 'echo 2 > "$OUTPUT_DIR/b.txt"'}]])
    container = first["container"]["id"]
    text = talk.bash(f"cat {first['id']}/manifest.json", container=container)["stdout"]
    manifest = json.loads(text)
    assert (manifest["job"], manifest["container"]) == (first["id"], container)
    assert [c["return_code"] for c in manifest["calls"]] == [2, 0]
    assert [c.get("stderr") for c in manifest["calls"]] == [" " * 2046 + "é", None]
    assert [(f["name"], f["size"], f["mime"], f["sha256"]) for f in manifest["outputs"]] == [
        (n, 2, "text/plain", hashlib.sha256(d).hexdigest()) for n, d in (("a.txt", b"1\n"), ("b.txt", b"2\n"))]
    assert [f["path"] for f in manifest["outputs"]] == [f"{first['id']}/1/a.txt", f"{first['id']}/2/b.txt"]
    assert [f["file_id"] for f in manifest["outputs"]] == [r["content"][0]["file_id"] for r in results(first)]


def test_seed_every_execution_is_on_record(talk):
    message = talk.go([[{"bash": "echo oops >&2; exit 4"}]])
    session = message["container"]["id"].replace("container_", "sess_")
    [row] = talk.client.get(f"/v1/executions?session={session}").expect(200).json["data"]
    whole = talk.client.get("/v1/executions/" + row["id"]).expect(200).json
    assert whole["code"] == "echo oops >&2; exit 4"
    assert whole["outcome"]["exit_code"] == 4 and {"type": "stderr", "text": "oops\n"} in whole["events"]


# --- 9: what others do badly ---

def test_9_11_an_unanswered_call_bricks_nothing(talk):
    """Long ago, or given up: the model is told that there is no result."""
    orphan = {"role": "assistant", "content": [{"type": "server_tool_use", "id": "srvtoolu_1",
                                                "name": "bash_code_execution", "input": {"command": "echo never"}}]}
    for more in ([{"role": "user", "content": "never mind"}],
                 [{"role": "user", "content": "never mind"}, {"role": "assistant", "content": "ok"}]):
        message = talk.message({**body([]), "messages": [user([]), orphan, *more, user([[{"bash": "echo on"}]])]})
        assert [r["stdout"] for r in results(message)] == ["on\n"]


@pytest.mark.parametrize("ids, wrong", [(["x" * 94 + "é"], "id of more than"),
                                        ([f"srvtoolu_{i}" for i in range(65)], "more than 64")])
def test_calls_that_are_put_off_have_ids_and_a_number_of_ours(talk, ids, wrong):
    uses = [{"type": "server_tool_use", "id": i, "name": "bash_code_execution", "input": {"command": "true"}} for i in ids]
    request = body([[{"text": "x"}]])
    request["messages"].append({"role": "assistant", "content": uses})
    assert wrong in refused(talk.ask_model(request), 400)
    request["messages"].append({"role": "user", "content": "never mind"})
    talk.message(request)  # nobody wants them done


def test_9_12_what_code_prints_can_be_sent_back(talk):
    """Whatever bytes it prints: clients put what they got into their next request."""
    message = talk.go([[{"bash": "printf 'a\\0b\\377'; printf 'c\\0' >&2"}]])
    assert results(message)[0]["stdout"] == "a\ufffdb\ufffd" and results(message)[0]["stderr"] == "c\ufffd"
    talk.message({**body([]), "messages": [user([]), said(message), user([[{"text": "on"}]])]})


def test_9_12_a_nul_can_be_sent_back(talk):
    """A model that wrote one, in a stream, does not brick the conversation; nor does a text with one."""
    events, message = talk.stream(body([[{"raw_call": {"name": "bash_code_execution", "raw": '{"command": "echo a\\u0000b"}'}}]]), lenient=True)
    half = {"command": "echo a\0b"}  # as an SDK that reads JSON has it
    block = next(b for b in message["content"] if b["type"] == "server_tool_use")
    block["input"] = half
    again = user([[{"bash": "cat $INPUT_DIR/x 2>/dev/null; echo on"}]], {"type": "text", "text": "nul\0, \\u0000 and \\\0"})
    assert results(talk.message({**body([]), "messages": [user([]), said(message), again]}))[0]["stdout"] == "on\n"
    batch = {"requests": [{"custom_id": "a", "params": {**body([[{"text": "x"}]]), "system": "s\0"}}]}
    assert talk.post("/v1/messages/batches", batch).expect(200).json["request_counts"]["processing"] == 1
    long = user([[{"bash": "echo long"}]], {"type": "text", "text": "\0 and so on " * 100000})  # is read on another thread
    assert results(talk.message({**body([]), "messages": [long]}))[0]["stdout"] == "long\n"
    assert "character U+0000" in talk.client.post("/v1/sessions", {"pool": "a\0"}).text


def test_9_12_results_of_nothing_are_nothing(talk):
    odd = [{"type": "bash_code_execution_tool_result", "tool_use_id": "srvtoolu_2", "content": {}},
           {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_3", "content": []},
           {"type": "server_tool_use", "id": "srvtoolu_3", "name": "web_search", "input": {}},
           {"type": "from_the_future", "x": 1}, {"type": "text", "text": ""}]
    message = talk.message({**body([]), "messages": [{"role": "user", "content": "x"},
                                                     {"role": "assistant", "content": odd},
                                                     user([[{"bash": "echo on"}]])]})
    assert results(message)[0]["stdout"] == "on\n"


def test_long_histories_are_read_in_no_time(talk):
    """Of many blocks: nothing in it is looked at for each of the others."""
    old = []
    for i in range(5000):
        use = {"type": "server_tool_use", "id": f"srvtoolu_{i}", "name": "bash_code_execution",
               "input": {"command": "x"}}
        done = {"type": "bash_code_execution_tool_result", "tool_use_id": f"srvtoolu_{i}", "content": {
            "type": "bash_code_execution_result", "stdout": "y" * 200, "stderr": "", "return_code": 0, "content": []}}
        old += [user([]) if i == 0 else {"role": "user", "content": "go on"}, {"role": "assistant", "content": [use, done]}]
    message = talk.message({**body([]), "messages": [*old, user([[{"bash": "echo on"}]])]})
    assert results(message)[0]["stdout"] == "on\n"


def test_a_body_that_is_too_long(talk):
    refused(talk.ask_model(body([], system="x" * (33 << 20))), 413)


# --- tool_choice ---

def test_tool_choice_none_any_and_one(talk):
    for choice in ({"type": "none"}, {"type": "any"}, {"type": "tool", "name": "code_execution"},
                   {"type": "tool", "name": "local"}, {"type": "auto", "disable_parallel_tool_use": True}):
        assert talk.go([[{"text": "x"}]], tools=[tool(), LOCAL], tool_choice=choice)["stop_reason"] == "end_turn"


# --- the model ---

@pytest.mark.parametrize("step, status, kind", [
    ({"fail": {"status": 503}}, 529, "overloaded_error"), ({"fail": {"status": 429, "retry_ms": 2500}}, 429, "rate_limit_error"),
    ({"fail": {"status": 401, "message": "bad key sk-secret"}}, 500, "api_error")])
def test_a_model_that_does_not_reply(talk, step, status, kind):
    answer_ = talk.ask_model(body([[step]]))
    assert answer_.status == status and answer_.json["error"]["type"] == kind
    assert "sk-secret" not in answer_.text
    assert answer_.headers.get("retry-after") == ("3" if status == 429 else None)
    assert answer_.headers.get("x-should-retry") == ("false" if status == 500 else None)


def test_what_was_done_is_not_lost_when_a_model_fails(talk):
    """It pauses: the client comes back, and nothing runs twice."""
    request = body([[{"bash": "echo 1 >> n; cat n"}], [{"fail": {"status": 503}}]])
    message = talk.message(request)
    assert message["stop_reason"] == "pause_turn" and results(message)[0]["stdout"] == "1\n"
    request["messages"].append(said(message))
    assert talk.ask_model(request).status == 529


@pytest.mark.parametrize("stop, reason", [("length", "max_tokens"), ("refusal", "refusal")])
def test_why_a_model_stopped(talk, stop, reason):
    assert talk.go([[{"text": "x"}, {"stop": stop}]])["stop_reason"] == reason


def test_without_a_model():
    with Server("--ready", "0") as server, Talk(server) as talk:
        message = refused(talk.ask_model(body([])), 400)
        assert message.startswith("NoModelConfigured: ") and "/v1/sessions" in message


@pytest.fixture(scope="module")
def narrow():
    """Little room, and the working directory is captured, too."""
    with Server("--model-script", "-", "--anthropic-capture-cwd", "--tenant-files", "1K") as server:
        yield server


def test_capture_of_the_working_directory(narrow):
    """9.7: a switch of the operator's."""
    with Talk(narrow) as talk:
        result = talk.bash("echo 1 > here.txt; mkdir d; echo 2 > d/there.txt")
        assert [f["filename"] for f in result["content"]] == ["here.txt"]


def test_files_of_code_count_as_the_tenants(narrow):
    """What has no room is said, and the rest of the result is there."""
    with Talk(narrow) as talk:
        result = talk.bash('head -c 900 /dev/zero > "$OUTPUT_DIR/a"; head -c 900 /dev/zero > "$OUTPUT_DIR/b"; echo ok')
        assert [f["filename"] for f in result["content"]] == ["a"] and result["stdout"] == "ok\n"
        assert "1024 bytes" in result["stderr"]


def test_files_past_the_limit_are_told_of_once(talk):
    ran = talk.bash("cd $OUTPUT_DIR && for n in $(seq 153); do echo $n > f$n; done")
    assert len(ran["content"]) == 100 and ran["return_code"] == 0
    assert ran["stderr"] == "[53 more files in $OUTPUT_DIR are not given to the user: a call gives 100]\n"
