"""Sections 2.5, 3.6 and 7: tools of the client that code calls, and code that waits for them."""

import time

import pytest

from api import refused
from support.retort import wait_until
from support.server import Server
from talk import Talk, answer, begun, body, kinds, results, running, said, tool

LOOKUP = {"name": "lookup", "description": "Looks up k.", "input_schema": {"type": "object"},
          "allowed_callers": ["code_execution_20260120"]}
TOOLS = [tool("20260120"), LOOKUP]


def asked(code, *turns, **fields):
    return body([[{"python": code}], *turns], **{"tools": TOOLS, **fields})


def calls(message):
    return [b for b in message["content"] if b["type"] == "tool_use"]


def go_on(request, message, content, **more):
    """The same conversation, with each call answered."""
    told = answer(calls(message), content) if isinstance(content, str) else {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": c["id"], "content": t} for c, t in zip(calls(message), content)]}
    return {**request, "messages": [*request["messages"], said(message), told], **more}


def test_2_5_the_road(talk):
    request = asked('print("x", int(await lookup({"k": "a"})) + 1)', [{"text": "ok"}])
    first = talk.message(request)
    assert kinds(first) == ["server_tool_use", "tool_use"] and first["stop_reason"] == "tool_use"
    code, use = first["content"]
    assert use["caller"] == {"type": "code_execution_20260120", "tool_id": code["id"]} and use["input"] == {"k": "a"}
    second = talk.message(go_on(request, first, "41", container=first["container"]["id"]))
    assert kinds(second) == ["code_execution_tool_result", "text"] and second["stop_reason"] == "end_turn"
    assert second["content"][0]["tool_use_id"] == code["id"] and results(second)[0]["stdout"] == "x 42\n"


def test_2_5_the_container_need_not_be_named(talk):
    """9.1, 9.2: it is found by the id of the call."""
    request = asked('print(await lookup({}))')
    first = talk.message(request)
    second = talk.message(go_on(request, first, "here"))
    assert results(second)[0]["stdout"] == "here\n" and second["container"]["id"] == first["container"]["id"]


def test_2_5_calls_made_together_come_together(talk):
    request = asked('import asyncio\n'
                    'print(*await asyncio.gather(*(lookup({"k": i}) for i in range(5))))')
    first = talk.message(request)
    assert [c["input"]["k"] for c in calls(first)] == [0, 1, 2, 3, 4]
    second = talk.message(go_on(request, first, ["a", "b", "c", "d", "e"]))
    assert results(second)[0]["stdout"] == "a b c d e\n"


def test_2_5_it_pauses_again_with_nothing_but_calls(talk):
    request = asked('a = await lookup({"n": 1})\nb = await lookup({"n": 2, "a": a})\nprint(a, b)')
    first = talk.message(request)
    request = go_on(request, first, "one")
    second = talk.message(request)
    assert kinds(second) == ["tool_use"] and second["stop_reason"] == "tool_use"
    assert second["content"][0]["input"] == {"n": 2, "a": "one"}
    assert second["content"][0]["caller"]["tool_id"] == first["content"][0]["id"]
    third = talk.message(go_on(request, second, "two"))
    assert kinds(third) == ["code_execution_tool_result"] and results(third)[0]["stdout"] == "one two\n"


def let_go(talk, message):
    """Lets code go on that waits for the file "go", until it has made the file "gone"."""
    container = message["container"]["id"]
    talk.bash("touch go", container=container)
    wait_until(lambda: "gone" in talk.bash("ls", container=container)["stdout"], "the code to go on")


def test_2_5_a_call_made_while_others_are_answered(talk):
    request = asked('import asyncio\n'
                    'import os\n'
                    'async def late():\n'
                    '    while not os.path.exists("go"): await asyncio.sleep(0.01)\n'
                    '    open("gone", "w").close()\n'
                    '    return await lookup({"n": "late"})\n'
                    'print(*await asyncio.gather(lookup({"n": "soon"}), late()))')
    first = talk.message(request)
    assert [c["input"]["n"] for c in calls(first)] == ["soon"]
    let_go(talk, first)
    request = go_on(request, first, "1")
    second = talk.message(request)
    assert [c["input"]["n"] for c in calls(second)] == ["late"]
    assert results(talk.message(go_on(request, second, "2")))[0]["stdout"] == "1 2\n"


@pytest.mark.parametrize("content, text", [("plain", "plain"), ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
                                           ("ü" * 100_000, "ü" * 100_000), ("", "")])
def test_2_5_what_an_answer_may_be(talk, content, text):
    request = asked('r = await lookup({})\nprint(len(r), r[:4])')
    first = talk.message(request)
    request["messages"] += [said(first), answer(calls(first)[0], content)]
    assert results(talk.message(request))[0]["stdout"] == f"{len(text)} {text[:4]}\n"


def test_2_5_an_error_is_raised(talk):
    request = asked('try:\n    await lookup({})\nexcept RuntimeError as e:\n    print("failed:", e)')
    first = talk.message(request)
    request["messages"] += [said(first), answer(calls(first)[0], "no such key", is_error=True)]
    assert results(talk.message(request))[0]["stdout"] == "failed: no such key\n"


def test_2_5_all_pending_calls_are_answered(talk):
    request = asked('import asyncio\nawait asyncio.gather(lookup({}), lookup({}))')
    first = talk.message(request)
    request["messages"] += [said(first), answer(calls(first)[0], "one")]
    assert calls(first)[1]["id"] in refused(talk.ask_model(request), 400)


def test_2_5_the_model_does_not_see_what_passed(talk):
    """Neither the call nor its answer: the reply after it is the one after its code."""
    request = asked('await lookup({})', [{"bash": "echo next"}], [{"text": "end"}])
    second = talk.message(go_on(request, talk.message(request), "secret"))
    assert kinds(second) == ["code_execution_tool_result", "server_tool_use", "bash_code_execution_tool_result", "text"]


def test_2_5_other_calls_of_the_reply_follow(talk):
    request = body([[{"bash": "echo 0"}, {"python": "await lookup({})"}, {"bash": "echo 2"}], [{"text": "end"}]],
                   tools=TOOLS)
    first = talk.message(request)
    assert kinds(first) == ["server_tool_use"] * 3 + ["bash_code_execution_tool_result", "tool_use"]
    second = talk.message(go_on(request, first, "x"))
    assert kinds(second) == ["code_execution_tool_result", "bash_code_execution_tool_result", "text"]
    assert results(second)[1]["stdout"] == "2\n"


def test_2_5_names_with_hyphens_and_keywords(talk):
    tools = [tool("20260521"), {**LOOKUP, "name": "look-up"}]
    request = asked('print(await look_up(k="a"))', tools=tools)
    first = talk.message(request)
    assert calls(first)[0]["name"] == "look-up" and calls(first)[0]["input"] == {"k": "a"}
    assert calls(first)[0]["caller"]["type"] == "code_execution_20260120"
    assert results(talk.message(go_on(request, first, "ok")))[0]["stdout"] == "ok\n"


def test_2_5_the_old_version_has_its_own_caller(talk):
    tools = [tool("20250825"), {**LOOKUP, "allowed_callers": ["direct", "code_execution_20250825"]}]
    first = talk.message(asked('await lookup({})', tools=tools))
    assert calls(first)[0]["caller"]["type"] == "code_execution_20250825"


@pytest.mark.parametrize("tools, more, wrong", [
    ([tool("20260120"), {**LOOKUP, "strict": True}], {}, "strict"),
    (TOOLS, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}, "disable_parallel_tool_use"),
    (TOOLS, {"tool_choice": {"type": "tool", "name": "lookup"}}, "forced"),
    ([LOOKUP], {}, "allowed_callers"), ([tool("20250522"), LOOKUP], {}, "allowed_callers"),
    ([tool("20260120"), {**LOOKUP, "input_schema": {"type": "object", "properties": {"n": {"$ref": "#"}}}}], {}, "$ref"),
    ([tool("20260120"), {**LOOKUP, "input_schema": {"$ref": "#/$defs/a", "$defs": {
        "a": {"properties": {"b": {"$ref": "#/$defs/b"}}}, "b": {"items": {"$ref": "#/$defs/a"}}}}}], {}, "$ref"),
    ([tool("20260120"), {**LOOKUP, "input_schema": {"$defs": {
        f"n{i}": {"$ref": f"#/$defs/n{i + 1}"} for i in range(2000)}}}], {}, "$ref")])
def test_2_5_what_does_not_go_together(talk, tools, more, wrong):
    assert wrong in refused(talk.ask_model(asked("1", tools=tools, **more)), 400)


def test_2_5_a_schema_that_refers_to_others(talk):
    schema = {"properties": {"x": {"$ref": "#/$defs/a"}, "y": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}}
    assert calls(talk.message(asked("await lookup({})", tools=[TOOLS[0], {**LOOKUP, "input_schema": schema}])))


def test_7_a_client_that_does_not_come_back(talk, house):
    """Its code is told so, and the result is there for whoever comes late."""
    request = asked('try:\n    await lookup({})\nexcept TimeoutError as e:\n    print("late:", e)')
    with house.client(house.key) as client:
        before = running(client)
        first = talk.message(request)
        waits = begun(client, before, "late:")
        wait_until(lambda: waits not in running(client), "the end of the code that waits")
    second = talk.message(go_on(request, first, "too late"))
    assert kinds(second) == ["code_execution_tool_result"]
    assert results(second)[0]["stdout"].startswith("late: the client has not answered")


def test_7_waiting_does_not_count_as_running(talk):
    """A cell has three seconds here, and so has the client; both are kept."""
    request = asked('import time\ntime.sleep(1.6)\na = await lookup({})\nprint(a)')
    first = talk.message(request)
    time.sleep(1.6)
    assert results(talk.message(go_on(request, first, "x")))[0]["stdout"] == "x\n"


def test_7_code_that_says_it_waits_and_does_not(talk):
    """Its time stands still no longer than a client may take."""
    code = ('from retort_guest.link import link\n'
            'from retort_guest.wire import MSG_DISPLAY, TAG_DATA, TAG_FLAGS, TAG_MIME\n'
            'import json\n'
            'data = json.dumps({"calls": [{"id": "0" * 24, "name": "lookup", "input": "{}"}]}).encode()\n'
            'link.ask(MSG_DISPLAY, [(TAG_MIME, b"application/vnd.retort.calls+json"), (TAG_DATA, data), (TAG_FLAGS, 0)])\n'
            'import time\ntime.sleep(60)\n')
    request = asked(code)
    first = talk.message(request)
    second = talk.message(go_on(request, first, "x"))
    assert "detection_timeout" in results(second)[0]["stderr"]


def test_7_more_calls_than_wait_at_a_time(talk):
    request = asked("import asyncio\nprint(sum(map(int, await asyncio.gather(*[lookup({'i': i}) for i in range(300)]))))")
    first = talk.message(request)
    request = go_on(request, first, "1")
    second = talk.message(request)
    third = talk.message(go_on(request, second, "1"))
    assert [kinds(m).count("tool_use") for m in (first, second, third)] == [256, 44, 0]
    assert results(third)[0]["stdout"] == "300\n"


@pytest.mark.parametrize("value", ["'a\\0b'", "'\\ud800'", "float('nan')", "10 ** 40", "'x' * 2000000"])
def test_7_arguments_that_cannot_be_sent(talk, value):
    """The code is told, at once: nobody would ever answer it."""
    message = talk.message(asked(f"try:\n await lookup({{'v': {value}}})\nexcept ValueError as e: print('no')"))
    assert message["stop_reason"] == "end_turn" and results(message)[0]["stdout"] == "no\n"


def test_7_answers_that_nobody_reads_do_not_stay(talk):
    """The code has given up meanwhile, or has ended in another way."""
    request = asked("import asyncio, os\ncall = asyncio.ensure_future(lookup({}))\n"
                    "while not os.path.exists('go'): await asyncio.sleep(0.01)\n"
                    "call.cancel()\nopen('gone', 'w').close()\nawait asyncio.sleep(0.6)")
    first = talk.message(request)
    let_go(talk, first)
    message = talk.message(go_on(request, first, "1"))
    assert talk.bash("ls -A .calls", container=message["container"]["id"])["stdout"] == ""


def test_7_code_that_waits_does_not_keep_commands(talk):
    first = talk.message(asked("print(await lookup({}))"))
    assert first["stop_reason"] == "tool_use"
    assert talk.bash("echo on", container=first["container"]["id"])["stdout"] == "on\n"


def test_7_variables_stay(talk):
    request = asked('x = await lookup({})')
    first = talk.message(request)
    talk.message(go_on(request, first, "kept"))
    later = talk.go([[{"python": "print(x)"}]], tools=TOOLS, container=first["container"]["id"])
    assert results(later)[0]["stdout"] == "kept\n"


def test_tenants_do_not_answer_for_each_other(talk, stranger):
    request = asked('print(await lookup({}))')
    first = talk.message(request)
    theirs = stranger.message(go_on(request, first, "stolen"))
    assert results(theirs)[0]["error_code"] == "unavailable"
    refused(stranger.ask_model(go_on(request, first, "x", container=first["container"]["id"])), 404, "container_expired")
    assert results(talk.message(go_on(request, first, "mine")))[0]["stdout"] == "mine\n"


def test_a_server_that_was_restarted_says_so():
    """The interpreter is gone: the message has an error block, and its files are kept."""
    with Server("--model-script", "-") as server:
        with Talk(server) as talk:
            kept = talk.go([[{"bash": "echo kept > f"}]])["container"]["id"]
            request = asked('x = await lookup({})', [{"bash": "cat f"}], [{"python": "print('x' in globals())"}],
                            container=kept)
            first = talk.message(request)
        server.kill()
        server.start()
        with Talk(server) as talk:
            second = talk.message(go_on(request, first, "x"))
            assert results(second)[0] == {"type": "code_execution_tool_result_error", "error_code": "unavailable"}
            assert results(second)[1]["stdout"] == "kept\n" and "variables and processes are gone" in results(second)[1]["stderr"]
            assert results(second)[2]["stdout"] == "False\n" and second["container"]["id"] == kept


def test_a_server_that_ends_does_not_wait_for_clients():
    with Server("--model-script", "-", "--drain", "1000") as server:
        with Talk(server) as talk:
            talk.message(asked('await lookup({})'))
        server.stop()


def test_an_approval_pauses_the_turn():
    """Who comes back finds out whether somebody has agreed."""
    config = "[pool default]\napproval = always_ask\napproval-by = approver\n"
    with Server("--model-script", "-", "--anthropic-approval-wait", "0.3", config=config) as server, Talk(server) as talk:
        request = body([[{"bash": "echo agreed"}], [{"text": "end"}]])
        first = talk.message(request)
        assert first["stop_reason"] == "pause_turn" and kinds(first) == ["server_tool_use"]
        pending = first["pending_approval"]
        assert pending["tool_use_id"] == first["content"][0]["id"]
        request["messages"].append(said(first))
        again = talk.message(request)
        assert again["stop_reason"] == "pause_turn" and again["pending_approval"]["id"] == pending["id"]
        talk.client.post(f"/v1/approvals/{pending['id']}", {"decision": "approve"}).expect(200)
        done = talk.message(request)
        assert kinds(done) == ["bash_code_execution_tool_result", "text"] and results(done)[0]["stdout"] == "agreed\n"

        request = body([[{"bash": "echo declined"}], [{"text": "end"}]])
        first = talk.message(request)
        talk.client.post(f"/v1/approvals/{first['pending_approval']['id']}", {"decision": "decline"}).expect(200)
        request["messages"].append(said(first))
        assert results(talk.message(request))[0]["error_code"] == "unavailable"


def test_a_message_that_waits_for_an_approver():
    config = "[pool default]\napproval = always_ask\napproval-by = approver\n"
    with Server("--model-script", "-", config=config) as server, Talk(server) as talk, server.client() as approver:
        with talk.begin(body([[{"bash": "echo agreed"}]])) as events:
            assert events.status == 200
            wait_until(lambda: approver.get("/v1/approvals?state=pending").json["data"], "the approval")
            [row] = approver.get("/v1/approvals?state=pending").json["data"]
            approver.post(f"/v1/approvals/{row['id']}", {"decision": "approve"}).expect(200)
            blocks = [e["content_block"] for e in events if e["type"] == "content_block_start"]
        assert blocks[-1]["content"]["stdout"] == "agreed\n"
