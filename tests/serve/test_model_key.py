"""The key of a model is with the server alone: not in a sandbox, a record, an error or the log."""

import secrets

import pytest
from support.server import Server

pytestmark = pytest.mark.once

# Looks for the two halves side by side: neither the code nor its own memory holds the whole.
SEARCH = """
import os, re

head, tail = {head!r}.encode(), {tail!r}.encode()
found = []

def look(where, text):
    found.extend(where for m in re.finditer(head, text) if text[m.end():m.end() + len(tail)] == tail)

for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline"):
        try:
            with open("/proc/%s/%s" % (pid, name), "rb") as f:
                look((pid, name), f.read())
        except OSError:
            pass
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
    for line in maps.readlines():
        begin, end = (int(x, 16) for x in line.split()[0].split("-"))
        if line.split()[1].startswith("r") and "[v" not in line:
            try:
                memory.seek(begin)
                look(line, memory.read(end - begin))
            except OSError:
                pass
found
"""


def halves():
    """A key in two: nobody else has it."""
    return "sk-" + secrets.token_hex(12), secrets.token_hex(12)


@pytest.mark.parametrize("way", ["environment", "file", "config"])
def test_is_nowhere_else(way):
    head, tail = halves()
    key = head + tail
    where = ["--model-url", "http://127.0.0.1:9/v1", "--model-name", "m"]
    config, env = "", {}
    if way == "environment":
        env = {"RETORT_MODEL_KEY": key}
    elif way == "config":
        config = f"model-key = {key}\n"
    server = Server(*where, config=config, env=env)
    if way == "file":
        path = server.files / "key"
        path.write_text(key + "\n")
        path.chmod(0o600)
        server.flags += ["--model-key-file", str(path)]
    with server, server.client() as c:
        # Twice: in a session that was parked, and in one that is made now.
        for _ in range(2):
            run = c.post("/v1/execute", {"code": SEARCH.format(head=head, tail=tail)}).expect(200).json
            assert run["result"] == "[]", run
        message = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
        refused = c.post("/anthropic/v1/messages", message)
        assert refused.status >= 400 and key not in str(refused.json)
        assert key not in server.log(last=10 ** 6)
        for path in server.state.rglob("*"):
            assert not path.is_file() or key.encode() not in path.read_bytes(), path
