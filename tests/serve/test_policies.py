"""Who must agree before code runs: one place decides, whichever door it comes through.

A row of WAYS is a way to run code; each is held against every policy. What a row takes is a route, or a tool
of a path of MCP; a route or tool of the program that is in no row, and not among those that run nothing,
fails test_every_way_is_here.
"""

import contextlib
import re

import pytest

from support import retort
from support.mcp import Legacy
from support.server import Server
from support.stdio import Local
from support.ways import END_USER, NOBODY, RESULT, SILENT, USER, WAYS

YES = {"action": "accept", "content": {"approve": True, "remember": "conversation"}}


ALL = {NOBODY, END_USER, USER, SILENT}
ASKED = {END_USER, USER}
# The settings, and who gets to run code when whoever can be asked says yes.
POLICIES = {
    "auto": ("--approval auto", ALL),
    "external": ("--approval ask_external", ALL - {SILENT}),
    "external, either": ("--approval ask_external --approval-by either", ALL - {SILENT}),
    "external, approver": ("--approval ask_external --approval-by approver", {NOBODY, END_USER}),
    "always, client": ("--approval always_ask", ASKED),
    "always, either": ("--approval always_ask --approval-by either", ASKED),
    "always, approver": ("--approval always_ask --approval-by approver", set()),
    "first, client": ("--approval ask_first", ASKED),
    "first, approver": ("--approval ask_first --approval-by approver", set()),
    "a rule for all tools": ("--approval always_ask --approval-by approver --approval-when tool=run_code|run_shell",
                             set()),
    "a rule for none": ("--approval always_ask --approval-by approver --approval-when tool=nothing", ALL),
}


@pytest.fixture(scope="module", params=POLICIES)
def policy(request):
    flags, may = POLICIES[request.param]
    with Server(*flags.split(), "--model-script", "-", "--anthropic-approval-wait", "1") as server, \
            contextlib.ExitStack() as stack:
        server.policy, server.may, server.stack, server.locals = flags.split(), may, stack, {}
        yield server


@pytest.mark.once
@pytest.mark.parametrize("way", WAYS)
def test_nothing_runs_unless_it_may(policy, way):
    answer = WAYS[way].run(policy, lambda params: YES)
    assert (RESULT in answer) == (WAYS[way].whom in policy.may), answer


# What a client can ask for and no code runs for it: files, sessions, keys, answers to questions. A channel is between
# nodes, and what comes over it has been approved at the home of its session.
QUIET = """
/v1/nodes/channels/{channel}
/v1/sessions /v1/sessions/{session} /v1/sessions/{session}/extend /v1/sessions/{session}/interrupt /v1/sessions/{session}/restart
/v1/executions/{execution}/interrupt /v1/sessions/{session}/files /v1/sessions/{session}/files/{path...} /v1/files
/v1/approvals/{approval} /v1/keys
/ubik/api/v1/auth/token /ubik/api/v1/preferences /ubik/api/v1/tool-executions/{execution}/stop
/ubik/api/v1/documents /ubik/api/v1/documents/{document}/reprocess /ubik/api/v1/sandboxes/{sandbox}/extend
/ubik/api/v1/agent-sessions /ubik/api/v1/agent-sessions/{session}/stop /ubik/api/v1/agent-sessions/{session}/upload
/anthropic/v1/messages/count_tokens /anthropic/v1/files /anthropic/v1/messages/batches/{batch}/cancel /qwen/files
/anthropic/v1/skills /anthropic/v1/skills/{skill}/versions
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
        missing = []
        for door, path in rows:
            if door in ("mcp", "azure/mcp"):
                continue  # its tools are looked at below
            if door == "azure":
                below = re.fullmatch(r".*[pP]ools/\{pool\}/(.+)", path)
                if not below:
                    continue  # of pools and deployments themselves
                is_here = "azure " + below[1] in taken or below[1] in QUIET_AZURE
            else:
                is_here = path in taken or path in QUIET
            missing += [] if is_here else [path]
        assert not missing
        paths = {path for door, path in rows if door == "mcp" and not path.endswith("/sse")}
        assert paths == {*TOOL_SETS.values(), *SAME}
        for path in [*TOOL_SETS.values(), "/azure/pools/default/mcp"]:
            with Legacy(server, path=path) as client:
                for tool in client.tools():
                    assert f"{path} {tool}" in taken or tool in QUIET_TOOLS, (path, tool)
    for name in TOOL_SETS:
        with Local("--tools", name, "--model-script", "-") as client:
            for tool in (t["name"] for t in client.modern("tools/list")["tools"]):
                assert f"stdio {name} {tool}" in taken or tool in QUIET_TOOLS, (name, tool)


def test_what_is_too_long_to_be_read_is_refused():
    with Server("--approval", "always_ask", "--approval-by", "approver") as server, \
            server.client() as client:
        short = {"code": "1", "language": "shell", "env": {"BASH_ENV": "/workspace/x"}}
        client.post("/v1/execute", short).expect(403)
        shown = client.get("/v1/approvals").expect(200).json["data"][0]
        assert "BASH_ENV" in shown["text"] and "/workspace/x" in shown["text"]
        long = {"code": "1", "files": [{"path": "x", "content": "y" * 70_000}]}
        client.post("/v1/execute", long).expect(413)
