"""Sessions live their life: sleep, wake, age, expiry; how many there may be."""

import time
from collections import Counter

import pytest

from support import retort
from support.server import Server, refusal, together

CONFIG = """
tenant-sessions = 3

[pool main]
idle-timeout = 3
lifetime = 600

[pool short]
ready = 0
lifetime = 2
idle-timeout = 600

[pool few]
ready = 0
max-sessions = 2
"""


@pytest.fixture(scope="module")
def house():
    with Server(config=CONFIG) as server:
        yield server


def state(client, session):
    return client.get(session.path).expect(200).json["state"]


def wait_asleep(client, session):
    retort.wait_until(lambda: state(client, session) == "asleep", "the session to sleep")


def test_sleep_and_wake(house):
    with house.client() as c, c.session(pool="main") as s:
        s.run("x = 1; import os; os.makedirs('d'); open('d/kept', 'w').write('kept')\n"
              "os.chmod('d/kept', 0o640)")
        s.put("up", b"loaded")
        wait_asleep(c, s)
        info = s.get()
        assert info["sleeps_at"] is None
        # Its files can be had while it sleeps, and it sleeps on.
        assert s.read("d/kept") == b"kept" and set(s.files()) == {"d/kept", "up"}
        s.put("later", b"later")
        assert state(c, s) == "asleep"
        done = s.run("print('x' in globals(), open('d/kept').read(), open('up').read(), "
                     "open('later').read(), oct(os.stat('d/kept').st_mode & 0o777) if 'os' in globals() "
                     "else '')")
        assert done["stdout"].startswith("False kept loaded later")
        assert done["outcome"]["state_lost"] is True
        notes = [e["text"] for e in done["events"] if e["type"] == "status"]
        assert len(notes) == 1 and "variables" in notes[0]
        # It is said once.
        done = s.run("1")
        assert done["outcome"]["state_lost"] is False
        assert [e["type"] for e in done["events"]] == ["result"]
        assert state(c, s) == "idle"


@pytest.mark.once
def test_a_sleeper_is_found_every_time(house):
    """Each request lets go of what the one before it had in memory."""
    with house.client() as c, c.session(pool="main", idle_timeout=1) as s:
        wait_asleep(c, s)
        found = Counter()
        for i in range(400):
            found[c.put(s.file(f"f{i % 5}"), b"x" * 30000).status] += 1
            found[c.get(s.path + "/files").status] += 1
            found[c.get(s.file(f"f{i % 5}")).status] += 1
        assert found == {201: 400, 200: 800}
        assert [c.delete(s.file(f"f{i}")).status for i in range(5)] == [204] * 5


@pytest.mark.once
def test_extended_it_stays_awake(house):
    with house.client() as c, c.session(pool="main") as s:
        s.run("x = 1")
        for _ in range(5):
            time.sleep(0.8)
            c.post(s.path + "/extend").expect(200)
        assert s.run("x")["result"] == "1"


@pytest.mark.once
def test_a_cell_that_runs_keeps_it_awake(house):
    with house.client() as c, c.session(pool="main") as s:
        done = s.run("import time; time.sleep(4); 'awake'")
        assert done["result"] == "'awake'"


@pytest.mark.once
def test_lifetime(house):
    with house.client() as c, c.session(pool="short") as s:
        s.run("x = 1; open('f', 'w').write('kept')")
        for _ in range(12):  # use does not make it younger
            time.sleep(0.3)
            c.post(s.path + "/extend").expect(200)
            if state(c, s) == "asleep":
                break
        wait_asleep(c, s)
        done = s.run("print('x' in globals(), open('f').read())")
        assert done["stdout"] == "False kept\n" and done["outcome"]["state_lost"] is True


def busy(client, **spec):
    """A session with code that runs until it is interrupted."""
    one = client.session(**spec)
    one.background("import time\ntime.sleep(600)")
    retort.wait_until(lambda: state(client, one) == "running", "the code to run")
    return one


@pytest.mark.once
def test_the_pool_is_full(house):
    with house.client() as c:
        a, b = busy(c, pool="few"), busy(c, pool="few")
        answer = c.post("/v1/sessions", {"pool": "few"})
        answer.refused(429)
        assert int(answer.headers["retry-after"]) >= 1
        c.post("/v1/execute", {"pool": "few", "code": "1"}).refused(429)
        c.delete(a.path).expect(204)
        retort.wait_until(lambda: c.post("/v1/execute", {"pool": "few", "code": "1"}).status == 200,
                          "room for one more")
        c.delete(b.path).expect(204)


def test_the_longest_idle_makes_room(house):
    """In a full pool and of a full tenant: files stay, variables go, and that is said."""
    with house.client() as c:
        old, other = c.session(pool="few"), c.session(pool="few")
        other.run("x = 1")
        old.run("x = 1; open('f', 'w').write('kept')")
        other.run("x = 2")  # the other one has been idle for longer now
        new = c.session(pool="few")
        wait_asleep(c, old)
        assert state(c, other) == "idle" and other.run("print(x)")["stdout"] == "2\n"
        done = old.run("print('x' in globals(), open('f').read())")
        assert done["stdout"] == "False kept\n" and done["outcome"]["state_lost"] is True
        wait_asleep(c, new)
        mine = [c.session(pool="main", idle_timeout=600) for _ in range(3)]  # one more than are left
        for one in (old, other):
            wait_asleep(c, one)
        for one in (old, other, new, *mine):
            c.delete(one.path).expect(204)


@pytest.mark.once
def test_the_tenant_has_enough(house):
    with house.client() as c:
        made = [busy(c, pool="main") for _ in range(3)]
        answer = c.post("/v1/sessions", {"pool": "main"})
        answer.refused(429)
        assert int(answer.headers["retry-after"]) >= 1
        c.post(made[0].path + "/interrupt").expect(200)
        retort.wait_until(lambda: state(c, made[0]) != "running", "the code to end")
        more = c.session(pool="main")
        for one in (*made, more):
            c.delete(one.path).expect(204)


@pytest.mark.once
def test_waking_needs_room(house):
    with house.client() as c:
        sleeper = c.session(pool="few", idle_timeout=1)
        sleeper.run("open('f', 'w').write('kept')")
        wait_asleep(c, sleeper)
        a, b = busy(c, pool="few"), busy(c, pool="few")
        answer = sleeper.ask("1")
        answer.refused(429)
        assert int(answer.headers["retry-after"]) >= 1
        assert sleeper.read("f") == b"kept"
        c.delete(a.path).expect(204)
        retort.wait_until(lambda: sleeper.ask("1").status == 200, "room to wake up")
        c.delete(b.path).expect(204)
        c.delete(sleeper.path).expect(204)


@pytest.mark.once
def test_retention():
    with Server("--retention", "2", "--idle-timeout", "1") as server, server.client() as c:
        s = c.session()
        done = s.run("open('f', 'w').write('x'); 1")
        retort.wait_until(lambda: c.get(s.path).status == 404, "the session to be forgotten", 90)
        c.get(s.file("f")).refused(404)
        s.ask("1").refused(404)
        assert c.get("/v1/executions/" + done["id"]).expect(200).json["status"] == "ok"


@pytest.mark.once
def test_a_burst_of_sessions(house):
    """Many at once: each is made or told to come back; none hangs, none fails otherwise."""
    def one():
        with house.client() as c:
            answer = c.post("/v1/execute", {"pool": "few", "code": "6 * 7"})
            assert answer.status in (200, 429), answer
            return answer.status

    assert 200 in together(*[one] * 12)


# --- over the server's own end ---

def test_files_outlive_the_server():
    with Server() as server:
        with server.client() as c:
            s = c.session(name="kept", metadata={"a": 1})
            done = s.run("x = 1; open('f', 'w').write('made'); 'said'")
            s.put("up", b"loaded")
            file = c.form("/v1/files", ("file", "f", b"file")).expect(201).json
        server.stop()
        server.start()
        with server.client() as c:
            found = c.post("/v1/sessions", {"name": "kept"}).expect(200).json
            assert found["id"] == s.id and found["metadata"] == {"a": 1} and found["state"] == "asleep"
            s.client = c
            assert s.read("f") == b"made" and s.read("up") == b"loaded"
            again = s.run("print('x' in globals(), open('f').read(), open('up').read())")
            assert again["stdout"] == "False made loaded\n" and again["outcome"]["state_lost"] is True
            assert c.get("/v1/executions/" + done["id"]).expect(200).json == done
            assert c.get(f"/v1/files/{file['id']}/content").expect(200).body == b"file"


def test_two_servers_do_not_share_a_state():
    with Server() as server:
        for removed in (None, *server.state.glob("*lock*")):
            if removed:
                removed.unlink()
            code, err = refusal("--listen", "127.0.0.1:0", "--state", server.state)
            assert code != 0 and "another server uses" in err, (removed, err)
        server.check_alive()
