"""GET /ready while no sandbox can be made: it says so, with the reason, and takes it back by itself."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from support import retort
from support.server import Server, family


def zygotes(server):
    """The interpreters that sandboxes are forked from: what runs zygote.py, but for their children,
    which have it on their command line as well."""
    found = []
    for pid, _ in family(server.pid):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            parent = int(retort.field(pid, "PPid")[0])
            above = Path(f"/proc/{parent}/cmdline").read_bytes()
        except (OSError, IndexError):
            continue
        if any(word.endswith(b"/zygote.py") for word in words) and b"zygote.py" not in above:
            found.append(pid)
    return found


def wardens(server):
    return retort.children(server.pid)


@pytest.mark.parametrize("who", [wardens, zygotes])
def test_ready_tells_who_stands_still(who):
    """One that is stopped makes no sandbox, and says nothing of it either."""
    with Server("--ready", "0") as server, server.client() as client, client.session() as old:
        stopped = who(server)
        try:
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            retort.wait_until(lambda: client.get("/ready").status == 503, "the bad news", retort.SECONDS)
            why = client.get("/ready").json["why"]
            assert "has not answered" in why and "kill -CONT" in why, why
            made = client.post("/v1/sessions", {})
            made.refused(429)
            assert int(made.headers["retry-after"]) >= 1
            assert old.run("print(6 * 7)")["stdout"] == "42\n"
            # Long enough, or failed, that the warden would be asked about it.
            assert old.run("import time; time.sleep(0.2); print('late')")["stdout"] == "late\n"
            assert old.run("1 / 0")["status"] == "raised"
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        retort.wait_until(lambda: client.get("/ready").status == 200, "the good news", retort.SECONDS)
        with client.session() as new:
            assert new.run("print(6 * 7)")["stdout"] == "42\n"


def test_a_keeper_that_is_stopped_is_in_nobodys_way():
    """It only reaps: sandboxes come and go without it, and when its zygote dies both get a successor."""
    with Server("--ready", "0") as server, server.client() as client:
        stopped = [p for warden in wardens(server) for p in retort.children(warden)]
        assert stopped
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        for _ in range(2):
            with client.session() as session:
                assert session.run("print(6 * 7)")["stdout"] == "42\n"
        assert client.get("/ready").status == 200
        for pid in zygotes(server):
            os.kill(pid, signal.SIGKILL)
        retort.wait_until(lambda: client.post("/v1/sessions", {}).status == 201, "another zygote", retort.SECONDS)
        retort.wait_until(lambda: not [p for p in stopped if p in retort.pids()], "its keeper to go", retort.SECONDS)


def few_descriptors(pid, soft):
    """What a host does that runs out: nothing more can be opened there. Returns what it had.

    By the process's own user: not every root may change the limits of others."""
    limits = next(line for line in Path(f"/proc/{pid}/limits").read_text().splitlines()
                  if line.startswith("Max open files"))
    line = ["prlimit", f"--pid={pid}", f"--nofile={soft}:"]
    if os.geteuid() == 0:
        place = os.stat(f"/proc/{pid}")
        line = ["setpriv", f"--reuid={place.st_uid}", f"--regid={place.st_gid}", "--clear-groups", *line]
    subprocess.run(line, check=True)
    return int(limits.split()[3])


def parked(client):
    return re.search(r"^retort_pool_parked\{.*\} (\d+)$", client.get("/metrics").text, re.M)[1]


@pytest.mark.parametrize("ready", ["0", "1"])
def test_ready_tells_when_no_sandbox_can_be_made(ready):
    with Server("--ready", ready) as server, server.client() as client, client.session() as old:
        (zygote,) = zygotes(server)
        retort.wait_until(lambda: parked(client) == ready, "what is kept ready", retort.SECONDS)
        had = few_descriptors(zygote, 4)
        made = client.post("/v1/sessions", {})
        if ready == "1":
            made.expect(201)  # the one that was there; another cannot be made in its place
        else:
            made.refused(429)
            assert made.headers["retry-after"] == "1"
        retort.wait_until(lambda: client.get("/ready").status == 503, "the bad news", retort.SECONDS)
        said = client.get("/ready").json
        assert said["status"] == "not_ready" and said["why"].startswith("no sandbox can be made: ")
        assert old.run("print(6 * 7)")["stdout"] == "42\n"
        assert zygotes(server) == [zygote]  # it lived through that, and all its sandboxes

        few_descriptors(zygote, had)
        retort.wait_until(lambda: client.get("/ready").status == 200, "the good news", retort.SECONDS)
        with client.session() as new:
            assert new.run("print(6 * 7)")["stdout"] == "42\n"


def test_after_a_rush_more_are_parked():
    """And what was used is gone: the children of the zygote are the first processes of sandboxes."""
    with Server("--ready", "1", "--ready-max", "3") as server, server.client() as client:
        (zygote,) = zygotes(server)
        retort.wait_until(lambda: parked(client) == "1", "what is kept ready", retort.SECONDS)
        for i in range(12):
            assert client.post("/v1/execute", {"code": f"{i} + 1"}).expect(200).json["result"] == str(i + 1)
        retort.wait_until(lambda: parked(client) == "3", "as many as may be", retort.SECONDS)
        retort.wait_until(lambda: len(retort.children(zygote)) == int(parked(client)), "the end of what was used",
                          retort.SECONDS)
