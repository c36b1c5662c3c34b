"""The same tools on standard input and output: `retort mcp --tools`."""

import json

from client import text_of
from pipes import Local


def test_qwen_tools():
    with Local("--tools", "qwen", "--memory", "1G") as client:
        client.initialize()
        assert [t["name"] for t in client.request("tools/list")["tools"]] == \
            ["code_interpreter", "python_executor"]
        client.call("code_interpreter", code="x = 6")
        assert "42" in text_of(client.call("code_interpreter", code="x * 7"))
        text, image = client.call("code_interpreter", code="plt.plot([1]); plt.show()")["content"]
        assert text["text"] == "![fig-001](attachment:fig-001.png)"
        assert image["type"] == "image" and image["mimeType"] == "image/png"


def test_prisme_tools():
    with Local("--tools", "prisme") as client:
        client.initialize()
        value = json.loads(text_of(client.call("execute_python", code="return {'a': 1}")))
        assert value["result"] == {"a": 1}
