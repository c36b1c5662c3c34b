"""What comes in, byte by byte: heads, paths, queries, and what is refused of them."""

import pytest

from support.microhttpd import STRICT

HOST = b"Host: localhost\r\n"


def short(value):
    return repr(value[:50])


def refused(client, status=400):
    """Answered in our shape, then closed: what follows such a head cannot be trusted."""
    if STRICT:
        data = client.closed()
        if b"x-request-id" not in data:
            assert not data or data.startswith(b"HTTP/1.1 4"), data
            return None
        client.data = data
    answer = client.read()
    assert answer.status == status, answer.body
    assert answer.error["request_id"] == answer.headers["x-request-id"]
    assert client.closed() == b""
    return answer.error


def refused_by_the_library(client, *statuses):
    """Before there is a request of ours: some 4xx or 5xx of its own, or nothing, then closed."""
    data = client.closed()
    assert data.count(b"HTTP/1.1 ") <= 1, data
    if statuses:
        assert int(data.split(b" ", 2)[1]) in statuses
    else:
        assert data == b""


# --- heads ---


def test_pipelined(server):
    client = server.connect()
    for path in ("/tiny", "/later", "/nowhere", "/tiny"):
        client.get(path)
    assert [client.read().status for _ in range(4)] == [200, 200, 404, 200]


def test_byte_by_byte(server):
    client = server.connect()
    for byte in b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 12\r\n\r\n" + b'{"text":"a"}':
        client.send(bytes([byte]))
    assert client.read().json == {"body": {"text": "a"}}


@pytest.mark.parametrize("before, after", [(b"", b""), (b" ", b" "), (b"\t ", b" \t"), (b" ", b"   ")])
def test_blanks_around_a_value(server, before, after):
    """They are no part of it (RFC 9110, 5.5), but for a length, where the old library has none."""
    def line(name, value):
        return name + b":" + before + value + after + b"\r\n"

    answer = server.raw(b"GET /headers HTTP/1.1\r\n" + line(b"Host", b"localhost")
                        + line(b"X-Empty", b"") + line(b"User-Agent", b"me") + b"\r\n").read()
    assert (answer.status, answer.json["agent"]) == (200, "me"), answer.body
    body = b'{"text":"a"}'
    answer = server.raw(b"POST /echo HTTP/1.1\r\n" + line(b"Host", b"localhost")
                        + line(b"Content-Type", b"application/json")
                        + (line(b"Content-Length", b"12") if STRICT else b"Content-Length: 12\r\n")
                        + b"\r\n" + body).read()
    assert (answer.status, answer.json) == (200, {"body": {"text": "a"}}), answer.body


@pytest.mark.parametrize("head", [
    b"GET /tiny HTTP/1.1\nHost: localhost\n\n",
    b"GET /tiny HTTP/1.1\r\nHost: localhost\n\r\n",
    b"GET /tiny HTTP/1.1\r\n" + HOST + b"\n",
    b"GET /tiny HTTP/1.1\r\n" + HOST + b"X-A: b\0c\r\n\r\n",
    b"GET /tiny HTTP/1.1\r\n" + HOST + b"\0X-A: b\r\n\r\n",
    b"GET /tiny HTTP/1.1\r\n" + HOST + b"X-A: b\r\n folded\r\n\r\n",
    b"GET /tiny\0.txt HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /tiny HTTP/1.1\r\n" + HOST + b"X-A: a\rb\r\n\r\n",
    b"GET /tiny HTTP/1.1\r\n" + HOST + b"X-A : b\r\n\r\n",
    b"GET /tiny HTTP/1.1\r\n" + HOST + b"X(A): b\r\n\r\n",
    b"GET /tiny HTTP/1.1\r\n" + HOST + b": b\r\n\r\n",
    b"GET /tiny HTTP/1.1\r\n" + HOST + b"X-A: \x01\r\n\r\n",
    b"G(T /tiny HTTP/1.1\r\n" + HOST + b"\r\n",
    b"A" * 40 + b" /tiny HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET  /tiny HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /tiny  HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /ti ny HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET http://localhost/tiny HTTP/1.1\r\n" + HOST + b"\r\n",
    b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n",
    b"CONNECT localhost:80 HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /tiny HTTP/1.1\r\n" + HOST + HOST + b"\r\n"])
def test_heads_that_can_be_read_in_two_ways(server, head):
    refused(server.raw(head))


@pytest.mark.parametrize("head", [
    b"Content-Length: 2\r\nContent-Length: 2\r\n",
    b"Content-Length: 2\r\nContent-Length: 30\r\n",
    b"Content-Length: 30\r\nContent-Length: 2\r\n",
    b"Content-Length: 2\r\ncontent-length: 2\r\n",
    b"Content-Length : 2\r\n",
    b"Content-Length:\r\n 2\r\n",
    b"Content-Length: 2\r\n 0\r\n",
    b"Content-Length: 2\n",
    b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n",
    b"Transfer-Encoding : chunked\r\n",
    b"Transfer-Encoding: chunked, identity\r\n",
    b"Transfer-Encoding: xchunked\r\n",
    b"Transfer-Encoding: \"chunked\"\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Transfer-Encoding: identity\r\n",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    b"Transfer-Encoding:\r\n chunked\r\n"])
def test_lengths_that_can_be_read_in_two_ways(server, head):
    smuggled = b"GET /seen HTTP/1.1\r\n" + HOST + b"\r\n"
    refused(server.raw(b"POST /echo HTTP/1.1\r\n" + HOST + head + b"\r\n{}" + smuggled))


@pytest.mark.parametrize("head, statuses", [
    (b"hello\r\n\r\n", []),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", []),
    (b"GET /tiny\r\n\r\n", [400]),
    (b"GET /tiny HTTQ/1.1\r\n\r\n", [400]),
    (b"GET /tiny HTTP/0.9\r\n\r\n", [505]),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [505]),
    (b"GET /tiny HTTP/1.1\r\n" + HOST + b"nothing\r\n\r\n", [400]),
    (b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: two\r\n\r\n{}", [400]),
    (b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: -2\r\n\r\n{}", [400]),
    (b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 2,2\r\n\r\n{}", [400]),
    (b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: +2\r\n\r\n{}", [400]),
    (b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 0x2\r\n\r\n{}", [400]),
    (b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: 2 2\r\n\r\n{}", [400]),
    (b"POST /echo HTTP/1.1\r\n" + HOST + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n{}", [413]),
    (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", [414]),
    (b"GET /tiny HTTP/1.1\r\n" + HOST + b"X-A: " + b"a" * 200_000 + b"\r\n\r\n", [431]),
    (b"GET /tiny HTTP/1.1\r\n" + HOST + b"X-A: b\r\n" * 20_000 + b"\r\n", [431]),
    (b"GET /tiny HTTP/1.1\r\n" + HOST + b"Cookie: " + b"a=b;" * 9000 + b"\r\n\r\n", [431])],
    ids=short)
def test_heads_that_the_library_refuses(server, head, statuses):
    refused_by_the_library(server.raw(head), *statuses)


def test_too_many_headers(server):
    lines = b"".join(b"X-%d: y\r\n" % i for i in range(101))
    refused(server.raw(b"GET /tiny HTTP/1.1\r\n" + HOST + lines + b"\r\n"), 431)


def test_long_target(server):
    refused(server.connect().get("/items/" + "a" * 9000), 414)
    assert server.get("/items/" + "a" * 8000).json["count"] == 8000


def test_a_flood_of_parameters_costs_nothing(server):
    client = server.connect()
    assert client.get("/query?" + "a&" * 4000).read().error["type"] == "invalid_request"
    assert client.get("/tiny").read().status == 200


def test_half_a_request(server):
    for data in (b"", b"GET", b"GET /tiny HTTP/1.1\r\nHo", b"POST /echo HTTP/1.1\r\n" + HOST +
                 b"Content-Length: 9\r\n\r\n{"):
        client = server.raw(data)
        client.sock.shutdown(1)
        assert client.closed() == b""
    server.wait(connections=1)


def test_old_protocol(server):
    client = server.raw(b"GET /tiny HTTP/1.0\r\n" + HOST + b"\r\n")
    assert client.read().json == {"ok": True} and client.closed() == b""
    client = server.raw(b"GET /stream HTTP/1.0\r\n" + HOST + b"\r\n")
    assert client.closed().endswith(b"xxxxxxx\n" * 3)


# --- routes ---


def test_nothing_there(server):
    for path in ("/", "/nowhere", "/tiny/", "//tiny", "/tiny/x", "/TINY", "/./tiny", "/x/../tiny",
                 "/%74iny", "/tiny%2f", "/items/", "/items//files/x", "/items/a/files/",
                 "/items/a/files", "/items/a/", "/items/a/b", "/tiny;x"):
        client = server.connect()
        answer = client.get(path).read()
        assert (path, answer.status) == (path, 404)
        assert client.get("/tiny").read().status == 200  # the connection goes on


def test_another_method(server):
    answer = server.get("/items/a", method="POST")
    assert answer.status == 405 and answer.error["type"] == "method_not_allowed"
    assert answer.headers["allow"] == "HEAD, GET, PUT, DELETE, OPTIONS"
    assert server.get("/tiny", method="FROB").status == 405
    assert server.get("/tiny", method="TRACE").status == 405
    assert server.get("/nowhere", method="FROB").status == 404


def test_options(server):
    answer = server.get("/items/a", method="OPTIONS")
    assert answer.status == 204 and answer.headers["allow"] == "HEAD, GET, PUT, DELETE, OPTIONS"


@pytest.mark.parametrize("path, expected", [
    ("/items/a", b"a"), ("/items/%C3%A9", b"\xc3\xa9"), ("/items/%ff", b"\xff"),
    ("/items/%252e%252e", b"%2e%2e"), ("/items/...", b"..."), ("/items/a+b", b"a+b"),
    ("/items/a%20b", b"a b"), ("/items/a%3Fb", b"a?b"), ("/items/\xe9", "\xe9".encode()),
    ("/items/a/files/b", b"b"), ("/items/a/files/b/c", b"b/c"),
    ("/items/a/files/../x", b"../x"), ("/items/a/files/%2e%2e%2fx", b"../x"),
    ("/items/a/files//etc/passwd", b"/etc/passwd"), ("/items/a/files/b//c", b"b//c"),
    ("/items/a/files/b/", b"b/"), ("/items/a/files/%252e%252e/x", b"%2e%2e/x")])
def test_parameters_are_decoded_once(server, path, expected):
    assert server.get(path).json == {"hex": expected.hex(), "count": len(expected)}


@pytest.mark.parametrize("path, status", [
    ("/items/..", 400), ("/items/.", 400), ("/items/%2e%2e", 400), ("/items/%2E", 400),
    ("/items/a%2fb", 400), ("/items/..%2f..", 400), ("/items/%00", 400), ("/items/a%00b", 400),
    ("/items/%", 400), ("/items/%4", 400), ("/items/%zz", 400), ("/items/%u0041", 400),
    ("/items/a#b", 400), ("/items/a/files/%00", 400), ("/items/a/files/x%", 400),
    ("/items/../files/x", 400), ("/items/a\x7f", 400), ("/items/a\x01", 400)])
def test_paths_that_are_tricks(server, path, status):
    answer = server.get(path)
    assert answer.status == status and answer.error["type"] == "invalid_request"


# --- queries ---


def test_query(server):
    assert server.get("/query").json == {"text": None, "flag": None, "after": None, "limit": 100}
    assert server.get("/query?text=a%20b%2B+c&limit=1000&after=x&flag=true").json == {
        "text": "a b+ c", "flag": "true", "after": "x", "limit": 1000}
    assert server.get("/query?text=&&").json["text"] == ""
    assert server.get("/query?text=a=b?c").json["text"] == "a=b?c"


@pytest.mark.parametrize("query, param", [
    ("unknown=1", "unknown"), ("text=1&text=2", "text"), ("limit=0", "limit"),
    ("limit=1001", "limit"), ("limit=ten", "limit"), ("limit=1e2", "limit"), ("limit=0x10", "limit"),
    ("limit=", "limit"), ("limit=-1", "limit"), ("limit=1.5", "limit"), ("limit= 1", None),
    ("limit=99999999999999999999999999999999999", "limit"), ("text=12345678901", "text"),
    ("flag=maybe", "flag"), ("Text=a", "Text"), ("%74ext2=a", "text2"), ("=a", ""),
    ("text=%ff", None), ("text=%00", None), ("text=%", None)])
def test_queries_that_do_not_fit(server, query, param):
    answer = server.get(f"/query?{query}")
    assert answer.status == 400
    if not (STRICT and " " in query):
        assert answer.error["param"] == (param or None)


def test_a_route_without_a_query(server):
    assert server.get("/tiny?a=b").error["param"] == "a"
    assert server.get("/tiny?").status == 200
