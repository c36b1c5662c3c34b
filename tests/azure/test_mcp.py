"""A1: the MCP server of a pool."""

import base64

import pytest

from azure import Pool, code_of, document
from support.server import Server

TOOLS = ["launchShell", "runPythonCodeInRemoteEnvironment", "runShellCommandInRemoteEnvironment"]
PYTHON, SHELL = TOOLS[1:]


def test_a1_initialize_without_params_and_with_a_string_id(either):
    answer = either.rpc("initialize", id="1").expect(200)
    assert answer.headers["content-type"] == "application/json" and "mcp-session-id" not in answer.headers
    assert answer.json["id"] == "1"
    result = answer.json["result"]
    assert result["protocolVersion"] == "2025-03-26"
    assert result["serverInfo"]["name"] == "Microsoft Container Apps MCP Server"
    assert result["capabilities"]["tools"] == {"call": True, "list": True}


@pytest.mark.parametrize("id", [1, "1", "a-b", 0, -7])
def test_a1_an_id_keeps_its_type(pool, id):
    for method in ("initialize", "tools/list", "ping"):
        got = pool.rpc(method, id=id).expect(200).json["id"]
        assert (got, type(got)) == (id, type(id))


def test_a1_a_later_version_is_answered_with_ours(pool):
    answer = pool.rpc("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x"}})
    assert answer.json["result"]["protocolVersion"] == "2025-03-26"


def test_a1_three_tools_whatever_the_pool(either):
    tools = either.rpc("tools/list").expect(200).json["result"]["tools"]
    assert [t["name"] for t in tools] == TOOLS
    assert set(tools[1]["inputSchema"]["required"]) == {"environmentId", "pythonCode"}
    assert tools[2]["inputSchema"]["required"] == ["environmentId"]


def test_a1_launch_and_run(either):
    launched = either.tool("launchShell")
    environment = launched["structuredContent"]["environmentId"]
    assert len(environment) == 36 and environment in launched["content"][0]["text"]
    ran = either.tool(PYTHON, environmentId=environment, pythonCode="x = 2\nprint('hi')")
    assert ran["isError"] is False
    assert (ran["structuredContent"]["stdout"], ran["structuredContent"]["stderr"]) == ("hi\n", "")
    again = either.tool(PYTHON, environmentId=environment, pythonCode="x * 21")
    assert again["structuredContent"]["result"] == 42 and "note" not in again["structuredContent"]
    shell = either.tool(SHELL, environmentId=environment, shellCommand="echo out; echo err >&2; exit 5")
    assert shell["structuredContent"] == {"stdout": "out\n", "stderr": "err\n", "exitCode": 5}
    words = either.tool(SHELL, environmentId=environment, execCommandAndArgs=["echo", "a  b", "*"])
    assert words["structuredContent"]["stdout"] == "a  b *\n"


@pytest.mark.parametrize("name", ["launchPythonEnvironment", "launchShellEnvironment"])
def test_a1_old_names_are_called_and_not_listed(pool, name):
    assert len(pool.tool(name)["structuredContent"]["environmentId"]) == 36
    assert name not in str(pool.rpc("tools/list").json)


def test_a1_an_id_that_a_model_made_up(pool):
    fresh = pool.tool(PYTHON, environmentId="trackc-session", pythonCode="y = 1")
    assert "new environment" in fresh["structuredContent"]["note"]
    assert pool.tool(PYTHON, environmentId="trackc-session", pythonCode="y")["structuredContent"]["result"] == 1


def test_a1_an_id_that_is_too_short(pool):
    refused = pool.tool(PYTHON, environmentId="1", pythonCode="1")
    assert refused["isError"] and "InvalidLengthOfSessionIdentifier" in refused["content"][0]["text"]


def test_a1_the_identifier_is_the_same_session(pool):
    pool.run("z = 'shared'")
    assert pool.tool(PYTHON, environmentId=pool.identifier, pythonCode="z")["structuredContent"]["result"] == "shared"


def test_a1_an_error_of_the_code(pool):
    failed = pool.tool(PYTHON, environmentId="abcd", pythonCode="1 / 0")
    assert failed["isError"] and "ZeroDivisionError" in failed["structuredContent"]["stderr"]


def test_a1_images_beside_the_text(pool):
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    content = pool.tool(PYTHON, environmentId="abcd", pythonCode=code)["content"]
    assert [c["type"] for c in content] == ["text", "image"] and content[1]["mimeType"] == "image/png"
    assert base64.b64decode(content[1]["data"]).startswith(b"\x89PNG")


@pytest.mark.parametrize("arguments", [{}, {"shellCommand": "a", "execCommandAndArgs": ["b"]}, {"execCommandAndArgs": []}])
def test_a1_one_of_two_commands(pool, arguments):
    assert pool.tool(SHELL, environmentId="abcd", **arguments)["isError"]


def test_a1_errors_of_the_protocol(pool):
    assert pool.rpc("resources/list").expect(200).json["error"]["code"] == -32601
    assert pool.rpc("tools/call", {"name": "nope"}).json["error"]["code"] == -32602
    assert pool.rpc("tools/list", []).expect(400).json["error"]["code"] == -32600
    broken = pool.client.request("POST", pool.prefix + "/mcp", body=b"{", headers={"Content-Type": "application/json"})
    assert broken.expect(400).json["error"]["code"] == -32700
    assert pool.client.post(pool.prefix + "/mcp", {"id": 1}).expect(400).json["error"]["code"] == -32600


def test_a1_notifications_and_other_methods_of_http(pool):
    note = pool.client.post(pool.prefix + "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert note.expect(202).body == b""
    stream = pool.client.get(pool.prefix + "/mcp", headers={"Accept": "text/event-stream"})
    assert stream.expect(405).headers["allow"] == "POST"
    assert pool.client.delete(pool.prefix + "/mcp").status == 405


def test_a1_a_client_that_goes_takes_its_call_with_it(pool, server):
    body = (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":{"environmentId":"going",'
            b'"pythonCode":"import time\\nfor i in range(300): time.sleep(0.1)"}}}' % PYTHON.encode())
    connection = server.connect()
    connection.sendall(b"POST %s/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                       % (pool.prefix.encode(), len(body), body))
    connection.close()
    assert pool.tool(PYTHON, environmentId="going", pythonCode="'free'")["structuredContent"]["result"] == "free"


def test_a1_mcp_must_be_enabled(server):
    with Pool(server, "/azure/pools/without-mcp") as pool:
        pool.client.request("PUT", pool.prefix, document()).expect(201)
        for path in ("mcp", "fetchMCPServerCredentials"):
            assert code_of(pool.post(path, {}, identifier=None).expect(400)) == "SessionMCPServerNotEnabled"
        pool.client.request("PATCH", pool.prefix, {"properties": {"mcpServerSettings": {"isMCPServerEnabled": True}}}).expect(200)
        assert pool.rpc("tools/list").expect(200)
        settings = {"isMcpServerEnabled": True, "isMcpServerApiKeyDisabled": True}
        pool.client.request("PATCH", pool.prefix, {"properties": {"mcpServerSettings": settings}}).expect(200)
        assert pool.rpc("tools/list", headers={"x-ms-apikey": "k"}).status == 401
        assert code_of(pool.post("fetchMCPServerCredentials", {}).expect(400)) == "SessionMCPServerApiKeyDisabled"
        pool.client.request("DELETE", pool.prefix).expect(204)


def test_a1_tools_of_a_protocol_are_external():
    with Server("--approval", "ask_external", "--approval-by", "approver") as server, Pool(server) as pool:
        environment = pool.tool("launchShell")["structuredContent"]["environmentId"]
        waiting = pool.tool(PYTHON, environmentId=environment, pythonCode="6 * 7")
        assert waiting["isError"] and "apr_" in waiting["content"][0]["text"]
