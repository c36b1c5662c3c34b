"""A tenant with more sessions than its node has room for: their sandboxes are on another node, and nothing else of them
is. Whatever a client does with such a session, it does as with any."""

import contextlib
import os
import signal

import pytest

from support import retort
from support.mcp import Legacy, text_of
from support.nodes import Nodes
from support.web import CERTIFICATE

pytestmark = pytest.mark.once

HOME, LENDER = 0, 1
CLOSED = "open('closed', 'w').write('x')"


def lent(nodes, number=LENDER):
    """Sandboxes that a node lends at this moment, as it says itself; None: it is gone."""
    with contextlib.suppress(ConnectionError), nodes[number].client() as client:
        return metric(client, "retort_sandboxes_lent")


def metric(client, name):
    text = client.get("/metrics").expect(200).body.decode()
    return int(float(next(line.split()[1] for line in text.splitlines() if line.startswith(name + " "))))


def wait_for_room(client, rooms):
    """Until this node knows of so much room on all of them."""
    def is_known():
        rows = client.get("/v1/nodes").expect(200).json["data"]
        return [row["room"].get("default", 0) for row in rows] == rooms
    retort.wait_until(is_known, f"room {rooms}", retort.SECONDS)


@contextlib.contextmanager
def some(postgres, blobs, *flags, count=2, here=2, lease=4, **more):
    """Nodes; the tenant "local" lives on the first, which has this many sessions here already."""
    with Nodes(postgres, blobs, count, "--max-sessions", 2, *flags, lease=lease, **more) as nodes:
        with nodes[HOME].client() as client:
            nodes.full = [client.session() for _ in range(here)]
            assert nodes.home("local") == HOME
            wait_for_room(client, [2 - here] + [2] * (count - 1))
        yield nodes


@pytest.fixture(scope="module")
def nodes(postgres, blobs):
    """For tests that leave the first node full, and the other with room."""
    with some(postgres, blobs) as nodes:
        yield nodes


@pytest.fixture
def client(nodes):
    with nodes[HOME].client() as one:
        yield one


@pytest.fixture
def far(nodes, client):
    """A session whose sandbox is on the other node."""
    for session in nodes.full:
        session.run("1")  # they stay awake
    session = client.session()
    retort.wait_until(lambda: lent(nodes) == 1, "a sandbox that is lent")
    yield session
    client.delete(session.path).expect(204)
    retort.wait_until(lambda: lent(nodes) == 0, "the end of it")


def test_cells(far):
    far.run("x = 6")
    assert far.run("x * 7")["result"] == "42"
    said = far.run("import sys\nprint('out', 'é' * 3)\nprint('err', file=sys.stderr)\n1 / 0")
    assert said["stdout"] == "out ééé\n" and "err" in said["stderr"] and said["status"] == "raised"
    assert "ZeroDivisionError" in str(said)


def test_events_come_as_they_happen(far):
    code = "import os, time\nprint('begun')\nwhile not os.path.exists('go'): time.sleep(.01)\nprint('gone on')"
    with far.stream(code) as stream:
        assert "begun" in str(next(e for e in stream if e["type"] == "stdout"))
        far.put("go", b"")
        assert any("gone on" in str(e) for e in stream)


def test_what_is_shown(far):
    """Displays, results, files and errors arrive as the kernel has made them."""
    code = ("from IPython.display import display, HTML, clear_output\n"
            "display(HTML('<b>bold</b>'), {'image/png': b'\\x89PNG'.hex()}, raw=False)\n"
            "open('a/b.csv', 'w') if False else open('b.csv', 'w').write('1,2')\n"
            "clear_output()\n{'a': [1, 2]}")
    with far.stream(code) as stream:
        events = list(stream)
    kinds = [e["type"] for e in events]
    assert {"display", "clear", "result", "file"} <= set(kinds), kinds
    assert "<b>bold</b>" in str(events) and "b.csv" in str(events) and events[-1]["type"] == "done"


def test_long_output(far):
    said = far.run("for i in range(200_000): print(i, 'ü' * 20)")
    assert said["stdout"].startswith("0 ü") and said["stdout"].rstrip().endswith("199999 " + "ü" * 20)


def test_a_display_of_many_bytes(far):
    said = far.run("from IPython.display import display\ndisplay({'text/html': 'x' * 3_000_000}, raw=True)\n1")
    assert "left out" in str(said) or "x" * 1000 in str(said)
    assert far.run("'z' * 300_000")["result"].count("z") > 100_000


def test_a_slow_reader_slows_the_code_down(nodes, far):
    there = nodes[HOME].client()
    response = there.begin("POST", far.path + "/execute", {
        "code": "for i in range(3000): print('x' * 10000)", "stream": True, "max_output": 100 << 20})
    before = [node.resident() for node in nodes.servers]
    assert response.read(1000)
    after = [node.resident() for node in nodes.servers]
    assert all(b < a + 60_000 for a, b in zip(before, after))
    there.close()
    retort.wait_until(lambda: far.get()["state"] == "idle", "its end", retort.SECONDS)


def test_interrupt_restart_and_limits(client, far):
    far.run("x = 1")
    with far.stream("print(1)\nimport time\ntime.sleep(600)") as stream:
        next(e for e in stream if e["type"] == "stdout")
        client.post(far.path + "/interrupt").expect(200)
        assert "interrupted" in str(list(stream)[-1])
    assert far.run("x")["result"] == "1"
    assert far.run("import time; time.sleep(60)", timeout=1)["status"] == "timeout"
    assert far.run("x")["result"] == "1"
    client.post(far.path + "/restart").expect(200)
    assert "NameError" in str(far.run("x"))
    assert far.run("import os; os._exit(3)")["status"] == "died"
    assert far.run("2")["result"] == "2"


def test_commands(far):
    said = far.shell("echo out; echo err >&2; echo $WORD > word; exit 3", env={"WORD": "said"})
    assert (said["stdout"], said["stderr"], said["outcome"]["exit_code"]) == ("out\n", "err\n", 3)
    assert far.read("word") == b"said\n"


def test_files(client, far):
    data = os.urandom(3_000_000)
    far.put("in/large", data)
    assert far.run("import hashlib; hashlib.sha256(open('in/large', 'rb').read()).hexdigest()")["status"] == "ok"
    assert far.read("in/large") == data
    far.run("import os; os.mkdir('out'); open('out/f', 'wb').write(b'1' * 70_000); os.chmod('out/f', 0o755);"
            "os.remove('in/large')")
    assert sorted(far.files()) == ["out/f"] and far.read("out/f") == b"1" * 70_000
    far.run("f = open('sparse', 'wb'); f.truncate(40 << 20); f.close()")
    assert len(far.read("sparse")) == 40 << 20
    client.delete(far.file("out/f")).expect(204)
    assert far.run("import os; os.path.exists('out/f')")["result"] == "False"
    said = far.run("open('given').read()", files=[{"path": "given", "content": "here"}])
    assert said["result"] == "'here'"
    client.put(far.file("too-much"), os.urandom(1 << 20) * 70).refused(413)
    far.run("open('block', 'w').write('')")
    client.put(far.file("block/below"), b"x").refused(409)


def test_many_files(far):
    said = far.run("for i in range(300): open(f'f{i}', 'w').write(str(i))")
    assert said["status"] == "ok" and len(far.files()) == 300
    assert far.read("f299") == b"299"


def test_mcp(nodes, far):
    with Legacy(nodes[HOME]) as mcp:
        answer = mcp.call("run_code", code="open('m', 'w').write('x'); 6 * 7", session_id=far.id)
        assert "42" in text_of(answer), answer
    assert far.read("m") == b"x"


# --- the end of it, and of its nodes ---

def test_asleep_and_awake(postgres, blobs):
    """It keeps its files, /tmp and links, and wakes where there is room by then."""
    with some(postgres, blobs, "--idle-timeout", 2) as nodes, nodes[HOME].client() as client:
        far = client.session()
        assert lent(nodes) == 1
        far.run("import os; x = 1; open('f', 'w').write('kept'); open('/tmp/t', 'w').write('too'); os.symlink('f', 'l')")
        retort.wait_until(lambda: far.get()["state"] == "asleep", "sleep", retort.SECONDS)
        assert lent(nodes) == 0
        said = far.run("open('l').read(), open('/tmp/t').read(), 'x' in globals()")
        assert said["result"] == "('kept', 'too', False)" and "started anew" in str(said)


def test_the_lender_dies(postgres, blobs):
    with some(postgres, blobs) as nodes, nodes[HOME].client() as client:
        far = client.session()
        far.run("x = 1; open('f', 'w').write('kept')")
        running = far.background("import time; time.sleep(600)")
        retort.wait_until(lambda: far.get()["state"] == "running", "it runs", retort.SECONDS)
        for session in nodes.full:
            client.delete(session.path).expect(204)
        nodes[LENDER].kill()
        assert far.wait(running)["status"] == "session_lost"
        said = far.run("open('f').read(), 'x' in globals()")
        assert said["result"] == "('kept', False)" and "variables and processes are gone" in str(said)
        assert metric(client, "retort_sandboxes_borrowed") == 0


def test_the_lender_hangs(postgres, blobs):
    """It says nothing for half of a lease: its sandboxes count as gone, and are, when it wakes up."""
    with some(postgres, blobs, lease=2) as nodes, nodes[HOME].client() as client:
        far = client.session()
        far.run("open('f', 'w').write('kept')")
        for session in nodes.full:
            client.delete(session.path).expect(204)
        nodes[LENDER].process.send_signal(signal.SIGSTOP)
        try:
            retort.wait_until(lambda: far.get()["state"] == "asleep", "its loss", retort.SECONDS)
            assert far.run("open('f').read()")["result"] == "'kept'"
        finally:
            nodes[LENDER].process.send_signal(signal.SIGCONT)
        ended = nodes[LENDER].process.poll  # if its lease was over, too
        retort.wait_until(lambda: ended() is not None or lent(nodes) == 0, "the end of it", retort.SECONDS)
        if ended() is not None:
            nodes[LENDER].process = None


def test_home_dies(postgres, blobs):
    """The lender ends the sandbox at once, and the session goes on at its next home, with its files."""
    with some(postgres, blobs, lease=2) as nodes:
        with nodes[HOME].client() as client:
            far = client.session()
            far.run("open('f', 'w').write('kept')")
            running = far.background("open('late', 'w').write('x'); import time; time.sleep(600)")
        nodes[HOME].kill()
        retort.wait_until(lambda: lent(nodes) == 0, "its end", retort.SECONDS)
        nodes.wait_gone(HOME)
        with nodes[LENDER].client() as client:
            assert client.get("/v1/executions/" + running["id"]).expect(200).json["status"] == "session_lost"
            said = client.post(far.path + "/execute", {"code": "open('f').read()"}).expect(200).json
            assert said["result"] == "'kept'" and "started anew" in str(said)


def test_home_is_paused(postgres, blobs):
    """Past its lease it can tell its sandboxes nothing any more."""
    with some(postgres, blobs, lease=2) as nodes:
        with nodes[HOME].client() as client:
            far = client.session()
            far.run("open('f', 'w').write('old')")
        nodes[HOME].process.send_signal(signal.SIGSTOP)
        try:
            retort.wait_until(lambda: lent(nodes) == 0, "the end of what it has borrowed", retort.SECONDS)
            nodes.wait_gone(HOME)
            with nodes[LENDER].client() as client:
                client.put(far.file("f"), b"new").expect(201)
        finally:
            nodes[HOME].process.send_signal(signal.SIGCONT)
        assert nodes[HOME].process.wait(retort.SECONDS) != 0
        nodes[HOME].process = None
        with nodes[LENDER].client() as client:
            assert client.get(far.file("f")).expect(200).body == b"new"


def test_the_lender_is_stopped(postgres, blobs):
    """What it lends goes back with all that is in it, and what runs may end first."""
    with some(postgres, blobs) as nodes, nodes[HOME].client() as client:
        idle, busy = client.session(), client.session()
        assert lent(nodes) == 2
        idle.run("open('/tmp/t', 'w').write('kept')")
        code = "import time; print('begun', flush=True); time.sleep(1); open('f', 'w').write('done')"
        with busy.stream(code) as stream:
            next(e for e in stream if e["type"] == "stdout")
            nodes[LENDER].stop()
            assert list(stream)[-1]["type"] == "done"
        for session in nodes.full:
            client.delete(session.path).expect(204)
        assert busy.run("open('f').read()")["result"] == "'done'"
        assert idle.run("open('/tmp/t').read()")["result"] == "'kept'"


def test_limits_over_all_nodes(postgres, blobs):
    """Three nodes with room for two each: six sessions of a tenant that may have five."""
    with some(postgres, blobs, "--tenant-sessions", 5, "--idle-timeout", 600, count=3) as nodes:
        with nodes[HOME].client() as client:
            sessions = [*nodes.full, *(client.session() for _ in range(3))]
            assert lent(nodes, 1) + lent(nodes, 2) == 3
            running = [s.background("import time; time.sleep(600)") for s in sessions]
            client.post("/v1/sessions", {}).refused(429)
            for one in running:
                client.post(f"/v1/executions/{one['id']}/interrupt")


def test_full_everywhere(postgres, blobs):
    """The session that has been idle for longest gives way, as on one node."""
    with some(postgres, blobs) as nodes, nodes[HOME].client() as client:
        far = [client.session() for _ in range(2)]
        wait_for_room(client, [0, 0])
        another = client.session()
        assert another.run("1")["result"] == "1"
        retort.wait_until(lambda: "asleep" in {s.get()["state"] for s in [*nodes.full, *far]}, "who gives way")


def test_what_is_lent_comes_back(postgres, blobs):
    """A node whose own tenants need its room gets it: the home of an idle session puts it to sleep."""
    with some(postgres, blobs) as nodes:
        keys = nodes.key("local"), nodes.key("other")
        with nodes[HOME].client(key=keys[0]) as client, nodes[LENDER].client(key=keys[1]) as other:
            far = [client.session() for _ in range(2)]
            far[0].run("open('/tmp/t', 'w').write('kept')")
            assert lent(nodes) == 2
            code = {"code": "import time; time.sleep(600)", "background": True}
            busy = [client.post(s.path + "/execute", code).expect(202).json for s in nodes.full]

            def is_made():
                return other.post("/v1/sessions", {}).status == 201
            retort.wait_until(is_made, "room for a tenant of its own", retort.SECONDS)
            assert nodes.home("other") == LENDER and lent(nodes) == 1
            for one in busy:
                client.post(f"/v1/executions/{one['id']}/interrupt")
            assert far[0].run("open('/tmp/t').read()")["result"] == "'kept'"


def test_over_tls(postgres, blobs):
    with some(postgres, blobs, certificate=CERTIFICATE) as nodes, nodes[HOME].client() as client:
        far = client.session()
        assert lent(nodes) == 1
        far.put("f", os.urandom(300_000))
        assert far.run("len(open('f', 'rb').read())")["result"] == "300000"


def test_channels_are_for_nodes_alone(nodes, client):
    for method in "GET", "POST":
        client.request(method, "/v1/nodes/channels/chan_x", body=b"x").refused(404)
