"""Tasks: calls that go on after their client has been answered."""

import time

import pytest

from support import retort
from support.mcp import Modern, RpcError, text_of
from support.server import TIME, Server

pytestmark = pytest.mark.once
BINARY = retort.CONFORMANCE
EXTENSION = "io.modelcontextprotocol/tasks"
ABLE = {"extensions": {EXTENSION: {}}, "elicitation": {}}
NO_SUCH, NOT_ABLE = -32602, -32021


@pytest.fixture
def client(server):
    return Modern(server, capabilities=ABLE)


def get(client, task):
    return client.request("tasks/get", {"taskId": task})


def wait(client, task, *statuses):
    until = time.monotonic() + retort.SECONDS
    while (seen := get(client, task))["status"] not in statuses:
        assert time.monotonic() < until, seen
        time.sleep(0.02)
    return seen


def begin(client, tool, **arguments):
    made = client.call(tool, **arguments)
    assert made["resultType"] == "task", made
    return made["taskId"]


def test_a_task_looks_as_it_should(client):
    made = client.call("slow_compute", seconds=0.2, label="it")
    assert made["resultType"] == "task" and made["status"] == "working"
    assert made["taskId"].startswith("task_")
    assert made["ttlMs"] >= 3_600_000 and made["pollIntervalMs"] > 0
    assert TIME.fullmatch(made["createdAt"]) and TIME.fullmatch(made["lastUpdatedAt"])
    done = wait(client, made["taskId"], "completed")
    assert done["resultType"] == "complete"
    assert done["createdAt"] == made["createdAt"] and done["lastUpdatedAt"] > made["lastUpdatedAt"]
    assert "it" in text_of(done["result"])
    assert get(client, made["taskId"]) == done


def test_who_does_not_say_so_has_none(server):
    client = Modern(server)
    assert client.call("slow_compute", seconds=0)["resultType"] == "complete"
    for method in ("get", "update", "cancel"):
        reply = client.ask(f"tasks/{method}", {"taskId": "task_x", "inputResponses": {}})
        error = reply.refused(400, NOT_ABLE)
        assert error["data"] == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}


def test_there_are_no_tasks_in_the_legacy_era(legacy):
    assert "tasks" not in legacy.info["capabilities"]
    assert not legacy.call("slow_compute", seconds=0)["isError"]
    with pytest.raises(RpcError, match="-32601"):
        legacy.request("tasks/get", {"taskId": "task_x"})


@pytest.mark.parametrize("method", ["tasks/list", "tasks/result"])
def test_methods_of_earlier_drafts_are_none(client, method):
    client.ask(method, {"taskId": "task_x"}).refused(404, -32601)


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
@pytest.mark.parametrize("task", ["task_x", "", "x" * 5000, "task_\u00e9"])
def test_an_unknown_task_is_an_error(client, method, task):
    with pytest.raises(RpcError, match=str(NO_SUCH)):
        client.request(method, {"taskId": task, "inputResponses": {}})


def test_a_tool_that_fails_completes_its_task(client):
    done = wait(client, begin(client, "failing_job"), "completed")
    assert done["result"]["isError"] and "error" not in done


def test_an_error_of_the_protocol_fails_it(client):
    done = wait(client, begin(client, "protocol_error_job"), "failed")
    assert done["error"]["code"] == -32603 and done["error"]["message"] and "result" not in done


def test_cancel(client):
    task = begin(client, "slow_compute", seconds=50)
    assert client.request("tasks/cancel", {"taskId": task})["resultType"] == "complete"
    assert get(client, task)["status"] == "cancelled"
    client.request("tasks/cancel", {"taskId": task})
    assert get(client, task)["status"] == "cancelled"


def test_a_client_that_goes_does_not_end_it(client):
    with client.begin("tools/call", {"name": "slow_compute", "arguments": {"seconds": 0.3}}) as exchange:
        task = next(iter(exchange))["result"]["taskId"]
    assert wait(client, task, "completed")["result"]


def test_questions_one_by_one(client):
    task = begin(client, "multi_input")
    asked = wait(client, task, "input_required")["inputRequests"]
    assert len(asked) == 2 and all(q["method"] == "elicitation/create" for q in asked.values())
    one, other = asked
    yes = {"action": "accept", "content": {"confirm": True}}
    client.request("tasks/update", {"taskId": task, "inputResponses": {one: yes, "more": yes}})
    assert list(get(client, task)["inputRequests"]) == [other]
    client.request("tasks/update", {"taskId": task, "inputResponses": {one: yes}})
    client.request("tasks/update", {"taskId": task, "inputResponses": {}})
    assert get(client, task)["status"] == "input_required"
    client.request("tasks/update", {"taskId": task, "inputResponses": {other: yes}})
    assert "inputRequests" not in wait(client, task, "completed")


@pytest.mark.parametrize("answers", [None, [], "yes", {"confirm": "yes"}, {"confirm": None}])
def test_malformed_answers_are_an_error(client, answers):
    task = begin(client, "confirm_delete", filename="a.txt")
    with pytest.raises(RpcError, match=str(NO_SUCH)):
        client.request("tasks/update", {"taskId": task, "inputResponses": answers})
    assert get(client, task)["status"] == "input_required"
    client.request("tasks/cancel", {"taskId": task})


def test_a_question_that_is_open_can_be_cancelled(client):
    task = begin(client, "confirm_delete", filename="a.txt")
    client.request("tasks/cancel", {"taskId": task})
    seen = get(client, task)
    assert seen["status"] == "cancelled" and "inputRequests" not in seen
    client.request("tasks/update", {"taskId": task, "inputResponses": {"confirm": {"action": "accept"}}})
    assert get(client, task)["status"] == "cancelled"


def test_who_cannot_be_asked_is_not_asked_in_a_task(server):
    client = Modern(server, capabilities={"extensions": {EXTENSION: {}}})
    done = wait(client, begin(client, "confirm_delete", filename="a.txt"), "completed")
    assert done["result"]["isError"] and "cannot ask" in text_of(done["result"])


def test_a_task_is_for_one_key():
    server = Server(program=BINARY)
    keys = [server.keys("create", "--tenant", tenant, "--quiet").strip() for tenant in ("ann", "ann", "bob")]
    with server:
        ann, other, bob = (Modern(server, key=key, capabilities=ABLE) for key in keys)
        task = begin(ann, "slow_compute", seconds=30)
        for stranger in (other, bob):
            for method in ("tasks/get", "tasks/cancel"):
                with pytest.raises(RpcError, match=str(NO_SUCH)):
                    stranger.request(method, {"taskId": task})
        assert get(ann, task)["status"] == "working"
        # The server ends with the task under way, and promptly: `with` sees to that.
