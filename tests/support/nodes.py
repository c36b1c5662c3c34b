"""Nodes: several servers that share a PostgreSQL and a bucket, all on loopback.

with Nodes(postgres, blobs, 2, lease=2) as nodes: nodes[0] is a Server, which a test may kill and start again.
"""

import contextlib
import itertools
import secrets
import shutil
import socket
import ssl
import tempfile
import threading
from pathlib import Path
from urllib.parse import quote

from support import retort, s3
from support.postgres import sql
from support.server import Server, folder

numbers = itertools.count(1)


class Nodes:
    def __init__(self, postgres, blobs, count, *flags, lease=4, config="", certificate=None):
        self.url = postgres.database()
        self.place = folder()
        self.secret = self.place / "secret"
        self.secret.write_text(secrets.token_urlsafe(48))
        self.lease = lease
        self.flags = [*s3.flags(blobs, prefix=f"n{next(numbers)}"), "--node-secret-file", self.secret,
                      "--node-lease", lease, *flags]
        if certificate:
            self.flags += ["--tls-cert", certificate, "--tls-key", certificate, "--node-ca", certificate]
        self.servers = [self.make(i, config, certificate) for i in range(count)]

    def make(self, number, config, certificate):
        tls = ssl.create_default_context(cafile=certificate) if certificate else None
        if tls:
            tls.check_hostname = False  # it is for the address
        server = Server(config=config, env=s3.ENV, tls=tls)
        server.store = ["--store", self.url]
        server.flags += [*map(str, self.flags), "--node-name", f"n{number}", "--node-url",
                         f"http{'s' if tls else ''}://{server.listen}"]
        return server

    def __enter__(self):
        try:
            for server in self.servers:
                server.start()
        except BaseException:
            self.discard()
            raise
        return self

    def __exit__(self, kind, *exc):
        try:
            for server in self.servers:
                if server.process is not None and kind is None:
                    server.stop()
        finally:
            self.discard()

    def discard(self):
        for server in self.servers:
            server.discard()
        with contextlib.suppress(OSError):
            self.secret.unlink()

    def __getitem__(self, number):
        return self.servers[number]

    def sql(self, text):
        return sql(text, self.url)

    def key(self, tenant, *more):
        """A new key of the tenant. Other nodes than the first read it within two seconds."""
        return self.servers[0].keys("create", "--tenant", tenant, "--quiet", *more).strip()

    def home(self, tenant):
        """The number of the node where the tenant lives, or None."""
        name = self.sql(f"SELECT name FROM retort_homes JOIN retort_writers ON id = node WHERE tenant = '{tenant}'")
        return int(name[1:]) if name else None

    def wait_gone(self, number):
        """Until others have taken over from it."""
        retort.wait_until(lambda: not self.sql(f"SELECT 1 FROM retort_writers WHERE name = 'n{number}'"
                                               " AND until IS NOT NULL"), "the take-over", retort.SECONDS)


class Gate:
    """A Unix socket before PostgreSQL's that a network may cut: nothing passes then, and nobody is told."""

    def __init__(self, postgres):
        self.behind = str(postgres.place / ".s.PGSQL.5432")
        self.place = Path(tempfile.mkdtemp(prefix="retort-test-gate-"))
        self.place.chmod(0o755)
        self.open = threading.Event()
        self.open.set()

    def __enter__(self):
        self.door = socket.socket(socket.AF_UNIX)
        self.door.bind(str(self.place / ".s.PGSQL.5432"))
        (self.place / ".s.PGSQL.5432").chmod(0o777)
        self.door.listen(20)
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.open.set()
        self.door.close()
        shutil.rmtree(self.place, ignore_errors=True)

    def url(self, of):
        """That of the same database, through here."""
        name = of.removeprefix("postgresql:///").partition("?")[0]
        return f"postgresql:///{name}?host={quote(str(self.place), safe='')}&user=postgres"

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.door.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self.behind)
                for ends in (client, server), (server, client):
                    threading.Thread(target=self.carry, args=ends, daemon=True).start()

    def carry(self, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self.open.wait()
                target.sendall(data)
        self.open.wait()
        for end in source, target:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
