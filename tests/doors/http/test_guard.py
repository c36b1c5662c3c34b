"""Who may come in: Host, Origin, keys, TLS, sockets; and for how long, and how many."""

import socket
from pathlib import Path

import pytest

PEM = Path(__file__).with_name("self-signed.pem")  # a certificate and its key


def get(server, path="/tiny", host="localhost", *headers):
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", *headers, "", ""]
    return server.raw("\r\n".join(lines)).read()


# --- Host ---


@pytest.mark.parametrize("host, status", [
    ("localhost", 200), ("LOCALHOST:8000", 200), ("127.0.0.1", 200), ("127.0.0.1:1", 200),
    ("[::1]", 200), ("[::1]:8000", 200), ("evil.example", 403), ("localhost.evil.example", 403),
    ("127.0.0.1.evil.example", 403), ("127.0.0.2", 403), ("2130706433", 403), ("0.0.0.0", 403),
    ("named.example", 403), ("", 400), ("a b", 400), ("localhost:", 400), ("localhost:x", 400),
    ("localhost:1234567", 400), ("user@localhost", 400), ("localhost/", 400), ("[::1", 400),
    ("[::1]x", 400), ("x" * 300, 400)])
def test_host(server, host, status):
    assert get(server, host=host).status == status


def test_no_host(server):
    assert server.raw("GET /tiny HTTP/1.1\r\n\r\n").read().status == 400


def test_further_hosts(serve):
    server = serve(H="named.example, other.example:81")
    assert get(server, host="named.example").status == 200
    assert get(server, host="named.example:80").status == 200
    assert get(server, host="other.example:81").status == 200
    assert get(server, host="other.example:80").status == 403
    assert get(server, host="evil.example").status == 403


def test_any_host_with_a_key(serve):
    server = serve(k="secret")
    assert get(server, "/tiny", "evil.example", "x-api-key: secret").status == 200
    assert get(server, "/tiny", "evil.example").status == 401


# --- Origin ---


@pytest.mark.parametrize("origin, status", [
    ("http://localhost", 200), ("https://localhost", 200), ("http://LOCALHOST", 200),
    ("http://localhost:81", 403), ("http://evil.example", 403), ("null", 403), ("", 403),
    ("localhost", 403), ("http://localhost.evil.example", 403), ("ftp://localhost", 403)])
def test_origin(server, origin, status):
    answer = get(server, "/tiny", "localhost", f"Origin: {origin}")
    assert answer.status == status
    assert "access-control-allow-origin" not in answer.headers


def test_a_bent_name_gets_nowhere(server):
    assert get(server, "/tiny", "evil.example", "Origin: http://evil.example").status == 403


def test_further_origins(serve):
    server = serve(O="https://app.example,http://localhost:5173")
    answer = get(server, "/tiny", "localhost", "Origin: https://app.example")
    assert answer.status == 200 and answer.headers["vary"] == "origin"
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    assert get(server, "/tiny", "localhost", "Origin: https://evil.example").status == 403
    answer = get(server, "/nowhere", "localhost", "Origin: http://localhost:5173")
    assert answer.headers["access-control-allow-origin"] == "http://localhost:5173"


def test_preflight(serve):
    server = serve(O="https://app.example", k="secret")
    answer = server.get("/echo", "Origin: https://app.example",
                        "Access-Control-Request-Method: POST",
                        "Access-Control-Request-Headers: content-type, x-api-key", method="OPTIONS")
    assert answer.status == 204
    assert answer.headers["access-control-allow-methods"] == "POST, OPTIONS"
    assert answer.headers["access-control-allow-headers"] == "content-type, x-api-key"
    answer = server.get("/echo", "Origin: https://evil.example", method="OPTIONS")
    assert answer.status == 403 and "access-control-allow-methods" not in answer.headers


def test_origin_is_checked_with_a_key_too(serve):
    server = serve(k="secret")
    assert get(server, "/tiny", "localhost", "x-api-key: secret", "Origin: http://e").status == 403


# --- keys ---


@pytest.mark.parametrize("header, status", [
    ("Authorization: Bearer secret", 200), ("authorization: bearer  secret", 200),
    ("x-api-key: secret", 200), ("X-MS-APIKEY: secret", 200), ("Authorization: secret", 401),
    ("Authorization: Basic c2VjcmV0", 401), ("Authorization: Bearer", 401),
    ("x-api-key: Secret", 401), ("x-api-key: secre", 401), ("x-api-key: secrett", 401),
    ("x-api-key:", 401), ("x-other: secret", 401)])
def test_key(serve, header, status):
    answer = get(serve(k="secret"), "/tiny", "localhost", header)
    assert answer.status == status
    if status == 401:
        assert answer.error["type"] == "unauthorized"
        assert answer.headers["www-authenticate"] == "Bearer"


def test_two_keys_are_one_too_many(serve):
    server = serve(k="secret")
    assert get(server, "/tiny", "localhost", "x-api-key: a", "x-api-key: secret").status == 400


def test_admin(serve):
    assert serve().get("/admin").status == 200
    answer = serve(k="secret").get("/admin", "x-api-key: secret")
    assert answer.status == 403 and answer.error["type"] == "forbidden"


def test_without_keys_only_this_machine(serve):
    server = serve(l=0)
    assert server.get("/tiny").status == 401
    assert server.get("/health").status == 200


def test_open_routes_need_none(serve):
    server = serve(k="secret", l=0)
    assert server.get("/health").status == 200
    assert server.get("/ready").status == 200
    assert server.get("/metrics").status == 401
    assert server.get("/metrics", "x-api-key: secret").status == 200
    assert serve(k="secret").get("/metrics").status == 200


def test_a_body_is_not_read_without_a_key(serve):
    server = serve(k="secret")
    client = server.connect().get("/raw", "Content-Length: 1000000000", method="PUT")
    assert client.read().status == 401 and client.closed() == b""


# --- TLS and Unix sockets ---


def test_tls(serve):
    server = serve(c=PEM, t=PEM)
    client = server.connect()
    assert client.get("/tiny").read().json == {"ok": True}
    assert client.get("/later").read().json == {"later": True}
    assert client.get("/stream").read().body == b"xxxxxxx\n" * 3
    assert client.post("/raw", b"x" * 3_000_000, method="PUT").read().status == 201
    assert len(client.get("/file?size=3000000").read().body) == 3_000_000
    client.get("/echo", "Transfer-Encoding: chunked", method="POST")
    client.send(b"2000\r\n" + b" " * 8192 + b"\r\n")
    assert client.read().status == 413
    assert server.connect().get("/nope").read().status == 404


def test_plain_bytes_at_a_tls_port(serve):
    server = serve(c=PEM, t=PEM)
    server.tls = False
    assert b"HTTP" not in server.connect().get("/tiny").closed()
    server.tls = True
    assert server.get("/tiny").status == 200


def test_unix_socket(serve, tmp_path):
    server = serve(u=str(tmp_path / "socket"))
    client = server.connect()
    assert client.get("/tiny").read().json == {"ok": True}
    assert client.get("/stream").read().body == b"xxxxxxx\n" * 3
    assert client.post("/raw", b"x" * 3_000_000, method="PUT").read().status == 201
    assert len(client.get("/file?size=3000000").read().body) == 3_000_000
    other = server.connect().get("/later?ms=100000&watch=1")
    server.wait(kept=1)
    other.close()
    server.wait(gone=1)


# --- slow ones, and many ---


def drip(client, pieces):
    """Sends a piece at a time, well within what silence would be allowed; ends when cut off."""
    client.sock.settimeout(0.1)
    for piece in pieces:
        try:
            client.send(piece)
            if client.sock.recv(65536) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


@pytest.mark.parametrize("start, piece", [
    (b"", b"G"), (b"GET /tiny HTTP/1.1\r\n", b"X: y\r\n"), (b"GET /tiny HTTP/1.1\r\nX: ", b"y"),
    (b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000\r\n\r\n", b" "),
    (b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    (b"GET /tiny HTTP/1.1\r\nHost: localhost\r\n\r\nGET /tiny HTTP/1.1\r\n", b"X: y\r\n")])
def test_slow_loris(serve, start, piece):
    server = serve(h=500)
    assert drip(server.raw(start), [piece] * 200)
    server.wait(connections=1)


def test_silence(serve):
    server = serve(h=300)
    assert server.connect().closed() == b""
    assert server.raw("GET /tiny HT").closed() == b""


def test_an_answer_may_take_longer_than_a_head(serve):
    server = serve(h=200)
    client = server.connect()
    assert client.get("/later?ms=1500").read().json == {"later": True}
    assert client.get("/stream?count=3&ms=500").read().body == b"xxxxxxx\n" * 3
    assert client.get("/tiny").read().status == 200


def test_too_many_connections(serve):
    server = serve(m=3)
    clients = [server.connect() for _ in range(3)]
    for client in clients:
        client.get("/tiny").read()
    assert server.connect().closed() == b""
    assert clients[0].get("/seen").read().json["refused"] == 1
    clients[2].close()
    while clients[0].get("/seen").read().json["connections"] == 3:
        pass
    assert server.get("/tiny").status == 200


def test_too_many_of_one_address(serve):
    server = serve(a=2)
    clients = [server.connect() for _ in range(2)]
    for client in clients:
        client.get("/tiny").read()
    assert server.connect().closed() == b""
    sock = socket.create_connection(("127.0.0.1", server.port), source_address=("127.0.0.9", 0))
    sock.sendall(b"GET /tiny HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert sock.recv(100).startswith(b"HTTP/1.1 200")
    sock.close()


def test_closing_time(serve):
    server = serve()
    waiting, idle = server.connect().get("/later?ms=500"), server.connect()
    idle.get("/tiny").read()
    server.wait(kept=1)
    server.process.send_signal(10)  # SIGUSR1: no new connections
    answer = waiting.read()
    assert answer.json == {"later": True} and answer.headers["connection"] == "close"
    assert idle.get("/tiny").read().headers["connection"] == "close"
    with pytest.raises(OSError):
        server.connect()


def test_the_end_with_work_in_hand(serve):
    server = serve()
    server.connect().get("/later?ms=100000&watch=1")
    server.connect().get("/stream?count=2&ms=100000")
    server.connect().get("/flood?count=4000")
    server.connect().get("/raw", "Content-Length: 1000000", method="PUT").send(b"x" * 500_000)
    server.wait(kept=3)
    server.stop()


def test_half_a_head_after_a_whole_request(serve):
    """The next request on a connection that is kept has no more time than the first one had."""
    server = serve(h=300)
    halves = ["G", "GET /tiny HTT", "GET /tiny HTTP/1.1\r\nHos", "GET /tiny HTTP/1.1\r\nHost: localhost\r\n"]
    clients = [server.connect() for _ in halves]
    for client, half in zip(clients, halves):
        assert client.get("/tiny").read().status == 200
        client.send(half)
    for client in clients:
        assert client.closed() == b""  # which the time of an idle connection would be too late for
