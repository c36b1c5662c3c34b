"""Keys and tenants: who comes in, and what of whom is seen."""

import json
import signal

import pytest

from support import retort
from support.server import Server, TIME

pytestmark = pytest.mark.once

MEMBERS = {"id", "tenant", "name", "hint", "admin", "approver", "pools", "doors", "read_only", "expires_at", "created_at",
           "last_used_at", "revoked_at"}


class House:
    """A server with three tenants' keys."""

    def __init__(self, server):
        self.server = server
        with server.client() as c:  # the first key is made by whoever is on this machine
            self.admin = c.post("/v1/keys", {"tenant": "ops", "admin": True}).expect(201).json
        self.root = server.client(self.admin["secret"])
        self.alice_key = self.make("alice")
        self.bob_key = self.make("bob")
        self.alice = server.client(self.alice_key["secret"])
        self.bob = server.client(self.bob_key["secret"])

    def make(self, tenant, **more):
        return self.root.post("/v1/keys", {"tenant": tenant, **more}).expect(201).json


@pytest.fixture(scope="module")
def house(server):
    return House(server)


def test_a_new_key(house):
    made = house.make("carol", name="for the tests")
    assert set(made) == MEMBERS | {"secret"}
    assert (made["tenant"], made["name"], made["admin"]) == ("carol", "for the tests", False)
    assert made["secret"].startswith("rt_") and made["secret"].startswith(made["hint"])
    assert len(made["hint"]) < 12 < len(made["secret"])
    assert TIME.fullmatch(made["created_at"]) and made["revoked_at"] is None


def test_the_secret_is_shown_once(house):
    answer = house.root.get("/v1/keys").expect(200)
    assert all(set(k) == MEMBERS for k in answer.json["data"])
    for key in (house.admin, house.alice_key, house.bob_key):
        assert key["secret"] not in answer.text and key["id"] in answer.text
    for path in house.server.state.rglob("*"):
        if path.is_file():
            assert house.alice_key["secret"].encode() not in path.read_bytes(), path
    assert house.alice_key["secret"] not in house.server.log(10**7)


@pytest.mark.parametrize("header", ["Authorization", "x-api-key", "x-ms-apikey", "X-API-KEY"])
def test_three_headers(house, header):
    value = house.alice_key["secret"]
    value = "Bearer " + value if header == "Authorization" else value
    with house.server.client() as c:
        c.get("/v1/sessions", headers={header: value}).expect(200)


@pytest.mark.parametrize("headers", [
    {}, {"Authorization": "Bearer "}, {"Authorization": "Bearer rt_wrong"}, {"x-api-key": ""},
    {"Authorization": "Basic SECRET"}, {"x-api-key": "SECRETx"}, {"x-api-key": "x" * 5000},
    {"Authorization": "SECRET"}, {"x-ms-apikey": "HINT"}])
def test_nobody_comes_in_without(house, headers):
    words = {k: v.replace("SECRET", house.alice_key["secret"]).replace("HINT", house.alice_key["hint"])
             for k, v in headers.items()}
    with house.server.client() as c:
        for method, path in (("GET", "/v1/sessions"), ("POST", "/v1/sessions"), ("GET", "/v1/keys"),
                             ("POST", "/v1/execute"), ("GET", "/v1/executions?format=jsonl"),
                             ("GET", "/v1/files"), ("GET", "/v1/pools")):
            c.request(method, path, {} if method == "POST" else None, headers=words).refused(401)


def test_what_is_open_to_all(house):
    with house.server.client() as c:
        for path in ("/health", "/ready", "/v1/openapi.json"):
            c.get(path).expect(200)


def test_only_an_admin_manages_keys(house):
    house.alice.get("/v1/keys").refused(403)
    house.alice.post("/v1/keys", {"tenant": "alice", "admin": True}).refused(403)
    house.alice.delete("/v1/keys/" + house.alice_key["id"]).refused(403)
    house.alice.delete("/v1/keys/" + house.bob_key["id"]).refused(403)
    house.bob.get("/v1/sessions").expect(200)


def test_revoked(house):
    key = house.make("dave")
    with house.server.client(key["secret"]) as dave:
        dave.get("/v1/sessions").expect(200)
        house.root.delete("/v1/keys/" + key["id"]).expect(204)
        dave.get("/v1/sessions").refused(401)
    listed = {k["id"]: k for k in house.root.get("/v1/keys").json["data"]}
    assert TIME.fullmatch(listed[key["id"]]["revoked_at"])
    house.root.delete("/v1/keys/key_aaaaaaaaaaaaaaaaaaaaaaaaaaaa").refused(404)


@pytest.mark.parametrize("body, param", [({}, "tenant"), ({"tenant": ""}, "tenant"), ({"tenant": 1}, "tenant"),
                                         ({"tenant": "a" * 200}, "tenant"), ({"tenant": "a", "x": 1}, "x")])
def test_keys_that_cannot_be(house, body, param):
    house.root.post("/v1/keys", body).refused(400, param)


def test_tenants_see_nothing_of_each_other(house):
    alice, bob = house.alice, house.bob
    session = alice.session(name="mine", metadata={"a": "alice's"})
    done = session.run("open('secret.txt', 'w').write('alice'); print('alice')")
    waits = session.background("import time; time.sleep(60)")
    file = alice.form("/v1/files", ("file", "f", b"alice")).expect(201).json
    s, e, f = session.path, "/v1/executions/" + done["id"], "/v1/files/" + file["id"]
    other = bob.session()
    tries = [
        ("GET", s, None), ("DELETE", s, None), ("POST", s + "/extend", {}), ("POST", s + "/restart", None),
        ("POST", s + "/interrupt", None), ("POST", s + "/execute", {"code": "1"}),
        ("POST", s + "/execute", {"code": "1", "stream": True}),
        ("POST", s + "/execute", {"code": "1", "background": True}), ("GET", s + "/files", None),
        ("GET", s + "/files/secret.txt", None), ("DELETE", s + "/files/secret.txt", None),
        ("GET", s + "/workspace", None), ("GET", s + "/workspace?format=zip", None), ("GET", e, None),
        ("GET", e + "/output", None), ("POST", f"/v1/executions/{waits['id']}/interrupt", None),
        ("GET", f, None), ("GET", f + "/content", None), ("DELETE", f, None),
        ("POST", other.path + "/execute", {"code": "1", "files": [{"id": file["id"]}]})]
    for method, path, body in tries:
        error = bob.request(method, path, body).refused(404)
        assert "alice" not in json.dumps(error)
    bob.put(s + "/files/evil.txt", b"x").refused(404)
    bob.form(s + "/files", ("file", "evil.txt", b"x")).refused(404)
    for path in ("/v1/sessions", "/v1/executions", f"/v1/executions?session={session.id}"):
        assert session.id not in str(bob.all(path))
    assert file["id"] not in str(bob.all("/v1/files"))
    for path in ("/v1/executions?format=jsonl", f"/v1/executions?format=jsonl&session={session.id}"):
        assert "alice" not in bob.get(path).expect(200).text
    # To bob it is an id that is gone: its time is a place in his own list.
    assert bob.get("/v1/sessions?after=" + session.id).expect(200).json["data"] == []
    # The name is alice's; bob has one of his own by it.
    mine = bob.post("/v1/sessions", {"name": "mine"}).expect(201).json
    assert mine["id"] != session.id
    # Nothing of that touched what is alice's.
    assert alice.get(f"/v1/executions/{waits['id']}").json["status"] == "running"
    assert session.read("secret.txt") == b"alice" and set(session.files()) == {"secret.txt"}
    alice.delete(s).expect(204)
    bob.delete(other.path).expect(204)


def test_an_admin_reads_everybodys_log(house):
    done = house.alice.post("/v1/execute", {"code": "'in the log'"}).expect(200).json
    lines = [json.loads(line) for line in house.root.get("/v1/executions?format=jsonl").text.splitlines()]
    mine = [line for line in lines if line["id"] == done["id"]]
    assert mine[0]["tenant"] == "alice" and mine[0]["key"] == house.alice_key["id"]
    assert mine[0]["code"] == "'in the log'"


def test_use_is_remembered(house):
    house.bob.get("/v1/sessions").expect(200)
    retort.wait_until(lambda: {k["id"]: k for k in house.root.get("/v1/keys").json["data"]}[
        house.bob_key["id"]]["last_used_at"] is not None, "the use to be written", 30)


def test_a_use_outlives_a_new_list(house):
    """The list is read anew with each key that is made; a use that is not written yet stays known."""
    used = []
    for _ in range(3):
        made = house.root.post("/v1/keys", {"tenant": "often"}).expect(201).json
        with house.server.client(made["secret"]) as client:
            client.get("/v1/sessions").expect(200)
        used.append(made["id"])
    seen = {k["id"]: k["last_used_at"] for k in house.root.get("/v1/keys").expect(200).json["data"]}
    assert all(seen[id] for id in used)


# --- by the command line ---

def test_keys_of_the_command_line():
    server = Server()
    secret = server.keys("create", "--tenant", "eve", "--name", "cli", "--quiet").strip()
    assert secret.startswith("rt_")
    with server, server.client(secret) as eve:
        server.wait_ready()
        with server.client() as c:
            c.get("/v1/sessions").refused(401)
        eve.get("/v1/sessions").expect(200)
        assert eve.post("/v1/execute", {"code": "1"}).expect(200).json["result"] == "1"
        listed = json.loads(server.keys("list", "--json"))
        listed = listed["keys"] if isinstance(listed, dict) else listed
        assert [k["tenant"] for k in listed] == ["eve"] and secret not in str(listed)

        other = server.keys("create", "--tenant", "frank", "--quiet").strip()
        with server.client(other) as frank, server.client(other) as again:
            frank.post("/v1/sessions", {}).expect(201)  # at once
            again.get("/v1/sessions").expect(200)
        server.keys("revoke", listed[0]["id"])
        server.process.send_signal(signal.SIGHUP)
        retort.wait_until(lambda: eve.get("/v1/sessions").status == 401, "the end of the old one")


def test_the_command_line_does_not_disturb_what_is_written():
    """Two processes have the database open; when one goes, the other's records are as safe."""
    with Server() as server:
        with server.client() as c, c.session() as s:
            s.run("1")
            for _ in range(3):
                server.keys("list")
            done = s.run("print('kept')")
            s.put("up", b"kept")
            server.kill()
        server.start()
        with server.client() as c:
            assert c.get("/v1/executions/" + done["id"]).expect(200).json["stdout"] == "kept\n"
            assert c.get(s.file("up")).expect(200).body == b"kept"


def test_a_key_is_noticed_without_a_signal():
    with Server() as server, server.client() as c:
        c.get("/v1/sessions").expect(200)
        secret = server.keys("create", "--tenant", "eve", "--quiet").strip()
        retort.wait_until(lambda: c.get("/v1/sessions").status == 401, "no more coming in without")
        with server.client(secret) as eve:
            eve.get("/v1/sessions").expect(200)
