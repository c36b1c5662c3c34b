"""The native tools: what each says, in both eras."""

import base64
import hashlib
import json
import re
import threading

import pytest
from support.mcp import Legacy, Modern, text_of
from support.server import Server

NAMES = ["run_code", "run_shell", "get_execution", "interrupt_execution", "create_session",
         "list_sessions", "restart_session", "close_session", "list_files", "read_file",
         "write_file", "list_packages"]
SESSION = re.compile(r"\[session (sess_[a-z0-9]{28})")
FIRST = re.compile(r"\[session sess_[a-z0-9]{28} \| (python|shell) \| (\w+)( \| exit status \d+)? \| "
                   r"\d+\.\d+ s( \| new session[^\]]*)?\]\n?")
HINTS = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
TEXT_MAX = 10000
META = "dev.retort/"


def session_of(result):
    return SESSION.match(text_of(result)).group(1)


def execution_of(result):
    return result["_meta"][META + "executionId"]


def body_of(result):
    """The text below its first line, which must be as it should."""
    text = text_of(result)
    head = FIRST.match(text)
    assert head, text
    return text[head.end():]


def ok(result):
    assert not result["isError"], text_of(result)
    return result


def bad(result):
    assert result["isError"], text_of(result)
    return text_of(result)


def links(result):
    return [c for c in result["content"] if c["type"] == "resource_link"]


@pytest.fixture
def session(modern):
    made = session_of(ok(modern.call("run_code", code="1")))
    yield made
    modern.call("close_session", session_id=made)


# --- how they are listed ---


def test_the_list(either):
    tools = either.request("tools/list")["tools"]
    assert [t["name"] for t in tools] == NAMES
    for tool in tools:
        assert HINTS <= set(tool["annotations"]) and tool["title"], tool["name"]
        assert len(tool["description"].encode()) < 2048
        assert "Example: {" in tool["description"]
        schema = json.dumps(tool["inputSchema"])
        assert tool["inputSchema"]["type"] == "object"
        assert "$ref" not in schema and "oneOf" not in schema
        assert all(p.get("description") for p in tool["inputSchema"]["properties"].values()), tool["name"]
        assert "outputSchema" not in tool
    assert {t["name"] for t in tools if t["annotations"]["readOnlyHint"]} == {
        "get_execution", "list_sessions", "list_files", "read_file", "list_packages"}


def test_the_world_is_open_where_code_reaches_it(modern):
    def outside(client):
        return {name for name, tool in client.tools().items() if tool["annotations"]["openWorldHint"]}

    assert outside(modern) == {"write_file"}  # by URL
    with Server("--egress", "allow-list", "--egress-hosts", "example.test") as server:
        assert outside(Modern(server)) == {"write_file", "run_code", "run_shell"}


def test_what_matters_comes_first(modern):
    start = modern.tools()["run_code"]["description"][:500]
    for word in ("/workspace", "session_id", "Variables"):
        assert word in start


def test_read_file_may_be_long(modern):
    assert modern.tools()["read_file"]["_meta"]["anthropic/maxResultSizeChars"] == 100000


def test_instructions(server):
    with Legacy(server) as client:
        text = client.info["instructions"]
    assert len(text.encode()) < 2048 and "never invent" in text


@pytest.mark.parametrize("name", NAMES)
def test_no_arguments_are_no_protocol_error(either, name):
    result = either.call(name)
    assert result["content"][0]["text"]
    if name in ("run_code", "run_shell", "get_execution", "interrupt_execution", "read_file", "write_file"):
        assert result["isError"]


@pytest.mark.parametrize("arguments, word", [
    ({"code": 5}, "code"), ({"code": "1", "language": "perl"}, "language"),
    ({"code": "1", "timeout_ms": 0}, "timeout_ms"), ({"code": "1", "other": 1}, "other"),
    ({"code": "1", "env": {"A B": "x"}}, "env"), ({"code": ""}, "code")])
def test_wrong_arguments_are_told(modern, arguments, word):
    assert word in bad(modern.call("run_code", **arguments))


# --- run_code ---


def test_streams_and_result(either):
    result = ok(either.call("run_code", code="import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7"))
    assert body_of(result) == "stdout:\nout\nstderr:\nerr\nresult: 42"
    assert "structuredContent" not in result
    assert result["_meta"][META + "sessionId"] == session_of(result)


def test_a_conversation_keeps_its_session(legacy):
    first = ok(legacy.call("run_code", code="x = 41"))
    assert "used when session_id is left out" in text_of(first)
    second = ok(legacy.call("run_code", code="x + 1"))
    assert session_of(second) == session_of(first)
    assert body_of(second) == "result: 42" and "new session" not in text_of(second)


def test_a_modern_call_gets_a_new_one_and_is_told(modern):
    first = ok(modern.call("run_code", code="x = 41"))
    assert "pass this session_id" in text_of(first).splitlines()[0]
    second = ok(modern.call("run_code", code="x + 1", session_id=session_of(first)))
    assert body_of(second) == "result: 42"
    other = bad(modern.call("run_code", code="x"))
    assert "NameError" in other


def test_both_eras_share_sessions(legacy, modern):
    made = session_of(legacy.call("run_code", code="x = 'shared'"))
    assert body_of(modern.call("run_code", code="x", session_id=made)) == "result: 'shared'"


def test_calls_at_the_same_moment_get_one_session(server):
    with Legacy(server) as client:
        found = []
        threads = [threading.Thread(target=lambda: found.append(client.call("run_code", code="1")))
                   for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len({session_of(ok(r)) for r in found}) == 1 and len(found) == 4


def test_calls_in_one_session_queue(modern, session):
    found = {}

    def run(n):
        found[n] = modern.call("run_code", code=f"import time\nlog.append({n})\ntime.sleep(0.05)\nlen(log)",
                               session_id=session)

    ok(modern.call("run_code", code="log = []", session_id=session))
    threads = [threading.Thread(target=run, args=[n]) for n in range(5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(body_of(ok(r)) for r in found.values()) == [f"result: {n}" for n in range(1, 6)]


def test_a_full_queue_is_told(modern, session):
    blocker = ok(modern.call("run_code", code="import time\ntime.sleep(20)", session_id=session, background=True))
    for _ in range(63):
        ok(modern.call("run_code", code="1", session_id=session, background=True))
    assert "as many executions are waiting" in bad(modern.call("run_code", code="1", session_id=session))
    ok(modern.call("interrupt_execution", execution_id=execution_of(blocker)))


def test_an_exception_keeps_what_was_printed(either):
    text = bad(either.call("run_code", code="print('before')\ndef f():\n    return 1 / 0\nf()"))
    assert "stdout:\nbefore\n" in text and "ZeroDivisionError: division by zero" in text
    assert 'line 4, in <module>' in text and "site-packages" not in text


def test_a_timeout(either):
    text = bad(either.call("run_code", code="import time\nprint('begun')\ntime.sleep(60)", timeout_ms=300))
    assert "| timeout |" in text and "begun" in text
    assert "0.300 s" in text and "variables and files are kept" in text and "timeout_ms" in text


def test_memory(modern, session):
    ok(modern.call("run_code", code="x = 1\nopen('kept.txt', 'w').write('y')", session_id=session))
    text = bad(modern.call("run_code", code="y = bytearray(1 << 30)", session_id=session))
    assert "| memory |" in text and "variables are lost, files are kept" in text
    result = modern.call("run_code", code="print(open('kept.txt').read()); x", session_id=session)
    assert "NameError" in bad(result) and "y\n" in text_of(result)


def test_the_interpreter_dies(modern, session):
    text = bad(modern.call("run_code", code="import os\nos._exit(3)", session_id=session))
    assert "| died |" in text and "status 3" in text and "files are kept" in text


def test_an_unknown_session(either):
    for unknown in ("sess_1k0bvvtdgp1e306fqbvkk1mxnqnx", "nonsense"):
        text = bad(either.call("run_code", code="1", session_id=unknown))
        assert f"There is no session {unknown}" in text and "without session_id" in text
    assert "There is no session" in bad(either.call("run_code", code="1", session_id="x" * 64))


def test_a_conversation_whose_session_is_gone_gets_another(legacy, modern):
    first = session_of(legacy.call("run_code", code="x = 1"))
    ok(modern.call("close_session", session_id=first))
    second = ok(legacy.call("run_code", code="2"))
    assert session_of(second) != first
    assert "the one before is gone" in text_of(second).splitlines()[0]
    assert "new session" not in text_of(legacy.call("run_code", code="3"))


def test_env_and_language(modern, session):
    result = modern.call("run_code", code="import os\nos.environ['WHO']", env={"WHO": "me"}, session_id=session)
    assert body_of(ok(result)) == "result: 'me'"
    result = modern.call("run_code", code="echo $WHO | tr a-z A-Z", language="shell", env={"WHO": "me"},
                         session_id=session)
    assert body_of(ok(result)) == "stdout:\nME"


def test_tables_are_text(modern, session):
    result = ok(modern.call("run_code", session_id=session, code=(
        "class T:\n    def __repr__(self): return 'a  b\\n1  2'\n    def _repr_html_(self): return '<table>'\nT()")))
    assert body_of(result) == "result:\na  b\n1  2" and "<table>" not in text_of(result)


def test_what_has_no_text_is_named(modern, session):
    result = ok(modern.call("run_code", session_id=session, code=(
        "from IPython.display import display\ndisplay({'text/html': '<b>x</b>'}, raw=True)")))
    assert "text/html" in body_of(result) and "<b>" not in body_of(result)


def test_a_display_that_is_replaced_is_shown_once(modern, session):
    result = ok(modern.call("run_code", session_id=session, code=(
        "from IPython.display import display\nh = display('one', display_id=True)\nh.update('two')")))
    assert "two" in body_of(result) and "one" not in body_of(result)


# --- long output ---


def test_long_output_is_cut_and_the_rest_is_had(either):
    result = ok(either.call("run_code", code="for i in range(10000): print('line', i, 'ä€')"))
    text = text_of(result)
    assert len(text.encode()) <= TEXT_MAX
    assert "line 0 ä€\n" in text and text.rstrip().endswith("line 9999 ä€")
    left, lines, execution, offset = re.search(
        r"\[\.\.\. (\d+) bytes in (\d+) lines left out here: get_execution with "
        r"execution_id=(exec_\w+) and offset=(\d+) shows them \.\.\.\]", text).groups()
    whole = "".join(f"line {i} ä€\n" for i in range(10000))
    head = text[text.index("line 0"):text.index("[...")]
    tail = text[text.index("...]\n") + 5:]
    assert whole.startswith(head) and whole.rstrip().endswith(tail.rstrip())
    assert len(head.encode()) == int(offset)
    assert whole.count("\n") - head.count("\n") - int(lines) == tail.count("\n") + 1
    assert len(whole.encode()) == len(head.encode()) + int(left) + len((tail.rstrip() + "\n").encode())
    output = [x for x in links(result) if x["uri"].endswith("/output")]
    assert [x["uri"] for x in output] == [f"retort://executions/{execution}/output"]
    got, at = "", int(offset)
    while True:
        page = text_of(ok(either.call("get_execution", execution_id=execution, offset=at)))
        assert len(page.encode()) <= TEXT_MAX
        first, last, total = map(int, re.search(r"output, bytes (\d+) to (\d+) of (\d+):\n", page).groups())
        assert first == at and total == len(whole.encode())
        got += page.split(":\n", 1)[1].split("\nnext: ")[0].rstrip("\n") + ("\n" if last < total else "")
        if "next: " not in page:
            break
        at = int(re.search(r"offset=(\d+)", page).group(1))
        assert at == last
        if at - int(offset) > 40000:  # a few pages tell
            break
    assert whole.encode()[int(offset):].decode().startswith(got.rstrip("\n"))


def test_each_section_has_its_share(modern, session):
    result = modern.call("run_code", session_id=session, code=(
        "import sys\nprint('o' * 20000)\nprint('e' * 20000, file=sys.stderr)\nraise ValueError('v' * 20000)"))
    text = bad(result)
    assert len(text.encode()) <= TEXT_MAX
    assert text.count("o") > 1000 and text.count("v") > 1000
    assert "stdout and stderr:" in text and "ValueError" in text


def test_bytes_that_are_no_text(modern, session):
    result = ok(modern.call("run_shell", session_id=session, command=r"printf 'a\377\0b\n'; head -c 3 /dev/zero"))
    assert "a\ufffd\0b\n\0\0\0" in text_of(result)


def test_many_notes_and_files_stay_within(modern, session):
    result = ok(modern.call("run_code", session_id=session, code=(
        "for i in range(150): open('f%03d_' % i + 'x' * 200, 'w').write('1')\nprint('y' * 50000)")))
    text = text_of(result)
    assert len(text.encode()) <= TEXT_MAX
    assert re.search(r"and \d+ more: list_files has them", text)
    assert 0 < len(links(result)) <= 21


# --- run_shell ---


def test_shell(either):
    result = ok(either.call("run_shell", command="mkdir -p 'a b' && echo hi > 'a b/x.txt' && pwd"))
    assert "| shell | ok | exit status 0 |" in text_of(result)
    assert "stdout:\n/workspace\n" in text_of(result) and "a b/x.txt (3 B)" in text_of(result)
    made = session_of(result)
    assert [x["uri"] for x in links(result)] == [f"retort://sessions/{made}/files/a%20b/x.txt"]
    again = ok(either.call("run_shell", command="pwd; ls", cwd="a b", session_id=made))
    assert body_of(again) == "stdout:\n/workspace/a b\nx.txt"
    text = bad(either.call("run_shell", command="echo no", cwd="it's not there", session_id=made))
    assert "exit status 1" in text and "no\n" not in text.replace("No such", "")
    assert "exit status 3" in bad(either.call("run_shell", command="echo out; exit 3", session_id=made))


# --- sessions ---


def test_sessions(either):
    made = ok(either.call("create_session", name=f"mine-{id(either)}", env={"A": "b"}, idle_timeout_s=60))
    session = re.search(r"session_id: (sess_\w+)", text_of(made)).group(1)
    assert "idle for 1 min" in text_of(made) and "12 h" in text_of(made)
    assert body_of(either.call("run_code", code="import os; x = 1; os.environ['A']", session_id=session)) == "result: 'b'"
    again = text_of(ok(either.call("create_session", name=f"mine-{id(either)}")))
    assert session in again and "was there already" in again
    listed = text_of(ok(either.call("list_sessions")))
    assert re.search(rf"^{session} \| idle \| pool default \| 1 executions .* name mine-", listed, re.M)
    ok(either.call("write_file", session_id=session, path="a.txt", text="kept"))
    ok(either.call("restart_session", session_id=session))
    assert "NameError" in bad(either.call("run_code", code="x", session_id=session))
    assert body_of(ok(either.call("run_code", code="open('a.txt').read()", session_id=session))) == "result: 'kept'"
    ok(either.call("close_session", session_id=session))
    for tool in ("close_session", "restart_session", "list_files"):
        assert "There is no session" in bad(either.call(tool, session_id=session))
    assert session not in text_of(either.call("list_sessions"))


def test_a_made_session_is_the_conversations(legacy):
    made = re.search(r"session_id: (\S+)", text_of(legacy.call("create_session"))).group(1)
    assert session_of(legacy.call("run_code", code="1")) == made
    ok(legacy.call("close_session"))
    assert session_of(legacy.call("run_code", code="1")) != made


def test_no_pool_of_that_name(modern):
    assert "pool" in bad(modern.call("create_session", pool="none"))


# --- packages ---


def test_packages(either):
    text = text_of(ok(either.call("list_packages")))
    assert "pool default (the default): Python 3" in text and "network: none" in text and "numpy" in text
    found = text_of(ok(either.call("list_packages", search="NUMPY")))
    assert "numpy" in found and "pandas" not in found
    assert "no package" in text_of(either.call("list_packages", search="nothing-has-this"))
    assert "no pool" in bad(either.call("list_packages", pool="none"))


# --- files ---


def test_files(either):
    wrote = ok(either.call("write_file", path="data/x.csv", text="a,b\n1,2\n"))
    session = session_of(wrote)
    assert "/workspace/data/x.csv (8 bytes)" in text_of(wrote)
    assert links(wrote)[0]["uri"] == f"retort://sessions/{session}/files/data/x.csv"
    ok(either.call("write_file", path="raw.bin", base64="AAH/", session_id=session))
    assert body_of(ok(either.call("run_code", session_id=session, code=(
        "open('data/x.csv').read(), open('raw.bin', 'rb').read()")))) == "result: ('a,b\\n1,2\\n', b'\\x00\\x01\\xff')"
    listed = text_of(ok(either.call("list_files", session_id=session)))
    assert re.search(r"^data/x\.csv \| 8 B \| text/csv \| \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", listed, re.M)
    assert "raw.bin" in listed
    assert "raw.bin" not in text_of(either.call("list_files", session_id=session, path="data"))
    assert "empty" in text_of(either.call("list_files", session_id=session, path="dat"))
    read = ok(either.call("read_file", session_id=session, path="/workspace/data/x.csv"))
    assert text_of(read).endswith("\na,b\n1,2\n") and links(read)[0]["size"] == 8
    assert text_of(either.call("read_file", session_id=session, path="raw.bin")).endswith("base64:\nAAH/")


def test_text_by_pages(modern, session):
    whole = "".join(f"Zeile {i} äöü€\n" for i in range(2000))
    ok(modern.call("write_file", session_id=session, path="long.txt", text=whole))
    got, offset = "", 0
    while offset is not None:
        text = text_of(ok(modern.call("read_file", session_id=session, path="long.txt", offset=offset, limit=9001)))
        first, last = map(int, re.search(r"bytes (\d+) to (\d+) of", text).groups())
        assert first == offset
        page, _, more = text.split(":\n", 1)[1].rpartition("\n[next: read_file with offset=")
        got += page if more and "]" in more else text.split(":\n", 1)[1]
        offset = last if "[next:" in text else None
    assert got == whole


def test_binary_is_not_shown_unless_wanted(modern, session):
    ok(modern.call("run_code", session_id=session, code="open('b.bin', 'wb').write(bytes(range(256)) * 100)"))
    text = text_of(ok(modern.call("read_file", session_id=session, path="b.bin")))
    assert "binary" in text and "encoding=base64" in text and len(text) < 500
    text = text_of(ok(modern.call("read_file", session_id=session, path="b.bin", encoding="base64", offset=256,
                                  limit=256)))
    assert base64.b64encode(bytes(range(256))).decode() in text and "offset=512" in text


@pytest.mark.parametrize("arguments, word", [
    ({"path": "a"}, "exactly one"), ({"path": "a", "text": "x", "base64": "eA=="}, "exactly one"),
    ({"text": "x"}, "path is needed"), ({"path": "../a", "text": "x"}, ".."),
    ({"path": "a", "base64": "x"}, "base64"), ({"path": "a", "url": "ftp://x/y"}, "http"),
    ({"path": "a", "url": "http://127.0.0.1:1/x"}, "private")])
def test_what_cannot_be_written(either, arguments, word):
    assert word in bad(either.call("write_file", **arguments))


def test_a_large_file_in_one_message(modern, session):
    data = bytes(range(256)) * 4096 * 3
    ok(modern.call("write_file", session_id=session, path="large.bin", base64=base64.b64encode(data).decode()))
    result = modern.call("run_code", session_id=session, code=(
        "import hashlib\nhashlib.sha256(open('large.bin', 'rb').read()).hexdigest()"))
    assert hashlib.sha256(data).hexdigest() in text_of(ok(result))


def test_no_such_file(either):
    session = session_of(either.call("run_code", code="1"))
    text = bad(either.call("read_file", session_id=session, path="none.txt"))
    assert "There is no file none.txt" in text and "list_files" in text


def test_session_id_is_needed_where_there_is_none(modern):
    assert "session_id is needed" in bad(modern.call("list_files"))
    assert "session_id is needed" in bad(modern.call("read_file", path="a"))
