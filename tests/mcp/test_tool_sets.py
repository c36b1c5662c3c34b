"""The tool sets of other systems, each below /mcp under its own name."""

import pytest
from support.mcp import Legacy, Modern

SETS = {
    "qwen": {"code_interpreter", "python_executor"},
    "prisme": {"execute_python"},
    "ubik": {"code_execution", "python_interpreter"},
    "azure": {"launchShell", "runPythonCodeInRemoteEnvironment",
              "runShellCommandInRemoteEnvironment"},
}


@pytest.mark.parametrize("name", SETS)
def test_is_below_mcp(server, name):
    with Legacy(server, path=f"/mcp/{name}") as client:
        assert {t["name"] for t in client.request("tools/list")["tools"]} == SETS[name]
    client = Modern(server, path=f"/mcp/{name}")
    assert {t["name"] for t in client.request("tools/list")["tools"]} == SETS[name]


@pytest.mark.parametrize("one, other", [("/qwen/mcp", "/mcp/qwen"), ("/mcp/qwen", "/qwen/mcp")])
def test_two_addresses_are_one_place(server, one, other):
    with Legacy(server, path=one) as client:
        client.call("code_interpreter", code="x = 6")
        client.path = other
        assert "42" in client.call("code_interpreter", code="x * 7")["content"][0]["text"]
