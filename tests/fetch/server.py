"""A web server on loopback that answers a path with exactly the bytes a test gave it."""

import socket
import ssl
import threading
from pathlib import Path


class Server:
    """answers: path -> bytes, or a function that is given the connection and the request's head.

    What is not there is a 404. heads keeps what was asked, so that a test can say what was sent
    and what was never asked for.
    """

    def __init__(self, tls=False):
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if tls else None
        if tls:
            self.tls.load_cert_chain(Path(__file__).with_name("self-signed.pem"))
        self.answers = {}
        self.heads = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.here = f"127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)  # or the thread in accept() keeps it open
        self.listener.close()

    def serve(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.talk, args=(conn,), daemon=True).start()

    def talk(self, conn):
        with conn:
            try:
                conn = self.tls.wrap_socket(conn, server_side=True) if self.tls else conn
                head = b""
                while b"\r\n\r\n" not in head:
                    got = conn.recv(65536)
                    if not got:
                        return
                    head += got
                self.heads.append(head)
                path = head.split()[1].decode()
                answer = self.answers.get(path, response(404, b"SECRET of the inside"))
                if callable(answer):
                    answer(conn, head)
                else:
                    conn.sendall(answer)
            except OSError:
                pass  # the other side has seen enough

    def put(self, path, answer):
        """Serves answer at path and returns its URL."""
        self.answers[path] = answer
        return f"http://{self.here}{path}"

    def asked(self, path):
        return sum(head.split()[1].decode() == path for head in self.heads)


def response(status=200, body=b"", **headers):
    lines = [f"HTTP/1.1 {status} Words"]
    headers = {"content_length": len(body), "connection": "close", **headers}
    lines += [f"{k.replace('_', '-')}: {v}" for k, v in headers.items() if v is not None]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
