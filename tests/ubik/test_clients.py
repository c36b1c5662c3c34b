"""Published MCP clients that lend their own model: the SDK in both of its versions and eras."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from support import retort
from support.server import Server

MODULES = Path(os.environ.get("RETORT_NPM", retort.REPO / "build/npm"))
NODE = MODULES / "node_modules/.bin/node"
SAMPLE = Path(__file__).parent / "clients/sample.mjs"
SDKS = {"v1": {"sdk": "v1"}, "v2-legacy": {"sdk": "v2", "mode": "legacy"},
        "v2-modern": {"sdk": "v2", "mode": {"pin": "2026-07-28"}}}


@pytest.fixture(scope="module")
def bare():
    with Server() as one:
        yield one


@pytest.mark.parametrize("tools", [True, False], ids=["tools", "text"])
@pytest.mark.parametrize("sdk", SDKS)
def test_l17_sampling_with_the_sdk(bare, sdk, tools):
    ask = {**SDKS[sdk], "tools": tools, "url": f"http://127.0.0.1:{bare.port}/ubik/mcp"}
    done = subprocess.run([NODE, SAMPLE, MODULES, json.dumps(ask)], capture_output=True, text=True,
                          timeout=100)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    outputs = seen["result"]["structuredContent"]
    assert outputs["answer"] == "It is 42." and "STDOUT:\n42\n" in outputs["logs"]
    assert len(seen["asked"]) == 3 and ("tools" in seen["asked"][1]) is tools
