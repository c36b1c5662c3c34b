"""A person agrees before a script runs: the four policies, conditions, approvers, restarts."""

import contextlib
import json

import pytest
from support import retort
from support.mcp import Legacy, Modern, text_of
from support.server import Server

YES = {"action": "accept", "content": {"approve": True}}


def ask(client, code, status, **more):
    return client.post("/prisme/execute_python", {"code": code}, **more).expect(status).json


@pytest.mark.parametrize("policy, prompts", [("auto", 0), ("always_ask", 3), ("ask_first", 1),
                                             ("ask_external", 3)])
def test_p24_policies(policy, prompts):
    asked = []

    def person(params):
        asked.append(params)
        return {**YES, "content": {"approve": True, "remember": True}}

    with Server("--approval", policy) as server:
        with Legacy(server, path="/prisme/mcp", capabilities={"elicitation": {}},
                    answers={"elicitation/create": person}) as agent:
            for n in range(3):
                value = json.loads(text_of(agent.call("execute_python", code=f"return {n}")))
                assert value["result"] == n
        assert len(asked) == prompts
        if policy == "ask_external":
            with server.client() as c:
                assert ask(c, "return 7", 200)["result"] == 7
                assert c.post("/v1/execute", {"code": "1"}).status == 200


@pytest.fixture(scope="module")
def guarded():
    with Server("--approval", "always_ask", "--approval-by", "approver", "--fetch-private",
                "--approval-when", 'code~"open("') as server:
        yield server


def test_p25_conditions(guarded):
    with guarded.client() as c:
        assert ask(c, "return 1", 200)["result"] == 1
        waiting = ask(c, "open('x')", 202)
        assert waiting["error"]["code"] == "ApprovalRequired" and waiting["task_id"]


@pytest.fixture(scope="module")
def keys(guarded):
    def make(*flags):
        return guarded.keys("create", "--tenant", "team", "--quiet", *flags).strip()

    made = {"agent": make(), "boss": make("--approver")}
    made["other"] = guarded.keys("create", "--tenant", "else", "--quiet", "--approver").strip()
    guarded.stop()
    guarded.start()
    return made


def resolve(server, key, task, body):
    with server.client(key) as c:
        return c.post(f"/prisme/v1/agents/a1/tasks/{task}/resolve", body)


def test_p26_approvers_and_resolve(guarded, keys):
    code = "open('x', 'w').write('y')\nreturn 5"
    with guarded.client(keys["agent"]) as agent:
        task = ask(agent, code, 202)["task_id"]
        assert ask(agent, code, 202)["task_id"] == task
        assert resolve(guarded, keys["agent"], task, {"approved": True}).status == 403
        assert resolve(guarded, keys["other"], task, {"approved": True}).status == 404
        assert resolve(guarded, keys["boss"], "apr_none", {"approved": True}).status == 404
        assert resolve(guarded, keys["boss"], task, {"approved": "yes"}).status == 400
        with guarded.client(keys["boss"]) as boss:
            assert boss.get(f"/prisme/v1/agents/a1/tasks/{task}/resolve").status == 405
        done = resolve(guarded, keys["boss"], task, {"approved": True, "reason": "looks fine"})
        assert done.expect(200).json == {"task_id": task, "status": "working",
                                         "resolution": "approved",
                                         "resolved_by": done.json["resolved_by"]}
        assert done.json["resolved_by"].startswith("key_")
        assert ask(agent, code, 200)["result"] == 5
        kept = agent.get(f"/v1/approvals/{task}").expect(200).json
        assert kept["reason"] == "looks fine" and kept["execution"]


def test_p26_a_rejected_script_does_not_run(guarded, keys):
    code = "open('no', 'w').write('y')"
    with guarded.client(keys["agent"]) as agent:
        task = ask(agent, code, 202)["task_id"]
        done = resolve(guarded, keys["boss"], task, {"approved": False, "reason": "not today"})
        assert done.expect(200).json["resolution"] == "rejected"
        error = ask(agent, code, 200)["error"]
        assert error["code"] == "ApprovalDenied" and "not today" in error["message"]


def task_of(client, task):
    return client.get(f"/prisme/v1/agents/a1/tasks/{task}")


def test_an_approved_call_goes_on_by_itself(guarded, keys):
    code = "open('by-itself', 'w').write('y')\nreturn 11"
    with guarded.client(keys["agent"]) as agent, guarded.client(keys["boss"]) as boss:
        task = ask(agent, code, 202)["task_id"]
        assert task_of(agent, task).expect(200).json == {"task_id": task, "status": "input-required", "result": None}
        with guarded.client(keys["other"]) as stranger:
            assert task_of(stranger, task).status == 404
        assert resolve(guarded, keys["boss"], task, {"approved": True}).status == 200
        retort.wait_until(lambda: task_of(agent, task).json["status"] == "completed", "the script")
        assert task_of(boss, task).json["result"]["result"] == 11
        executions = len(agent.get("/v1/executions?limit=100").json["data"])
        assert ask(agent, code, 200)["result"] == 11  # fetched by the same call
        assert len(agent.get("/v1/executions?limit=100").json["data"]) == executions  # which has run nothing
        assert task_of(agent, task).json["status"] == "completed" and "again" in task_of(agent, task).json["message"]
        assert ask(agent, code, 202)["task_id"] != task  # another call, and another question


def test_files_are_fetched_when_somebody_has_agreed(guarded, keys, shelf):
    shelf.files["/asked.csv"] = b"a\n1\n"
    body = {"code": "return open('asked.csv').read()", "files": [shelf.url("/asked.csv")]}
    with guarded.client(keys["agent"]) as agent:
        task = agent.post("/prisme/execute_python", body).expect(202).json["task_id"]
        assert task_of(agent, task).json["status"] == "input-required" and "/asked.csv" not in shelf.asked
        assert resolve(guarded, keys["boss"], task, {"approved": True}).status == 200
        assert agent.post("/prisme/execute_python", body).expect(200).json["result"] == "a\n1\n"
        assert shelf.asked.count("/asked.csv") == 1


def test_calls_that_are_not_the_same_are_tasks_of_their_own(guarded, keys):
    code = "open('apart', 'w').write('y')\nreturn parameters['n']"
    with guarded.client(keys["agent"]) as agent:
        def call(n, status=202):
            return agent.post("/prisme/execute_python", {"code": code, "parameters": {"n": n}}).expect(status).json

        tasks = {n: call(n)["task_id"] for n in (1, 2)}
        assert resolve(guarded, keys["boss"], tasks[1], {"approved": True}).status == 200
        retort.wait_until(lambda: task_of(agent, tasks[1]).json["status"] != "input-required", "the first")
        assert call(1, 200)["result"] == 1 and call(2)["task_id"] == tasks[2]
        assert resolve(guarded, keys["boss"], tasks[2], {"approved": False, "reason": "no"}).status == 200
        retort.wait_until(lambda: task_of(agent, tasks[2]).json["status"] == "failed", "the second")
        assert task_of(agent, tasks[2]).json["result"]["error"]["code"] == "ApprovalDenied"


def test_p27_pending_survives_a_restart(guarded, keys):
    code = "open('later', 'w').write('y')\nreturn 6"
    with guarded.client(keys["agent"]) as agent:
        task = ask(agent, code, 202)["task_id"]
    guarded.stop()
    guarded.start()
    assert resolve(guarded, keys["boss"], task, {"approved": True}).status == 200
    with guarded.client(keys["agent"]) as agent:
        assert ask(agent, code, 200)["result"] == 6


def test_mcp_answers_have_a_code(guarded, keys):
    """As over HTTP: what the model is told of an approval is an error with a code."""
    code = "open('mcp', 'w').write('y')\nreturn 3"
    agent = Modern(guarded, path="/prisme/mcp", key=keys["agent"])
    result = agent.call("execute_python", code=code)
    value = json.loads(text_of(result))
    assert result["isError"] and value == result["structuredContent"]
    assert value["error"]["code"] == "ApprovalRequired" and value["result"] is None
    assert value["task_id"] in value["error"]["message"] and value["duration"] == 0
    assert resolve(guarded, keys["boss"], value["task_id"], {"approved": False, "reason": "no"}).status == 200
    value = json.loads(text_of(agent.call("execute_python", code=code)))
    assert value["error"]["code"] == "ApprovalDenied" and "no" in value["error"]["message"]
    assert "task_id" not in value


@pytest.mark.parametrize("era", [Legacy, Modern])
def test_mcp_an_approved_call_goes_on_by_itself(guarded, keys, era):
    code = f"open('by-itself-{era.__name__}', 'w').write('y')\nreturn 12"
    with guarded.client(keys["agent"]) as rest, contextlib.ExitStack() as stack:
        agent = era(guarded, path="/prisme/mcp", key=keys["agent"])
        if era is Legacy:
            stack.enter_context(agent)

        def call():
            result = agent.call("execute_python", code=code)
            return {**json.loads(text_of(result)), "isError": result["isError"]}

        task = call()["task_id"]
        again = call()
        assert again["task_id"] == task and again["isError"] and again["error"]["code"] == "ApprovalRequired"
        assert resolve(guarded, keys["boss"], task, {"approved": True}).status == 200
        retort.wait_until(lambda: task_of(rest, task).json["status"] == "completed", "the script")
        assert task_of(rest, task).json["result"]["result"] == 12
        executions = len(rest.get("/v1/executions?limit=100").json["data"])
        done = call()
        assert done["result"] == 12 and not done["isError"]
        assert len(rest.get("/v1/executions?limit=100").json["data"]) == executions
        task = call()["task_id"]  # another call, and another question; this one is sent again before it has run
        assert resolve(guarded, keys["boss"], task, {"approved": True}).status == 200
        assert call()["result"] == 12


def test_mcp_a_waiting_script_outlives_its_client(guarded, keys):
    """Over HTTP another client finds what was asked for over MCP."""
    code = "open('outlives', 'w').write('y')\nreturn 13"
    with Legacy(guarded, path="/prisme/mcp", key=keys["agent"]) as agent:
        task = json.loads(text_of(agent.call("execute_python", code=code)))["task_id"]
    with guarded.client(keys["agent"]) as agent:
        assert resolve(guarded, keys["boss"], task, {"approved": True}).status == 200
        assert ask(agent, code, 200)["result"] == 13


def test_mcp_a_user_says_no():
    with Server("--approval", "always_ask") as server:
        with Legacy(server, path="/prisme/mcp", capabilities={"elicitation": {}},
                    answers={"elicitation/create": lambda params: {"action": "decline"}}) as agent:
            value = json.loads(text_of(agent.call("execute_python", code="return 1")))
            assert value["error"]["code"] == "ApprovalDenied"
        with Legacy(server, path="/prisme/mcp") as mute:
            value = json.loads(text_of(mute.call("execute_python", code="return 1")))
            assert value["error"]["code"] in ("ApprovalDenied", "ApprovalRequired") and value["logs"] == []
