"""The same tools on standard input and output: `retort mcp --tools`."""

import base64
import json
import struct

from support.mcp import text_of
from support.stdio import Local


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
        _, image = client.call("code_interpreter",
                               code="from PIL import Image\nImage.new('RGB', (2000, 10))")["content"]
        assert struct.unpack(">II", base64.b64decode(image["data"])[16:24]) == (1568, 8)


def test_prisme_tools():
    with Local("--tools", "prisme") as client:
        client.initialize()
        value = json.loads(text_of(client.call("execute_python", code="return {'a': 1}")))
        assert value["result"] == {"a": 1}
