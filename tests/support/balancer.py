"""nginx and HAProxy with the settings of deploy/proxy as they are, in front of one server or of several.

with Balancer(haproxy, ["127.0.0.1:8000"], "127.0.0.1:8443") as front: front.client() speaks TLS to it. What it says
before a server is ready is its own.
"""

import contextlib
import http.client
import os
import shutil
import ssl
import subprocess
import time

from support import retort
from support.server import Client, Server, folder

PROXY = retort.REPO / "deploy/proxy"
TLS = retort.REPO / "tests/cli/tls"


def settings(name, changes):
    text = (PROXY / name).read_text()
    for was, now in changes:
        assert was in text
        text = text.replace(was, now)
    return text


def line_for_each(servers, one):
    return "\n    ".join(one.format(number=i + 1, address=address) for i, address in enumerate(servers))


def nginx(place, servers, listen):
    text = settings("nginx.conf", [
        ("server 127.0.0.1:8000 max_fails=1 fail_timeout=2s;",
         line_for_each(servers, "server {address} max_fails=1 fail_timeout=2s;")),
        ("listen 443", "listen " + listen), ("/etc/ssl/retort", str(place))])
    (place / "site.conf").write_text(text)
    paths = "".join(f"{name}_temp_path {place}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (place / "nginx.conf").write_text(f"daemon off; master_process off; pid {place}/pid; error_log stderr;"
                                      f"events {{}} http {{ access_log off; {paths} include {place}/site.conf; }}")
    return [retort.REPO / "build/nginx/usr/sbin/nginx", "-p", place, "-c", place / "nginx.conf"], {}


def haproxy(place, servers, listen):
    text = settings("haproxy.cfg", [
        ("server node1 127.0.0.1:8000 check", line_for_each(servers, "server node{number} {address} check")),
        ("bind :443", "bind " + listen), ("/etc/ssl/retort", str(place)), ("maxconn 20000", "maxconn 200")])
    (place / "haproxy.cfg").write_text(text)
    root = retort.REPO / "build/haproxy"
    libraries = {str(f.parent) for f in root.rglob("*.so*")}
    return [root / "usr/sbin/haproxy", "-db", "-f", place / "haproxy.cfg"], {"LD_LIBRARY_PATH": ":".join(libraries)}


class Balancer:
    """A Client sees it as a server."""

    def __init__(self, kind, servers, listen):
        self.kind, self.servers, self.listen = kind, servers, listen
        host, _, port = listen.rpartition(":")
        self.host, self.port = host, int(port)
        self.tells = kind is nginx  # that a reader has gone; the other one does when it next writes to it
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE
        self.place, self.process = folder(), None

    def __enter__(self):
        key, cert = (TLS / "key.pem").read_bytes(), (TLS / "cert.pem").read_bytes()
        for name, data in (("key.pem", key), ("cert.pem", cert), ("both.pem", cert + key)):
            (self.place / name).write_bytes(data)
        command, env = self.kind(self.place, self.servers, self.listen)
        with open(self.place / "log", "wb") as log:
            self.process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log,
                                            env={**os.environ, **env})
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.place)

    def log(self):
        return (self.place / "log").read_text(errors="replace")

    def wait_ready(self):
        until = time.monotonic() + retort.SECONDS
        while True:
            assert self.process.poll() is None and time.monotonic() < until, self.log()
            # 503 may be its own
            with contextlib.suppress(OSError, http.client.HTTPException, AssertionError), self.client() as client:
                if client.get("/ready").status == 200:
                    return
            time.sleep(0.05)

    connect = Server.connect

    def client(self, key=None, **headers):
        return Client(self, key, headers)
