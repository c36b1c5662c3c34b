"""The tools over MCP, and the pair of python_executor."""

import json

import pytest
from client import Legacy, Modern, text_of

FENCE = "```"
SCHEMA = {"type": "object", "required": ["code"],
          "properties": {"code": {"description": "The python code.", "type": "string"}}}


@pytest.fixture
def legacy(server):
    with Legacy(server, path="/qwen/mcp") as one:
        yield one


@pytest.fixture
def modern(server):
    return Modern(server, path="/qwen/mcp")


@pytest.fixture(params=["legacy", "modern"])
def either(request):
    return request.getfixturevalue(request.param)


def test_q1_schema(either):
    tools = {t["name"]: t for t in either.request("tools/list")["tools"]}
    assert set(tools) == {"code_interpreter", "python_executor"}
    tool = tools["code_interpreter"]
    assert tool["description"] == "Python code sandbox, which can be used to execute Python code."
    assert tool["inputSchema"] == SCHEMA


def test_q9_state_of_a_conversation(legacy, server):
    assert text_of(legacy.call("code_interpreter", code="x=42")) == "Finished execution."
    assert text_of(legacy.call("code_interpreter", code="x")) == \
        f"execute_result:\n\n{FENCE}\n42\n{FENCE}"
    with Legacy(server, path="/qwen/mcp") as other:
        assert "NameError" in text_of(other.call("code_interpreter", code="x"))


def test_q9_state_by_instance_without_a_conversation(modern):
    modern.call("code_interpreter", code="x=43", instance="mine")
    assert "43" in text_of(modern.call("code_interpreter", code="x", instance="mine"))
    assert "NameError" in text_of(modern.call("code_interpreter", code="x"))


def test_errors_of_code_are_no_failures_of_the_tool(either):
    result = either.call("code_interpreter", code="1/0")
    assert not result.get("isError") and "ZeroDivisionError" in text_of(result)


def test_q15_image_over_mcp(legacy, server):
    text = text_of(legacy.call("code_interpreter", code="plt.plot([1]); plt.show()"))
    link = text.partition("](")[2].rstrip(")")
    with server.client() as client:
        path = link.partition(f":{server.port}")[2]
        assert client.get(path).expect(200).body.startswith(b"\x89PNG")


def test_q39_missing_code(either):
    result = either.call("code_interpreter", cod="1")
    assert result["isError"] and "code" in text_of(result)


def test_q36_python_executor(client, either):
    pair = json.loads(text_of(either.call("python_executor", code="print('a'*999)")))
    assert pair == ["a" * 128 + "..." + "a" * 128, "Done"]
    assert json.loads(text_of(either.call("python_executor", code="1/0"))) == \
        ["", "ZeroDivisionError: division by zero"]


def test_q36_python_executor_over_http(client):
    def run(**body):
        return client.post("/qwen/python_executor", body).expect(200).json

    assert run(code="print(' 5 ')") == ["5", "Done"]
    assert run(code="x = 6", get_answer_symbol="x") == ["6", "Done"]
    assert run(code="y = 6", get_answer_expr="y * 7") == ["42", "Done"]
    assert run(code="y = 6\ny + 1", get_answer_from_stdout=False) == ["7", "Done"]
    assert run(code="import time; time.sleep(9)", timeout=1) == ["", "Timeout Error"]
    run(code="kept = 1")
    assert run(code="kept")[1] == "NameError: name 'kept' is not defined"
