"""Published clients, over both transports: the SDK in both of its versions, and the Inspector's CLI."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from support import retort
from support.stdio import SMALL
from support.server import Server

MODULES = Path(os.environ.get("RETORT_NPM", retort.REPO / "build/npm"))
NODE = MODULES / "node_modules/.bin/node"
WALK = Path(__file__).parent / "clients/walk.mjs"
SDKS = {"v1": {"sdk": "v1"}, "v2-legacy": {"sdk": "v2", "mode": "legacy"}, "v2-auto": {"sdk": "v2", "mode": "auto"},
        "v2-modern": {"sdk": "v2", "mode": {"pin": "2026-07-28"}}}


@pytest.fixture(scope="module")
def server():
    with Server() as one:
        yield one


@pytest.fixture(params=["stdio", "http"])
def way(request):
    """How a client gets there, in the words of walk.mjs."""
    if request.param == "stdio":
        return {"command": str(retort.PROGRAM), "args": ["mcp", *SMALL], "env": {"PATH": os.environ["PATH"]}}
    return {"url": f"http://127.0.0.1:{request.getfixturevalue('server').port}/mcp"}


def walk(ask):
    done = subprocess.run([NODE, WALK, MODULES, json.dumps(ask)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("sdk", SDKS)
def test_a_walk_with_the_sdk(way, sdk):
    seen = walk({**SDKS[sdk], **way})
    assert seen["info"]["name"] == "retort"
    if sdk.startswith("v2"):
        assert seen["version"] == ("2025-11-25" if sdk == "v2-legacy" else "2026-07-28")
    assert "run_code" in [t["name"] for t in seen["tools"]]
    assert "x is 42" in seen["state"]["second"]
    assert [(i["mime"], i["head"][1:4]) for i in seen["plot"]] == [("image/png", "PNG")]
    assert seen["error"]["isError"] and "ZeroDivisionError" in seen["error"]["text"] and "before" in seen["error"]["text"]
    told = [p["progress"] for p in seen["progress"]]
    assert told and told == sorted(set(told))
    assert seen["cancel"]["how"].startswith("rejected")
    assert "still 41" in seen["cancel"]["after"]
    if seen["resources"]:
        assert seen["resources"]["read"][0]["text"] == "made by code"
    if seen["pid"]:
        retort.wait_until(lambda: not retort.is_alive(seen["pid"]), "the end of the server")


# --- the Inspector ---

def inspect(place, way, era, *words):
    """Its CLI: what it prints as JSON, and its exit status."""
    entry = {"protocolEra": era}
    if "url" in way:
        entry |= {"type": "streamable-http", "url": way["url"]}
    else:
        entry |= {"type": "stdio", **way}
    (place / "mcp.json").write_text(json.dumps({"mcpServers": {"it": entry}}))
    env = {**os.environ, "MCP_INSPECTOR_SECRET_STORE": "memory", "HOME": str(place),
           "PATH": f"{NODE.parent}:{os.environ['PATH']}"}
    done = subprocess.run([NODE, NODE.parent / "mcp-inspector", "--cli", "--config", place / "mcp.json", "--server", "it",
                           *words, "--format", "json"], capture_output=True, text=True, timeout=60, env=env)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("era", ["legacy", "auto", "modern"])
def test_the_inspector(tmp_path, way, era):
    if era == "auto":
        status, out, err = inspect(tmp_path, way, era, "--method", "tools/list")
        assert status == 0 and '"run_code"' in out, err
    status, out, err = inspect(tmp_path, way, era, "--method", "tools/call", "--tool-name", "run_code",
                               "--tool-arg", "code=print(6 * 7)")
    assert status == 0 and "42" in out, err
    status, out, _ = inspect(tmp_path, way, era, "--method", "tools/call", "--tool-name", "run_code",
                             "--tool-arg", "code=1 / 0")
    assert status == 5 and "ZeroDivisionError" in out
