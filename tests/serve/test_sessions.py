"""Sessions: made, found again, extended, interrupted, restarted, deleted."""

import pytest

from support import retort
from support.server import TIME, together

MEMBERS = {"id", "object", "pool", "name", "state", "created_at", "last_used_at", "sleeps_at",
           "expires_at", "idle_timeout", "lifetime", "executions", "queued", "metadata", "memory_bytes",
           "note"}


def test_create(client):
    with client.session() as made:
        info = made.info
        assert set(info) == MEMBERS
        assert info["id"].startswith("sess_") and info["object"] == "session"
        assert info["pool"] == "default" and info["name"] is None
        assert info["state"] in ("starting", "idle")
        assert (info["executions"], info["queued"], info["metadata"]) == (0, 0, {})
        assert info["note"] is None
        for name in ("created_at", "last_used_at", "sleeps_at", "expires_at"):
            assert TIME.fullmatch(info[name]), name
        assert info["created_at"] <= info["sleeps_at"] <= info["expires_at"]
        assert info["idle_timeout"] > 0 and info["lifetime"] >= info["idle_timeout"]
        assert set(made.get()) == MEMBERS


def test_body_may_be_left_out(client):
    info = client.post("/v1/sessions").expect(201).json
    client.delete("/v1/sessions/" + info["id"]).expect(204)


def test_name_is_found_again(client):
    first = client.post("/v1/sessions", {"name": "again"}).expect(201).json
    assert first["name"] == "again"
    second = client.post("/v1/sessions", {"name": "again"}).expect(200).json
    assert second["id"] == first["id"]
    client.delete("/v1/sessions/" + first["id"]).expect(204)
    third = client.post("/v1/sessions", {"name": "again"}).expect(201).json
    assert third["id"] != first["id"]
    client.delete("/v1/sessions/" + third["id"]).expect(204)


def test_name_at_the_same_time(server):
    def one():
        with server.client() as c:
            answer = c.post("/v1/sessions", {"name": "race"})
            assert answer.status in (200, 201), answer
            return answer.json["id"], answer.status

    made = together(*[one] * 8)
    assert len({id for id, _ in made}) == 1
    assert [status for _, status in made].count(201) == 1
    with server.client() as c:
        c.delete("/v1/sessions/" + made[0][0]).expect(204)


def test_metadata_comes_back(client):
    metadata = {"a": 1, "b": [True, None, {"c": "ü\u2028\U0001f600"}], "": ""}
    with client.session(metadata=metadata) as made:
        assert made.info["metadata"] == metadata
        assert made.get()["metadata"] == metadata


def test_metadata_has_a_limit(client):
    client.post("/v1/sessions", {"metadata": {"a": "x" * 17000}}).refused(413, "metadata")


def test_env_is_there_and_never_shown(client):
    with client.session(env={"TOKEN": "s3cret-value", "LANG_OF": "ü"}) as made:
        assert "s3cret-value" not in str(made.info) and "s3cret-value" not in str(made.get())
        code = "import os; print(os.environ['TOKEN'] == 's3cret' + '-value', os.environ['LANG_OF'])"
        assert made.run(code)["stdout"] == "True ü\n"
        assert made.shell('[ "$TOKEN" = s3cret-"value" ] && echo same')["stdout"] == "same\n"


@pytest.mark.parametrize("env, param", [
    ({"1X": "a"}, "env.1X"), ({"A B": "a"}, "env.A B"), ({"A": 1}, "env.A"),
    ({"A": "x\0y"}, None), ([], "env"), ({"A=B": "c"}, "env.A=B")])
def test_env_that_cannot_be(client, env, param):
    client.post("/v1/sessions", {"env": env}).refused(400, param)


def test_times_of_its_own(client):
    with client.session(idle_timeout=60, lifetime=120.5) as made:
        assert made.get()["idle_timeout"] == 60
        assert made.get()["lifetime"] == 120.5


@pytest.mark.parametrize("name", ["idle_timeout", "lifetime"])
@pytest.mark.parametrize("value", [-1, "60", 1e300, True])
def test_times_that_cannot_be(client, name, value):
    client.post("/v1/sessions", {name: value}).refused(400, name)


def test_no_such_pool(client):
    client.post("/v1/sessions", {"pool": "nowhere"}).refused(400)


@pytest.mark.parametrize("id", ["sess_aaaaaaaaaaaaaaaaaaaaaaaaaaaa", "sess_", "x", "exec_1", "%00",
                                "sess_" + "a" * 3000, "..", "%2e%2e"])
def test_no_such_session(client, id):
    for method, rest in (("GET", ""), ("DELETE", ""), ("POST", "/restart"), ("POST", "/interrupt"),
                         ("POST", "/extend"), ("GET", "/files"), ("GET", "/workspace")):
        client.request(method, f"/v1/sessions/{id}{rest}").refused(400 if id in ("%00", "..", "%2e%2e") else 404)


def test_list_in_pages(client):
    made = [client.session() for _ in range(5)]
    ids = [m.id for m in made][::-1]
    page = client.get("/v1/sessions?limit=2").expect(200).json
    assert [s["id"] for s in page["data"]] == ids[:2]
    assert page["has_more"] is True and page["last_id"] == ids[1]
    page = client.get("/v1/sessions?limit=2&after=" + ids[1]).expect(200).json
    assert [s["id"] for s in page["data"]] == ids[2:4]
    client.delete(made[3].path).expect(204)  # ids[1]: the place is known all the same
    again = client.get("/v1/sessions?limit=2&after=" + ids[1]).expect(200).json
    assert [s["id"] for s in again["data"]] == ids[2:4]
    for bad in ("sess_", "sess_" + "a" * 27, "x_" + "u" * 28, "a" * 28, "_" + "a" * 28):
        client.get("/v1/sessions?after=" + bad).refused(400)
    made.remove(made[3])
    ids.remove(ids[1])
    listed = [s["id"] for s in client.all("/v1/sessions")]
    assert listed[:4] == ids and len(set(listed)) == len(listed)
    assert all(set(s) == MEMBERS for s in page["data"])
    for one in made:
        client.delete(one.path).expect(204)
    assert not set(ids) & {s["id"] for s in client.all("/v1/sessions")}


@pytest.mark.parametrize("query, param", [
    ("limit=0", "limit"), ("limit=1001", "limit"), ("limit=x", "limit"), ("limit=1&limit=2", "limit"),
    ("limit=0x10", "limit"), ("limit=", "limit"), ("order=asc", "order")])
def test_list_asked_wrongly(client, query, param):
    client.get("/v1/sessions?" + query).refused(400, param)


def test_extend(session, client):
    before = session.get()
    after = client.post(session.path + "/extend", {"idle_timeout": 30}).expect(200).json
    assert after["idle_timeout"] == 30 and after["sleeps_at"] < before["sleeps_at"]
    again = client.post(session.path + "/extend").expect(200).json
    assert again["idle_timeout"] == 30 and again["sleeps_at"] >= after["sleeps_at"]


def test_interrupt_keeps_the_variables(session, client):
    session.run("kept = 1")
    with session.stream("print('up', flush=True)\nimport time; time.sleep(60)") as stream:
        stream.until_said("up")
        assert session.get()["state"] == "running"
        client.post(session.path + "/interrupt").expect(200)
        done = stream.until(type="done")
    assert done["status"] == "interrupted" and done["outcome"]["state_lost"] is False
    assert session.run("kept")["result"] == "1"


def test_interrupt_of_nothing(session, client):
    assert client.post(session.path + "/interrupt").expect(200).json["id"] == session.id


def test_restart(session, client):
    session.run("gone = 1; open('kept.txt', 'w').write('kept')")
    client.post(session.path + "/restart").expect(200)
    assert session.run("print('gone' in globals(), open('kept.txt').read())")["stdout"] == "False kept\n"


def test_restart_of_what_runs(session, client):
    with session.stream("print('up', flush=True)\nimport time; time.sleep(60)") as stream:
        stream.until_said("up")
        client.post(session.path + "/restart").expect(200)
        done = stream.until(type="done")
    assert done["status"] == "died" and done["outcome"]["state_lost"] is True
    assert session.run("1 + 1")["result"] == "2"


def test_delete(client):
    made = client.session()
    made.run("open('f', 'w').write('x')")
    client.delete(made.path).expect(204)
    for method, rest, body in (("GET", "", None), ("DELETE", "", None), ("GET", "/files", None),
                               ("GET", "/files/f", None), ("POST", "/execute", {"code": "1"}),
                               ("POST", "/extend", {}), ("POST", "/restart", None)):
        client.request(method, made.path + rest, body).refused(404)


def test_delete_of_what_runs(server, client):
    made = client.session()
    with made.stream("print('up', flush=True)\nimport time; time.sleep(60)") as stream:
        first = next(stream)
        stream.until_said("up")
        inside = retort.below(server.pid)
        client.delete(made.path).expect(204)
        last = [found for found in stream][-1]
    assert last["type"] in ("done", "error")
    client.get(made.path).refused(404)
    # Others may come meanwhile: the pool fills up.
    retort.wait_until(lambda: set(inside) - set(retort.below(server.pid)), "its processes to go")
    record = client.get("/v1/executions/" + first["id"]).expect(200).json
    assert record["status"] == "session_lost"


def test_numbers_of_executions(session):
    for i in range(3):
        session.run("1")
    assert session.get()["executions"] == 3
    assert session.get()["state"] == "idle"


IN_FLIGHT = """
import array, errno, os, socket
kept, sent, spare = [], 0, [os.open("/dev/null", os.O_RDONLY) for _ in range(200)]
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", spare))]
try:
    for _ in range(40):
        kept.append(socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
        kept[-1][0].sendmsg([b"x"], rights)
        sent += len(spare)
except OSError as e:
    print(errno.errorcode[e.errno], sent)
"""


def test_descriptors_in_flight_are_not_shared(client):
    """The kernel counts them per user, and each process is held to a limit of its own on them all."""
    with client.session() as greedy:
        name, sent = greedy.run(IN_FLIGHT)["stdout"].split()
        assert name == "ETOOMANYREFS" and int(sent) >= 1000
        for _ in range(12):  # more than there are parked
            with client.session() as made:
                assert made.run("6 * 7")["result"] == "42"
                assert made.shell("echo $((6 * 7))")["stdout"] == "42\n"
    client.get("/ready").expect(200)


def test_rename(server, client):
    with client.session(name="before the name") as one, client.session(name="held name") as other:
        renamed = client.request("PATCH", one.path, {"name": "after"}).expect(200).json
        assert renamed["name"] == "after" and renamed["id"] == one.id
        assert one.get()["name"] == "after"
        assert one.run("1")["status"] == "ok" and one.get()["name"] == "after"
        clash = client.request("PATCH", one.path, {"name": "held name"})
        assert clash.status == 409, clash.json
        assert client.request("PATCH", one.path, {"name": "after"}).expect(200).json["name"] == "after"
        # The old name is free, and the new one is found.
        assert client.post("/v1/sessions", {"name": "after"}).expect(200).json["id"] == one.id
        with client.session(name="before the name") as fresh:
            assert fresh.id not in (one.id, other.id)
        for bad in ("", "a\nb", "x" * 300):
            assert client.request("PATCH", one.path, {"name": bad}).status == 400, bad
    assert client.request("PATCH", one.path, {"name": "gone"}).status == 404
