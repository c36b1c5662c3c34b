"""P30: functions are kept, by tenant and workspace, within limits."""

import pytest
from support.server import Server, together

SPACES, FUNCTIONS, NAME = 1000, 1000, 128


@pytest.fixture(scope="module")
def server():
    with Server() as one:
        one.first, one.second = (one.keys("create", "--tenant", name, "--quiet").strip()
                                 for name in ("first", "second"))
        one.stop()
        one.start()
        yield one


@pytest.fixture
def client(server):
    with server.client(server.first) as one:
        yield one


def url(space, *more):
    return "/".join(["/prisme/v2/functions", space, *more])


def put(client, space, status=200, **functions):
    body = {"functions": {name: {"code": code} for name, code in functions.items()}}
    return client.post(url(space), body).expect(status).json


def run(client, space, name, status=200, **parameters):
    return client.post(url(space, "run", name), {"parameters": parameters}).expect(status).json


def test_p30_functions_outlive_kill_9(server):
    with server.client(server.first) as c:
        put(c, "kept", add="return a + b", text="return 'gr\u00fc\u00df dich \U0001f600'")
        put(c, "twice", old="return 1")
        put(c, "twice", new="return 2")
        put(c, "gone", f="return 1")
        c.delete(url("gone")).expect(204)
        server.kill()
    server.start()
    with server.client(server.first) as c:
        assert run(c, "kept", "add", a=40, b=2)["result"] == 42
        assert run(c, "kept", "text")["result"] == "gr\u00fc\u00df dich \U0001f600"
        assert c.get(url("twice")).expect(200).json == {"functions": {"new": {"code": "return 2"}}}
        assert run(c, "twice", "old", 404)["error"] == "NOT_FOUND"
        assert c.get(url("gone")).expect(404).json["error"] == "NOT_FOUND"


def test_p30_every_put_that_was_answered_is_there(server):
    """Killed while many are under way: what was answered counts, and nothing is half."""
    answered = []

    def writer(k):
        try:
            with server.client(server.first) as c:
                for n in range(1000):
                    put(c, f"busy-{k}", **{f"f{i}": f"return {n}" for i in range(20)})
                    answered.append((k, n))
                    if len(answered) == 40:
                        server.process.kill()
        except (OSError, AssertionError, ValueError):
            pass
        except Exception as error:
            assert "http" in type(error).__module__, error

    together(*(lambda k=k: writer(k) for k in range(4)))
    server.kill()
    server.start()
    assert len(answered) >= 40
    with server.client(server.first) as c:
        for k in {k for k, _ in answered}:
            found = c.get(url(f"busy-{k}")).expect(200).json["functions"]
            last = max(n for one, n in answered if one == k)
            codes = {f["code"] for f in found.values()}
            assert len(found) == 20 and codes <= {f"return {last}", f"return {last + 1}"}
            assert len(codes) == 1


def test_p30_another_tenant_has_its_own(server, client):
    with server.client(server.second) as other:
        put(client, "shared", f="return 'first'")
        assert run(other, "shared", "f", 404)
        assert other.get(url("shared")).status == 404 and other.delete(url("shared")).status == 404
        put(other, "shared", f="return 'second'")
        assert run(client, "shared", "f")["result"] == "first"
        assert run(other, "shared", "f")["result"] == "second"
        other.delete(url("shared")).expect(204)
    assert run(client, "shared", "f")["result"] == "first"


def test_p30_limits_of_a_workspace(client):
    put(client, "n" * NAME, f="return 1")
    assert run(client, "n" * NAME, "f")["result"] == 1
    assert put(client, "n" * (NAME + 1), 400, f="return 1")["error"] == "VALIDATION_ERROR"
    put(client, "many", **{f"f{i}": "1" for i in range(FUNCTIONS)})
    assert put(client, "many", 400, **{f"f{i}": "1" for i in range(FUNCTIONS + 1)})["message"]
    put(client, "large", f="x" * (1 << 20), status=413)
    assert client.get(url("large")).status == 404
    # A name is a key, and nothing else.
    put(client, "..%2f..%2fetc", 400, f="return 5")
    for odd in ("..%20", "%25", "a%20b", "'; DROP TABLE items; --".replace(" ", "%20")):
        put(client, odd, f="return 5")
        assert run(client, odd, "f")["result"] == 5


def test_p30_limit_of_workspaces(server):
    key = server.keys("create", "--tenant", "greedy", "--quiet").strip()
    server.stop()
    server.start()

    def part(k):
        with server.client(key) as c:
            return [c.post(url(f"s{n}"), {"functions": {}}).status for n in range(k, SPACES + 20, 4)]

    statuses = sum(together(*(lambda k=k: part(k) for k in range(4))), [])
    assert statuses.count(200) == SPACES and statuses.count(413) == 20
    with server.client(key) as c:
        there = next(n for n in range(SPACES + 20) if c.get(url(f"s{n}")).status == 200)
        put(c, f"s{there}", f="return 1")
        put(c, "one-more", 413, f="return 1")
        c.delete(url(f"s{there}")).expect(204)
        put(c, "one-more", f="return 1")


def test_p30_what_is_no_function(client):
    for functions in ({"f": {}}, {"f": {"code": 1}}, {"f": "return 1"}, {"f": {"code": "1", "language": "js"}}):
        before = client.get(url("bad")).status
        assert client.post(url("bad"), {"functions": functions}).status == 400
        assert client.get(url("bad")).status == before == 404
    assert client.post(url("bad"), {}).status == 400
