"""Anthropic's SDKs: the code execution tool, its containers, and the Files API."""

import pytest

from rows import python
from support.server import Server

SDKS = [
    python("anthropic", "anthropic-2", "anthropic_sdk.py"),
    python("anthropic", "anthropic-1", "anthropic_sdk.py"),
    python("anthropic", "anthropic-0", "anthropic_sdk.py"),
]
PNG = "89504e470d0a1a0a"


@pytest.fixture(scope="module")
def base():
    """Of a server that has little patience with commands."""
    with Server("--model-script", "-", "--anthropic-cell-timeout", "3", "--memory", "1G") as one:
        yield f"http://127.0.0.1:{one.port}/anthropic"


# --- one check for each case: what the driver saw ---

def check_run(seen):
    assert seen["kinds"] == ["text", "server_tool_use", "bash_code_execution_tool_result", "text"]
    assert seen["stop"] == "end_turn" and seen["container"].startswith("container_")
    assert (seen["stdout"], seen["stderr"], seen["code"]) == ("42\n", "odd\n", 3)


def check_state(seen):
    assert seen == "kept\n"


def check_files(seen):
    assert seen == {"stdout": "n\n4\n9\n\n", "name": "all.bin", "data": bytes(range(256)).hex()}


def check_plot(seen):
    assert seen == PNG


def check_stream(seen):
    assert {"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
            "message_stop"} <= set(seen["kinds"])
    assert seen["text"] == "I count.It is 42." and seen["stdout"] == "42\n"
    assert seen["final"] == ["text", "server_tool_use", "bash_code_execution_tool_result", "text"]


def check_limit(seen):
    assert seen == "execution_time_exceeded"


def check_error(seen):
    assert seen["status"] == 404 and seen["type"] == "not_found_error" and seen["id"].startswith("req_")


def check_models(seen):
    assert "scripted" in seen


CHECKS = {name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")}


@pytest.mark.parametrize("case", CHECKS)
@pytest.mark.parametrize("row", SDKS, ids=lambda row: row.id)
def test_sdk(row, case, base, place, walked):
    CHECKS[case](walked(row, "", lambda: row.run({"base": base}, place))[case])
