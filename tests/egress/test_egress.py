"""The proxy as a sandbox sees it: clients that mean well, and clients that do not."""

import contextlib
import hashlib
import shutil
import socket
import ssl
import subprocess
import threading
import urllib.error
import urllib.request

import pytest
from driver import program, read_all
from support.web import Web, response


def opener(proxy):
    handler = urllib.request.ProxyHandler({"http": f"http://{proxy.address}",
                                           "https": f"http://{proxy.address}"})
    return urllib.request.build_opener(handler)


@pytest.fixture
def echo():
    """Sends back what it gets, and "bye" after the other side has said that it is done."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)

    def talk(conn):
        with conn, contextlib.suppress(OSError):  # some clients leave without a word
            while got := conn.recv(65536):
                conn.sendall(got)
            conn.sendall(b"bye")

    def serve():
        while True:
            try:
                conn, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(conn,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


# --- what goes well ---


def test_get(proxy, web):
    p = proxy(web.here)
    web.put("/a?b=c", response(body=b"hello"))
    assert opener(p).open(f"http://{web.here}/a?b=c").read() == b"hello"
    head = web.heads[-1].decode()
    assert head.startswith(f"GET /a?b=c HTTP/1.1\r\nHost: {web.here}\r\nConnection: close\r\n")
    assert "proxy" not in head.lower()
    line = p.wait_log(1)[0]
    assert line.startswith(f"GET {web.here} 200 up 0 down ")
    assert int(line.split()[-1]) > 5


def test_status_of_the_host(proxy, web):
    p = proxy(web.here)
    with pytest.raises(urllib.error.HTTPError) as raised:
        opener(p).open(f"http://{web.here}/nothing")
    assert raised.value.code == 404
    assert p.wait_log(1)[0].startswith(f"GET {web.here} 404 ")


def test_post(proxy, web):
    p = proxy(web.here)
    got = []

    def answer(conn, head):
        body = head.split(b"\r\n\r\n", 1)[1]
        while len(body) < 300000:
            body += conn.recv(65536)
        got.append(body)
        conn.sendall(response(body=b"thanks"))

    web.put("/post", answer)
    sent = bytes(range(256)) * 1172
    sent = sent[:300000]
    assert opener(p).open(f"http://{web.here}/post", data=sent).read() == b"thanks"
    assert got == [sent]
    assert f"POST {web.here} 200 up 300000 down " in p.wait_log(1)[0]


def test_names(proxy, web):
    p = proxy(f"a.test:{web.port}, *.b.test:{web.port}")
    web.put("/n", response(body=b"n"))
    for host in ("a.test", "A.TEST", "a.test.", "x.b.test", "y.x.b.test"):
        answer = p.say(f"GET http://{host}:{web.port}/n HTTP/1.1\r\n\r\n")
        assert answer.endswith(b"\r\n\r\nn"), answer
        assert f"Host: {host.lower().rstrip('.')}:{web.port}\r\n".encode() in web.heads[-1]


def test_addresses_are_tried_in_order(proxy, web):
    p = proxy(f"next.test:{web.port}")
    web.put("/s", response(body=b"s"))
    assert p.say(f"GET http://next.test:{web.port}/s HTTP/1.1\r\n\r\n").endswith(b"s")


def test_tunnel(proxy, echo):
    p = proxy(f"127.0.0.1:{echo}")
    with p.tunnel(f"127.0.0.1:{echo}") as sock:
        for text in (b"one", b"two"):
            sock.sendall(text)
            assert sock.recv(100) == text
        sock.shutdown(socket.SHUT_WR)
        assert read_all(sock) == b"bye"
    assert p.wait_log(1) == [f"CONNECT 127.0.0.1:{echo} 200 up 6 down 9"]


def test_tunnel_half_closed_by_the_host(proxy):
    listener = socket.create_server(("127.0.0.1", 0))
    where = f"127.0.0.1:{listener.getsockname()[1]}"
    p = proxy(where)
    with listener, p.tunnel(where) as sock:
        host, _ = listener.accept()
        with host:
            host.sendall(b"last words")
            host.shutdown(socket.SHUT_WR)
            assert read_all(sock) == b"last words"
            sock.sendall(b"still here")
            sock.shutdown(socket.SHUT_WR)
            assert read_all(host) == b"still here"
    assert p.wait_log(1) == [f"CONNECT {where} 200 up 10 down 10"]


def test_bytes_before_the_answer(proxy, echo):
    """What a hasty client sends behind CONNECT reaches the host."""
    p = proxy(f"127.0.0.1:{echo}")
    with p.connect() as sock:
        sock.sendall(f"CONNECT 127.0.0.1:{echo} HTTP/1.1\r\n\r\nhasty".encode())
        sock.shutdown(socket.SHUT_WR)
        assert read_all(sock) == b"HTTP/1.1 200 Connection established\r\n\r\nhastybye"
    assert p.wait_log(1) == [f"CONNECT 127.0.0.1:{echo} 200 up 5 down 8"]


def test_tls_through_the_tunnel(proxy):
    with Web(tls=True) as web:
        web.put("/", response(body=b"sealed"))
        p = proxy(web.here)
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        handler = urllib.request.ProxyHandler({"https": f"http://{p.address}"})
        https = urllib.request.HTTPSHandler(context=context)
        got = urllib.request.build_opener(handler, https).open(f"https://{web.here}/").read()
        assert got == b"sealed"


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_curl(proxy, web):
    p = proxy(web.here)
    web.put("/curl", response(body=b"by curl"))
    for more in ([], ["--proxytunnel"], ["-H", "Expect: 100-continue", "-d", "x"]):
        got = subprocess.run(["curl", "-sS", "-x", f"http://{p.address}", *more,
                              f"http://{web.here}/curl"], capture_output=True, check=True)
        assert got.stdout == b"by curl"


def test_chunked_request(proxy, web):
    p = proxy(web.here)
    web.put("/chunks", response(body=b"ok"))
    body = b"3\r\nabc\r\n10\r\n" + b"x" * 16 + b"\r\n0\r\n\r\n"
    head = f"POST http://{web.here}/chunks HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    assert p.say(head + body + b"GET /smuggled HTTP/1.1\r\n\r\n").endswith(b"ok")
    assert web.heads[-1].endswith(body)
    assert f"POST {web.here} 200 up {len(body)} down" in p.wait_log(1)[0]


def test_only_one_request_a_connection(proxy, web):
    p = proxy(web.here)
    web.put("/first", response(body=b"first"))
    for body, more in (("", ""), ("Content-Length: 3\r\n", "abc")):
        p.say(f"GET http://{web.here}/first HTTP/1.1\r\n{body}\r\n{more}"
              f"GET /second HTTP/1.1\r\nHost: other.test\r\n\r\n")
        assert b"second" not in web.heads[-1]
    assert web.asked("/second") == 0


def test_hop_by_hop_headers_end_here(proxy, web):
    p = proxy(web.here)
    web.put("/hop", response())
    p.say(f"GET http://{web.here}/hop HTTP/1.1\r\nHost: elsewhere.test\r\nX-Kept: 1\r\n"
          "Proxy-Authorization: Basic x\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\n"
          "Connection: keep-alive, X-Gone\r\nX-Gone: 1\r\nUpgrade: h2c\r\nKeep-Alive: 5\r\n\r\n")
    assert web.heads[-1].decode() == (f"GET /hop HTTP/1.1\r\nHost: {web.here}\r\n"
                                      "Connection: close\r\nX-Kept: 1\r\n\r\n")


def test_a_url_without_a_path(proxy, web):
    p = proxy(web.here)
    for url, path in (("", "/"), ("/", "/"), ("?q", "/?q")):
        p.say(f"GET http://{web.here}{url} HTTP/1.1\r\n\r\n")
        assert web.heads[-1].split()[1].decode() == path


# --- what is refused ---


@pytest.mark.parametrize("hosts, where", [
    ("example.com", "example.org:443"),
    ("example.com", "www.example.com:443"),
    ("example.com", "example.com:8443"),
    ("example.com", "example.com.evil.test:443"),
    ("example.com", "evilexample.com:443"),
    ("*.example.com", "example.com:443"),
    ("*.example.com", "evilexample.com:443"),
    ("example.com:8443", "example.com:443"),
    ("", "example.com:443"),
    ("*", "example.com:22"),
    ("10.0.0.0/8", "11.0.0.1:80"),
    ("10.0.0.1", "10.0.0.2:80"),
])
def test_not_in_the_list(proxy, hosts, where):
    p = proxy(hosts)
    answer = p.say(f"CONNECT {where} HTTP/1.1\r\n\r\n")
    head, body = answer.split(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 403 ")
    assert body == f"{where} is not in the allow-list of this pool\n".encode()
    assert p.wait_log(1) == [f"CONNECT {where} 403 up 0 down 0"]


def test_plain_request_not_in_the_list(proxy, web):
    p = proxy("example.com")
    with pytest.raises(urllib.error.HTTPError) as raised:
        opener(p).open(f"http://{web.here}/", data=b"x" * 500000)
    assert raised.value.code == 403
    assert f"{web.here} is not in the allow-list" in raised.value.read().decode()


@pytest.mark.parametrize("host", ["127.0.0.1", "a.test", "[::1]", "[::ffff:127.0.0.1]",
                                  "169.254.169.254", "10.0.0.1", "localhost", "both.test",
                                  "[fd00::1]", "0.0.0.0"])
def test_private_addresses(proxy, web, host):
    """A list that allows every host allows no private one."""
    p = proxy(f"*:{web.port}", private=False)
    before = len(web.heads)
    answer = p.say(f"CONNECT {host}:{web.port} HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403 ") and b"is private" in answer
    assert len(web.heads) == before


def test_private_address_in_the_list(proxy, web):
    """It may be asked for by that address, and names that lead there may not."""
    p = proxy(f"{web.here}, a.test:{web.port}", private=False)
    web.put("/p", response(body=b"p"))
    assert p.say(f"GET http://{web.here}/p HTTP/1.1\r\n\r\n").endswith(b"p")
    assert b"is private" in p.say(f"GET http://a.test:{web.port}/p HTTP/1.1\r\n\r\n")


def test_a_wrong_list():
    done = subprocess.run([program(), "example.com, exa mple/x"], capture_output=True,
                          text=True)
    assert done.returncode == 1
    assert "refused 'mple/x' is not a host" in done.stdout


def test_nobody_there(proxy):
    with socket.create_server(("127.0.0.1", 0)) as gone:
        where = f"127.0.0.1:{gone.getsockname()[1]}"
    p = proxy(f"{where}, none.test")
    assert p.say(f"CONNECT {where} HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 502 ")
    answer = p.say("CONNECT none.test:443 HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 502 ") and b"none.test is a name without" in answer
    assert p.wait_log(2) == [f"CONNECT {where} 502 up 0 down 0",
                             "CONNECT none.test:443 502 up 0 down 0"]


GET = "GET http://127.0.0.1:{port}/bad HTTP/1.1\r\n"


@pytest.mark.parametrize("text", [
    "GET /bad HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "GET https://127.0.0.1/bad HTTP/1.1\r\n\r\n",
    "GET ftp://127.0.0.1/bad HTTP/1.1\r\n\r\n",
    "GET http://127.0.0.1:{port}/bad HTTP/2.0\r\n\r\n",
    "GET http://127.0.0.1:{port}/bad\r\n\r\n",
    "GET  http://127.0.0.1:{port}/bad HTTP/1.1\r\n\r\n",
    "GET http://127.0.0.1:{port}/bad  HTTP/1.1\r\n\r\n",
    "GET http://127.0.0.1:{port}/bad HTTP/1.1 \r\n\r\n",
    "GET http://127.0.0.1:{port}/b\tad HTTP/1.1\r\n\r\n",
    "GET http://u:p@127.0.0.1:{port}/bad HTTP/1.1\r\n\r\n",
    "GET http://127.0.0.1:{port}/bad#x HTTP/1.1\r\n\r\n",
    "GET http://127.0.0.1:{port}\\@evil/bad HTTP/1.1\r\n\r\n",
    "GET http://127.1:{port}/bad HTTP/1.1\r\n\r\n",
    "GET http://2130706433:{port}/bad HTTP/1.1\r\n\r\n",
    "GET http://0x7f000001:{port}/bad HTTP/1.1\r\n\r\n",
    "GET http://:80/bad HTTP/1.1\r\n\r\n",
    "GET http://127.0.0.1:/bad HTTP/1.1\r\n\r\n",
    "GET http://127.0.0.1:0/bad HTTP/1.1\r\n\r\n",
    "GET http://127.0.0.1:65536/bad HTTP/1.1\r\n\r\n",
    "GET http://127.0.0.1:+80/bad HTTP/1.1\r\n\r\n",
    "G(T http://127.0.0.1:{port}/bad HTTP/1.1\r\n\r\n",
    "AVERYLONGMETHODNAME http://127.0.0.1:{port}/bad HTTP/1.1\r\n\r\n",
    "CONNECT 127.0.0.1 HTTP/1.1\r\n\r\n",
    "CONNECT http://127.0.0.1:{port} HTTP/1.1\r\n\r\n",
    "CONNECT ::1:80 HTTP/1.1\r\n\r\n",
    "CONNECT 127.0.0.1:{port}/x HTTP/1.1\r\n\r\n",
    "CONNECT 127.0.0.1:{port} HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
    GET + "A: b\r\n c\r\n\r\n",
    GET + "A: b\r\n\tc\r\n\r\n",
    GET + " A: b\r\n\r\n",
    GET + "A : b\r\n\r\n",
    GET + "A\r\n\r\n",
    GET + ": b\r\n\r\n",
    GET + "A: b\nC: d\r\n\r\n",
    GET + "A: b\rC: d\r\n\r\n",
    GET + "A: b\0c\r\n\r\n",
    GET + "A: b\x7fc\r\n\r\n",
    GET + "Host: a\r\nHost: b\r\n\r\n",
    GET + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    GET + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    GET + "Content-Length: 3, 3\r\n\r\nabc",
    GET + "Content-Length: +3\r\n\r\nabc",
    GET + "Content-Length: -3\r\n\r\nabc",
    GET + "Content-Length: 0x3\r\n\r\nabc",
    GET + "Content-Length:\r\n\r\nabc",
    GET + "Content-Length: 9999999999999999999\r\n\r\nabc",
    GET + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    GET + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    GET + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    GET + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    GET + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    GET + "Transfer-Encoding: identity\r\n\r\n",
    GET.replace("1.1\r", "1.0\r") + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    GET + "Connection: close, Content-Length\r\nContent-Length: 3\r\n\r\nabc",
    GET + "Connection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    GET + "Transfer-Encoding: chunked\r\n\r\n3;ext\r\nabc\r\n0\r\n\r\n",
    GET + "Transfer-Encoding: chunked\r\n\r\n\r\n",
    GET + "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n",
    GET + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n",
    GET + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    GET + "A: b\r\n" * 101 + "\r\n",
    "\r\n\r\n",
    "\x16\x03\x01\x02\0\r\n\r\n",
])
def test_malformed(proxy, web, text):
    p = proxy(f"127.0.0.1:{web.port}, 127.0.0.1")
    answer = p.say(text.replace("{port}", str(web.port)).encode("latin-1"))
    assert answer.startswith(b"HTTP/1.1 400 "), answer
    assert web.asked("/bad") == 0
    assert " 400 up 0 down 0" in p.wait_log(1)[0]


def test_bad_chunks_later_on(proxy, web):
    """Too late for an answer of ours: the request is cut off, and the log says why."""
    p = proxy(web.here)
    here = threading.Event()

    def answer(conn, _):
        here.set()
        read_all(conn)

    web.put("/later", answer)
    with p.connect() as sock:
        sock.sendall(f"POST http://{web.here}/later HTTP/1.1\r\n"
                     "Transfer-Encoding: chunked\r\n\r\n".encode())
        assert here.wait(30)
        sock.sendall(b"3\r\nabcX")
        assert read_all(sock) == b""
    assert p.wait_log(1) == [f"POST {web.here} 400 up 6 down 0"]


def test_head_too_large(proxy):
    p = proxy("*")
    answer = p.say(b"GET http://example.com/ HTTP/1.1\r\nA: " + b"x" * 20000)
    assert answer.startswith(b"HTTP/1.1 431 ")


def test_head_that_does_not_end(proxy, web):
    """Ten seconds, and others are served meanwhile."""
    p = proxy(web.here)
    web.put("/meanwhile", response(body=b"m"))
    with p.connect() as slow, p.connect() as silent:
        slow.sendall(b"GET http://")
        assert p.say(f"GET http://{web.here}/meanwhile HTTP/1.1\r\n\r\n").endswith(b"m")
        assert read_all(slow).startswith(b"HTTP/1.1 408 ")
        assert read_all(silent) == b""


def test_heads_byte_by_byte(proxy, web):
    p = proxy(web.here)
    web.put("/bytes", response(body=b"b"))
    with p.connect() as sock:
        for byte in f"GET http://{web.here}/bytes HTTP/1.1\r\n\r\n".encode():
            sock.sendall(bytes([byte]))
        assert read_all(sock).endswith(b"b")


def test_gone_in_the_middle(proxy, web, echo):
    """Clients that leave at every point leave nothing behind."""
    p = proxy(f"{web.here}, 127.0.0.1:{echo}, slow.test:{web.port}")
    for text in ("", "GET", f"CONNECT slow.test:{web.port} HTTP/1.1\r\n\r\n",
                 f"CONNECT 127.0.0.1:{echo} HTTP/1.1\r\n\r\n",
                 f"POST http://{web.here}/x HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc"):
        with p.connect() as sock:
            sock.sendall(text.encode())
    with p.tunnel(f"127.0.0.1:{echo}") as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sock.sendall(b"then reset")


# --- much ---


def test_many_connections(proxy, echo):
    """More than sixty-four wait their turn, and every one gets it."""
    p = proxy(f"127.0.0.1:{echo}")
    first = [p.tunnel(f"127.0.0.1:{echo}") for _ in range(64)]
    late = p.connect()
    late.sendall(f"CONNECT 127.0.0.1:{echo} HTTP/1.1\r\n\r\n".encode())
    for sock in first:
        sock.sendall(b"here")
        assert sock.recv(10) == b"here"
    late.setblocking(False)
    with pytest.raises(BlockingIOError):
        late.recv(1)
    late.settimeout(30)
    for sock in first:
        sock.close()
    assert late.recv(100).startswith(b"HTTP/1.1 200 ")
    late.close()


def test_reconnecting_all_the_time(proxy):
    """Refusals are paced: none is lost, however fast they are asked for."""
    p = proxy("example.com")
    for _ in range(150):
        assert p.say("CONNECT example.org:443 HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 403 ")
    assert len(p.wait_log(150)) == 150


def memory_kb(p):
    with open(f"/proc/{p.process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def test_big_download_with_a_slow_reader(proxy, web):
    """A hundred megabytes pass, unchanged, through memory that does not grow."""
    p = proxy(web.here, shipped=True)
    block = hashlib.sha256(b"seed").digest() * 32768  # 1 MiB
    want = hashlib.sha256()

    def answer(conn, _):
        conn.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {100 * len(block)}\r\n\r\n".encode())
        for _ in range(100):
            conn.sendall(block)

    for _ in range(100):
        want.update(block)
    web.put("/big", answer)
    before = memory_kb(p)
    got = hashlib.sha256()
    with p.connect() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
        sock.sendall(f"GET http://{web.here}/big HTTP/1.1\r\n\r\n".encode())
        reader = sock.makefile("rb")
        while reader.readline() != b"\r\n":
            pass
        while part := reader.read(4096 * 16):
            got.update(part)
    assert got.digest() == want.digest()
    assert memory_kb(p) - before < 2048


def test_big_upload(proxy, echo):
    """Both directions at once, each as fast as the other lets it."""
    p = proxy(f"127.0.0.1:{echo}")
    sent = hashlib.sha256(b"up").digest() * 32768 * 16
    with p.tunnel(f"127.0.0.1:{echo}") as sock:
        def send():
            sock.sendall(sent)
            sock.shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=send)
        thread.start()
        assert read_all(sock) == sent + b"bye"
        thread.join()
    assert p.wait_log(1) == [f"CONNECT 127.0.0.1:{echo} 200 up {len(sent)} down {len(sent) + 3}"]
