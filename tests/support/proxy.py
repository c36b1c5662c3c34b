"""A Unix socket before PostgreSQL's that does to a COMMIT what networks do.

with Proxy(postgres) as proxy: proxy.url(database). From proxy.arm(fault) on, the next transaction that
writes meets the fault, once, and proxy.met is set:

    "unsent"      the connection ends before the COMMIT has left
    "unanswered"  the COMMIT arrives, the connection ends before its answer does
    "late"        the connection ends; the COMMIT arrives when another connection is made
    "too late"    the same, but not before deliver()
"""

import contextlib
import shutil
import socket
import tempfile
import threading
from pathlib import Path
from urllib.parse import quote

# An argument of the statement that goes out with the COMMIT of a transaction that writes.
MARK = b"writer_"


class Proxy:
    def __init__(self, postgres):
        self.behind = str(postgres.place / ".s.PGSQL.5432")
        self.place = Path(tempfile.mkdtemp(prefix="retort-test-proxy-"))
        self.place.chmod(0o755)
        self.fault, self.late, self.met, self.held = None, False, threading.Event(), []

    def __enter__(self):
        self.door = socket.socket(socket.AF_UNIX)
        self.door.bind(str(self.place / ".s.PGSQL.5432"))
        (self.place / ".s.PGSQL.5432").chmod(0o777)
        self.door.listen(20)
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.door.close()
        for server, _ in self.held:
            server.close()
        shutil.rmtree(self.place, ignore_errors=True)

    def url(self, of):
        """That of the same database, through here."""
        name = of.removeprefix("postgresql:///").partition("?")[0]
        return f"postgresql:///{name}?host={quote(str(self.place), safe='')}&user=postgres"

    def arm(self, fault):
        self.met.clear()
        self.fault = fault

    def deliver(self):
        """What was under way arrives."""
        while self.held:
            server, data = self.held.pop()
            with contextlib.suppress(OSError):
                server.sendall(data)

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.door.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.behind)
                if self.late:
                    self.deliver()
                threading.Thread(target=self.forth, args=(client, server), daemon=True).start()
                threading.Thread(target=self.back, args=(server, client), daemon=True).start()

    def back(self, server, client):
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                client.sendall(data)
        client.close()

    def forth(self, client, server):
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 20):
                if self.fault and MARK in data:
                    return self.meet(client, server, data)
                server.sendall(data)
        server.close()

    def meet(self, client, server, data):
        fault, self.fault = self.fault, None
        client.shutdown(socket.SHUT_RDWR)  # so that back() passes nothing on
        if fault == "unanswered":
            server.sendall(data)
        self.late = fault == "late"
        if fault in ("late", "too late"):
            self.held.append((server, data))
        elif fault == "unsent":
            server.close()
        self.met.set()
