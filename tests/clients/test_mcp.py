"""SDKs of MCP, over Streamable HTTP and over standard input and output."""

import os

import pytest

import mcp_cases
from rows import python
from support import retort
from support.stdio import SMALL

SDKS = [
    python("mcp", "mcp", "mcp_sdk.py"),
]


def walk(row, way, server, place):
    if way == "stdio":
        return row.run({"command": str(retort.PROGRAM), "args": ["mcp", *SMALL], "env": {"PATH": os.environ["PATH"]},
                        "calls": mcp_cases.calls()}, place)
    with server.client() as client, client.session() as session:
        return row.run({"url": f"http://127.0.0.1:{server.port}/mcp", "calls": mcp_cases.calls(session.id)}, place)


@pytest.mark.parametrize("case", mcp_cases.CHECKS)
@pytest.mark.parametrize("way", ["http", "stdio"])
@pytest.mark.parametrize("row", SDKS, ids=lambda row: row.id)
def test_sdk(row, way, case, server, place, walked):
    mcp_cases.CHECKS[case](walked(row, way, lambda: walk(row, way, server, place)))
