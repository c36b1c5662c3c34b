"""The HTTP room from outside: a server that only has that room, and raw bytes to send it."""

import json
import signal
import socket
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from support.retort import driver

SECONDS = 60  # past this a wait hangs


class Answer:
    def __init__(self, head, body, rest=b""):
        lines = head.split("\r\n")
        self.line, self.body, self.rest = lines[0], body, rest
        self.status = int(lines[0].split(" ")[1])
        pairs = [line.split(": ", 1) for line in lines[1:]]
        self.headers = {name.lower(): value for name, value in pairs}

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]


class Client:
    """A socket. send() bytes as they are, read() one answer, closed() when the server hangs up."""

    def __init__(self, sock):
        self.sock, self.data = sock, b""
        sock.settimeout(SECONDS)

    def send(self, data):
        self.sock.sendall(data.encode() if isinstance(data, str) else data)
        return self

    def get(self, path, *headers, method="GET"):
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers, "", ""]
        return self.send("\r\n".join(lines))

    def post(self, path, body, *headers, method="POST"):
        body = body.encode() if isinstance(body, str) else body
        self.get(path, f"Content-Length: {len(body)}", *headers, method=method)
        return self.send(body)

    def more(self):
        got = self.sock.recv(65536)
        self.data += got
        return len(got)

    def take(self, n):
        pieces, have = [self.data], len(self.data)
        while have < n:
            pieces.append(self.sock.recv(1 << 20))
            assert pieces[-1], f"the server hung up, {have} of {n} bytes came"
            have += len(pieces[-1])
        data = b"".join(pieces)
        self.data = data[n:]
        return data[:n]

    def until(self, end):
        while end not in self.data:
            assert self.more(), f"the server hung up after {self.data!r}"
        return self.take(self.data.index(end) + len(end))

    def head(self):
        return self.until(b"\r\n\r\n")[:-4].decode("latin-1")

    def chunk(self):
        size = int(self.until(b"\r\n"), 16)
        data = self.take(size)
        assert self.take(2) == b"\r\n"
        return data

    def read(self, bodyless=False):
        answer = Answer(self.head(), b"")
        if bodyless or answer.status in (100, 204, 304):
            return answer
        if "content-length" in answer.headers:
            answer.body = self.take(int(answer.headers["content-length"]))
        elif answer.headers.get("transfer-encoding") == "chunked":
            while piece := self.chunk():
                answer.body += piece
        else:
            while self.more():
                pass
            answer.body, self.data = self.data, b""
        return answer

    def closed(self):
        """Everything up to the end of the stream; a reset counts as one."""
        try:
            while self.more():
                pass
        except ConnectionError:
            pass
        out, self.data = self.data, b""
        return out

    def close(self):
        self.sock.close()


class Server:
    """Letters of the command line are those of server.c: k key, h header_ms, and so on."""

    def __init__(self, **settings):
        args = [str(word) for pair in settings.items() for word in pair]
        self.unix, self.tls = settings.get("u"), "c" in settings
        self.process = subprocess.Popen([driver("doors/http/http-server"), *args], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.port, self.clients = int(line), []

    def connect(self):
        if self.unix:
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(self.unix)
        else:
            sock = socket.create_connection(("127.0.0.1", self.port))
        if self.tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            sock = context.wrap_socket(sock)
        self.clients.append(Client(sock))
        return self.clients[-1]

    def get(self, path, *headers, method="GET"):
        client = self.connect()
        return client.get(path, *headers, method=method).read(bodyless=method == "HEAD")

    def post(self, path, body, *headers, method="POST"):
        return self.connect().post(path, body, *headers, method=method).read()

    def raw(self, data):
        return self.connect().send(data)

    def seen(self):
        client = self.connect()
        seen = client.get("/seen").read().json
        client.close()
        return seen

    def wait(self, **expected):
        """Until the server has seen that much."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            seen = self.seen()
            if all(seen[name] == value for name, value in expected.items()):
                return
            time.sleep(0.02)
        raise AssertionError(f"{expected} never came: {seen}")

    def memory(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def stop(self):
        """It must end by itself, and a sanitizer that has found something says so in its status."""
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=SECONDS)
        for client in self.clients:
            client.close()
        assert self.process.returncode == 0, err
        return err


@pytest.fixture
def serve():
    """Starts servers; each must come through its test unharmed."""
    started = []

    def start(**settings):
        started.append(Server(**settings))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            server.stop()
        else:
            assert server.process.returncode == 0, server.process.stderr.read()


@pytest.fixture
def server(serve):
    return serve()
