"""The published SDK, in both of its versions, against the tool sets."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from support import retort

MODULES = Path(os.environ.get("RETORT_NPM", retort.REPO / "build/npm"))
NODE = MODULES / "node_modules/.bin/node"
CALL = Path(__file__).parent / "clients/call.mjs"
SDKS = {"v1": {"sdk": "v1"}, "v2-legacy": {"sdk": "v2", "mode": "legacy"}, "v2-auto": {"sdk": "v2", "mode": "auto"}}


def call(server, sdk, face, *calls):
    ask = {**SDKS[sdk], "url": f"http://127.0.0.1:{server.port}/{face}/mcp", "calls": calls}
    done = subprocess.run([NODE, CALL, MODULES, json.dumps(ask)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("sdk", SDKS)
def test_qwen(server, sdk):
    seen = call(server, sdk, "qwen", ["code_interpreter", {"code": "x = 6", "instance": sdk}],
                ["code_interpreter", {"code": "x * 7", "instance": sdk}])
    assert seen["tools"] == ["code_interpreter", "python_executor"]
    assert [r["content"][0]["text"] for r in seen["results"]] == \
        ["Finished execution.", "execute_result:\n\n```\n42\n```"]


@pytest.mark.parametrize("sdk", SDKS)
def test_prisme(server, sdk):
    seen = call(server, sdk, "prisme", ["execute_python", {"code": "return [1, 2]"}],
                ["execute_python", {"code": "1/0"}])
    assert seen["tools"] == ["execute_python"]
    good, bad = seen["results"]
    assert json.loads(good["content"][0]["text"])["result"] == [1, 2] and not good.get("isError")
    assert bad["isError"] and bad["structuredContent"]["error"]["code"] == "ZeroDivisionError"
