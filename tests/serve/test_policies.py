"""Who must agree before code runs: one place decides, whichever door it comes through.

A row of WAYS is a way to run code; each is held against every policy. What a row takes is a route, or a tool
of a path of MCP; a route or tool of the program that is in no row, and not among those that run nothing,
fails test_every_way_is_here.
"""

import json
import re

import pytest

from support import retort
from support.mcp import Legacy, Modern
from support.script import plan, python, script
from support.server import Server
from support.stdio import Local

YES = {"action": "accept", "content": {"approve": True, "remember": "conversation"}}


class Way:
    """takes: the route or tool; is_mcp: the client's user can be asked there, None: and the tool is no external
    one; run(server, person): what came of it."""

    def __init__(self, run, is_mcp, *takes):
        self.run, self.is_mcp, self.takes = run, is_mcp, takes


def over_http(path, takes=None, **body):
    return Way(lambda server, person: post(server, path, filled(body)), False, takes or path)


def in_session(server, person):
    with server.client() as client:
        made = client.post("/v1/sessions", {}).expect(201).json["id"]
    return post(server, f"/v1/sessions/{made}/execute", filled({"code": "print(%s)"}))


def function(server, person):
    post(server, "/prisme/v2/functions/shop", {"functions": {"f": {"code": f"return {MARK}", "language": "python"}}})
    return post(server, "/prisme/v2/functions/shop/run/f", {"parameters": {}})


def azure(action, **body):
    """As Azure's own service has it: a row for each path below a pool, wherever the pool is."""
    return over_http(f"/azure/pools/default/{action}?identifier=abcd", "azure " + action, **body)


def post(server, path, body):
    with server.client() as client:
        return client.post(path, body).body.decode()


def over_mcp(path, tool, era=Legacy, is_mcp=True, **arguments):
    def run(server, person):
        peer = era(server, path=path, capabilities={"elicitation": {}}, answers={"elicitation/create": person})
        if era is Modern:
            return json.dumps(peer.call(tool, **filled(arguments)))
        with peer as client:
            return json.dumps(client.call(tool, **filled(arguments)))
    return Way(run, is_mcp, f"{path} {tool}")


def over_stdio(tool, tools="native", **arguments):
    """`retort mcp`, in the modern era; the policy is that of the server's flags."""
    def run(server, person):
        with Local("--tools", tools, *server.policy, "--model-script", "-",
                   capabilities={"elicitation": {}}) as client:
            params = {"name": tool, "arguments": filled(arguments)}
            for _ in range(5):
                result = client.modern("tools/call", params)
                if result.get("resultType") != "input_required":
                    break
                answers = {key: person(q.get("params", {})) for key, q in result["inputRequests"].items()}
                params = {**params, "inputResponses": answers, "requestState": result["requestState"]}
            return json.dumps(result)
    return Way(run, True, f"stdio {tools} {tool}")


def filled(value):
    if isinstance(value, dict):
        return {k: filled(v) for k, v in value.items()}
    if isinstance(value, list):
        return [filled(v) for v in value]
    return value % MARK if "%s" in value else value


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
    return Way(run, False, "/anthropic/v1/messages", *("anthropic " + tool for tool, _ in calls))


def talk(server, person):
    """A message to an agent's session; nobody is asked, so nobody says yes."""
    root = "/ubik/api/v1/agent-sessions"
    with server.client() as client:
        path = f"{root}/{client.post(root, {}).expect(201).json['id']}"
        client.post(path + "/messages", {"content": agent(MARK)}).expect(202)

        def is_over():
            items = client.get(path + "/messages").expect(200).json["items"]
            return len(items) > 1 and items[1]["content"] or client.get("/v1/approvals?state=pending").json["data"]

        retort.wait_until(is_over, "an answer or a question", retort.SECONDS)
        return json.dumps(client.get(path + "/messages").json["items"])


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
                retort.wait_until(lambda: now()["status"] in ("completed", "failed") or
                                  client.get("/v1/approvals?state=pending").json["data"], "an end",
                                  retort.SECONDS)
            return json.dumps(now().get("outputs"))
    return Way(run, None, "/ubik/api/v1/tools/{tool}/execute", "/ubik/api/v1/tool-executions/{execution}/provide-input")


def agent(mark):
    return script(plan(), python(f"print({mark})"), [{"tool": {"name": "finish", "input": {"answer": "done"}}}])


MARK = "6 * 7 * 1000003"  # 42000126: in an answer only when the code has run
SHELL = {"command": "python3 -c 'print(%s)'"}
LINE = "python3 -c 'print(%s)'"
WAYS = {
    "rest": over_http("/v1/execute", code="print(%s)"),
    "rest shell": over_http("/v1/execute", code=LINE, language="shell"),
    "rest session": Way(in_session, False, "/v1/sessions/{session}/execute"),
    "azure": azure("python/execute", pythonCode="print(%s)"),
    "azure code": azure("code/execute", properties={"codeInputType": "inline", "executionType": "synchronous",
                                                    "code": "print(%s)"}),
    "azure executions": azure("executions", codeInputType="Inline", executionType="Synchronous", code="print(%s)"),
    "azure execute": azure("execute", properties={"codeInputType": "inline", "executionType": "synchronous",
                                                  "pythonCode": "print(%s)"}),
    "azure shell": azure("shellExecute", shellCommand=LINE),
    "azure words": azure("shellExecute", execCommandAndArgs=["python3", "-c", "print(%s)"]),
    "azure executions shell": azure("executions", shellCommand=LINE),
    "qwen": over_http("/qwen/code_interpreter", code="print(%s)"),
    "qwen executor": over_http("/qwen/python_executor", code="print(%s)"),
    "qwen batch": over_http("/qwen/python_executor/batch", code=["1", "print(%s)"]),
    "prisme": over_http("/prisme/execute_python", code="return %s"),
    "prisme function": Way(function, False, "/prisme/v2/functions/{workspace}/run/{function}"),
    "anthropic": anthropic("2025-05-22", ("code_execution", {"code": "print(%s)"})),
    "anthropic shell": anthropic("2025-08-25", ("bash_code_execution", SHELL)),
    "anthropic editor": anthropic("2025-08-25", ("text_editor_code_execution", {
        "command": "create", "path": "x.py", "file_text": "print(%s)"}),
        ("bash_code_execution", {"command": "python3 x.py"})),
    "ubik code": ubik("python_interpreter", "code", lambda mark: f"print({mark})"),
    "ubik agent": ubik("code_execution", "request", agent),
    "ubik message": Way(talk, False, "/ubik/api/v1/agent-sessions/{session}/messages"),
    "mcp": over_mcp("/mcp", "run_code", code="print(%s)"),
    "mcp modern": over_mcp("/mcp", "run_code", Modern, code="print(%s)"),
    "mcp shell": over_mcp("/mcp", "run_shell", command=LINE),
    "mcp agent": over_mcp("/mcp", "code_execution", request=agent(MARK)),
    "mcp qwen": over_mcp("/mcp/qwen", "code_interpreter", code="print(%s)"),
    "mcp qwen executor": over_mcp("/mcp/qwen", "python_executor", code="print(%s)"),
    "mcp prisme": over_mcp("/mcp/prisme", "execute_python", code="return %s"),
    "mcp prisme agent": over_mcp("/mcp/prisme", "code_execution", request=agent(MARK)),
    "mcp azure": over_mcp("/mcp/azure", "runPythonCodeInRemoteEnvironment", environmentId="some-thing",
                          pythonCode="print(%s)"),
    "mcp azure shell": over_mcp("/mcp/azure", "runShellCommandInRemoteEnvironment", environmentId="some-thing",
                                shellCommand=LINE),
    "mcp azure pool": over_mcp("/azure/pools/default/mcp", "runPythonCodeInRemoteEnvironment",
                               environmentId="some-thing", pythonCode="print(%s)"),
    "mcp azure pool shell": over_mcp("/azure/pools/default/mcp", "runShellCommandInRemoteEnvironment",
                                     environmentId="some-thing", shellCommand=LINE),
    "mcp ubik": over_mcp("/mcp/ubik", "python_interpreter", is_mcp=None, code="print(%s)"),
    "mcp ubik agent": over_mcp("/mcp/ubik", "code_execution", is_mcp=None, request=agent(MARK)),
    "stdio": over_stdio("run_code", code="print(%s)"),
    "stdio shell": over_stdio("run_shell", command=LINE),
    "stdio qwen": over_stdio("code_interpreter", "qwen", code="print(%s)"),
    "stdio azure": over_stdio("runShellCommandInRemoteEnvironment", "azure", environmentId="some-thing",
                              shellCommand=LINE),
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
        server.policy = flags
        yield server, http, mcp


@pytest.mark.once
@pytest.mark.parametrize("way", WAYS)
def test_nothing_runs_unless_it_may(policy, way):
    server, http, mcp = policy
    answer = WAYS[way].run(server, lambda params: YES)
    is_mcp = WAYS[way].is_mcp
    may = (mcp or http) if is_mcp is None else mcp if is_mcp else http
    assert ("42000126" in answer) == may, answer


# What a client can ask for and no code runs for it: files, sessions, keys, answers to questions.
QUIET = """
/v1/sessions /v1/sessions/{session}/extend /v1/sessions/{session}/interrupt /v1/sessions/{session}/restart
/v1/executions/{execution}/interrupt /v1/sessions/{session}/files /v1/sessions/{session}/files/{path...} /v1/files
/v1/approvals/{approval} /v1/keys
/ubik/api/v1/auth/token /ubik/api/v1/preferences /ubik/api/v1/tool-executions/{execution}/stop
/ubik/api/v1/documents /ubik/api/v1/documents/{document}/reprocess /ubik/api/v1/sandboxes/{sandbox}/extend
/ubik/api/v1/agent-sessions /ubik/api/v1/agent-sessions/{session}/stop /ubik/api/v1/agent-sessions/{session}/upload
/anthropic/v1/messages/count_tokens /anthropic/v1/files
/prisme/v2/functions/{workspace} /prisme/v1/agents/{agent}/tasks/{task}/resolve
""".split()
QUIET_AZURE = """
files/upload python/uploadFile upload files .management/stopSession fetchMcpServerCredentials
rotateMcpServerCredentials regenerateCredentials
""".split()
QUIET_TOOLS = """
get_execution interrupt_execution create_session list_sessions restart_session close_session list_files read_file
write_file list_packages launchShell
""".split()
# The same door under another path, or in another place: one row for all.
SAME = {"/qwen/mcp": "/mcp/qwen", "/prisme/mcp": "/mcp/prisme", "/ubik/mcp": "/mcp/ubik"}
TOOL_SETS = {"native": "/mcp", "qwen": "/mcp/qwen", "prisme": "/mcp/prisme", "azure": "/mcp/azure", "ubik": "/mcp/ubik"}


def routes(server):
    """Path and door of every route that is no GET or DELETE."""
    for line in server.log(10**7).splitlines():
        if line.startswith("route "):
            _, door, method, path, *_ = line.split()
            if method not in ("GET", "DELETE") and not path.startswith(("/azure/{path", "/subscriptions/{path")):
                yield door, path


@pytest.mark.once
def test_every_way_is_here():
    taken = {take for way in WAYS.values() for take in way.takes}
    with Server("--model-script", "-", program=str(retort.BUILD / "retort-routes")) as server:
        rows = list(routes(server))
        assert len(rows) > 60, "the table is not there"
        for door, path in rows:
            if door in ("mcp", "azure/mcp"):
                continue  # its tools are looked at below
            if door == "azure":
                below = re.fullmatch(r".*[pP]ools/\{pool\}/(.+)", path)
                if not below:
                    continue  # of pools and deployments themselves
                assert "azure " + below[1] in taken or below[1] in QUIET_AZURE, path
            else:
                assert path in taken or path in QUIET, path
        paths = {path for door, path in rows if door == "mcp"}
        assert paths == {*TOOL_SETS.values(), *SAME}
        for path in [*TOOL_SETS.values(), "/azure/pools/default/mcp"]:
            with Legacy(server, path=path) as client:
                for tool in client.tools():
                    assert f"{path} {tool}" in taken or tool in QUIET_TOOLS, (path, tool)


def test_what_is_too_long_to_be_read_is_refused():
    with Server("--approval", "always_ask", "--approval-by", "approver") as server, \
            server.client() as client:
        short = {"code": "1", "language": "shell", "env": {"BASH_ENV": "/workspace/x"}}
        client.post("/v1/execute", short).expect(403)
        shown = client.get("/v1/approvals").expect(200).json["data"][0]
        assert "BASH_ENV" in shown["text"] and "/workspace/x" in shown["text"]
        long = {"code": "1", "files": [{"path": "x", "content": "y" * 70_000}]}
        client.post("/v1/execute", long).expect(413)
