"""Heads that no parser should take: each gets one answer, in our shape, and the connection ends; over TCP, a Unix
socket and TLS. What follows such a head is nobody's request."""

import ssl
from pathlib import Path

import pytest

from support import retort
from support.microhttpd import STRICT
from support.server import Server, answers, drain, folder

pytestmark = pytest.mark.once

HOST = b"Host: localhost\r\n"
TLS = Path(retort.REPO) / "tests/cli/tls"
SMUGGLED = b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"


def post(*lines):
    return b"POST /v1/execute HTTP/1.1\r\n" + HOST + b"".join(line + b"\r\n" for line in lines) + b"\r\n{}"


def get(*lines, line=b"GET /health HTTP/1.1"):
    return line + b"\r\n" + HOST + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


HEADS = {
    "length of letters": post(b"Content-Length: abc"),
    "negative length": post(b"Content-Length: -2"),
    "length with a sign": post(b"Content-Length: +2"),
    "length with a fraction": post(b"Content-Length: 2.0"),
    "length in hex": post(b"Content-Length: 0x2"),
    "empty length": post(b"Content-Length:"),
    "huge length": post(b"Content-Length: " + b"9" * 30),
    "length past 64 bits": post(b"Content-Length: 18446744073709551616"),
    "length of all bits": post(b"Content-Length: 18446744073709551615"),
    "list of lengths": post(b"Content-Length: 2, 2"),
    "two lengths": post(b"Content-Length: 2", b"Content-Length: 3"),
    "one length twice": post(b"Content-Length: 2", b"Content-Length: 2"),
    "good length, then bad": post(b"Content-Length: 2", b"Content-Length: abc"),
    "bad length, then good": post(b"Content-Length: abc", b"Content-Length: 2"),
    "length of a GET": get(b"Content-Length: abc"),
    "length and chunks": post(b"Content-Length: 2", b"Transfer-Encoding: chunked"),
    "another coding": post(b"Transfer-Encoding: gzip"),
    "coding twice": post(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"),
    "chunk of letters": post(b"Transfer-Encoding: chunked")[:-2] + b"xyz\r\n{}\r\n0\r\n\r\n",
    "huge chunk": post(b"Transfer-Encoding: chunked")[:-2] + b"f" * 20 + b"\r\n{}\r\n0\r\n\r\n",
    "bare LF": b"GET /health HTTP/1.1\nHost: localhost\n\n",
    "one bare LF": b"GET /health HTTP/1.1\r\nHost: localhost\nX-A: b\r\n\r\n",
    "bare LF before a length": b"POST /v1/execute HTTP/1.1\r\n" + HOST + b"X-A: b\nContent-Length: abc\r\n\r\n{}",
    "bare CR": get(b"X-A: a\rb"),
    "NUL": get(b"X-A: a\0b"),
    "folded": get(b"X-A: a", b" b"),
    "blank before the colon": get(b"X-A : b"),
    "no name": get(b": b"),
    "no colon": get(b"nothing"),
    "two hosts": get(HOST[:-2]),
    "no such version": get(line=b"GET /health HTTP/9.9"),
    "no protocol": get(line=b"GET /health HTTQ/1.1"),
    "no version": get(line=b"GET /health"),
    "words in the target": get(line=b"GET /he alth HTTP/1.1"),
    "long target": get(line=b"GET /" + b"a" * 100_000 + b" HTTP/1.1"),
    "long header": get(b"X-A: " + b"a" * 200_000),
    "many headers": get(*[b"X-A: b"] * 20_000),
    "much of cookies": get(b"Cookie: " + b"a=b;" * 9000),
}


@pytest.fixture(scope="module", params=["tcp", "unix", "tls"])
def server(request):
    kind, more = request.param, {}
    if kind == "unix":
        more["listen"] = f"unix:{folder()}/socket"
    if kind == "tls":
        more["tls"] = ssl.create_default_context(cafile=TLS / "cert.pem")
        more["tls"].check_hostname = False
        more["tls"].verify_mode = ssl.CERT_NONE
    flags = ["--tls-cert", TLS / "cert.pem", "--tls-key", TLS / "key.pem"] if kind == "tls" else []
    with Server(*flags, **more) as one:
        yield one


@pytest.mark.parametrize("pieces", ["whole", "two pieces", "after another"])
@pytest.mark.parametrize("head", HEADS)
def test_one_answer_and_the_end(server, head, pieces):
    data = HEADS[head] + SMUGGLED
    with server.connect() as s:
        try:
            if pieces == "after another":
                s.sendall(SMUGGLED)
                got = b""
                while not (found := answers(got)) or len(found[0].body) < int(found[0].headers.get("content-length", 1 << 30)):
                    got += s.recv(65536)
            cut = data.index(b"\n") + 8 if pieces == "two pieces" else 0
            s.sendall(data[:cut])
            s.sendall(data[cut:])
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            pass
        received = drain(s)
    assert received.count(b"HTTP/1.1 ") == 1, received
    [answer] = answers(received)
    assert 400 <= answer.status < 600 and answer.status != 500, received
    assert answer.headers["connection"].lower() == "close"
    if STRICT and "x-request-id" not in answer.headers:
        return  # that library answers for itself, once
    error = answer.json["error"]
    assert error["message"] and error["request_id"] == answer.headers["x-request-id"]
