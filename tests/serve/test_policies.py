"""Who must agree before code runs: one place decides, whichever door it comes through.

A row of WAYS is a way to run code; each is held against every policy.
"""

import json

import pytest

from support import retort
from support.mcp import Legacy
from support.script import plan, python, script
from support.server import Server

YES = {"action": "accept", "content": {"approve": True, "remember": "conversation"}}


def over_http(path, **body):
    return lambda server, person: post(server, path, filled(body))


def post(server, path, body):
    with server.client() as client:
        return client.post(path, body).body.decode()


def over_mcp(path, tool, **arguments):
    def run(server, person):
        with Legacy(server, path=path, capabilities={"elicitation": {}},
                    answers={"elicitation/create": person}) as client:
            return json.dumps(client.call(tool, **filled(arguments)))
    return run


def filled(arguments):
    return {k: v % MARK if "%s" in v else v for k, v in arguments.items()}


def anthropic(day, *calls):
    """The model calls tools of the server; the turn ends with their results, or waits for an approver."""
    def run(server, person):
        turns = [[{"tool": {"name": tool, "input": filled(given)}}] for tool, given in calls]
        body = {"model": "any", "max_tokens": 1000,
                "tools": [{"type": "code_execution_" + day.replace("-", ""), "name": "code_execution"}],
                "messages": [{"role": "user", "content": json.dumps({"turns": [*turns, [{"text": "done"}]]})}]}
        with server.client() as client:
            answer = client.post("/anthropic/v1/messages", body,
                                 headers={"anthropic-version": "2023-06-01",
                                          "anthropic-beta": "code-execution-" + day})
        result = [b for b in answer.json.get("content", []) if b["type"].endswith("_result")]
        return json.dumps([answer.status, result])
    return run


def ubik(tool, input, text):
    """The end user says yes to whatever is asked."""
    def run(server, person):
        root = "/ubik/api/v1"
        with server.client() as client:
            made = client.post(f"{root}/tools/{tool}/execute", {"inputs": {input: text(MARK)}}).expect(202).json
            path = f"{root}/tool-executions/{made['execution_id']}"

            def now():
                return client.get(path).expect(200).json

            def is_asked():
                return now()["status"] not in ("pending", "running", "queued", "processing")

            retort.wait_until(is_asked, "an end or a question", retort.SECONDS)
            if now()["status"] not in ("completed", "failed"):
                client.form(path + "/provide-input", ("input_data_json", None, b'{"approve": true}'))
                # Others may be pending as well: those of the ways before this one.
                retort.wait_until(lambda: now()["status"] in ("completed", "failed") or
                                  any(a["door"] == "ubik" for a in
                                      client.get("/v1/approvals?state=pending").json["data"]), "an end",
                                  retort.SECONDS)
            return json.dumps(now().get("outputs"))
    return run


def agent(mark):
    return script(plan(), python(f"print({mark})"), [{"tool": {"name": "finish", "input": {"answer": "done"}}}])


MARK = "6 * 7 * 1000003"  # 42000126: in an answer only when the code has run
SHELL = {"command": "python3 -c 'print(%s)'"}
WAYS = {
    "rest": (over_http("/v1/execute", code="print(%s)"), False),
    "azure": (over_http("/azure/pools/default/python/execute?identifier=abcd",
                        pythonCode="print(%s)"), False),
    "qwen": (over_http("/qwen/code_interpreter", code="print(%s)"), False),
    "qwen executor": (over_http("/qwen/python_executor", code="print(%s)"), False),
    "prisme": (over_http("/prisme/execute_python", code="return %s"), False),
    "rest shell": (over_http("/v1/execute", code="python3 -c 'print(%s)'", language="shell"), False),
    "anthropic": (anthropic("2025-05-22", ("code_execution", {"code": "print(%s)"})), False),
    "anthropic shell": (anthropic("2025-08-25", ("bash_code_execution", SHELL)), False),
    "anthropic editor": (anthropic("2025-08-25", ("text_editor_code_execution", {
        "command": "create", "path": "x.py", "file_text": "print(%s)"}),
        ("bash_code_execution", {"command": "python3 x.py"})), False),
    "ubik code": (ubik("python_interpreter", "code", lambda mark: f"print({mark})"), None),
    "ubik agent": (ubik("code_execution", "request", agent), None),
    "mcp": (over_mcp("/mcp", "run_code", code="print(%s)"), True),
    "mcp shell": (over_mcp("/mcp", "run_shell", command="python3 -c 'print(%s)'"), True),
    "mcp qwen": (over_mcp("/mcp/qwen", "code_interpreter", code="print(%s)"), True),
    "mcp prisme": (over_mcp("/mcp/prisme", "execute_python", code="return %s"), True),
}
# Policy, who decides, rules: whether a call over HTTP runs, and one over MCP whose user says yes.
POLICIES = {
    "auto": (["--approval", "auto"], True, True),
    "external": (["--approval", "ask_external"], True, True),
    "external, approver": (["--approval", "ask_external", "--approval-by", "approver"], True, False),
    "always, client": (["--approval", "always_ask"], False, True),
    "always, either": (["--approval", "always_ask", "--approval-by", "either"], False, True),
    "always, approver": (["--approval", "always_ask", "--approval-by", "approver"], False, False),
    "first, approver": (["--approval", "ask_first", "--approval-by", "approver"], False, False),
    "a rule for all tools": (["--approval", "always_ask", "--approval-by", "approver",
                              "--approval-when", "tool=run_code|run_shell"], False, False),
    "a rule for none": (["--approval", "always_ask", "--approval-by", "approver",
                         "--approval-when", "tool=nothing"], True, True),
}


@pytest.fixture(scope="module", params=POLICIES)
def policy(request):
    flags, http, mcp = POLICIES[request.param]
    with Server(*flags, "--model-script", "-", "--anthropic-approval-wait", "1") as server:
        yield server, http, mcp


@pytest.mark.once
@pytest.mark.parametrize("way", WAYS)
def test_nothing_runs_unless_it_may(policy, way):
    server, http, mcp = policy
    run, is_mcp = WAYS[way]
    answer = run(server, lambda params: YES)
    # None: the client's user can be asked, and the tool is no external one.
    may = (mcp or http) if is_mcp is None else mcp if is_mcp else http
    assert ("42000126" in answer) == may, answer


def test_what_is_too_long_to_be_read_is_refused():
    with Server("--approval", "always_ask", "--approval-by", "approver") as server, \
            server.client() as client:
        short = {"code": "1", "language": "shell", "env": {"BASH_ENV": "/workspace/x"}}
        client.post("/v1/execute", short).expect(403)
        shown = client.get("/v1/approvals").expect(200).json["data"][0]
        assert "BASH_ENV" in shown["text"] and "/workspace/x" in shown["text"]
        long = {"code": "1", "files": [{"path": "x", "content": "y" * 70_000}]}
        client.post("/v1/execute", long).expect(413)
