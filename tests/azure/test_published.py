"""A6: the clients that are on npm, as they are published."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from support import retort

MODULES = Path(os.environ.get("RETORT_NPM", retort.REPO / "build/npm"))
NODE = MODULES / "node_modules/.bin/node"
WALK = Path(__file__).parent / "clients/walk.mjs"
BASE = "/subscriptions/0/resourceGroups/rg/sessionPools/default"


@pytest.fixture(scope="module")
def seen(server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("walk")
    ask = {"base": f"http://127.0.0.1:{server.port}{BASE}", "key": "k", "dir": str(folder)}
    done = subprocess.run([NODE, WALK, MODULES, json.dumps(ask)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "folder": folder}


def test_a6_llamaindex_runs_code_and_keeps_state(seen):
    call = seen["sessions"]["call"]
    assert (call["status"], call["result"], call["stdout"], call["stderr"]) == ("Success", 42, "hi\n", "")
    assert seen["sessions"]["state"]["result"] == 41


def test_a6_llamaindex_sees_a_failure(seen):
    failed = seen["sessions"]["failed"]
    assert failed["status"] == "Failure" and "ZeroDivisionError" in failed["stderr"]


def test_a6_llamaindex_writes_an_image(seen):
    assert "png" in json.dumps(seen["sessions"]["plot"])
    written = list(seen["folder"].rglob("*.png"))
    assert len(written) == 1 and written[0].read_bytes().startswith(b"\x89PNG")


def test_a6_llamaindex_moves_files(seen):
    sessions = seen["sessions"]
    assert (sessions["upload"]["filename"], sessions["upload"]["size"]) == ("a.txt", 5)
    assert [f["filename"] for f in sessions["list"]] == ["a.txt"] and sessions["download"] == "hello"


def test_a6_the_mcp_client(seen):
    mcp = seen["mcp"]
    assert mcp["server"]["name"] == "Microsoft Container Apps MCP Server" and len(mcp["tools"]) == 3
    assert mcp["python"]["structuredContent"]["stdout"] == "42\n" and mcp["shell"]["structuredContent"]["exitCode"] == 3
