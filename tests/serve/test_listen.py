"""Where it can be reached and by whom: loopback, Unix socket, TLS, Host and Origin."""

import os
import resource
import socket
import ssl
import stat
import subprocess

import pytest

from support.server import Server, answers, folder, free_port, refusal

pytestmark = pytest.mark.once


# --- Host and Origin, while there is no key ---

@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "localhost:80", "[::1]", "[::1]:99"])
def test_hosts_that_are_ours(client, host):
    client.get("/v1/sessions", headers={"Host": host}).expect(200)


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "2130706433",
                                  "10.0.0.1", "evil.example:80", "localhost@evil.example", "xlocalhost"])
def test_hosts_that_are_not(client, host):
    for method, path in (("GET", "/v1/sessions"), ("POST", "/v1/execute")):
        answer = client.request(method, path, {"code": "1"} if method == "POST" else None,
                                headers={"Host": host})
        answer.refused(400 if "@" in host else 403)


def test_no_host_at_all(server):
    assert answers(server.raw(b"GET /v1/sessions HTTP/1.1\r\nConnection: close\r\n\r\n"))[0].status == 400
    for two in (b"Host: localhost\r\nHost: evil.example", b"Host: evil.example\r\nHost: localhost", b"Host:"):
        got = answers(server.raw(b"GET /v1/sessions HTTP/1.1\r\n%s\r\nConnection: close\r\n\r\n" % two))
        assert got[0].status == 400


@pytest.mark.parametrize("origin", ["http://evil.example", "https://localhost.evil.example", "null", "file://",
                                    "http://127.0.0.1.evil.example", ""])
def test_pages_of_others(client, origin):
    answer = client.post("/v1/execute", {"code": "open('ran', 'w')"}, headers={"Origin": origin})
    answer.refused(403)
    assert "access-control-allow-origin" not in answer.headers


def test_a_page_of_our_own(server, client):
    answer = client.get("/v1/sessions", headers={"Origin": f"http://localhost:{server.port}",
                                                 "Host": f"localhost:{server.port}"})
    answer.expect(200)


def test_pages_and_hosts_that_were_named():
    with Server("--hosts", "box.example", "--origins", "https://app.example") as server, server.client() as c:
        c.get("/v1/sessions", headers={"Host": "box.example"}).expect(200)
        answer = c.get("/v1/sessions", headers={"Origin": "https://app.example"}).expect(200)
        assert answer.headers["access-control-allow-origin"] == "https://app.example"
        assert c.get("/v1/sessions", headers={"Origin": "https://other.example"}).status == 403
        asked = c.request("OPTIONS", "/v1/execute", headers={
            "Origin": "https://app.example", "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type"}).expect(204)
        assert "POST" in asked.headers["access-control-allow-methods"]
        assert "content-type" in asked.headers["access-control-allow-headers"]


# --- Unix sockets ---

def test_unix_socket():
    place = folder()
    path = place / "retort.sock"
    with Server(listen=f"unix:{path}") as server, server.client() as c:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert c.post("/v1/execute", {"code": "6 * 7"}).expect(200).json["result"] == "42"
        server.stop()
        if os.geteuid() != 0:  # started by root, it has given up the right to
            assert not path.exists()
        server.start()
        server.kill()
        server.start()  # over what the dead one left
        with server.client() as again:
            again.get("/health").expect(200)
    for left in place.iterdir():
        left.unlink()
    place.rmdir()


def test_unix_socket_for_others():
    place = folder()
    with Server("--socket-mode", "0660", listen=f"unix:{place}/s") as server:
        assert stat.S_IMODE((place / "s").stat().st_mode) == 0o660
        server.check_alive()
    for left in place.iterdir():
        left.unlink()
    place.rmdir()


def test_two_addresses():
    port = free_port()
    with Server("--listen", f"127.0.0.1:{port}") as server, server.client() as c:
        c.get("/health").expect(200)
        server.port = port
        with server.client() as other:
            other.get("/health").expect(200)


def test_an_address_in_use(server):
    code, err = refusal("--listen", server.listen)
    assert code != 0 and str(server.port) in err
    server.check_alive()


# --- other machines ---

def test_open_to_others_needs_tls_and_keys():
    address = f"0.0.0.0:{free_port()}"
    code, err = refusal("--listen", address)
    assert code == 2 and "--tls-cert" in err and "--plain-http" in err
    code, err = refusal("--listen", address, "--plain-http")
    assert code != 0 and "retort keys create" in err


def test_open_to_others_with_a_key():
    port = free_port()
    server = Server("--plain-http", listen=f"0.0.0.0:{port}")
    server.port = port
    secret = server.keys("create", "--tenant", "t", "--quiet").strip()
    with server, server.client(secret) as c:
        c.get("/v1/sessions", headers={"Host": "any.example"}).expect(200)
        with server.client() as nobody:
            nobody.get("/v1/sessions").refused(401)
            nobody.get("/metrics").refused(401)
            nobody.get("/health").expect(200)


# --- TLS ---

@pytest.fixture(scope="module")
def certificate():
    place = folder()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                    "-keyout", place / "key.pem", "-out", place / "cert.pem"], check=True, capture_output=True)
    (place / "key.pem").chmod(0o600)
    yield place
    for left in place.iterdir():
        left.unlink()
    place.rmdir()


def test_tls(certificate):
    context = ssl.create_default_context(cafile=certificate / "cert.pem")
    with Server("--tls-cert", certificate / "cert.pem", "--tls-key", certificate / "key.pem",
                tls=context) as server, server.client() as c, c.session() as s:
        assert s.run("6 * 7")["result"] == "42"
        data = os.urandom(3_000_000)
        s.put("big", data)
        assert s.read("big") == data
        with s.stream("for i in range(3): print(i, flush=True)") as stream:
            assert [f["type"] for f in stream][-1] == "done"
        # Plain HTTP on the same port, and nonsense in place of a handshake.
        for nonsense in (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"x" * 5000,
                         b"\0" * 100):
            with socket.create_connection(("127.0.0.1", server.port), 10) as plain:
                plain.sendall(nonsense)
                plain.settimeout(10)
                try:
                    assert b"HTTP/1.1 200" not in plain.recv(4096)
                except (ConnectionResetError, socket.timeout):
                    pass
        old = ssl.create_default_context(cafile=certificate / "cert.pem")
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, OSError)):
            with socket.create_connection(("127.0.0.1", server.port), 10) as plain:
                old.wrap_socket(plain, server_hostname="localhost")
        server.check_alive()


@pytest.mark.parametrize("flags", [
    ["--tls-cert", "CERT"], ["--tls-key", "KEY"], ["--tls-cert", "KEY", "--tls-key", "CERT"],
    ["--tls-cert", "/nonexistent", "--tls-key", "KEY"], ["--tls-cert", "CERT", "--tls-key", "/dev/null"]])
def test_certificates_that_cannot_be(certificate, flags):
    words = [w.replace("CERT", str(certificate / "cert.pem")).replace("KEY", str(certificate / "key.pem"))
             for w in flags]
    code, err = refusal("--listen", f"127.0.0.1:{free_port()}", *words)
    mixed_up = flags[:2] == ["--tls-cert", "KEY"]  # which only the one who serves finds out
    assert code == (3 if mixed_up else 2) and ("tls" in err or "certificate" in err)


def test_no_descriptors_for_a_while(server):
    """A connection that comes when no descriptor is left is taken as soon as there is one."""
    pid = server.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        waiting = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(4)]
        for one in waiting:
            one.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        waiting[-1].settimeout(0.5)
        with pytest.raises(TimeoutError):
            waiting[-1].recv(1)
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    for one in waiting:
        one.settimeout(60)
        assert one.recv(12) == b"HTTP/1.1 200"
        one.close()
