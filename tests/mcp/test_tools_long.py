"""Code that runs longer than a client waits: parts, progress, tasks, the background, the end of it."""

import re
import threading

import pytest
from support import retort
from support.mcp import META, Legacy, Modern, text_of
from test_tools import bad, body_of, execution_of, ok, session_of

FLAGS = ["--mcp-answer", "1"]
TASKS = {"extensions": {META + "tasks": {}}}
COUNT = "import time\nfor i in range({}):\n    print('step', i, flush=True)\n    time.sleep(0.1)\n'all done'"


def params(code, token=None, **more):
    found = {"name": "run_code", "arguments": {"code": code, **more}}
    if token is not None:
        found["_meta"] = {"progressToken": token}
    return found


def until_over(client, execution):
    """What get_execution says when it has ended."""
    for _ in range(20):
        text = text_of(ok(client.call("get_execution", execution_id=execution, wait_ms=5000)))
        if "| running |" not in text and "| queued |" not in text:
            return text
    raise AssertionError(text)


# --- neither progress nor tasks ---


def test_it_is_answered_for_and_goes_on(either):
    result = ok(either.call("run_code", code=COUNT.format(16)))
    text = text_of(result)
    assert "| running |" in text and "step 0\n" in text and "step 15" not in text
    assert execution_of(result) in text and "get_execution" in text
    text = until_over(either, execution_of(result))
    assert "| ok |" in text and "step 15" in text and "result: 'all done'" in text


def test_one_that_waits_for_its_turn_is_answered_for_too(modern):
    first = ok(modern.call("run_code", code="import time\ntime.sleep(20)", background=True))
    second = ok(modern.call("run_code", code="'next'", session_id=session_of(first)))
    assert "| queued |" in text_of(second) and "waits for its turn" in text_of(second)
    ok(modern.call("interrupt_execution", execution_id=execution_of(first)))
    assert "result: 'next'" in until_over(modern, execution_of(second))


def test_its_output_page_by_page(modern):
    begun = execution_of(modern.call("run_code", code=COUNT.format(20), background=True))
    got, offset = "", 0
    while True:
        page = text_of(ok(modern.call("get_execution", execution_id=begun, offset=offset, wait_ms=5000)))
        first, last = map(int, re.search(r"output, bytes (\d+) to (\d+) of", page).groups())
        assert first == offset
        got += page.partition(":\n")[2].split("next: ")[0]
        if "next: " not in page:
            break
        assert f"offset={last}" in page
        offset = last
    assert got.strip() == "\n".join(f"step {i}" for i in range(20))


def test_background_answers_at_once(either):
    result = ok(either.call("run_code", code="import time\ntime.sleep(20)", background=True))
    assert re.search(r"\| (running|queued) \| 0\.\d+ s", text_of(result))
    ended = ok(either.call("interrupt_execution", execution_id=execution_of(result)))
    assert "being interrupted" in text_of(ended)
    text = until_over(either, execution_of(result))
    assert "| interrupted |" in text and "Variables and files are kept" in text
    assert "had ended already" in text_of(either.call("interrupt_execution", execution_id=execution_of(result)))


def test_no_such_execution(either):
    for tool in ("get_execution", "interrupt_execution"):
        assert "There is no execution exec_none" in bad(either.call(tool, execution_id="exec_none"))


# --- progress ---


@pytest.mark.parametrize("era, token", [("legacy", "a token"), ("modern", 7)])
def test_progress(request, era, token):
    reply = request.getfixturevalue(era).ask("tools/call", params(COUNT.format(17), token))
    assert "result: 'all done'" in text_of(reply.result)
    told = reply.of("notifications/progress")
    assert len(told) >= 2 and all(p["progressToken"] == token for p in told)
    values = [p["progress"] for p in told]
    assert values == sorted(set(values)) and values[-1] >= 1
    assert all(re.fullmatch(r"step \d+", p["message"]) for p in told if "message" in p)
    assert "message" in told[-1]


def test_progress_of_one_that_says_nothing(modern):
    reply = modern.ask("tools/call", params("import time\ntime.sleep(2.8)", "t"))
    assert "| ok |" in text_of(reply.result)
    assert reply.of("notifications/progress") and "message" not in reply.of("notifications/progress")[0]


def test_progress_has_short_lines(modern):
    reply = modern.ask("tools/call", params("import time\nprint('ä' * 5000)\ntime.sleep(1)", "t"))
    message = reply.of("notifications/progress")[0]["message"]
    assert message and set(message) == {"ä"} and len(message) <= 200


def test_a_quick_one_is_plain_json(either):
    reply = either.ask("tools/call", params("1", "t"))
    assert not reply.streamed and reply.of("notifications/progress") == []


# --- tasks ---


def test_a_task(server):
    client = Modern(server, capabilities=TASKS)
    result = client.call("run_code", code=COUNT.format(25))
    assert result["resultType"] == "task" and result["status"] == "working"
    def get():
        return client.request("tasks/get", {"taskId": result["taskId"]})

    retort.wait_until(lambda: get()["status"] != "working", "the end of the task", retort.SECONDS)
    task = get()
    assert task["status"] == "completed"
    assert "result: 'all done'" in text_of(task["result"])
    assert not task["result"]["isError"]


def test_a_task_is_cancelled(server):
    client = Modern(server, capabilities=TASKS)
    result = client.call("run_code", code="import time\nopen('begun', 'w').close()\ntime.sleep(25)")
    assert result["resultType"] == "task"
    client.request("tasks/cancel", {"taskId": result["taskId"]})
    listed = text_of(Modern(server).call("list_sessions"))
    session = listed.split()[0]
    retort.wait_until(lambda: f"{session} | idle" in text_of(Modern(server).call("list_sessions")),
                      "the interrupt")


# --- cancelled ---


def session_is_idle(client, session):
    listed = text_of(client.call("list_sessions"))
    return f"{session} | idle" in listed


def test_cancelled_by_a_notice(server):
    with Legacy(server) as client:
        session = session_of(client.call("run_code", code="x = 'kept'"))
        with client.begin("tools/call", params("import time\nprint('on')\ntime.sleep(25)", "t"), id=77) as going:
            going.until("notifications/progress")
            client.cancel(77)
            retort.wait_until(lambda: session_is_idle(client, session), "the interrupt")
        assert body_of(ok(client.call("run_code", code="x"))) == "result: 'kept'"


def test_cancelled_by_going_away(modern):
    session = session_of(modern.call("run_code", code="x = 'kept'"))
    going = modern.begin("tools/call", params("import time\nprint('on')\ntime.sleep(25)", "t", session_id=session))
    going.until("notifications/progress")
    going.close()
    retort.wait_until(lambda: session_is_idle(modern, session), "the interrupt")
    assert body_of(ok(modern.call("run_code", code="x", session_id=session))) == "result: 'kept'"


def test_waiting_may_be_cancelled(modern):
    begun = execution_of(modern.call("run_code", code="import time\ntime.sleep(25)", background=True))
    with Legacy(modern.server) as client:
        replies = []
        going = threading.Thread(target=lambda: replies.append(client.ask("tools/call", {
            "name": "get_execution", "arguments": {"execution_id": begun, "wait_ms": 40000}}, id=5)))
        going.start()
        retort.wait_until(lambda: client.ask("ping", id=5).status == 400, "a call that has this id")
        client.cancel(5)
        going.join(retort.SOON)
        assert not going.is_alive()
    assert "| running |" in text_of(modern.call("get_execution", execution_id=begun))
    ok(modern.call("interrupt_execution", execution_id=begun))
