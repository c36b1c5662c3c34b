"""What a key is limited to: doors, pools, reading, a time. Every route of the program against every scope."""

import json
import re
import time

import pytest

from support import retort
from support.mcp import Legacy
from support.server import Answer, Server, TIME

pytestmark = pytest.mark.once

DOORS = ["rest", "mcp", "anthropic", "azure", "azure/mcp", "ubik", "prisme", "qwen", "operator"]
CONFIG = "[pool default]\n[pool data]\nidle-timeout = 60\n[pool web]\nidle-timeout = 60\n"
DOOR, VERB, POOL = "does not open the door", "may only read", "does not open the pool"


class House:
    def __init__(self, server):
        self.server, self.clients = server, {}
        with server.client() as c:
            self.admin = c.post("/v1/keys", {"tenant": "acme", "admin": True}).expect(201).json["secret"]
        self.root = server.client(self.admin)
        self.all = self.key()

    def made(self, **scope):
        return self.root.post("/v1/keys", {"tenant": "acme", **scope}).expect(201).json

    def key(self, **scope):
        """A client with a key of this scope."""
        name = json.dumps(scope, sort_keys=True)
        if name not in self.clients:
            self.clients[name] = self.server.client(self.made(**scope)["secret"])
        return self.clients[name]


@pytest.fixture(scope="module")
def house():
    with Server(config=CONFIG, program=str(retort.BUILD / "retort-routes")) as server:
        yield House(server)


@pytest.fixture(scope="module")
def routes(house):
    """door, method, path, whether it is open, whether a POST of it only reads."""
    rows = [line.split()[1:] for line in house.server.log(10**7).splitlines() if line.startswith("route ")]
    assert len(rows) > 150, "the table is not there"
    return [(door, method, path, state == "open", reads == "reads") for door, method, path, state, reads in rows]


def filled(path):
    return re.sub(r"\{[^}]*\}", "some-thing", path.replace("**", "some-thing"))


def ask(client, method, path):
    """The answer of a route; a stream that opens has no end to wait for."""
    if method != "GET" or not path.endswith(("/sse", "/v1/events")):
        return client.request(method, filled(path), None if method == "GET" else {})
    response = client.begin(method, path)
    answer = Answer(response.status, {}, b"" if response.status == 200 else response.read())
    client.close()
    return answer


def text_of(answer):
    return answer.body.decode("utf-8", "replace")


def opens(key_door, door):
    return key_door in (door, door.split("/")[0])


def test_every_door_can_be_named(routes):
    """The console's page needs no key, so none is for it; what the page asks for is the door rest's."""
    assert {door for door, *_ in routes} - {"console"} == set(DOORS)


@pytest.mark.parametrize("key_door", DOORS)
def test_every_route_and_a_key_for_one_door(house, routes, key_door):
    client = house.key(doors=[key_door])
    for door, method, path, is_open, _ in routes:
        if path.endswith("{path...}") and door == "azure":
            continue  # what is below it stands in the table, too
        answer = ask(client, method, path)
        refused = answer.status == 403 and DOOR in text_of(answer)
        assert refused == (not is_open and not opens(key_door, door)), (door, method, path, answer.status)


def test_every_route_and_a_key_that_only_reads(house, routes):
    client = house.key(read_only=True)
    for door, method, path, is_open, reads in routes:
        if path.endswith("{path...}") and door == "azure":
            continue
        answer = ask(client, method, path)
        refused = answer.status == 403 and VERB in text_of(answer)
        assert refused == (not is_open and method != "GET" and not reads), (door, method, path, answer.status)


def test_every_route_and_a_key_that_expired(house, routes):
    made = house.made(expires_in=1)
    assert TIME.fullmatch(made["expires_at"])
    with house.server.client(made["secret"]) as client:
        retort.wait_until(lambda: client.get("/v1/sessions").status == 401, "the key to expire")
        for door, method, path, is_open, _ in routes:
            answer = ask(client, method, path)
            assert (answer.status == 401) == (not is_open), (door, method, path, answer.status)


# --- pools ---


@pytest.fixture(scope="module")
def things(house):
    """A session of the pool web with a file, an execution and an uploaded file, made by a key without limits."""
    c = house.all
    session = c.post("/v1/sessions", {"pool": "web", "name": "theirs"}).expect(201).json["id"]
    c.put(f"/v1/sessions/{session}/files/a.txt", b"secret")
    execution = c.post(f"/v1/sessions/{session}/execute", {"code": "print(open('a.txt').read())"}).expect(200).json
    file = c.form("/v1/files", ("file", "whole.txt", b"of the tenant")).expect(201).json["id"]
    return {"session": session, "execution": execution["id"], "file": file}


def test_a_key_for_one_pool_sees_nothing_of_another(house, things):
    c = house.key(pools=["data"])
    session, execution, file = things["session"], things["execution"], things["file"]
    gone = [("GET", f"/v1/sessions/{session}"), ("DELETE", f"/v1/sessions/{session}"),
            ("POST", f"/v1/sessions/{session}/execute"), ("POST", f"/v1/sessions/{session}/restart"),
            ("POST", f"/v1/sessions/{session}/interrupt"), ("POST", f"/v1/sessions/{session}/extend"),
            ("GET", f"/v1/sessions/{session}/files"), ("GET", f"/v1/sessions/{session}/files/a.txt"),
            ("DELETE", f"/v1/sessions/{session}/files/a.txt"), ("GET", f"/v1/sessions/{session}/workspace"),
            ("GET", f"/v1/executions/{execution}"), ("GET", f"/v1/executions/{execution}/output"),
            ("POST", f"/v1/executions/{execution}/interrupt"), ("GET", f"/v1/files/{file}"),
            ("GET", f"/v1/files/{file}/content"), ("DELETE", f"/v1/files/{file}"), ("GET", "/v1/pools/web")]
    for method, path in gone:
        body = {"code": "1"} if path.endswith("execute") else None
        c.request(method, path, body).expect(404)
    assert c.put(f"/v1/sessions/{session}/files/b.txt", b"x").status == 404
    assert [p["name"] for p in c.get("/v1/pools").json["data"]] == ["data"]
    for path in ("/v1/sessions", "/v1/executions", "/v1/files"):
        assert not any(row["id"] in things.values() for row in c.get(path).expect(200).json["data"]), path
    house.all.get(f"/v1/sessions/{session}/files/a.txt").expect(200)


def test_a_key_for_one_pool_makes_nothing_in_another(house):
    c = house.key(pools=["data"])
    for path, body in (("/v1/sessions", {"pool": "web"}), ("/v1/execute", {"pool": "web", "code": "1"}),
                       ("/v1/sessions", {"pool": "default"}), ("/v1/sessions", {"pool": "no-such"})):
        assert POOL in text_of(c.post(path, body).expect(403)), path


def test_a_key_for_one_pool_works_there(house):
    c = house.key(pools=["data"])
    session = c.post("/v1/sessions", {}).expect(201).json  # its own pool is meant
    assert session["pool"] == "data"
    ran = c.post("/v1/execute", {"code": "print(6 * 7)"}).expect(200).json
    assert ran["stdout"] == "42\n"
    assert {row["pool"] for row in c.get("/v1/sessions").json["data"]} == {"data"}
    assert ran["id"] in [row["id"] for row in c.get("/v1/executions").json["data"]]
    file = c.form("/v1/files", ("file", "mine.txt", b"of the pool")).expect(201).json["id"]
    assert [row["id"] for row in c.get("/v1/files").json["data"]] == [file]
    body = {"code": "print(open('mine.txt').read())", "files": [{"id": file}]}
    assert c.post(f"/v1/sessions/{session['id']}/execute", body).expect(200).json["stdout"] == "of the pool\n"
    house.all.get(f"/v1/files/{file}").expect(200)  # a key without limits sees it
    house.key(pools=["web"]).get(f"/v1/files/{file}").expect(404)
    c.request("DELETE", f"/v1/files/{file}").expect(204)
    c.request("DELETE", f"/v1/sessions/{session['id']}").expect(204)


def test_a_file_of_another_pool_is_not_put_into_a_session(house, things):
    c = house.key(pools=["data"])
    session = c.post("/v1/sessions", {}).expect(201).json["id"]
    answer = c.post(f"/v1/sessions/{session}/execute", {"code": "1", "files": [{"id": things["file"]}]})
    assert answer.status == 404, text_of(answer)
    c.request("DELETE", f"/v1/sessions/{session}")


def test_two_pools(house):
    c = house.key(pools=["web", "data", "data"])
    assert {p["name"] for p in c.get("/v1/pools").json["data"]} == {"data", "web"}
    for pool in ("web", "data"):
        session = c.post("/v1/sessions", {"pool": pool}).expect(201).json["id"]
        c.request("DELETE", f"/v1/sessions/{session}").expect(204)


# --- reading ---


def test_a_key_that_only_reads(house, things):
    c = house.key(read_only=True)
    assert c.get(f"/v1/sessions/{things['session']}/files/a.txt").expect(200).body == b"secret"
    c.get(f"/v1/executions/{things['execution']}").expect(200)
    files = "/azure/pools/web/files?identifier="
    assert "a.txt" in text_of(c.get(files + "theirs").expect(200))
    c.get(files + "nobody-has-it")
    house.all.get("/azure/pools/web/session?identifier=nobody-has-it").expect(404)


def rpc(client, path, method, **params):
    return client.request("POST", path, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
                          headers={"Accept": "application/json, text/event-stream"})


def test_tools_of_a_key_that_only_reads(house, things):
    c = house.key(read_only=True)
    path = "/azure/pools/web/mcp"
    rpc(c, path, "tools/list").expect(200)
    arguments = {"environmentId": "theirs", "pythonCode": "open('a.txt', 'w').write('changed')"}
    result = rpc(c, path, "tools/call", name="runPythonCodeInRemoteEnvironment", arguments=arguments).json["result"]
    assert result["isError"] and VERB in result["content"][0]["text"]
    assert house.all.get(f"/v1/sessions/{things['session']}/files/a.txt").body == b"secret"


TOOL_SETS = ["/mcp", "/mcp/qwen", "/mcp/prisme", "/mcp/azure", "/mcp/ubik", "/azure/pools/web/mcp"]
READING = {"get_execution", "list_sessions", "list_files", "read_file", "list_packages", "launchShell"}


def test_every_tool_and_a_key_that_only_reads(house, things):
    """Whatever its arguments are called: the same for all tools."""
    values = {"session_id": things["session"], "execution_id": things["execution"], "path": "a.txt", "content": "changed",
              "code": "open('a.txt', 'w').write('changed')", "command": "echo changed > a.txt", "pool": "web",
              "environmentId": "theirs", "pythonCode": "open('a.txt', 'w').write('changed')",
              "shellCommand": "echo changed > a.txt", "request": "anything", "parameters": {}}
    def state():
        return [(row["id"], row.get("executions"), row.get("name")) for path in ("/v1/sessions", "/v1/executions")
                for row in house.all.get(path).json["data"]]

    before = state()
    secret, seen = house.made(read_only=True)["secret"], 0
    for path in TOOL_SETS:
        with Legacy(house.server, key=secret, path=path) as client:
            for name, tool in client.tools().items():
                known = {k: v for k, v in values.items() if k in tool["inputSchema"].get("properties", {})}
                reply = client.ask("tools/call", {"name": name, "arguments": known}).response
                told = json.dumps(reply)
                if name not in READING:
                    assert VERB in told and ("error" in reply or reply["result"]["isError"]), (path, name, told)
                seen += 1
    assert seen > 20
    assert house.all.get(f"/v1/sessions/{things['session']}/files/a.txt").body == b"secret"
    assert state() == before


# --- the key that a pool hands out ---


def test_the_key_of_a_pool_opens_its_mcp_server_and_nothing_else(house, things, routes):
    fetched = house.root.post("/azure/pools/data/fetchMcpServerCredentials", {}).expect(200).json["apiKey"]
    assert house.root.post("/azure/pools/data/fetchMcpServerCredentials", {}).json["apiKey"] == fetched
    with house.server.client(**{"x-ms-apikey": fetched}) as c:
        call = {"name": "runPythonCodeInRemoteEnvironment", "arguments": {"environmentId": "pool-key", "pythonCode": "6*7"}}
        assert rpc(c, "/azure/pools/data/mcp", "tools/call", **call).json["result"]["structuredContent"]["result"] == 42
        assert rpc(c, "/azure/pools/web/mcp", "tools/call", **call).status == 404
        for door, method, path, is_open, _ in routes:
            if door != "azure/mcp" and not is_open and not path.endswith("{path...}"):
                path = filled(path.replace("{pool}", "data"))
                answer = c.request(method, path, None if method == "GET" else {})
                assert answer.status == 403 and DOOR in text_of(answer), (method, path, answer.status)
    [listed] = [k for k in house.root.get("/v1/keys").json["data"] if fetched.startswith(k["hint"])]
    assert (listed["pools"], listed["doors"]) == (["data"], ["azure/mcp"])
    house.all.get(f"/v1/sessions/{things['session']}").expect(200)


# --- how keys are made ---


@pytest.mark.parametrize("scope", [{"doors": ["nowhere"]}, {"doors": ["azure,rest"]}, {"pools": ["a b"]}, {"pools": ["../x"]},
                                   {"pools": ["data"], "admin": True}, {"doors": ["rest"], "admin": True},
                                   {"read_only": True, "approver": True}, {"expires_in": 0}, {"pools": "data"}])
def test_scopes_that_are_none(house, scope):
    assert house.root.post("/v1/keys", {"tenant": "acme", **scope}).status == 400


def test_the_command_line(house):
    keys = house.server.keys
    secret = keys("create", "-q", "--tenant", "acme", "--pool", "web, data", "--door", "rest", "--read-only",
                  "--expires", "30d").strip()
    rows = json.loads(keys("list", "--json"))
    row = next(r for r in rows if secret.startswith(r["hint"]))
    assert (row["pools"], row["doors"], row["read_only"]) == ("data,web", "rest", True)
    left = time.mktime(time.strptime(row["expires_at"], "%Y-%m-%dT%H:%M:%SZ")) - time.mktime(time.gmtime())
    assert 29 * 86400 < left <= 30 * 86400
    assert "pools data,web; doors rest; read-only; until 20" in keys("list")
    with house.server.client(secret) as c:
        retort.wait_until(lambda: c.get("/v1/sessions").status == 200, "the server to read the keys")
        assert c.post("/v1/sessions", {}).status == 403
        assert c.get("/azure/pools/web").status == 403
    for bad in (["--door", "nowhere"], ["--pool", "a b"], ["--admin", "--pool", "data"], ["--expires", "soon"]):
        code, _, err = retort.call("keys", "create", "--tenant", "acme", "--state", house.server.state, *bad)
        assert code != 0 and err, bad


def test_a_read_only_admin_reads(house):
    c = house.key(admin=True, read_only=True)
    c.get("/v1/keys").expect(200)
    assert c.post("/v1/keys", {"tenant": "acme"}).status == 403
