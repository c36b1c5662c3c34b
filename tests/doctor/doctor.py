"""`retort doctor` from outside: on this machine as it is, and with something taken away."""

import json
import subprocess
import sys
from pathlib import Path

from support import retort

HERE = Path(__file__).resolve().parent


class Report:
    """What doctor --json told."""

    def __init__(self, exit, text, stderr):
        self.exit, self.stderr = exit, stderr
        try:
            self.document = json.loads(text)
        except ValueError as error:
            raise AssertionError(f"exit {exit}, no document ({error}): {text[:500]!r}\n{stderr}")
        assert self.document["version"] == 1 and self.document["exit"] == exit
        self.rows = {row["name"]: row for row in self.document["rows"]}
        assert len(self.rows) == len(self.document["rows"]), "two rows of one name"

    def __getitem__(self, name):
        return self.rows[name]

    @property
    def verdict(self):
        return self.document["verdict"]

    def names(self, state, section="Layers"):
        return [name for name, row in self.rows.items()
                if row["state"] == state and row["section"] == section]

    def __repr__(self):
        bad = [row for row in self.document["rows"] if row["state"] != "ok"]
        return f"<exit {self.exit}: {self.verdict}; {bad}; stderr {self.stderr!r}>"


def run(*args, under=(), **options):
    """One report; `under` are words that go before the program."""
    done = subprocess.run([*map(str, under), retort.PROGRAM, "doctor", "--json", *map(str, args)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=retort.SECONDS, **options)
    return Report(done.returncode, done.stdout.decode(), done.stderr.decode())


def without(*rules):
    """Words to put before a program: see without.py."""
    return [sys.executable, HERE / "without.py", *rules, "--"]


def after(script, *flags):
    """Words to put before a program: a shell script in a user namespace of its own goes first."""
    return ["unshare", "--map-root-user", *flags, "sh", "-ec", script + '\nexec "$@"', "sh"]
