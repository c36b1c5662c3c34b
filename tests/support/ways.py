"""Every way to run code: WAYS has a row for each, whichever door it comes through.

A way is run with a server and what a person answers who is asked; it returns what the client got, as text.
MARK is the code; RESULT is in that text only when it has run. A server has `may`, the kinds of ways that run code
there; for standard input also `policy`, the flags, `locals`, an empty dictionary, and `stack`, which ends what is
put there.
"""

import json

from support import retort
from support.mcp import Legacy, Modern
from support.old_sse import OldSse
from support.script import plan, python, script
from support.stdio import Local

# Whom a door can ask, and whether what it runs is an external tool: the columns of POLICIES.
NOBODY = "nobody can be asked"
END_USER = "the end user can be asked"
USER = "a tool of MCP, whose user can be asked"
SILENT = "a tool of MCP, where nobody can be asked"


class Way:
    """takes: the route or tool; whom: one of those above; run(server, person): what came of it."""

    def __init__(self, run, whom, *takes):
        self.run, self.whom, self.takes = run, whom, takes


def over_http(path, takes=None, **body):
    return Way(lambda server, person: post(server, path, filled(body)), NOBODY, takes or path)


def in_session(server, person):
    with server.client() as client:
        made = client.post("/v1/sessions", {}).expect(201).json["id"]
    return post(server, f"/v1/sessions/{made}/execute", filled({"code": "print(%s)"}))


def in_background(server, person):
    with server.client() as client:
        begun = client.post("/v1/execute", filled({"code": "print(%s)", "background": True}))
        if begun.status != 202:
            return begun.text
        path = "/v1/executions/" + begun.json["id"]
        retort.wait_until(lambda: client.get(path).json["outcome"], "an end", retort.SECONDS)
        return client.get(path).text


def function(server, person):
    post(server, "/prisme/v2/functions/shop", {"functions": {"f": {"code": f"return {MARK}", "language": "python"}}})
    return post(server, "/prisme/v2/functions/shop/run/f", {"parameters": {}})


def azure(action, **body):
    """As Azure's own service has it: a row for each path below a pool, wherever the pool is."""
    return over_http(f"/azure/pools/default/{action}?identifier=abcd", "azure " + action, **body)


def post(server, path, body):
    with server.client() as client:
        return client.post(path, body).body.decode()


def over_mcp(path, tool, era=Legacy, whom=USER, **arguments):
    def run(server, person):
        peer = era(server, path=path, capabilities={"elicitation": {}}, answers={"elicitation/create": person})
        if era is Modern:
            return json.dumps(peer.call(tool, **filled(arguments)))
        with peer as client:
            return json.dumps(client.call(tool, **filled(arguments)))
    return Way(run, whom, f"{path} {tool}")


def mcp_background(server, person):
    """The call is answered when the code has begun; what came of it is looked up."""
    with Legacy(server, capabilities={"elicitation": {}}, answers={"elicitation/create": person}) as client:
        begun = client.call("run_code", code=f"print({MARK})", background=True)
        execution = begun.get("_meta", {}).get("dev.retort/executionId")
        return json.dumps(client.call("get_execution", execution_id=execution, wait_ms=20000) if execution else begun)


def mcp_batch(server, person):
    """Several messages at a time, as 2025-03-26 had it; that version cannot ask anybody."""
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": {"name": "run_code", "arguments": {"code": f"print({MARK})"}}}
    with Legacy(server, version="2025-03-26") as client:
        return json.dumps(list(client.post([call])))


def mcp_old(server, person):
    """One stream and messages beside it, as 2024-11-05 had it."""
    with OldSse(server, "/mcp/sse") as client:
        return json.dumps(client.call("run_code", code=f"print({MARK})"))


def over_stdio(tool, tools="native", **arguments):
    """`retort mcp`, in the modern era; the policy is that of the server's flags, and the process stays for all of it."""
    def run(server, person):
        if tools not in server.locals:
            server.locals[tools] = server.stack.enter_context(
                Local("--tools", tools, *server.policy, "--model-script", "-", capabilities={"elicitation": {}}))
        params = {"name": tool, "arguments": filled(arguments)}
        for _ in range(5):
            result = server.locals[tools].modern("tools/call", params)
            if result.get("resultType") != "input_required":
                break
            answers = {key: person(q.get("params", {})) for key, q in result["inputRequests"].items()}
            params = {**params, "inputResponses": answers, "requestState": result["requestState"]}
        return json.dumps(result)
    return Way(run, USER, f"stdio {tools} {tool}")


def filled(value):
    if isinstance(value, dict):
        return {k: filled(v) for k, v in value.items()}
    if isinstance(value, list):
        return [filled(v) for v in value]
    return value % MARK if isinstance(value, str) and "%s" in value else value


def anthropic(day, *calls, stream=False):
    """The model calls tools of the server; the turn ends with their results, or waits for an approver."""
    def run(server, person):
        turns = [[{"tool": {"name": tool, "input": filled(given)}}] for tool, given in calls]
        body = {"model": "any", "max_tokens": 1000, "stream": stream,
                "tools": [{"type": "code_execution_" + day.replace("-", ""), "name": "code_execution"}],
                "messages": [{"role": "user", "content": json.dumps({"turns": [*turns, [{"text": "done"}]]})}]}
        with server.client() as client:
            answer = client.post("/anthropic/v1/messages", body,
                                 headers={"anthropic-version": "2023-06-01",
                                          "anthropic-beta": "code-execution-" + day})
        if stream:
            return answer.text
        result = [b for b in answer.json.get("content", []) if b["type"].endswith("_result")]
        return json.dumps([answer.status, result])
    return Way(run, NOBODY, "/anthropic/v1/messages", *("anthropic " + tool for tool, _ in calls))


def anthropic_batch(server, person):
    """A batch of one message; its turn waits for nobody."""
    turns = [[{"tool": {"name": "code_execution", "input": filled({"code": "print(%s)"})}}], [{"text": "done"}]]
    params = {"model": "any", "max_tokens": 1000,
              "tools": [{"type": "code_execution_20250522", "name": "code_execution"}],
              "messages": [{"role": "user", "content": json.dumps({"turns": turns})}]}
    root = "/anthropic/v1/messages/batches"
    with server.client(**{"anthropic-version": "2023-06-01",
                          "anthropic-beta": "code-execution-2025-05-22"}) as client:
        made = client.post(root, {"requests": [{"custom_id": "one", "params": params}]}).expect(200).json["id"]
        retort.wait_until(lambda: client.get(f"{root}/{made}").json["processing_status"] == "ended", "an end",
                          retort.SECONDS)
        result = client.get(f"{root}/{made}/results").expect(200).json
        blocks = result["result"].get("message", {}).get("content", [])
        return json.dumps([b for b in blocks if b["type"].endswith("_result")])


UBIK = "/ubik/api/v1"


def ubik_answered(client, execution, may):
    """The end user says yes to whatever is asked: the execution once it has ended, or waits for another."""
    path = f"{UBIK}/tool-executions/{execution}"

    def now():
        return client.get(path).expect(200).json

    def is_asked():
        return now()["status"] not in ("pending", "running", "queued", "processing")

    def is_over():
        return now()["status"] in ("completed", "failed")

    retort.wait_until(is_asked, "an end or a question", retort.SECONDS)
    if not is_over():
        client.form(path + "/provide-input", ("input_data_json", None, b'{"approve": true}')).expect(202)
        if END_USER in may:  # else another must agree, and nothing more happens
            retort.wait_until(is_over, "an end", retort.SECONDS)
    return now()


def ubik(tool, input, text):
    def run(server, person):
        with server.client() as client:
            body = {"inputs": {input: text(MARK)}}
            made = client.post(f"{UBIK}/tools/{tool}/execute", body).expect(202).json["execution_id"]
            return json.dumps(ubik_answered(client, made, server.may).get("outputs"))
    return Way(run, END_USER, UBIK + "/tools/{tool}/execute", UBIK + "/tool-executions/{execution}/provide-input")


def talk(server, person):
    """A message to an agent's session: its task is an execution as that of a tool is."""
    root = UBIK + "/agent-sessions"
    with server.client() as client:
        path = f"{root}/{client.post(root, {}).expect(201).json['id']}"
        task = client.post(path + "/messages", {"content": agent(MARK)}).expect(202).json["task_id"]
        return json.dumps(ubik_answered(client, task, server.may).get("outputs"))


def agent(mark):
    return script(plan(), python(f"print({mark})"), [{"tool": {"name": "finish", "input": {"answer": "done"}}}])


MARK, RESULT = "6 * 7 * 1000003", "42000126"
SHELL = {"command": "python3 -c 'print(%s)'"}
LINE = "python3 -c 'print(%s)'"
WAYS = {
    "rest": over_http("/v1/execute", code="print(%s)"),
    "rest shell": over_http("/v1/execute", code=LINE, language="shell"),
    "rest stream": over_http("/v1/execute", code="print(%s)", stream=True),
    "rest background": Way(in_background, NOBODY, "/v1/execute"),
    "rest session": Way(in_session, NOBODY, "/v1/sessions/{session}/execute"),
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
    "prisme function": Way(function, NOBODY, "/prisme/v2/functions/{workspace}/run/{function}"),
    "anthropic": anthropic("2025-05-22", ("code_execution", {"code": "print(%s)"})),
    "anthropic shell": anthropic("2025-08-25", ("bash_code_execution", SHELL)),
    "anthropic editor": anthropic("2025-08-25", ("text_editor_code_execution", {
        "command": "create", "path": "x.py", "file_text": "print(%s)"}),
        ("bash_code_execution", {"command": "python3 x.py"})),
    "anthropic now": anthropic("2026-01-20", ("code_execution", {"code": "print(%s)"})),
    "anthropic stream": anthropic("2025-05-22", ("code_execution", {"code": "print(%s)"}), stream=True),
    "anthropic batch": Way(anthropic_batch, NOBODY, "/anthropic/v1/messages/batches"),
    "ubik code": ubik("python_interpreter", "code", lambda mark: f"print({mark})"),
    "ubik agent": ubik("code_execution", "request", agent),
    "ubik message": Way(talk, END_USER, "/ubik/api/v1/agent-sessions/{session}/messages"),
    "mcp": over_mcp("/mcp", "run_code", code="print(%s)"),
    "mcp modern": over_mcp("/mcp", "run_code", Modern, code="print(%s)"),
    "mcp background": Way(mcp_background, USER, "/mcp run_code"),
    "mcp batch": Way(mcp_batch, SILENT, "/mcp run_code"),
    "mcp old": Way(mcp_old, SILENT, "/mcp run_code"),
    "mcp shell": over_mcp("/mcp", "run_shell", command=LINE),
    "mcp agent": over_mcp("/mcp", "code_execution", request=agent(MARK)),
    "mcp qwen": over_mcp("/mcp/qwen", "code_interpreter", code="print(%s)"),
    "mcp qwen executor": over_mcp("/mcp/qwen", "python_executor", code="print(%s)"),
    "mcp prisme": over_mcp("/mcp/prisme", "execute_python", code="return %s"),
    "mcp prisme agent": over_mcp("/mcp/prisme", "code_execution", request=agent(MARK)),
    "mcp azure": over_mcp("/mcp/azure", "runPythonCodeInRemoteEnvironment", environmentId="some-thing-1",
                          pythonCode="print(%s)"),
    "mcp azure shell": over_mcp("/mcp/azure", "runShellCommandInRemoteEnvironment", environmentId="some-thing-2",
                                shellCommand=LINE),
    "mcp azure pool": over_mcp("/azure/pools/default/mcp", "runPythonCodeInRemoteEnvironment", whom=SILENT,
                               environmentId="some-thing-3", pythonCode="print(%s)"),
    "mcp azure pool shell": over_mcp("/azure/pools/default/mcp", "runShellCommandInRemoteEnvironment", whom=SILENT,
                                     environmentId="some-thing-4", shellCommand=LINE),
    "mcp ubik": over_mcp("/mcp/ubik", "python_interpreter", code="print(%s)"),
    "mcp ubik agent": over_mcp("/mcp/ubik", "code_execution", request=agent(MARK)),
    "stdio": over_stdio("run_code", code="print(%s)"),
    "stdio shell": over_stdio("run_shell", command=LINE),
    "stdio agent": over_stdio("code_execution", request=agent(MARK)),
    "stdio qwen": over_stdio("code_interpreter", "qwen", code="print(%s)"),
    "stdio qwen executor": over_stdio("python_executor", "qwen", code="print(%s)"),
    "stdio prisme": over_stdio("execute_python", "prisme", code="return %s"),
    "stdio prisme agent": over_stdio("code_execution", "prisme", request=agent(MARK)),
    "stdio ubik": over_stdio("python_interpreter", "ubik", code="print(%s)"),
    "stdio ubik agent": over_stdio("code_execution", "ubik", request=agent(MARK)),
    "stdio azure": over_stdio("runPythonCodeInRemoteEnvironment", "azure", environmentId="some-thing-6",
                              pythonCode="print(%s)"),
    "stdio azure shell": over_stdio("runShellCommandInRemoteEnvironment", "azure", environmentId="some-thing-5",
                              shellCommand=LINE),
}
