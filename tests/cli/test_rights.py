"""Who the server is while it serves, and what it can still do for a sandbox."""

import os
import shutil
import subprocess

import pytest

from support import retort
from support.server import folder
from terminal import Server, is_root, service_id

SETUID_SETGID = 1 << 6 | 1 << 7
HAS_IDS = "own" in retort.sandbox_users()  # for sandboxes: then it acts for their users


@pytest.fixture(scope="module")
def server():
    with Server() as s:
        yield s


def caps(pid, name):
    return int(retort.field(pid, name)[0], 16)


def test_serves_as_somebody_without_rights(server):
    assert set(retort.field(server.pid, "Uid")) == {str(service_id())}
    assert caps(server.pid, "CapEff") == caps(server.pid, "CapPrm") == (SETUID_SETGID if HAS_IDS else 0)
    if HAS_IDS:
        assert caps(server.pid, "CapBnd") == caps(server.pid, "CapAmb") == caps(server.pid, "CapInh") == 0
        assert retort.field(server.pid, "NoNewPrivs") == ["1"]
    if is_root():
        assert retort.field(server.pid, "Groups") == []


@pytest.mark.skipif(not is_root(), reason="only root can look into another's namespace")
def test_its_namespace_holds_itself_and_sandboxes(server):
    for kind in ("uid_map", "gid_map"):
        with open(f"/proc/{server.pid}/{kind}") as f:
            rows = [tuple(map(int, line.split())) for line in f]
        assert rows[0][0] == 0 and rows[0][1] != 0 and rows[0][2] == 1
        assert rows[1:] == [(0x70000000, 0x70000000, 0x10000 * 256)]


def test_files_that_only_the_sandbox_may_read(server):
    """Mode 0600 in a folder of mode 0700, made by the code, is handed out all the same."""
    code = ("import os\nos.mkdir('d', 0o700)\n"
            "for n in ('secret.txt', 'd/deep.txt'):\n"
            "    open(n, 'w').write('mine')\n    os.chmod(n, 0o600)\n")
    answer = server.run(code).json
    assert answer["status"] == "ok", answer
    session = answer["session"]
    for name in ("secret.txt", "d/deep.txt"):
        got = server.get(f"/v1/sessions/{session}/files/{name}")
        assert (got.status, got.body) == (200, b"mine")


def test_state_belongs_to_the_server(server):
    assert {path.stat().st_uid for path in [server.state, *server.state.rglob("*")]} == {service_id()}


@pytest.mark.skipif(not is_root(), reason="only root has a choice")
def test_user_can_be_chosen():
    place = folder()
    try:
        with Server("--user", "12345", state=place / "s") as s:
            assert set(retort.field(s.pid, "Uid")) == {"12345"}
            assert s.run("6 * 7").json["result"] == "42"
        with Server("--user", "root", state=place / "r") as s:
            assert set(retort.field(s.pid, "Uid")) == {"0"}
            assert s.run("6 * 7").json["result"] == "42"
        with Server(state=place / "r") as s:  # what was root's is the server's now
            assert s.run("6 * 7").json["result"] == "42"
            assert {p.stat().st_uid for p in [s.state, *s.state.rglob("*")]} == {service_id()}
        status, _, err = retort.call("serve", "--state", place / "s", "--listen", "127.0.0.1:0")
        assert status == 2 and "belongs to user 12345" in err
        status, _, err = retort.call("serve", "--state", place / "n", "--user", "nobody-such")
        assert status == 2 and "there is no user nobody-such" in err
    finally:
        shutil.rmtree(place)


@pytest.mark.skipif(is_root(), reason="root can")
def test_only_root_becomes_somebody_else():
    status, _, err = retort.call("serve", "--user", "root", "--listen", "127.0.0.1:0")
    assert status == 2 and "only root" in err


@pytest.mark.skipif(not is_root(), reason="only root gives something up")
def test_what_is_out_of_reach_is_told():
    place = folder()
    place.chmod(0o700)
    try:
        status, _, err = retort.call("serve", "--state", place / "s", "--listen", "127.0.0.1:0")
        assert status == 2 and f"cannot use the state directory {place}/s, because {place} is closed to others" in err
        assert err.endswith(f"chmod o+x {place}\n")
        (place / "python").symlink_to("/usr/bin/python3")
        status, _, err = retort.call("serve", "--python", place / "python", "--listen", "127.0.0.1:0")
        assert status == 2 and f"cannot run Python '{place}/python'" in err and "closed to others" in err
    finally:
        shutil.rmtree(place)


@pytest.mark.skipif(not is_root(), reason="only root may go before others")
def test_an_answer_does_not_wait_behind_the_code(server):
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, server.pid) == max(own - 10, -20)
    answer = server.run("import os\ntry: os.nice(-1)\nexcept PermissionError: print('refused')\nos.nice(0)").json
    assert (answer["stdout"], answer["result"]) == ("refused\n", str(own)), answer


@pytest.mark.skipif(not is_root(), reason="only root may have a real-time priority")
@pytest.mark.parametrize("policy", ["--fifo", "--rr"])
def test_a_sandbox_has_no_real_time_priority(policy):
    """Its code would keep everybody off the processor, and some kernels make no such sandbox at all."""
    done = subprocess.run(["chrt", policy, "1", retort.PROGRAM, "run", "-c", "import os; os.sched_getscheduler(0)"],
                          capture_output=True, text=True, timeout=retort.SECONDS)
    assert (done.returncode, done.stdout) == (0, "0\n"), done
