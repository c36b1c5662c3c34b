"""A2, A2.4 to A2.6: identifiers, sessions and pools, errors, who may come in."""

import pytest

from support import retort
from azure import NEW, Pool, code_of
from support.server import Server

CODE = {"properties": {"code": "1"}}


def test_a2_a_get_makes_no_session(pool):
    """Any page can have a browser send one: see guard.c."""
    assert pool.get("files", NEW).expect(200).json["value"] == []
    pool.get("files/x.txt/content", NEW).expect(404)
    pool.get("session", NEW).expect(404)
    assert pool.post("code/execute", CODE).expect(200).headers["x-ms-new-allocation"] == "true"
    assert pool.get("session", NEW).expect(200).json["identifier"] == pool.identifier


def test_a6_state_stays_and_identifiers_are_apart(server):
    with Pool(server) as one, Pool(server) as other:
        one.run("x = 'mine'")
        assert one.run("x")["result"] == "mine"
        assert "NameError" in other.run("x")["stderr"]


@pytest.mark.parametrize("identifier", ["1", "abc", "x" * 129])
def test_a2_5_length_of_an_identifier(pool, identifier):
    answer = pool.post("code/execute", CODE, identifier=identifier).expect(400)
    assert code_of(answer) == "InvalidLengthOfSessionIdentifier"


def test_a2_an_identifier_is_needed(pool):
    answer = pool.post("code/execute", CODE, identifier=None).expect(400)
    assert list(answer.json["errors"]) == ["identifier"]


@pytest.mark.parametrize("identifier", ["abcd", "x" * 128, "../../etc", "a|}{[]:\";'<>?/.,@#$%^&*()-+=!~`", "%41bcd",
                                        "0f8fad5b-d9cb-469f-a165-70867728950e"])
def test_a2_identifiers_are_decoded_and_no_paths(server, identifier):
    with Pool(server, identifier=identifier) as pool:
        pool.run("x = 1")
        assert pool.execution(code="x").json["identifier"] == identifier
        assert pool.get("session", NEW).json["identifier"] == identifier


@pytest.mark.parametrize("identifier", ["a\nbcd", "with space", "ümlaut", "a\x7fbcd"])
def test_a2_what_is_no_identifier(pool, identifier):
    assert code_of(pool.post("code/execute", CODE, identifier=identifier).expect(400)) == "InvalidSessionIdentifier"


def test_a2_4_get_session(pool):
    pool.run("1")
    session = pool.get("session", NEW).expect(200).json
    assert set(session) == {"identifier", "createdAt", "lastAccessedAt", "expireAt", "etag"}
    assert session["createdAt"] <= session["lastAccessedAt"] < session["expireAt"]


def test_a2_4_delete_session(pool):
    pool.run("x = 1")
    assert pool.delete("session", NEW).expect(204).body == b""
    assert code_of(pool.get("session", NEW).expect(404)) == "NoSessionFoundError"
    assert code_of(pool.delete("session", NEW).expect(404)) == "NoSessionFoundError"
    assert "NameError" in pool.run("x")["stderr"]


def test_a2_4_stop_session(pool):
    pool.run("1")
    answer = pool.post(".management/stopSession").expect(200)
    assert answer.text == f"Session {pool.identifier} in session pool default stopped."
    assert answer.headers["content-type"] == "text/plain"
    assert code_of(pool.get("session", NEW).expect(404)) == "NoSessionFoundError"


def test_a2_4_list_sessions(server):
    with Pool(server) as one, Pool(server) as other:
        one.run("1"), other.run("1")
        with server.client() as native:
            native.post("/v1/sessions", {}).expect(201)
        listed = one.get("listSessions", NEW, identifier=None).expect(200).json
        names = [s["identifier"] for s in listed["sessions"]]
        assert names.index(other.identifier) < names.index(one.identifier), "newest first"
        assert None not in names and "nextLink" not in listed
        skipped = one.get("listSessions", NEW, identifier=None, skip=len(names) - 1).json["sessions"]
        assert [s["identifier"] for s in skipped] == names[-1:]


def follow(pool, link):
    """A nextLink as a client follows it: as it is."""
    at = link.index(pool.prefix)
    return pool.client.get(link[at:])


def make(pool, name):
    pool.client.post("/v1/sessions", {"name": name, "pool": "default"}).expect(201)


def test_a2_4_list_sessions_in_pages():
    made = [f"session-{n:03}" for n in range(205)]
    with Server("--max-sessions", "300", "--ready", "0", "--idle-timeout", "3600") as server, Pool(server) as pool:
        for name in made:
            make(pool, name)
        found, page = [], pool.get("listSessions", NEW, identifier=None).expect(200).json
        while True:
            found += [s["identifier"] for s in page["sessions"]]
            if "nextLink" not in page:
                break
            assert len(page["sessions"]) == 100
            assert page["nextLink"].startswith(f"http://localhost:{server.port}{pool.prefix}/listSessions?")
            # What comes or goes meanwhile moves nothing, not even the row a page ended with.
            make(pool, f"late-{len(found)}")
            pool.delete("session", NEW, identifier=found[-1]).expect(204)
            page = follow(pool, page["nextLink"]).expect(200).json
        assert found == made[::-1]
        skipped = pool.get("listSessions", NEW, identifier=None, skip=202).expect(200).json["sessions"]
        assert [s["identifier"] for s in skipped] == ["session-002", "session-001", "session-000"]


@pytest.mark.parametrize("query", [{"skip": "x"}, {"skip": "-1"}, {"skip": "1e3"}, {"skip": "20001"},
                                   {"skipToken": "x"}, {"skipToken": "1.x"}, {"skipToken": "9" * 30 + ".sess_x"},
                                   {"skipToken": "-1.sess_" + "0" * 28}])
def test_a2_4_what_is_no_page(pool, query):
    answer = pool.get("listSessions", NEW, identifier=None, **query).expect(400)
    assert list(answer.json["errors"]) == list(query)


def test_a2_4_metadata(either):
    metadata = either.get("metadata", NEW, identifier=None).expect(200).json
    assert metadata["runtimes"][0]["name"] == "Python" and metadata["runtimes"][0]["version"].startswith("3.")
    assert metadata["jupyterKernel"]["name"] and metadata["createdAt"] and metadata["lastUpdatedAt"]
    retort.wait_until(lambda: either.get("metadata", NEW, identifier=None).json["preInstalledPackages"], "the packages")
    packages = {p["name"]: p["version"] for p in either.get("metadata", NEW, identifier=None).json["preInstalledPackages"]}
    assert "numpy" in packages


@pytest.mark.parametrize("path", ["health", "health/startup"])
def test_a4_health(either, path):
    assert either.get(path, identifier=None).expect(200).json == "healthy"


def test_a4_health_of_a_pool_that_is_down():
    # Where no pool works the server ends, so there is one more.
    server = Server(config="[pool default]\npython = /bin/false\n[pool good]\n")
    try:
        server.launch()
        retort.wait_until(lambda: "not ready" in server.log(), "the first failure")
        with Pool(server) as pool:
            assert pool.get("health", identifier=None).expect(500).json == "unhealthy"
            assert pool.get("health/startup", identifier=None).expect(500).json == "unhealthy"
    finally:
        server.discard()


def test_a2_5_what_is_not_there(pool):
    assert code_of(pool.get("nothing", NEW).expect(404)) == "ResourceNotFound"
    assert code_of(pool.client.get("/azure/nothing").expect(404)) == "ResourceNotFound"
    assert code_of(pool.client.get("/subscriptions/s/resourceGroups/g/virtualMachines/v").expect(404))
    assert code_of(pool.delete("metadata", NEW).expect(405)) == "MethodNotAllowed"
    missing = pool.client.post("/azure/pools/nope/code/execute?identifier=abcd", CODE).expect(404)
    assert code_of(missing) == "SessionPoolNotFound"


@pytest.mark.parametrize("path", ["/azure/pools/a%2Fb/files", "/subscriptions/%0d%0a/resourceGroups/g/sessionPools/default",
                                  "/subscriptions/s/resourceGroups/" + "g" * 91 + "/sessionPools/default",
                                  "/azure/pools/" + "x/" * 200, "/azure/pools/%2e%2e/files"])
def test_a2_5_hostile_paths(pool, path):
    pool.client.get(path + "?identifier=abcd").expect(404)
    assert pool.run("1")["result"] == 1


def test_a2_both_prefixes_are_one_pool(server):
    arm = "/subscriptions/s/resourcegroups/g/providers/microsoft.app/sessionpools/DEFAULT"
    with Pool(server) as one, Pool(server, arm, identifier=one.identifier) as other:
        one.run("x = 'seen'")
        assert other.run("x")["result"] == "seen"


def test_a2_5_capacity_is_429_and_flat():
    with Server("--max-sessions", "1", "--ready", "0") as server, Pool(server) as one, Pool(server) as other:
        slow = {"codeInputType": "Inline", "executionType": "Asynchronous", "code": "import time; time.sleep(600)"}
        one.execution(**slow).expect(200)
        full = other.post("code/execute", CODE).expect(429)
        assert full.json["code"] == "SessionsCountExceedsLimit" and full.json["message"]
        assert code_of(full) == "SessionsCountExceedsLimit" and int(full.headers["retry-after"]) > 0
        one.delete("session").expect(204)
        assert other.run("2")["result"] == 2


def test_keys_by_each_header_and_tenants_apart():
    server = Server()
    mine = server.keys("create", "--tenant", "one", "--quiet").strip()
    theirs = server.keys("create", "--tenant", "two", "--quiet").strip()
    with server:
        with Pool(server) as nobody:
            assert nobody.post("code/execute", CODE).expect(401).json["error"]["code"] == "Unauthorized"
        with Pool(server, key=mine, identifier="shared-name") as pool:
            pool.run("x = 'secret'")
        with Pool(server, identifier="shared-name", **{"x-ms-apikey": mine}) as pool:
            assert pool.run("x")["result"] == "secret"
            done = pool.execution(code="1").json["id"]
        with Pool(server, key=theirs, identifier="shared-name") as pool:
            assert "NameError" in pool.run("x")["stderr"]
            assert pool.get("executions/" + done, NEW).status == 404
            assert len(pool.get("listSessions", NEW, identifier=None).json["sessions"]) == 1
        with Pool(server, **{"x-ms-apikey": "rt_wrong"}) as pool:
            assert pool.rpc("tools/list").status == 401


def test_a2_the_name_of_a_session_is_the_identifier(pool, server):
    pool.run("open('a', 'w').write('1')")
    with server.client() as native:
        found = [s for s in native.all("/v1/sessions") if s["name"] == pool.identifier]
        assert len(found) == 1 and found[0]["pool"] == "default"


def test_a_client_that_goes_takes_its_code_with_it(pool, server):
    pool.run("1")
    connection = server.connect()
    body = b'{"properties": {"code": "import time\\nfor i in range(300): time.sleep(0.1)"}}'
    connection.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                       % (pool.url("code/execute").encode(), len(body), body))
    connection.close()
    assert pool.run("'free again'")["result"] == "free again"



def test_where_a_person_must_agree_nothing_runs_before():
    with Server("--approval", "always_ask", "--approval-by", "approver") as server, Pool(server) as pool:
        waiting = pool.post("code/execute", {"properties": {"code": "6 * 7"}}).expect(403)
        assert code_of(waiting) == "ApprovalRequired"
        approval = next(w for w in waiting.json["error"]["message"].split() if w.startswith("apr_")).strip(",")
        pool.client.post("/v1/approvals/" + approval, {"decision": "approve"}).expect(200)
        assert pool.run("6 * 7")["result"] == 42
        assert pool.post("code/execute", {"properties": {"code": "6 * 7"}}).status == 403, "it was for once"
        said = pool.tool("runPythonCodeInRemoteEnvironment", environmentId="abcd", pythonCode="1")
        assert said["isError"] and "apr_" in said["content"][0]["text"]
