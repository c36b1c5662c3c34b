"""`retort mcp`: both eras on one line, calls side by side, and lines that are no messages."""

import json
import re
import subprocess
import threading

import pytest

from support import retort
from support.mcp import LEGACY, MODERN, RpcError, text_of
from support.stdio import Local


@pytest.fixture(scope="module")
def local():
    with Local() as one:
        one.initialize()
        yield one


# --- how it begins ---

def test_nothing_runs_before_a_client_introduces_itself():
    """No child, no thread, no file; then an interpreter warms up, before a tool is called."""
    with Local() as c:
        assert c.request("ping") == {}
        assert retort.below(c.process.pid) == []
        assert retort.field(c.process.pid, "Threads") == ["1"]
        assert c.left() == []
        c.initialize()
        retort.wait_until(lambda: len(retort.below(c.process.pid)) > 1, "the start of an interpreter")
        assert c.request("tools/list")["tools"] and text_of(c.call("run_code", code="6 * 7"))
        assert len(c.left()) == 1


def test_a_probe_leaves_nothing():
    """Clients start one, ask what it can do, and close it."""
    with Local() as c:
        found = c.modern("server/discover")
        assert MODERN in found["supportedVersions"] and LEGACY in found["supportedVersions"]
        c.leave()
        assert c.said() == ""


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
def test_versions(version):
    with Local() as c:
        assert c.initialize(version)["protocolVersion"] == version
        tools = c.request("tools/list")["tools"]
        assert ("annotations" in tools[0]) == (version != "2024-11-05")
        assert ("title" in tools[0]) == (version >= "2025-06-18")


def test_an_unknown_version_is_answered_with_ours():
    with Local() as c:
        assert c.initialize("1999-01-01")["protocolVersion"] == LEGACY


def test_both_eras_in_one_process(local):
    legacy = local.call("run_code", code="x = 41")
    assert "resultType" not in legacy
    modern = local.modern("tools/call", {"name": "run_code", "arguments": {"code": "print(x + 1)"}})
    assert modern["resultType"] == "complete" and "42" in text_of(modern)
    with pytest.raises(RpcError) as refused:
        local.modern("ping")
    assert refused.value.code == -32601
    assert local.request("ping") == {}


def test_what_a_modern_request_must_say(local):
    with pytest.raises(RpcError) as refused:
        local.request("server/discover")
    assert refused.value.code == -32602
    id = local.begin("tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": "v999",
                                              "io.modelcontextprotocol/clientCapabilities": {}}})
    error = local.answer(id)["error"]
    assert error["code"] == -32022
    assert error["data"]["requested"] == "v999" and MODERN in error["data"]["supported"]


def test_batches_are_of_one_version():
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with Local() as c:
        c.initialize("2025-03-26")
        c.send([{**ping, "id": "a"}, {"jsonrpc": "2.0", "method": "notifications/nothing"}, {"jsonrpc": "2.0", "id": "b"},
                {**ping, "id": "c", "method": "tools/call", "params": {"name": "run_code", "arguments": {"code": "6 * 7"}}}])
        c.wait(lambda: any(isinstance(m, list) for m in c.heard), "an array")
        answers = {m["id"]: m for m in next(m for m in c.heard if isinstance(m, list))}
        assert answers["a"]["result"] == {} and answers["b"]["error"]["code"] == -32600
        assert "42" in text_of(answers["c"]["result"]) and len(answers) == 3
        c.initialize("2025-06-18")
        c.send([{**ping, "id": "d"}])
        c.wait(lambda: c.errors(), "a refusal")
        assert "2025-03-26" in c.errors()[0]["message"]


# --- side by side ---

def test_ids_come_back_as_they_are(local):
    for id in ("a", "", 0, -7, 2**53 + 1, "\u20ac\n", "x" * 1000):
        local.begin("ping", id=id)
        assert local.answer(id)["result"] == {}


def test_parallel_calls(local):
    names = [re.search(r"sess_[a-z0-9]+", text_of(local.call("create_session")))[0] for _ in range(3)]
    ids = [local.begin_call("run_code", session_id=name, code=f"import time; time.sleep(0.3); print({i})")
           for i, name in enumerate(names)]
    for i, id in enumerate(ids):
        assert str(i) in text_of(local.result(id))


def test_a_ping_while_code_runs(local):
    running = local.begin_call("run_code", code="import time\nwhile not __import__('os').path.exists('go'):\n"
                                                "    time.sleep(0.01)\nprint('gone')")
    assert local.request("ping") == {}
    assert local.modern("tools/list")["tools"]
    assert running not in local.answers
    local.call("write_file", path="go", text="")
    assert "gone" in text_of(local.result(running))


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_cancelling_interrupts_the_kernel(local, era):
    begin = local.begin if era == "legacy" else local.begin_modern
    local.call("run_code", code="kept = 'kept'")
    running = begin("tools/call", {"name": "run_code", "arguments": {
        "code": "open('running', 'w').close()\nwhile True:\n    pass"}})
    retort.wait_until(lambda: "running" in text_of(local.call("list_files")), "the code to run")
    local.cancel(running)
    # The session is free again, and knows what it knew; the call is never answered.
    assert "kept" in text_of(local.call("run_code", code="import os; os.remove('running'); print(kept)"))
    assert running not in local.answers


def test_cancelling_what_is_not_there(local):
    for params in ({"requestId": "nobody"}, {"requestId": None}, {}, None):
        local.notify("notifications/cancelled", params)
    local.notify("notifications/nonsense", {"a": 1})
    assert local.request("ping") == {}


def test_one_id_at_a_time(local):
    first = local.begin_call("run_code", code="import time; time.sleep(0.5); print('first')")
    local.begin("ping", id=first)
    assert local.answer(first)["error"]["code"] == -32600
    assert "first" in text_of(local.result(first))


def test_progress(local):
    id = local.begin_call("run_code", {"progressToken": "t1"},
                          code="import time\nfor i in range(12):\n    print('line', i)\n    time.sleep(0.25)")
    local.result(id)
    told = [p for p in local.of("notifications/progress") if p["progressToken"] == "t1"]
    assert told and [p["progress"] for p in told] == sorted({p["progress"] for p in told})


# --- lines that are no messages ---

@pytest.mark.parametrize("line", [
    b"garbage", b"{", b"[1, 2", b'{"jsonrpc": "2.0", "id": 1, "method": "ping"', b"\x00", b'{"a": "\x00"}',
    b"\xff\xfe{}", b'{"jsonrpc": "2.0", "id": 1, "method": "p\xc3"}', b"nan", b"\xef\xbb\xbf{}",
    b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}', b"[" * 100000, b'{"a":' * 70 + b"1" + b"}" * 70,
    b'{"jsonrpc": "2.0", "id": 1e999, "method": "ping"}', b"1" * 5000, b"1 2",
])
def test_what_is_no_json(local, line):
    before = len(local.errors())
    local.write(line + b"\n")
    assert local.request("ping") == {}
    assert [e["code"] for e in local.errors()[before:]] == [-32700]


@pytest.mark.parametrize("line", [
    b"1", b"null", b'"ping"', b"{}", b"[]", b'{"jsonrpc": "1.0", "id": null, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', b'{"jsonrpc": "2.0", "id": true, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": "' + b"x" * 2000 + b'", "method": "ping"}', b'{"jsonrpc": "2.0", "method": 7}',
    b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]',
])
def test_what_is_no_request(local, line):
    before = len(local.errors())
    local.write(line + b"\n")
    assert local.request("ping") == {}
    assert [e["code"] for e in local.errors()[before:]] == [-32600]


def test_bad_parameters(local):
    for params, code in (([], -32600), ("x", -32600), ({"name": 7}, -32602), ({"name": "no_such"}, -32602),
                         ({"name": "run_code", "arguments": []}, -32602)):
        id = local.begin("tools/call", params)
        assert local.answer(id)["error"]["code"] == code
    id = local.begin("no/such/method")
    assert local.answer(id)["error"]["code"] == -32601


def test_a_response_nobody_waits_for(local):
    for message in ({"id": "ask_1", "result": {}}, {"id": 5, "error": {"code": 1, "message": "no"}}, {"result": 1}):
        local.send({"jsonrpc": "2.0", **message})
    assert local.request("ping") == {}


def test_line_ends(local):
    local.write(b"\n\r\n  \n\t\r\n")
    local.write(b'  {"jsonrpc":"2.0",\t"id":"crlf","method":"ping"}  \r\n')
    assert local.answer("crlf")["result"] == {}
    for byte in b'{"jsonrpc":"2.0","id":"slow","method":"ping"}\n':
        local.write(bytes([byte]))
    assert local.answer("slow")["result"] == {}
    many = b"".join(b'{"jsonrpc":"2.0","id":"m%d","method":"ping"}\n' % i for i in range(3000))
    local.write(many)
    for i in range(3000):
        assert local.answer(f"m{i}")["result"] == {}


def test_a_line_that_is_too_long(local):
    before = len(local.errors())
    for _ in range(40):
        local.write(b"x" * (1 << 20))
    local.write(b"\n")
    assert local.request("ping") == {}
    errors = local.errors()[before:]
    assert len(errors) == 1 and errors[0]["code"] == -32700 and "20 MiB" in errors[0]["message"]


def test_a_long_line_that_is_not(local):
    big = "y" * (12 << 20)
    assert local.request("ping", {"padding": big}) == {}
    id = local.begin("ping", {"padding": "\u20ac" * (1 << 20)})
    assert local.result(id) == {}


def test_a_last_line_without_an_end():
    done = subprocess.run([retort.PROGRAM, "mcp"], input=b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
                          capture_output=True, timeout=retort.SECONDS)
    assert done.returncode == 0 and json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_more_than_a_reader_takes_at_once(tmp_path):
    """The end of input is not the end of what was asked before it."""
    with open(tmp_path / "in", "wb") as f:
        f.writelines(b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % i for i in range(1000))
    source = subprocess.Popen(["cat", tmp_path / "in"], stdout=subprocess.PIPE)
    c = subprocess.Popen([retort.PROGRAM, "mcp"], stdin=source.stdout, stdout=subprocess.PIPE)
    source.stdout.close()
    source.wait()
    with c.stdout as out:
        assert [json.loads(line)["id"] for line in out] == list(range(1000))
    assert c.wait(retort.SECONDS) == 0


def test_files_for_input_and_output(tmp_path):
    lines = b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % i for i in range(50))
    (tmp_path / "in").write_bytes(lines)
    with open(tmp_path / "in") as source, open(tmp_path / "out", "wb") as out:
        done = subprocess.run([retort.PROGRAM, "mcp"], stdin=source, stdout=out, stderr=subprocess.PIPE,
                              timeout=retort.SECONDS)
    assert done.returncode == 0 and done.stderr == b""
    assert [json.loads(line)["id"] for line in open(tmp_path / "out")] == list(range(50))
    done = subprocess.run([retort.PROGRAM, "mcp"], stdin=subprocess.DEVNULL, capture_output=True, timeout=retort.SECONDS)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


# --- output ---

def test_ten_thousand_lines(local):
    text = text_of(local.call("run_code", code="for i in range(10000):\n    print('line', i)"))
    assert "line 0\n" in text and "line 9999" in text and len(text) < 12000


def test_bytes_that_are_no_text(local):
    text = text_of(local.call("run_code", code="import os; os.write(1, b'a\\xff\\x00\\xc3(\\nb'); print(chr(0x2028))"))
    assert "a\ufffd" in text and "\u2028" in text


def test_fds_that_are_not_the_guests(local):
    """Whatever code writes to, none of it gets between the messages. One of them leads to us, and
    what is said there that makes no sense ends the sandbox."""
    code = ("import os\nfor fd in range(64):\n    try:\n        os.write(fd, b'{\"jsonrpc\": \"forged\"}\\n')\n"
            "    except OSError:\n        pass\nos.system('for i in 0 1 2 3 4 5 6 7 8 9; do echo forged >&$i; done')\n"
            "print('done')")
    assert "forged" in text_of(local.call("run_code", code=code))
    assert local.request("ping") == {}
    assert "42" in text_of(local.call("run_code", code="6 * 7"))
    assert not local.broken


def test_a_client_that_does_not_read():
    """Nothing is lost, nothing grows: the questions wait until the answers are read."""
    count = 4000
    with Local(reads=False) as c:
        lines = b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % i for i in range(1, count))
        feeder = threading.Thread(target=c.write, args=(lines,), daemon=True)
        feeder.start()
        retort.wait_until(lambda: retort.field(c.process.pid, "State")[:1] == ["S"], "it to be stuck")
        assert int(retort.field(c.process.pid, "VmRSS")[0]) < 60 * 1024
        assert feeder.is_alive()
        c.read_slowly()
        feeder.join(retort.SECONDS)
        for i in range(1, count):
            c.result(i)
