"""A server behind nginx and HAProxy, with the settings of deploy/proxy as they are."""

import contextlib
import os
import shutil
import ssl
import subprocess
import time

import pytest

from support import retort
from support.server import Client, Server, folder, free_port

pytestmark = pytest.mark.once

PROXY = retort.REPO / "deploy/proxy"
TLS = retort.REPO / "tests/cli/tls"


class Front:
    """The address of the proxy, as a Client sees a server."""

    listen, connect, client = "proxy", Server.connect, Server.client

    def __init__(self, port):
        self.port = port
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE


def nginx(place, server, port):
    text = (PROXY / "nginx.conf").read_text()
    for was, now in (("127.0.0.1:8000", server.listen), ("listen 443", f"listen 127.0.0.1:{port}"),
                     ("/etc/ssl/retort", str(place))):
        assert was in text
        text = text.replace(was, now)
    (place / "site.conf").write_text(text)
    paths = "".join(f"{name}_temp_path {place}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (place / "nginx.conf").write_text(f"daemon off; master_process off; pid {place}/pid; error_log stderr;"
                                      f"events {{}} http {{ access_log off; {paths} include {place}/site.conf; }}")
    return [retort.REPO / "build/nginx/usr/sbin/nginx", "-p", place, "-c", place / "nginx.conf"], {}


def haproxy(place, server, port):
    text = (PROXY / "haproxy.cfg").read_text()
    for was, now in (("127.0.0.1:8000", server.listen), ("bind :443", f"bind 127.0.0.1:{port}"),
                     ("/etc/ssl/retort", str(place)), ("maxconn 20000", "maxconn 200")):
        assert was in text
        text = text.replace(was, now)
    (place / "haproxy.cfg").write_text(text)
    root = retort.REPO / "build/haproxy"
    libraries = {str(f.parent) for f in root.rglob("*.so*")}
    return [root / "usr/sbin/haproxy", "-db", "-f", place / "haproxy.cfg"], {"LD_LIBRARY_PATH": ":".join(libraries)}


@pytest.fixture(scope="module", params=[nginx, haproxy], ids=lambda f: f.__name__)
def proxied(request):
    place, port = folder(), free_port()
    key, cert = (TLS / "key.pem").read_bytes(), (TLS / "cert.pem").read_bytes()
    for name, data in (("key.pem", key), ("cert.pem", cert), ("both.pem", cert + key)):
        (place / name).write_bytes(data)
    with Server() as server:
        command, env = request.param(place, server, port)
        with open(place / "log", "wb") as log:
            process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, env={**os.environ, **env})
        try:
            front, until = Front(port), time.monotonic() + retort.SECONDS
            front.tells = request.param is nginx  # the other one does when it next writes to it
            while True:
                assert process.poll() is None and time.monotonic() < until, (place / "log").read_text()
                with contextlib.suppress(OSError, AssertionError), Client(front) as client:  # 503 is the proxy's own
                    if client.get("/ready").status == 200:
                        break
                time.sleep(0.05)
            yield front
        finally:
            process.kill()
            process.wait()
            shutil.rmtree(place)


@pytest.fixture
def client(proxied):
    with Client(proxied) as one:
        yield one


@pytest.mark.parametrize("accept", ["text/event-stream", "application/x-ndjson"])
def test_output_comes_as_it_is_printed(client, proxied, accept):
    """And where the proxy tells of a reader that goes, the code ends."""
    session = client.session()
    with Client(proxied, headers={"Accept": accept}) as reader:
        stream = reader.stream(session.path + "/execute", {"code": "print('one', flush=True)\nimport time\n"
                                                                  "time.sleep(600)"})
        stream.until_said("one")
        running = client.all(f"/v1/executions?session={session.id}")
        assert [e["status"] for e in running] == ["running"]
        stream.close()
    if proxied.tells:
        assert session.wait(running[0])["status"] != "ok"
    client.delete(session.path)


def test_a_large_body_both_ways(client):
    session, data = client.session(), os.urandom(5_000_000)
    session.put("big", data)
    assert session.read("big") == data
    client.delete(session.path)


def test_refusals_come_through(client):
    assert client.get("/v1/sessions/sess_none").status == 404
    assert client.post("/v1/execute", {"code": 1}).status == 400
