"""Null for what may be left out is as if it were left out, wherever a model or a typed client writes it."""

import json

import pytest
from support.mcp import Modern, text_of
from support.script import finish, plan, python, script
from support.server import Server

AZURE = "/azure/pools/default/"
STORY = script(plan(), python("print(6 * 7)"), finish("42"))

# Each path with tools, one that runs, and what it needs; all else that its schema has is null.
TOOLS = [("/mcp", "run_code", {"code": "6 * 7"}), ("/mcp", "run_shell", {"command": "expr 6 '*' 7"}),
         ("/prisme/mcp", "execute_python", {"code": "return 6 * 7"}), ("/qwen/mcp", "code_interpreter", {"code": "6 * 7"}),
         ("/qwen/mcp", "python_executor", {"code": "print(6 * 7)"}), ("/ubik/mcp", "code_execution", {"request": STORY}),
         (AZURE + "mcp", "runShellCommandInRemoteEnvironment", {"environmentId": "nulls-1", "shellCommand": "expr 6 '*' 7"}),
         (AZURE + "mcp", "runPythonCodeInRemoteEnvironment", {"environmentId": "nulls-2", "pythonCode": "6 * 7"})]


@pytest.fixture(scope="module")
def server():
    with Server("--model-script", "-") as one:
        yield one


@pytest.mark.parametrize("path, name, needed", TOOLS, ids=[name for _, name, _ in TOOLS])
def test_of_a_tool(server, path, name, needed):
    peer = Modern(server, path=path)
    (tool,) = [t for t in peer.request("tools/list")["tools"] if t["name"] == name]
    nulls = {other: None for other in tool["inputSchema"]["properties"] if other not in needed}
    assert needed.keys() >= set(tool["inputSchema"].get("required", []))
    result = peer.call(name, **needed, **nulls)
    assert not result.get("isError") and "42" in text_of(result), result


def test_what_is_needed_is_still_needed(server):
    result = Modern(server).call("run_code", code=None)
    assert result["isError"] and "code must be a string" in text_of(result)


@pytest.mark.parametrize("path, body", [
    ("/prisme/execute_python", {"code": "return 6 * 7", "files": None, "metadata": None}),
    ("/qwen/code_interpreter", {"code": "6 * 7", "files": None, "instance": None, "work_dir": None, "traceback": None}),
    ("/qwen/python_executor", {"code": "print(6 * 7)", "get_answer_expr": None, "get_answer_symbol": None,
                               "get_answer_from_stdout": None}),
    (AZURE + "code/execute?identifier=nulls-3", {"properties": {"code": "6 * 7", "codeInputType": None, "executionType": None,
                                                                "timeoutInSeconds": None}}),
    (AZURE + "executions?identifier=nulls-4&api-version=2025-10-02-preview",
     {"code": "6 * 7", "shellCommand": None, "execCommandAndArgs": None, "stdin": None, "shellType": None,
      "outputStreamsMaxLength": None, "executionType": None}),
    (AZURE + "executions?identifier=nulls-5&api-version=2025-10-02-preview",
     {"shellCommand": "expr 6 '*' 7", "execCommandAndArgs": None, "code": None})])
def test_of_a_body(server, path, body):
    with server.client() as client:
        answer = client.post(path, body).expect(200)
        assert b"42" in answer.body, answer


def test_of_inputs(server):
    with server.client() as client:
        inputs = {"request": STORY, "document_ids": None, "context": None, "sandbox_id": None, "timeout": None,
                  "max_rounds": None, "model": None}
        order = client.post("/ubik/api/v1/tools/code_execution/execute", {"inputs": inputs}).expect(202).json
        stream = client.get(order["stream_url"].partition(f":{server.port}")[2]).expect(200).body.decode()
    end = json.loads(stream.rpartition("data: ")[2])
    assert end["status"] == "completed" and end["answer"] == "42"
