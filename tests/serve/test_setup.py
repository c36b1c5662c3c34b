"""What an operator has set up wrongly, and what a client asks for in vain: each says what to change."""

import os
import subprocess
import tempfile

import pytest
from support import mcp, retort
from support.server import Server, refusal

CONFIG = """
[pool good]
description = works
timeout = 3

[pool bare]
python = {bare}
preload =

[pool typo]
preload = pandsa
"""


@pytest.fixture(scope="module")
def bare():
    """A virtual environment without IPython; not in /tmp, where a sandbox has its own files."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        os.chmod(place, 0o755)
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", place + "/venv"], check=True)
        yield place + "/venv/bin/python"


@pytest.fixture(scope="module")
def server(bare):
    with Server(config=CONFIG.format(bare=bare)) as server:
        yield server


@pytest.fixture
def client(server):
    with server.client() as client:
        yield client


def test_python_without_ipython_names_the_package(client):
    answer = client.post("/v1/execute", {"code": "1", "pool": "bare"})
    message = answer.refused(503)["message"]
    assert "has no IPython" in message and "pip install ipython" in message, message
    assert "retry-after" not in answer.headers


def test_bad_preload_names_the_module(client):
    message = client.post("/v1/execute", {"code": "1", "pool": "typo"}).refused(503)["message"]
    assert "cannot import 'pandsa'" in message and "No module named" in message, message


def test_the_other_pools_serve(client):
    assert client.post("/v1/execute", {"code": "6 * 7"}).json["result"] == "42"


@pytest.mark.parametrize("flags, word", [
    (["--preload", "json,no_such_module"], "cannot import 'no_such_module'"),
    (["--preload", "", "--python", "BARE"], "has no IPython"),
], ids=["preload", "python"])
def test_nothing_but_bad_pools_ends(flags, word, bare):
    code, said = refusal(*[str(bare) if f == "BARE" else f for f in flags], "--listen", "127.0.0.1:0")
    assert code == 2 and word in said and "no pool can run anything" in said, said


def test_first_pool_bad_and_another_good_serves(bare):
    config = "[pool bad]\npython = %s\npreload =\n\n[pool good]\npreload =\n" % bare
    server = Server(config=config)
    try:
        server.launch()
        retort.wait_until(lambda: "ready: 2 pools" in server.log(), "the start")
        with server.client() as client:
            assert client.post("/v1/execute", {"code": "5", "pool": "good"}).json["result"] == "5"
            assert "has no IPython" in client.get("/ready").text
        server.stop()
    finally:
        server.discard()


# --- more time than there is ---

NOTE = "600 s were asked for; the time limit of this pool is 3 s"


def notes(events):
    return [e["text"] for e in events if e["type"] == "status"]


def test_rest_says_that_time_is_cut(client):
    done = client.post("/v1/execute", {"code": "5", "timeout": 600}).json
    assert notes(done["events"]) == [NOTE] and done["result"] == "5"
    for fits in (3, 0.5, None):
        body = {"code": "5"} | ({"timeout": fits} if fits else {})
        assert notes(client.post("/v1/execute", body).json["events"]) == []


def test_outcome_says_so_too(client):
    done = client.post("/v1/execute", {"code": "import time; time.sleep(60)", "timeout": 600}).json
    assert done["outcome"]["status"] == "timeout"
    assert done["outcome"]["message"].endswith("; 600 s were asked for")


def test_qwen_says_so(client):
    text = client.post("/qwen/code_interpreter", {"code": "print(5)", "timeout": 600}).text
    assert NOTE in text


def test_azure_says_so(client):
    body = {"properties": {"codeInputType": "inline", "executionType": "synchronous",
                           "code": "import time; time.sleep(60)", "timeoutInSeconds": 600}}
    answer = client.post("/azure/pools/good/code/execute?identifier=cut-short&api-version=2024-02-02-preview", body)
    assert "600 s were asked for" in answer.text, answer.text


def test_mcp_says_so(server):
    with mcp.Legacy(server) as client:
        assert NOTE in mcp.text_of(client.call("run_code", code="5", timeout_ms=600000))


# --- progress ---

BAR = "import sys\nfor i in range(200):\n    print('\\rstep %3d' % i, end='')\nprint()\nprint('end')"


def test_model_reads_the_last_state_of_a_bar(server, client):
    raw = client.post("/v1/execute", {"code": BAR}).json["stdout"]
    assert raw.count("\r") == 200
    with mcp.Legacy(server) as talk:
        text = mcp.text_of(talk.call("run_code", code=BAR))
        assert "step 199" in text and "step 198" not in text and "end" in text
    text = client.post("/qwen/code_interpreter", {"code": BAR}).text
    assert "step 199" in text and "step 198" not in text


