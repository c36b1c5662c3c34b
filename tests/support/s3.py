"""A real S3 server that checks signatures (versitygw, on a directory), and a proxy in front of it that misbehaves.

`./dev` builds the server below build/s3. S3() is one run on loopback with a bucket; an object is a file below
S3.bucket, so a test can damage it, or make it old. Between(s3) is a proxy: with between.fault(fn) every request
is shown to fn(request), which returns what to do with it.
"""

import contextlib
import http.client
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from support import retort
from support.server import free_port

PROGRAM = Path(retort.REPO) / "build/s3/versitygw"
BUCKET = "retort-blobs"
KEY, SECRET = "AKTEST" + "0" * 14, secrets.token_urlsafe(30)
ENV = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": "", "AWS_REGION": ""}
HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}


class S3:
    """with S3() as s3. kill() and start() again as often as a test likes: what it acknowledged is there."""

    def __init__(self, tls=None, host="127.0.0.1", disk=None):
        self.host = host
        self.place = Path(tempfile.mkdtemp(prefix="retort-test-s3-", dir=disk))
        self.bucket = self.place / "data" / BUCKET
        self.bucket.mkdir(parents=True)
        (self.place / "meta").mkdir()
        self.port, self.process, self.tls = free_port(), None, tls

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.place, ignore_errors=True)

    def start(self):
        tls = ["--cert", self.tls, "--key", self.tls] if self.tls else []
        self.process = subprocess.Popen(
            [PROGRAM, "--port", f"{self.host}:{self.port}", "--access", KEY, "--secret", SECRET, "--quiet", *tls,
             "--keep-alive", "posix", "--sidecar", self.place / "meta", self.place / "data"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "HOME": str(self.place)})
        while True:
            with contextlib.suppress(OSError), socket.create_connection((self.host, self.port)):
                return self
            assert self.process.poll() is None, "the S3 server has ended"
            time.sleep(0.02)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    @property
    def url(self):
        return f"http{'s' if self.tls else ''}://{self.host}:{self.port}"

    def objects(self, prefix="p"):
        """The blobs that are there: hash to file."""
        top = self.bucket / prefix
        return {f.parent.name + f.name: f for f in top.glob("??/*") if len(f.name) == 62}

    def age(self, seconds, prefix="p"):
        for file in self.objects(prefix).values():
            os.utime(file, (time.time() - seconds,) * 2)

    def uploads(self):
        """Parts of uploads that are not complete."""
        return [f for f in self.bucket.rglob("*") if ".sgwtmp" in f.parts and f.is_file()]


def flags(server, prefix="p", cache="1G"):
    """For `retort serve`, of an S3 or a Between."""
    return ["--blobs", f"s3://{BUCKET}/{prefix}", "--s3-endpoint", server.url, "--blob-cache", cache]


class Request:
    def __init__(self, handler, body):
        self.method, self.path, self.body = handler.command, handler.path, body
        self.headers = list(handler.headers.items())


class Between:
    """What a fault may answer: None, to pass it on; a status; or a function that gets the answer of S3 as
    (status, headers, body) and returns (status, headers, body, how many of its bytes to send)."""

    def __init__(self, s3):
        self.s3, self.seen, self._fault = s3, [], lambda request: None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                outer._serve(self, Request(self, body))

            do_PUT = do_POST = do_DELETE = do_HEAD = do_GET

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def fault(self, fn=None):
        self._fault = fn or (lambda request: None)

    def _ask(self, request):
        """S3 sees the request as it was signed, with the Host of this proxy."""
        there = http.client.HTTPConnection("127.0.0.1", self.s3.port, timeout=60)
        there.putrequest(request.method, request.path, skip_host=True, skip_accept_encoding=True)
        for name, value in request.headers:
            if name.lower() not in ("connection", "expect"):
                there.putheader(name, value)
        there.endheaders(request.body)
        answer = there.getresponse()
        body = answer.read()
        there.close()
        return answer.status, dict(answer.getheaders()), body

    def _serve(self, handler, request):
        self.seen.append(request)
        handler.close_connection = False
        what = self._fault(request)
        try:
            if isinstance(what, int):
                status, headers, body = what, {}, error(what)
                whole = len(body)
            else:
                status, headers, body = self._ask(request)
                whole = len(body)
                if what:
                    status, headers, body, whole = what(status, headers, body)
        except OSError:
            handler.close_connection = True
            return
        length = headers.get("Content-Length", len(body)) if request.method == "HEAD" else len(body)
        handler.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in HOP or name.lower() == "date":
                handler.send_header(name, value)
        handler.send_header("Content-Length", str(length))
        handler.end_headers()
        with contextlib.suppress(OSError):
            if request.method != "HEAD":
                handler.wfile.write(body[:whole])
            if whole < len(body):
                handler.wfile.flush()
                handler.connection.shutdown(socket.SHUT_RDWR)
                handler.close_connection = True


def error(status):
    code = {403: "AccessDenied", 500: "InternalError", 503: "SlowDown"}.get(status, "Error")
    return f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>no</Message></Error>'.encode()
