"""Who must agree before code runs: one place decides, whichever door it comes through.

A row of WAYS is a way to run code; each is held against every policy.
"""

import json

import pytest

from support.mcp import Legacy
from support.server import Server

YES = {"action": "accept", "content": {"approve": True, "remember": "conversation"}}


def over_http(path, **body):
    return lambda server, person: post(server, path, {k: v % MARK for k, v in body.items()})


def post(server, path, body):
    with server.client() as client:
        return client.post(path, body).body.decode()


def over_mcp(path, tool, **arguments):
    def run(server, person):
        with Legacy(server, path=path, capabilities={"elicitation": {}},
                    answers={"elicitation/create": person}) as client:
            return json.dumps(client.call(tool, **{k: v % MARK for k, v in arguments.items()}))
    return run


MARK = "6 * 7 * 1000003"  # 42000126: in an answer only when the code has run
WAYS = {
    "rest": (over_http("/v1/execute", code="print(%s)"), False),
    "azure": (over_http("/azure/pools/default/python/execute?identifier=abcd",
                        pythonCode="print(%s)"), False),
    "qwen": (over_http("/qwen/code_interpreter", code="print(%s)"), False),
    "qwen executor": (over_http("/qwen/python_executor", code="print(%s)"), False),
    "prisme": (over_http("/prisme/execute_python", code="return %s"), False),
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
    with Server(*flags) as server:
        yield server, http, mcp


@pytest.mark.once
@pytest.mark.parametrize("way", WAYS)
def test_nothing_runs_unless_it_may(policy, way):
    server, http, mcp = policy
    run, is_mcp = WAYS[way]
    answer = run(server, lambda params: YES)
    assert ("42000126" in answer) == (mcp if is_mcp else http), answer


def test_what_is_too_long_to_be_read_is_refused():
    with Server("--approval", "always_ask", "--approval-by", "approver") as server, \
            server.client() as client:
        short = {"code": "1", "language": "shell", "env": {"BASH_ENV": "/workspace/x"}}
        client.post("/v1/execute", short).expect(403)
        shown = client.get("/v1/approvals").expect(200).json["data"][0]
        assert "BASH_ENV" in shown["text"] and "/workspace/x" in shown["text"]
        long = {"code": "1", "files": [{"path": "x", "content": "y" * 70_000}]}
        client.post("/v1/execute", long).expect(413)
