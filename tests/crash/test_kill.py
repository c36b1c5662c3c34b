"""kill -9 of any one of our processes, at any time, leaves no sandbox process alive; the next start
removes what else there was."""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support import retort
from support.server import mounts

ROLES = ["server", "warden", "keeper", "zygote", "init", "kernel"]

# A cell with children that would outlive it, and one more that shows what is left.
BUSY = """
import os, subprocess, time
kept = 1
open("kept.txt", "w").write("kept")
subprocess.Popen(["sh", "-c", "sleep 1000; :", MARK])
subprocess.Popen(["sh", "-c", "trap '' HUP INT TERM; sleep 1000; :", MARK], start_new_session=True)
time.sleep(60)
"""
NEXT = "print('kept' in globals(), open('kept.txt').read())"


def chain(server):
    """The processes of a session by their role, each the parent of the next."""
    found, at = {"server": server}, server
    for role in ROLES[1:]:
        children = retort.children(at)
        assert len(children) == 1, f"{role}: {children}"
        at = found[role] = children[0]
    # Numbered in the namespaces it is in: PID 1 of its own is the last number.
    assert retort.field(found["keeper"], "NSpid")[1:] == ["1"]
    assert retort.field(found["init"], "NSpid")[2:] == ["1"]
    return found


def traces(instances):
    """What these instances have left on the host."""
    groups = retort.groups_of(instances)
    return {"cgroups": groups, "mounts": mounts(), "places": os.listdir(os.environ["TMPDIR"])}


def kill_and_wait(victim, all):
    os.kill(victim, signal.SIGKILL)
    retort.wait_until(lambda: not any(map(retort.is_alive, all)), "the end of every process")


class Busy:
    """A session in the middle of its first cell: with Busy() as busy."""

    def __enter__(self):
        self.mark = "mark-" + secrets.token_hex(8)
        self.process = retort.start("run", "--json", "--keep-going", "-c", f"MARK = {self.mark!r}{BUSY}",
                                    "-c", NEXT)
        retort.wait_until(lambda: len(retort.with_word(self.mark)) == 2, "the session's children",
                          retort.SECONDS)
        self.chain = chain(self.process.pid)
        self.below = retort.below(self.process.pid)
        self.instances = retort.instances(self.below)
        assert len(self.instances) == retort.has_groups()
        assert len(self.below) >= 9 and set(self.chain.values()) < {self.process.pid, *self.below}
        return self

    def __exit__(self, *exc):
        retort.end(self.process)


@pytest.mark.parametrize("role", ROLES[:-1])
def test_kill(role, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = traces(set())
    with Busy() as busy:
        kill_and_wait(busy.chain[role], busy.below)
        code, out, err = retort.finish(busy.process)
    assert retort.with_word(busy.mark) == []
    if role == "server":
        assert code == -signal.SIGKILL
    else:
        run = retort.Run(code, out, err)
        assert (run.exit, run.statuses) == (3, ["session_lost"])
        assert run[0].lost and run[0].message
    assert retort.run("-c", "1")[0].status == "ok"  # the next start, which cleans up
    assert traces(busy.instances) == before


def test_kill_of_the_kernel():
    with Busy() as busy:
        inside = [p for p in busy.below if p not in list(busy.chain.values())[:-1]]
        kill_and_wait(busy.chain["kernel"], inside)
        run = retort.Run(*retort.finish(busy.process))
    assert run.statuses == ["died", "ok"]
    assert run[0].lost and "signal 9" in run[0].message
    assert run[1].stdout == "False kept\n"
    assert run.exit == 1


def is_warden(pid):
    """By its name, which it takes at once: a child that is about to become a Python has our program, too."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text() == "retort-warden\n"
    return False


@pytest.mark.parametrize("role", ["server", "warden"])
def test_kill_while_starting(role):
    for delay in (0.01, 0.05, 0.15, 0.3, 0.6):
        process = retort.start("run", "-c", "import time; time.sleep(60)", stdout=subprocess.DEVNULL)
        try:
            time.sleep(delay)
            below = retort.below(process.pid)
            if role == "warden":  # and not a Python that is asked what it needs
                below = [p for p in below if is_warden(p)]
                if not below:
                    continue
            victim = process.pid if role == "server" else below[0]
            kill_and_wait(victim, below)
            if role == "warden":
                assert process.wait(retort.SECONDS) == 3
        finally:
            retort.end(process)
    assert retort.run("-c", "1").exit == 0


def test_kill_of_everything_at_once():
    with Busy() as busy:
        for pid in (busy.process.pid, *busy.below):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        retort.wait_until(lambda: not any(map(retort.is_alive, busy.below)), "every process")
    assert retort.run("-c", "1").exit == 0
    assert retort.groups_of(busy.instances) == []


def test_stopped_server_is_no_way_out():
    # A server that hangs keeps its sandboxes; once it is killed they go.
    with Busy() as busy:
        os.kill(busy.process.pid, signal.SIGSTOP)
        kill_and_wait(busy.process.pid, busy.below)


def test_the_sentence_for_people():
    with retort.Live("-c", "print('up')\nimport time; time.sleep(60)") as live:
        live.wait_for("up")
        os.kill(chain(live.pid)["zygote"], signal.SIGKILL)
        assert live.wait() == 3
    assert live.lines[0] == "up"
    assert any(line.startswith("retort: the sandbox is gone") for line in live.lines), live.lines


def test_document_of_a_run_that_could_not_start():
    process = retort.start("run", "--json", "-c", "1")

    def keepers():
        return [p for p in retort.below(process.pid) if retort.field(p, "NSpid")[1:] == ["1"]]

    try:
        retort.wait_until(keepers, "the keeper")
        os.kill(keepers()[0], signal.SIGKILL)
        code, out, err = retort.finish(process)
    finally:
        retort.end(process)
    document = json.loads(out)
    assert code == document["exit"] == 3
    assert document["executions"] == [] and document["error"]
    assert err.startswith("retort: ")
