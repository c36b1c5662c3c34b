"""The tools over MCP, and the pair of python_executor."""

import json

import pytest
from support import retort
from support.mcp import Legacy, Modern, text_of
from support.server import Server

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


def batch(client, *codes, **more):
    return client.post("/qwen/python_executor/batch", {"code": list(codes), **more}).expect(200).json


def test_q36_batch_is_a_pair_for_each_in_order(client):
    codes = [f"import time; time.sleep({0.02 * (n % 3)}); print({n})" for n in range(20)]
    assert batch(client, *codes) == [[str(n), "Done"] for n in range(20)]
    assert batch(client) == []
    assert batch(client, "  ", "```py\nprint(3)\n```", "print('a'*999)") == \
        [["", "Done"], ["3", "Done"], ["a" * 128 + "..." + "a" * 128, "Done"]]


def test_q36_batch_keeps_them_apart(client):
    pairs = batch(client, "x = 1; open('f', 'w').write('1')", "x", "open('f')", "import os; os._exit(3)",
                  "while True: pass", "print('fine')", timeout=1)
    assert pairs[0] == ["", "Done"] and pairs[5] == ["fine", "Done"]
    assert pairs[1][1].startswith("NameError") and pairs[2][1].startswith("FileNotFoundError")
    assert pairs[3][0] == "" and pairs[3][1] != "Done" and pairs[4] == ["", "Timeout Error"]


def test_q36_batch_options(client):
    assert batch(client, "x = 6", "x = 7", get_answer_expr="x * 2") == [["12", "Done"], ["14", "Done"]]
    path = "/qwen/python_executor/batch"
    for body in ({}, {"code": "print(1)"}, {"code": [1]}, {"code": ["1"] * 257},
                 {"code": ["1"], "timeout": "soon"}, {"code": ["1"], "other": 1}):
        client.post(path, body).expect(400)


def test_q36_batch_leaves_nothing(client, server):
    def sessions():
        return len(client.all("/v1/sessions"))

    before = sessions()
    batch(client, *["1"] * 12)
    retort.wait_until(lambda: sessions() <= before, "the end of the sessions")
    # A client that goes takes what runs with it, and what waits never begins.
    body = json.dumps({"code": ["import time; time.sleep(30)"] * 20}).encode()
    with server.connect() as other:
        other.sendall(b"POST /qwen/python_executor/batch HTTP/1.1\r\nHost: localhost\r\n"
                      b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        retort.wait_until(lambda: sessions() > before, "the first of them")
    retort.wait_until(lambda: sessions() <= before, "the end of all of them")


def test_q36_batch_has_an_end():
    with Server("--qwen-executor-chars", "0", "--output", "8M") as server, server.client() as client:
        pairs = batch(client, *["print('x' * 7_900_000)"] * 10)
    told = [report == "Done" and len(out) == 7_900_000 for out, report in pairs]
    assert told.count(True) == 8 and all("too long" in report for _, report in pairs if report != "Done")


def test_instance_by_a_header(server, client):
    headers = {"X-Qwen-Instance": "by-header"}
    with Legacy(server, path="/qwen/mcp", headers=headers) as one:
        one.call("code_interpreter", code="x = 44")
    with Legacy(server, path="/qwen/mcp", headers=headers) as later:
        assert "44" in text_of(later.call("code_interpreter", code="x"))
        assert "NameError" in text_of(later.call("code_interpreter", code="x", instance="other"))
    assert "44" in text_of(Modern(server, path="/qwen/mcp", headers=headers).call("code_interpreter", code="x"))
    assert "44" in client.post("/qwen/code_interpreter?instance=by-header", {"code": "x"}).expect(200).text


def test_links_begin_as_the_client_came(server):
    for host in (f"localhost:{server.port}", f"127.0.0.1:{server.port}"):
        with Legacy(server, path="/qwen/mcp", headers={"Host": host}) as one:
            text = text_of(one.call("code_interpreter", code="plt.plot([1]); plt.show()"))
        assert text.startswith(f"![fig-001](http://{host}/qwen/static/")
