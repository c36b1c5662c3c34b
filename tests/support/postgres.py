"""A PostgreSQL server of our own: in a throw-away directory, on a Unix socket, gone when the tests are.

with Postgres() as p: p.database() makes a database and returns its URL. p.kill(), p.stop() and p.start()
do to it what happens to databases. Root cannot run one, so root runs it as an ordinary user.
"""

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from support import retort

PLACES = ["/usr/lib/postgresql", str(retort.REPO / "build/postgres/usr/lib/postgresql")]
# For a test a power cut is not to be survived; a kill of any process is, also without fsync.
SETTINGS = {"listen_addresses": "", "fsync": "off", "max_connections": "60", "log_min_messages": "warning",
            "log_statement": "none"}


def programs():
    found = [bins for place in PLACES for bins in sorted(Path(place).glob("*/bin")) if (bins / "postgres").exists()]
    assert found, "there is no PostgreSQL; ./dev test unpacks one"
    return found[-1]


def sql(text, url):
    """What psql prints: a line for each row, with | between columns."""
    done = subprocess.run([programs() / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", text, url],
                          capture_output=True, text=True, timeout=retort.SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Postgres:
    def __init__(self, trusts=None, **settings):
        """trusts: a network whose machines may connect, where listen_addresses lets them."""
        self.trusts = trusts
        self.bin = programs()
        self.place = Path(tempfile.mkdtemp(prefix="retort-test-pg-"))
        self.place.chmod(0o755)
        self.data = self.place / "data"
        self.settings = {**SETTINGS, "unix_socket_directories": str(self.place), **settings}
        self.numbers = itertools.count(1)
        self.process = None
        self.user = {}
        if os.geteuid() == 0:
            who = next(pwd.getpwnam(n) for n in ("postgres", "nobody") if n in {p.pw_name for p in pwd.getpwall()})
            os.chown(self.place, who.pw_uid, who.pw_gid)
            self.user = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}

    def __enter__(self):
        try:
            self.run("initdb", "-D", self.data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8",
                     "--no-sync")
            if self.trusts:
                with open(self.data / "pg_hba.conf", "a") as rules:
                    rules.write(f"host all all {self.trusts} trust\n")
            self.start()
        except BaseException:
            self.discard()
            raise
        return self

    def __exit__(self, *exc):
        self.discard()

    def run(self, program, *args):
        done = subprocess.run([self.bin / program, *args], cwd=self.place, capture_output=True, text=True,
                              timeout=retort.SECONDS, **self.user)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def log(self):
        with contextlib.suppress(OSError):
            return (self.place / "log").read_text(errors="replace")[-4000:]
        return ""

    # --- life ---

    def start(self):
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        flags = [word for name, value in self.settings.items() for word in ("-c", f"{name}={value}")]
        with open(self.place / "log", "ab") as log:
            self.process = subprocess.Popen([self.bin / "postgres", "-D", self.data, *flags], cwd=self.place,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True, **self.user)
        until = time.monotonic() + retort.SECONDS
        while subprocess.run([self.bin / "pg_isready", "-q", "-h", self.place]).returncode:
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < until, self.log()
            time.sleep(0.02)

    def group(self, number):
        """Every process of it at once, as a machine that dies would: -9, or a pause."""
        for pid in (self.process.pid, *retort.below(self.process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self):
        self.group(signal.SIGKILL)
        self.process.wait()
        retort.wait_until(lambda: not list(self.place.glob(".s.PGSQL.*.lock")) or self.process.poll() is not None,
                          "its end", retort.SOON)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(retort.SECONDS)

    def discard(self):
        if self.process is not None and self.process.poll() is None:
            self.group(signal.SIGKILL)
            self.process.wait()
        shutil.rmtree(self.place, ignore_errors=True)

    # --- databases ---

    def url(self, name="postgres"):
        return f"postgresql:///{name}?host={quote(str(self.place), safe='')}&user=postgres"

    def database(self):
        name = f"test_{next(self.numbers)}"
        self.sql(f"CREATE DATABASE {name}")
        return self.url(name)

    def sql(self, text, url=None):
        return sql(text, url or self.url())
