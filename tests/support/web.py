"""Web servers on loopback that answer a path with exactly the bytes a test gave them."""

import contextlib
import socket
import ssl
import threading
from pathlib import Path

CERTIFICATE = Path(__file__).with_name("self-signed.pem")  # with its key


class Site:
    """Serves a listener until close().

    answers: path -> bytes, or a function that is given the connection and the request's head.
    What is not there is a 404. heads keeps what was asked, so that a test can say what was sent
    and what was never asked for.
    """

    def __init__(self, listener, tls=None):
        self.listener, self.tls = listener, tls
        self.answers, self.heads = {}, []
        threading.Thread(target=self.serve, daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)  # or the thread in accept() keeps it open
        self.listener.close()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                conn, _ = self.listener.accept()
                threading.Thread(target=self.talk, args=(conn,), daemon=True).start()

    def talk(self, conn):
        with conn, contextlib.suppress(OSError):  # the other side may have seen enough
            conn.settimeout(60)
            conn = self.tls.wrap_socket(conn, server_side=True) if self.tls else conn
            head = b""
            while b"\r\n\r\n" not in head:
                got = conn.recv(65536)
                if not got:
                    return
                head += got
            self.heads.append(head)
            answer = self.answers.get(head.split()[1].decode(), response(404, b"SECRET of the inside"))
            if callable(answer):
                answer(conn, head)
            else:
                conn.sendall(answer)

    def put(self, path, answer):
        self.answers[path] = answer

    def asked(self, path):
        return sum(head.split()[1].decode() == path for head in self.heads)


class Web(Site):
    """with Web() as web: a Site on a port of its own."""

    def __init__(self, tls=False):
        context = None
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE)
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = listener.getsockname()[1]
        self.here = f"127.0.0.1:{self.port}"
        super().__init__(listener, context)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def put(self, path, answer):
        """Serves answer at path and returns its URL."""
        super().put(path, answer)
        return f"http://{self.here}{path}"


def response(status=200, body=b"", **headers):
    headers = {"content_length": len(body), "connection": "close", **headers}
    lines = [f"HTTP/1.1 {status} Words",
             *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items() if v is not None)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
