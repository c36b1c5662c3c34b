"""Whatever a stranger sends: a precise refusal in the one shape or a closed connection; then the
server still answers, and what it held for that stranger is let go."""

import json
import os
import socket
import struct
import time

import pytest

from support import retort
from support.server import answers, drain

pytestmark = pytest.mark.once

FLAGS = ["--header-timeout", "1", "--max-connections", "300"]
HEAD = b"Host: localhost\r\n"
JSON = HEAD + b"Content-Type: application/json\r\n"


def post(path, body, head=JSON, length=None):
    length = len(body) if length is None else length
    return b"POST %s HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s" % (path, head, length, body)


def refused(received, status):
    """What raw() got: one refusal, in the one shape where the body is ours; None for a connection that
    was closed without a word."""
    found = answers(received)
    assert [one.status for one in found] == ([status] if status else []), received[:1000]
    for one in found:
        if one.headers.get("content-type", "").startswith("application/json"):
            assert set(one.json["error"]) == {"type", "message", "param", "request_id"}, one


def refused_or_reset(received, status):
    """The same for what is so long that the server closes before it has read all: the reset that the
    client gets for the rest may overtake the refusal."""
    refused(received, status if received else None)


@pytest.fixture(autouse=True)
def still_there(server):
    yield
    with server.client() as c:
        assert c.get("/health").status == 200


@pytest.fixture(scope="module", autouse=True)
def still_works(server):
    yield
    server.check_alive()


# --- JSON ---

DEEP = b"[" * 100_000
BODIES = [b"", b" ", b"{", b"}", b"null", b"[]", b"1", b'"x"', b'{"code"}', b'{"code":}', b"{'code': 1}",
          b'{"code": "1"} x', b'{"code": "1"}{}', b'{"code": "1",}', b'{"code": "1", "code": "2"}',
          b'\xff\xfe{\0"', b'{"code": "\xff"}', b'{"code": "\xed\xa0\x80"}', b'{"code": "\\ud800"}',
          b'{"code": "a\0b"}', b'{"code": "\\u0000"}', b'{"a\\u0000b": 1}', b"\0" * 100, DEEP,
          b'{"a":' * 50_000, b'{"code": "1", "metadata": ' + b"[" * 80 + b"]" * 80 + b"}",
          b'{"code": 1e999999}', b'{"code": NaN}', b'{"code": "1", "timeout": 1' + b"0" * 5000 + b"}",
          b'\xef\xbb\xbf{"code": "1"}', b'{"code": "' + b"\\" * 999, b'{"code": "1", "timeout": -0}',
          b'{"code": true}', b'{"code": ["1"]}', b'{"Code": "1"}', b'{"code": "1", "__proto__": {}}']


@pytest.mark.parametrize("body", BODIES, ids=[ascii(b)[2:30] for b in BODIES])
def test_json(client, body):
    answer = client.request("POST", "/v1/execute", body=body, headers={"Content-Type": "application/json"})
    answer.refused(400)
    answer = client.request("POST", "/v1/sessions", body=b"[" + body,
                            headers={"Content-Type": "application/json"})
    answer.refused(400)


def test_json_by_another_name(client):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "nonsense"):
        answer = client.request("POST", "/v1/execute", body=b'{"code": "1"}', headers={"Content-Type": kind})
        answer.refused(415)


def test_json_with_a_charset(client):
    answer = client.request("POST", "/v1/execute", body=b'{"code": "1"}',
                            headers={"Content-Type": "application/json; charset=utf-8"})
    assert answer.expect(200).json["result"] == "1"


def test_what_a_message_quotes_is_harmless(client):
    for name in ("x\n\r\"\\<script>", "ü" * 500, "\u202e", "%s%n%d"):
        error = client.post("/v1/execute", {"code": "1", name: 1}).refused(400)
        assert len(json.dumps(error)) < 4000


def test_bodies_over_the_limit(server, client):
    client.post("/v1/sessions", {"metadata": {"a": "x" * 2_000_000}}).refused(413)
    client.post("/v1/execute", {"code": "#" + "x" * 30_000_000}).refused(413)
    got = server.raw(post(b"/v1/sessions", b"", length=10**15))
    assert answers(got)[0].status == 413
    refused(server.raw(post(b"/v1/sessions", b"", length=2**64 - 1)), 413)


def test_large_bodies_cost_no_memory(server):
    with server.client() as c:
        c.get("/health")
    before = server.resident()
    for _ in range(10):
        refused_or_reset(server.raw(post(b"/v1/sessions", b"x" * 5_000_000, length=10**9)), 413)
    assert server.resident() - before < 16 * 1024


def test_bodies_where_none_belongs(client, session):
    for method, path, status in (("GET", "/v1/sessions", 200), ("DELETE", session.path + "/files/x", 404)):
        client.request(method, path, body=b"x" * 100).expect(status)
        client.request(method, path, body=b"x" * 100_000).refused(413)


# --- where a message ends ---

LENGTHS = [b"Content-Length: -1", b"Content-Length: x", b"Content-Length: 1x", b"Content-Length: ",
           b"Content-Length: 0x10", b"Content-Length: 5\r\nContent-Length: 6", b"Content-Length: 99999999999999999999",
           b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"Transfer-Encoding: gzip",
           b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding: xchunked", b"Content-Length: +5",
           b"Content-Length: 5, 5", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
           b"Transfer-Encoding : chunked", b"Content-Length : 5", b"Transfer-Encoding:\x0bchunked",
           b"X: y\r\n Content-Length: 5"]


@pytest.mark.parametrize("lines", LENGTHS, ids=[ascii(x)[2:45] for x in LENGTHS])
def test_lengths(server, lines):
    """Nothing that two parsers could read in two ways; what follows is not taken for a request."""
    after = b"0\r\n\r\nGET /v1/smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
    got = server.raw(b"POST /v1/execute HTTP/1.1\r\n%s%s\r\n\r\n%s" % (JSON, lines, after))
    refused(got, 413 if b"999" in lines else 400)


CHUNKS = {b"x\r\n": 400, b"-1\r\n": 400, b"FFFFFFFFFFFFFFFFF\r\n": 413, b"5\r\nab": None,
          b"5\nhello\n0\n\n": 400, b"2\r\nabc\r\n0\r\n\r\n": 400, b"\r\n": 400,
          b"0x5\r\nhello\r\n0\r\n\r\n": 400, b"5;" + b"e" * 100_000 + b"\r\nhello\r\n0\r\n\r\n": None,
          b"0\r\n" + b"T: x\r\n" * 5000 + b"\r\n": 431, b"1" * 5000: 413, b"FFFFFFFFFFFFFFFF\r\nx": None,
          b"5\r\nhelloXX0\r\n\r\n": 400}


@pytest.mark.parametrize("chunks", CHUNKS, ids=[ascii(c)[2:24] for c in CHUNKS])
def test_chunks(server, chunks):
    got = server.raw(b"POST /v1/execute HTTP/1.1\r\n%sTransfer-Encoding: chunked\r\n\r\n%s" % (JSON, chunks),
                     half_close=True)
    (refused if len(chunks) < 1000 else refused_or_reset)(got, CHUNKS[chunks])


def test_honest_chunks(server):
    body = b'{"code": "6 * 7"}'
    chunks = b"".join(b"1\r\n%c\r\n" % b for b in body) + b"0\r\n\r\n"
    got = server.raw(b"POST /v1/execute HTTP/1.1\r\n%sTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n%s"
                     % (JSON, chunks))
    assert b"42" in got and got.startswith(b"HTTP/1.1 200")


def test_less_than_promised(server):
    """The rest never comes: refused when the time is over, not kept for ever."""
    for path, status in ((b"/v1/execute", None), (b"/v1/files", None), (b"/v1/sessions/sess_x/files/y", 405)):
        refused(server.raw(post(path, b'{"code":', length=100)), status)


def test_more_than_promised(server):
    """What follows is the next request, and it is none: the connection is closed."""
    got = server.raw(post(b"/v1/execute", b'{"code": "1"}' + b"X" * 100 + b"\r\n\r\n", length=13))
    assert [found.status for found in answers(got)] == [200]


def test_an_upload_that_breaks_off(server, client, session):
    for cut in (0, 1, 70_000, 900_000):
        with server.connect() as s:
            s.sendall(b"PUT %s/files/half HTTP/1.1\r\n%sContent-Length: 1000000\r\n\r\n" % (session.path.encode(), HEAD))
            s.sendall(b"x" * cut)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    time.sleep(0.2)
    assert session.files() == {}
    assert session.run("import os; os.listdir('.')")["result"] == "[]"


# --- the head ---

HEADS = {b"": None, b"\r\n": None, b"\r\n\r\n\r\n": None, b"GET\r\n\r\n": None, b"GET /\r\n\r\n": 400,
         b"GET / HTTP/9.9\r\n\r\n": 505, b"\0" * 1000: None, b"GET / HTTP/1.1\r\n\r\n": 400,
         b"\xff" * 500 + b"\r\n\r\n": None, b"GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n": 400,
         b"GET /\0x HTTP/1.1\r\nHost: localhost\r\n\r\n": 400, b"GET /\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n": 400,
         b"G\0T / HTTP/1.1\r\nHost: localhost\r\n\r\n": 400,
         b"GET / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n": 400,
         b"GET / HTTP/1.1\r\nHost: localhost\r\n: empty\r\n\r\n": 400,
         b"GET / HTTP/1.1\r\nHost: localhost\r\nA\0: b\r\n\r\n": 400,
         b"GET / HTTP/1.1\r\nHost: localhost\r\nA: \0\r\n\r\n": 400,
         b"GET / HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n": 400,
         b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n": 400,
         b"GET * HTTP/1.1\r\nHost: localhost\r\n\r\n": 400,
         b"CONNECT evil.example:80 HTTP/1.1\r\nHost: localhost\r\n\r\n": 400, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": 505,
         b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 500: None, b"G" * 20_000: None,
         b"GET /" + b"a" * 100_000: 414, b"BREW /pot HTTP/1.1\r\nHost: localhost\r\n\r\n": 404,
         b"get /health HTTP/1.1\r\nHost: localhost\r\n\r\n": 405,
         b"GET /" + b"?a=b&" * 3000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n": 414,
         b"X" * 100 + b" / HTTP/1.1\r\nHost: localhost\r\n\r\n": 400}


@pytest.mark.parametrize("head", HEADS, ids=[ascii(h)[2:40] + f"-{len(h)}" for h in HEADS])
def test_heads(server, head):
    (refused if len(head) < 1000 else refused_or_reset)(server.raw(head, half_close=True), HEADS[head])


@pytest.mark.parametrize("flood", [b"A: b\r\n" * 500, b"A: b\r\n" * 100_000, b"A: " + b"b" * 200_000 + b"\r\n",
                                   b"A" * 200_000, b"Cookie: " + b"a=b; " * 20_000 + b"\r\n",
                                   b"A%s: b\r\n" % (b"x" * 70_000)], ids=len)
def test_header_floods(server, flood):
    refused_or_reset(server.raw(b"GET /health HTTP/1.1\r\n" + HEAD + flood + b"\r\n"), 431)


def test_headers_within_the_limit(client):
    client.get("/health", headers={f"X-{i}": "y" * 100 for i in range(60)}).expect(200)


@pytest.mark.parametrize("path", ["/nowhere", "/v1", "/v1/", "/v1/sessions/", "//v1/sessions", "/v1//sessions",
                                  "/V1/sessions", "/v1/sessions/x/y/z", "/../v1/sessions", "/v1/../v1/sessions",
                                  "/%76%31/nowhere", "/health/", "/v1/files/"])
def test_paths_that_lead_nowhere(client, path):
    client.get(path).refused(404)


@pytest.mark.parametrize("path", ["/v1/sessions?%", "/v1/sessions?limit=%zz", "/v1/sessions?limit=1%00",
                                  "/v1/sessions?&".ljust(300, "&") + "a=1", "/v1/sessions?=", "/v1/sessions?%ff=1",
                                  "/v1/sessions?" + "&".join(f"a{i}=1" for i in range(400)), "/%zz", "/%", "/a%0"])
def test_queries_and_escapes(client, path):
    client.get(path).refused(400)


@pytest.mark.parametrize("method, path, allowed", [
    ("PUT", "/v1/sessions", {"GET", "HEAD", "POST"}), ("PATCH", "/v1/execute", {"POST"}),
    ("POST", "/health", {"GET", "HEAD"}), ("DELETE", "/v1/pools", {"GET", "HEAD"}), ("TRACE", "/health", {"GET", "HEAD"})])
def test_methods(client, method, path, allowed):
    answer = client.request(method, path)
    answer.refused(405)
    assert allowed <= set(answer.headers["allow"].replace(" ", "").split(","))


# --- many, slow, half ---

def test_slow_loris(server):
    """Heads and bodies that come a byte at a time and never end; others are served meanwhile."""
    slow = [server.connect() for _ in range(50)]
    for i, s in enumerate(slow):
        s.sendall(b"GET /health HTTP/1.1\r\nHost: loc" if i % 2 else
                  b"POST /v1/execute HTTP/1.1\r\n%sContent-Length: 1000\r\n\r\n{" % JSON)
    until, gone = time.monotonic() + retort.SECONDS, set()
    while len(gone) < len(slow):
        assert time.monotonic() < until, f"{len(slow) - len(gone)} of {len(slow)} are still let in"
        for i, s in enumerate(slow):
            if i in gone:
                continue
            try:
                s.sendall(b"x")
                s.setblocking(False)
                try:
                    if s.recv(4096) == b"":
                        gone.add(i)
                except BlockingIOError:
                    pass
                s.setblocking(True)
            except OSError:
                gone.add(i)
        with server.client() as c:
            assert c.get("/health").status == 200
        time.sleep(0.2)
    for s in slow:
        s.close()


def test_connections_that_say_nothing(server):
    """They are closed when the time for a head is over."""
    for s in [server.connect() for _ in range(50)]:
        with s:
            assert drain(s) == b""
            with pytest.raises(OSError):  # a socket that is still open takes all of them
                for _ in range(100):
                    s.send(b"x")
                    time.sleep(0.02)


def test_more_connections_than_there_may_be(server):
    """Those that are one too many are refused or wait; the others go on."""
    held = []
    try:
        for _ in range(400):
            try:
                held.append(server.connect(20))
            except OSError:
                break
    finally:
        for s in held:
            s.close()

    def answered():
        try:
            with server.client() as c:
                return c.get("/health").status == 200
        except OSError:
            return False

    retort.wait_until(answered, "room again")


def test_pipelining(server):
    one = b"GET /v1/pools/default HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    found = answers(server.raw(one * 50 + last))
    assert [f.status for f in found] == [200] * 51
    assert len({f.headers["x-request-id"] for f in found}) == 51


def test_pipelined_executions_keep_their_order(server):
    with server.client() as c, c.session() as s:
        asked = [post(s.path.encode() + b"/execute", b'{"code": "%d"}' % i) for i in range(10)]
        asked.append(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        found = answers(server.raw(*asked))
        assert [f.json["result"] for f in found[:-1]] == [str(i) for i in range(10)]


def test_half_closed(server):
    """A client that will send no more still gets its answer; but one whose code runs is taken for gone."""
    got = server.raw(b"GET /v1/pools HTTP/1.1\r\nHost: localhost\r\n\r\n", half_close=True)
    assert got.startswith(b"HTTP/1.1 200")
    # Longer than the server needs to see the end of the stream, however slow the machine.
    endless = b'{"code": "import time; time.sleep(3600)"}'
    assert server.raw(post(b"/v1/execute", endless), half_close=True) == b""


def test_reset_in_the_middle(server):
    for _ in range(50):
        s = server.connect()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.sendall(post(b"/v1/execute", b'{"code": "import time; time.sleep(60)", "stream": true}'))
        if _ % 2:
            s.recv(10)
        s.close()
    with server.client() as c:
        retort.wait_until(lambda: not any(x["state"] == "running" for x in c.all("/v1/sessions")),
                          "what they began to end", 30)


def test_expect_continue(server):
    with server.connect() as s:
        body = b'{"code": "1"}'
        s.sendall(b"POST /v1/execute HTTP/1.1\r\n%sExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % (JSON, len(body)))
        assert s.recv(4096).startswith(b"HTTP/1.1 100")
        s.sendall(body)
        assert s.recv(65536).startswith(b"HTTP/1.1 200")
        # Refused before it is sent.
        s.sendall(b"POST /v1/sessions HTTP/1.1\r\n%sExpect: 100-continue\r\nContent-Length: 999999999\r\n\r\n" % JSON)
        assert s.recv(65536).startswith(b"HTTP/1.1 413")


def test_old_http(server):
    got = server.raw(b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n")
    assert got.startswith(b"HTTP/1.") and b" 200 " in got.split(b"\r\n")[0]


def test_noise(server):
    for i in range(200):
        server.raw(os.urandom(i * 7 % 1500), half_close=True)


def test_nothing_is_left_of_all_that(server):
    """The connections above are closed; so are their descriptors."""
    def count():
        return len(os.listdir(f"/proc/{server.pid}/fd"))

    with server.client() as c:
        c.get("/health")
        for info in c.all("/v1/sessions"):
            c.delete("/v1/sessions/" + info["id"])
    retort.wait_until(lambda: count() < 60, f"descriptors to be closed ({count()})", 30)
