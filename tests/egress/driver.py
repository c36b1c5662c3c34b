"""The proxy as a process, and a few ways to talk to it."""

import socket
import subprocess
import threading

from support.retort import driver


def program(shipped=False):
    return driver("egress/egress-driver", shipped)


class Proxy:
    """log grows by a line whenever a request has ended."""

    def __init__(self, hosts, private=True, shipped=False):
        self.process = subprocess.Popen(
            [program(shipped), hosts, *(["private"] if private else [])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])
        self.address = f"127.0.0.1:{self.port}"
        self.log = []
        self.told = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.told:
                self.log.append(line.strip())
                self.told.notify_all()

    def wait_log(self, count):
        """The log once it has count lines."""
        with self.told:
            assert self.told.wait_for(lambda: len(self.log) >= count, 30), self.log
            return list(self.log)

    def connect(self):
        sock = socket.create_connection(("127.0.0.1", self.port))
        sock.settimeout(30)
        return sock

    def say(self, text):
        """Sends bytes on a connection of its own and returns everything that comes back."""
        with self.connect() as sock:
            sock.sendall(text if isinstance(text, bytes) else text.encode())
            return read_all(sock)

    def tunnel(self, where):
        sock = self.connect()
        sock.sendall(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            got = sock.recv(1)
            assert got, head
            head += got
        assert head == b"HTTP/1.1 200 Connection established\r\n\r\n"
        return sock

    def close(self):
        """Ends it; whatever a sanitizer has to say is a failure."""
        self.process.stdin.close()
        assert self.process.wait(30) == 0, self.process.stderr.read()
        assert self.process.stderr.read() == ""
        self.reader.join()


def read_all(sock):
    got = b""
    while part := sock.recv(65536):
        got += part
    return got
