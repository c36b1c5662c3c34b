"""A2.1 and A2.2: code in three dialects, each with its own words, and images."""

import base64
import shlex

import pytest

from support import retort
from support.server import Server
from azure import MIDDLE, NEW, OLD, Pool, code_of

PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.show()"


def ended(pool, execution):
    """It, once it has."""
    def is_over():
        return pool.get("executions/" + execution, NEW).expect(200).json["status"] not in ("NotStarted", "Running")
    retort.wait_until(is_over, "the end of an execution")
    return pool.get("executions/" + execution, NEW).json


def test_a2_1a_code_execute_is_nested_and_says_success(either):
    body = {"properties": {"codeInputType": "inline", "executionType": "synchronous", "code": "print('hi')\n1 + 1"}}
    answer = either.post("code/execute", body, OLD).expect(200).json
    assert answer["$id"] == "1" and answer["properties"]["$id"] == "2"
    properties = answer["properties"]
    assert (properties["status"], properties["stdout"], properties["stderr"], properties["result"]) == \
        ("Success", "hi\n", "", 2)
    assert isinstance(properties["executionTimeInMilliseconds"], int)


def test_a2_1a_failure_has_all_four_keys(pool):
    properties = pool.run("print('before')\n1 / 0")
    assert properties["status"] == "Failure"
    assert properties["stdout"] == "before\n" and properties["result"] == ""
    assert "ZeroDivisionError: division by zero" in properties["stderr"] and "line 2" in properties["stderr"]


def test_a2_1a_an_identifier_in_the_body_is_ignored(pool):
    assert pool.run("x = 5", identifier="somebody-else")["status"] == "Success"
    assert pool.run("x")["result"] == 5


def test_a2_1b_python_execute_is_flat_and_result_is_never_null(either):
    body = {"properties": {"identifier": "x", "codeInputType": "inline", "executionType": "synchronous",
                           "pythonCode": "print(1)"}}
    answer = either.post("python/execute", body).expect(200).json
    assert answer.pop("executionTimeInMilliseconds") >= 0
    assert answer == {"status": "Success", "stdout": "1\n", "stderr": "", "result": ""}


def test_a2_1c_executions_say_succeeded(either):
    answer = either.execution(codeInputType="Inline", executionType="Synchronous", code="print(7 * 9)",
                              timeoutInSeconds=60, outputStreamsMaxLength=4096).expect(200)
    envelope = answer.json
    assert envelope["result"].pop("executionTimeInMilliseconds") >= 0
    assert envelope["result"].pop("note") == "60 s were asked for; the time limit of this pool is 30 s"
    assert envelope == {"id": envelope["id"], "identifier": either.identifier, "executionType": "Synchronous",
                        "status": "Succeeded", "error": None,
                        "result": {"stdout": "63\n", "stderr": "", "executionResult": ""}}
    assert answer.headers["operation-id"] == envelope["id"]
    assert answer.headers["operation-location"].startswith(
        f"http://localhost:{either.client.server.port}{either.prefix}/executions/{envelope['id']}")


def test_a2_1c_only_code_is_needed(pool):
    assert pool.execution(code="6 * 7").json["result"]["executionResult"] == 42


@pytest.mark.parametrize("version, status", [(MIDDLE, 202), ("2025-02-02-preview", 202), (NEW, 200), (None, 200)])
def test_a2_1c_status_of_http_by_version(pool, version, status):
    assert pool.execution(version, code="1").expect(status).json["status"] == "Succeeded"


def test_a2_1c_a_failure_tells_its_name(pool):
    envelope = pool.execution(code="raise KeyError('k')").expect(200).json
    assert envelope["status"] == "Failed" and "KeyError: 'k'" in envelope["result"]["stderr"]
    assert envelope["error"]["error"]["code"] == "KeyError"


def test_a2_1c_base64(pool):
    coded = base64.b64encode("print('ü')".encode()).decode()
    assert pool.execution(code=coded, codeInputType="inlineBase64").json["result"]["stdout"] == "ü\n"
    wrong = pool.execution(code="!", codeInputType="InlineBase64").expect(400)
    assert wrong.headers["content-type"] == "application/problem+json" and "code" in wrong.json["errors"]


def test_a2_1c_asynchronous(pool):
    begun = pool.execution(code="import time; time.sleep(0.5); print('late')", executionType="Asynchronous").json
    assert begun["status"] in ("NotStarted", "Running") and begun["result"] is None
    now = ended(pool, begun["id"])
    assert now["status"] == "Succeeded" and now["result"]["stdout"] == "late\n"
    assert now["executionType"] == "Asynchronous" and now["id"] == begun["id"]


def test_a2_1c_the_client_names_its_execution(pool):
    answer = pool.post("executions", {"code": "'mine'", "executionType": "Asynchronous"}, NEW,
                       headers={"operation-id": "0c6a1f3e-my-own"}).expect(200)
    assert answer.json["id"] == answer.headers["operation-id"] == "0c6a1f3e-my-own"
    now = ended(pool, "0c6a1f3e-my-own")
    assert now["result"]["executionResult"] == "mine" and now["id"] == "0c6a1f3e-my-own"
    assert pool.post("executions", {"code": "1"}, headers={"operation-id": "a b"}).status == 400


def test_a2_1c_an_unknown_execution(pool):
    pool.run("1")
    assert code_of(pool.get("executions/nope", NEW).expect(404)) == "ExecutionNotFound"
    other = pool.execution(code="1").json["id"]
    assert code_of(pool.get("executions/" + other, NEW, identifier="another-session").expect(404))


@pytest.mark.parametrize("body, status, out, err", [
    ({"shellCommand": "echo hi; echo no >&2; exit 3"}, "3", "hi\n", "no\n"),
    ({"shellCommand": "pwd"}, "0", "/workspace\n", ""),
    ({"execCommandAndArgs": ["printf", "%s|", "a b", "it's", "$HOME"]}, "0", "a b|it's|$HOME|", ""),
    ({"shellCommand": "tr a-z A-Z", "stdin": "loud\n'x'"}, "0", "LOUD\n'X'", ""),
    ({"shellCommand": "echo x", "codeInputType": "Inline", "executionType": "Synchronous"}, "0", "x\n", ""),
])
def test_a2_1_shell_status_is_the_exit_code(either, body, status, out, err):
    envelope = either.execution(**body).expect(200).json
    assert (envelope["status"], envelope["result"]["stdout"], envelope["result"]["stderr"]) == (status, out, err)
    assert "executionResult" not in envelope["result"]
    assert int(envelope["status"]) == int(status)


@pytest.mark.parametrize("body", [{"execCommandAndArgs": []}, {"execCommandAndArgs": ["a", 1]},
                                  {"shellCommand": "a", "execCommandAndArgs": ["b"]}])
def test_a2_1_shell_bad_words(pool, body):
    assert pool.execution(**body).expect(400).headers["content-type"] == "application/problem+json"


def test_a2_1_execute_is_any_of_them(pool):
    assert pool.post("execute", {"properties": {"code": "2"}}).json["properties"]["result"] == 2
    assert pool.post("execute", {"code": "2"}).json["result"]["executionResult"] == 2


def test_a4_shell_execute(pool):
    answer = pool.post("shellExecute", {"shellType": "bash", "shellCommand": "echo hi; exit 4"}).expect(200).json
    assert (answer["status"], answer["exitCode"], answer["result"]["stdout"]) == ("Failed", 4, "hi\n")
    assert pool.post("shellExecute", {"execCommandAndArgs": ["true"]}).json["status"] == "Succeeded"
    late = pool.post("shellExecute", {"shellCommand": "sleep 30", "timeoutInSeconds": 0.3}).json
    assert (late["exitCode"], late["errorName"]) == (-1, "ExecutionTimeout")


def test_a4_shell_type(pool):
    which = {"shellCommand": """echo ${BASH_VERSION:-none} "it's\""""}
    for shell, bash in (("sh", False), ("SH", False), ("bash", True), (None, True)):
        more = {"shellType": shell} if shell else {}
        out = pool.post("shellExecute", {**which, **more}).expect(200).json["result"]["stdout"]
        assert (out != "none it's\n") is bash, out
    said = pool.post("shellExecute", which, headers={"X-Shell-Type": "sh"}).json["result"]["stdout"]
    assert said == "none it's\n"
    assert list(pool.post("shellExecute", {**which, "shellType": "fish"}).expect(400).json["errors"]) == ["shellType"]
    assert list(pool.post("shellExecute", {"code": "1"}).expect(400).json["errors"]) == ["shellCommand"]
    late = pool.post("shellExecute", {"shellType": "sh", "shellCommand": "cat; exit 6", "stdin": "in"}).json
    assert (late["exitCode"], late["result"]["stdout"]) == (6, "in")


def test_a4_use_empty_kernel(pool):
    assert pool.execution(code="x = 1", useEmptyKernel=False).json["status"] == "Succeeded"
    free = pool.execution(code="[n for n in ('np', 'pd', 'plt', 'os') if n in globals()]", useEmptyKernel=True)
    assert free.json["result"]["executionResult"] == "[]"
    assert list(pool.execution(code="1", useEmptyKernel="yes").expect(400).json["errors"]) == ["useEmptyKernel"]


@pytest.mark.parametrize("code, value", [
    ("1 + 1", 2), ("-3", -3), ("10 ** 30", str(10 ** 30)), ("0.1 + 0.2", 0.1 + 0.2), ("1e300 * 10", 1e301),
    ("float('nan')", "nan"), ("float('inf')", "inf"), ("1 < 2", True), ("None", ""), ("'it''s'", "its"),
    (r"""'a\'b"c\\d\n\té\x00'""", "a'b\"c\\d\n\té\x00"), ("chr(0x1f600)", "\U0001f600"), ("chr(0xd800)", "\ufffd"),
    ("b'x'", "b'x'"), ("[1, 2]", "[1, 2]"), ("{'a': None}", "{'a': None}"), ("(1,)", "(1,)"), ("1j", "1j"),
    ("'x' * 3 + '\\x7f'", "xxx\x7f"), ("range(3)", "range(0, 3)"), ("'';", ""), ("007 if 0 else 7", None),
])
def test_a5_values_by_the_rule(pool, code, value):
    if value is None:
        assert pool.run(code)["status"] == "Failure"
    else:
        got = pool.run(code)["result"]
        assert (got, type(got)) == (value, type(value))


def test_a5_a_long_list_has_one_item_a_line(pool):
    result = pool.run("[('package-%d' % i, '1.0') for i in range(40)]")["result"]
    assert len(result.strip("[]").split(",\n")) == 40


def test_a2_2_an_image_is_the_value(pool):
    result = pool.run(PLOT)["result"]
    assert (result["type"], result["format"]) == ("image", "png")
    assert base64.b64decode(result["base64_data"]).startswith(b"\x89PNG")
    assert pool.execution(code=PLOT).json["result"]["executionResult"]["type"] == "image"


def test_a2_2_the_last_value_counts_and_no_image_is_lost(pool):
    assert pool.run(PLOT + "\n42")["result"] == 42
    several = pool.run(PLOT + "\n" + PLOT)
    assert several["result"]["type"] == "image" and len(several["images"]) == 2


def test_a2_2_an_updated_display_comes_once_in_its_first_place(pool):
    shown = pool.run("from IPython.display import display\n"
                     "h = display({'image/png': b'old'}, raw=True, display_id=True)\n"
                     "display({'image/jpeg': b'other'}, raw=True)\n"
                     "h.update({'image/png': b'new'}, raw=True)")
    assert [(i["format"], base64.b64decode(i["base64_data"])) for i in shown["images"]] == \
        [("png", b"new"), ("jpeg", b"other")]
    assert shown["result"] == shown["images"][1]


def test_a2_2_of_an_image_that_is_left_out_the_preview_is_shown(pool):
    result = pool.run("from IPython.display import display\n"
                      "display({'image/png;preview=1': b'small'}, raw=True)")["result"]
    assert result == {"type": "image", "format": "png", "base64_data": base64.b64encode(b"small").decode()}


def test_a2_2_jupyter_format(pool):
    envelope = pool.execution(code="1 + 1", returnJupyterFormatExecutionResult=True).json
    assert envelope["result"]["executionResult"] == {"text/plain": "2"}


@pytest.mark.parametrize("code", ["print('é' * 5000)", "import sys; print('é' * 5000, file=sys.stderr)"])
def test_a2_6_output_is_cut_by_characters(pool, code):
    name = "stderr" if "stderr" in code else "stdout"
    assert pool.execution(code=code).json["result"][name] == "é" * 4096
    assert pool.execution(code=code, outputStreamsMaxLength=7).json["result"][name] == "é" * 7
    assert pool.execution(code=code, outputStreamsMaxLength=9999).json["result"][name] == "é" * 5000 + "\n"
    assert len(pool.run(code)[name]) == 5001, "this dialect has no such limit"


def test_a2_6_time_runs_out(pool):
    envelope = pool.execution(code="x = 1\nimport time; time.sleep(30)", timeoutInSeconds=0.3).json
    assert envelope["status"] == "Failed" and envelope["error"]["error"]["code"] == "ExecutionTimeout"
    assert "0.3" in envelope["result"]["stderr"]
    assert pool.run("x")["result"] == 1


@pytest.mark.parametrize("field, body", [
    ("code", {}), ("code", {"code": 5}), ("codeInputType", {"code": "1", "codeInputType": "Remote"}),
    ("executionType", {"code": "1", "executionType": "Later"}), ("timeoutInSeconds", {"code": "1", "timeoutInSeconds": -1}),
    ("timeoutInSeconds", {"code": "1", "timeoutInSeconds": "x"}),
    ("outputStreamsMaxLength", {"code": "1", "outputStreamsMaxLength": 0}),
])
def test_a2_5_a_wrong_field_is_named(pool, field, body):
    problem = pool.execution(**body).expect(400)
    assert problem.headers["content-type"] == "application/problem+json"
    assert list(problem.json["errors"]) == [field] and problem.json["status"] == 400
    assert problem.json["traceId"] == problem.headers["x-request-id"]


@pytest.mark.parametrize("raw", [b"{", b"[]", b'{"code": "1", "code": "2"}', b"\xff"])
def test_a2_5_a_body_that_is_no_object(pool, raw):
    answer = pool.client.request("POST", pool.url("executions"), body=raw,
                                 headers={"Content-Type": "application/json"}).expect(400)
    assert list(answer.json["errors"]) == ["body"]


def test_a2_5_headers_of_an_answer(pool):
    first = pool.post("code/execute", {"properties": {"code": "1"}}).expect(200).headers
    assert first["x-ms-new-allocation"] == "true" and first["x-ms-session-guid"].startswith("sess_")
    for name in ("x-ms-overall-execution-time", "x-ms-preparation-time", "x-ms-execution-request-time",
                 "x-ms-execution-read-response-time"):
        assert first[name].isdigit()
    assert "2025-10-02-preview" in first["api-supported-versions"]
    again = pool.post("code/execute", {"properties": {"code": "1"}}).headers
    assert again["x-ms-new-allocation"] == "false" and again["x-ms-session-guid"] == first["x-ms-session-guid"]


@pytest.mark.parametrize("path", ["code/execute/", "/code/execute", "//code//execute//", "CODE/Execute"])
def test_a6_slashes_and_case(either, path):
    assert either.post(path, {"properties": {"code": "1"}}).json["properties"]["result"] == 1


@pytest.mark.parametrize("version", [OLD, MIDDLE, NEW, "2030-01-01", ""])
def test_a2_the_path_decides_and_not_the_version(pool, version):
    assert pool.post("code/execute", {"properties": {"code": "3"}}, version).json["properties"]["result"] == 3
    assert pool.post("executions", {"code": "3"}, version).json["result"]["executionResult"] == 3


# How each way in is asked, and where its answer has the streams.
WAYS = {
    "nested": lambda p, code: p.run(code),
    "flat": lambda p, code: p.post("python/execute", {"properties": {"code": code}}, OLD).expect(200).json,
    "envelope": lambda p, code: p.execution(code=code).expect(200).json["result"],
    "shell": lambda p, code: p.post("shellExecute", {"shellCommand": f"python3 -c {shlex.quote(code)}"}).expect(200).json["result"],
    "mcp": lambda p, code: p.tool("runPythonCodeInRemoteEnvironment", environmentId=p.identifier, pythonCode=code)["structuredContent"],
}


def test_what_a_session_has_lost_is_told_in_every_way_of_asking():
    with Server() as server:
        pools = {way: Pool(server) for way in WAYS}
        for way, pool in pools.items():
            WAYS[way](pool, "x = 1")
            assert "note" not in WAYS[way](pool, "print(2)"), way
        server.stop()
        server.start()
        for way, pool in pools.items():
            pool.client.close()
            told = WAYS[way](pool, "print(3)")
            assert told["stdout"] == "3\n" and told["stderr"] == "", way
            assert "variables and processes are gone, files are kept" in told["note"], way
            assert "note" not in WAYS[way](pool, "print(4)"), way
