"""What clients hear when parts of the server die or stand still, and what is left when it ends."""

import contextlib
import os
import re
import secrets
import signal
import subprocess
from pathlib import Path

import pytest

from support import retort
from support.server import Server, together


def children(pid):
    return [p for p in retort.pids() if retort.field(p, "PPid") == [str(pid)]]


def zygotes(server):
    """The first process of each pool's own namespaces; what is below dies with it."""
    return [keeper for warden in children(server.pid) for keeper in children(warden)]


def test_the_death_of_a_zygote_is_a_reason_to_try_again():
    """Whoever wants a session just then gets one, or hears when to ask again; never a 500."""
    with Server("--ready", "2") as server, server.client() as client:
        kept = client.session()
        kept.run("open('kept', 'w').write('kept')")

        def ask(i):
            with server.client() as other:
                found = []
                for _ in range(12):
                    found.append(other.post("/v1/execute", {"code": "1"}))
                    found.append(other.post("/v1/sessions", {}))
                    found.append(other.post(kept.path + "/execute", {"code": "open('kept').read()"}))
                    found.append(other.post("/azure/pools/default/executions?identifier=user%d" % i,
                                            {"properties": {"codeInputType": "inline", "executionType": "synchronous",
                                                            "code": "1"}}))
                return found

        def kill():
            for _ in range(6):
                retort.wait_until(lambda: zygotes(server), "a zygote", retort.SECONDS)
                for pid in zygotes(server):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

        *answers, _ = together(*[lambda i=i: ask(i) for i in range(4)], kill)
        for answer in (a for some in answers for a in some):
            assert answer.status in (200, 201, 202, 429), answer
            if answer.status == 429:
                assert int(answer.headers["retry-after"]) >= 1
        retort.wait_until(lambda: client.post(kept.path + "/execute", {"code": "open('kept').read()"})
                          .json.get("result") == "'kept'", "the session to wake", retort.SECONDS)


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user has no cgroups here")
def test_the_common_cgroup_goes_with_the_last_server():
    name = "retort-test-" + secrets.token_hex(4)
    own = dict(re.findall(r"^\d+:(\w+):(.*)$", Path("/proc/self/cgroup").read_text(), re.M))
    places = [Path("/sys/fs/cgroup", c, own[c].lstrip("/"), name)
              for c in ("memory", "pids", "cpu", "cpuacct") if c in own]
    if len(places) < 4:
        pytest.skip("cgroups of version 1 are not here")
    for place in places:
        place.mkdir()
    try:
        with Server() as server:
            command = server.command()
            server.stop()
            enter = "".join(f"echo $$ > {place}/cgroup.procs && " for place in places)
            server.command = lambda: ["sh", "-c", f'{enter} exec "$@"', "sh", *command]
            server.start()
            with server.client() as client:
                client.session().run("1")
            assert all((place / "retort").is_dir() for place in places)
            server.stop()
            assert not [place for place in places if (place / "retort").exists()]
    finally:
        for place in places:
            subprocess.run(["find", place, "-depth", "-type", "d", "-delete"], check=False)
