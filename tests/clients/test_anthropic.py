"""Anthropic's SDKs: the code execution tool, its containers, and the Files API."""

import pytest

from rows import go, java, python
from servers import is_refusal, locked

SDKS = [
    python("anthropic", "anthropic-2", "anthropic_sdk.py"),
    python("anthropic", "anthropic-1", "anthropic_sdk.py"),
    python("anthropic", "anthropic-0", "anthropic_sdk.py"),
    go("github.com/anthropics/anthropic-sdk-go", "anthropic"),
    java("com.anthropic:anthropic-java", "AnthropicSdk"),
]
CHAT = java("dev.langchain4j:langchain4j-anthropic", "LangChain4jAnthropic")
FILES = ("python3 -c \"import os; print(open(os.environ['INPUT_DIR'] + '/in.csv').read()); "
         "open(os.environ['OUTPUT_DIR'] + '/all.bin', 'wb').write(bytes(range(256)))\"")
PLOT = ("python3 -c \"import matplotlib.pyplot as plt, os; plt.plot([3, 1, 2]); "
        "plt.savefig(os.environ['OUTPUT_DIR'] + '/plot.png')\"")
PNG = "89504e470d0a1a0a"


@pytest.fixture(scope="module")
def ask():
    """What drivers are asked, of a server that has little patience with commands."""
    with locked("--anthropic-cell-timeout", "3") as one:
        yield {"base": f"http://127.0.0.1:{one.port}/anthropic", "key": one.key, "files": FILES, "plot": PLOT}


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


def check_key(seen):
    assert seen["status"] == 401 and seen["type"] == "authentication_error" and seen["id"].startswith("req_")


def check_models(seen):
    assert "scripted" in seen


CHECKS = {name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")}


@pytest.mark.parametrize("case", CHECKS)
@pytest.mark.parametrize("row", SDKS, ids=lambda row: row.id)
def test_sdk(row, case, ask, place, walked):
    CHECKS[case](walked(row, "", lambda: row.run(ask, place))[case])


# --- a framework's chat model, which shows less of a message ---

CHAT_CHECKS = {
    "run": lambda seen: seen["text"].endswith("It is 42.") and seen["stop"] == "STOP"
    and (seen["result"]["stdout"], seen["result"]["return_code"]) == ("42\n", 3),
    "state": lambda seen: seen == "kept\n",
    "stream": lambda seen: seen["text"] == "I count.It is 42." and seen["result"]["stdout"] == "42\n",
    "limit": lambda seen: seen["error_code"] == "execution_time_exceeded",
    "error": lambda seen: "not_found_error" in seen,
    "key": is_refusal,
}


@pytest.mark.parametrize("case", CHAT_CHECKS)
@pytest.mark.parametrize("row", [CHAT], ids=lambda row: row.id)
def test_chat(row, case, ask, place, walked):
    seen = walked(row, "", lambda: row.run(ask, place))[case]
    assert CHAT_CHECKS[case](seen), seen
