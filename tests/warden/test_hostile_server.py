"""A server that was taken over asks the warden for more than a server may have.

Whatever is not in the table of requests ends the warden and everything it started. What is in the
table and asks for too much is refused in one sentence. Neither changes anything of the host.
"""

import os
import shutil
import socket
import struct
import tempfile
from pathlib import Path

import pytest

from hostile import LIMITS, Ended, Warden, field, packet

ROOT = os.geteuid() == 0
NO_REQUEST = "this is no request of a server; the warden ends"


def host_state():
    """What a warden with too much faith would change."""
    watched = ["/etc/passwd", "/etc/shadow", "/etc", "/root", "/var/cache", "/usr/bin/python3", "/"]
    seen = {}
    for path in watched:
        st = os.stat(path)
        seen[path] = (st.st_uid, st.st_gid, st.st_mode, st.st_ino)
    seen["mounts"] = Path("/proc/self/mountinfo").read_text()
    return seen


@pytest.fixture(autouse=True)
def host_unchanged():
    before = host_state()
    yield
    assert host_state() == before


@pytest.fixture
def warden():
    with Warden() as one:
        yield one


@pytest.fixture(scope="module")
def lasting():
    """One that has to live through everything that is refused."""
    with Warden() as one:
        yield one


@pytest.fixture(scope="module")
def working(lasting):
    """The same, with a zygote (10) that is up."""
    lasting.start(10)
    said = lasting.answer(lasting.MSG_POOL_UP, lasting.MSG_POOL_DOWN)
    assert said[:2] == (lasting.MSG_POOL_UP, 10), lasting.text(said)
    return lasting


# --- what no server says ---

def path_fields(w):
    """The request as it was when it had paths in it: their tags, whatever they mean today."""
    first = w.TAG_BLOB + 1
    paths = [b"/usr/bin/python3", b"os", b"/tmp/evil", b"/etc", b"/root"]
    return b"".join(field(first + i, path) for i, path in enumerate(paths))


NONSENSE = {
    "nothing": lambda w: b"",
    "half a head": lambda w: packet(w.MSG_KILL)[:9],
    "a length too long": lambda w: packet(w.MSG_KILL, length=1),
    "a length too short": lambda w: packet(w.MSG_POOL_START, body=field(w.TAG_NUMBER, 0), length=0),
    "a packet too large": lambda w: packet(w.MSG_KILL, body=bytes(w.WIRE_BODY_MAX + 1)),
    "id zero": lambda w: packet(w.MSG_KILL, 0),
    "more to come": lambda w: packet(w.MSG_KILL, flags=1),
    "a file for a body": lambda w: packet(w.MSG_POOL_START, flags=2),
    "unknown flags": lambda w: packet(w.MSG_USAGE, flags=0x8000),
    "kill with a body": lambda w: packet(w.MSG_KILL, body=field(w.TAG_NUMBER, 9)),
    "ping with a body": lambda w: packet(w.MSG_PING, body=field(w.TAG_TEXT, b"../../x")),
    "usage with a body": lambda w: packet(w.MSG_USAGE, body=field(w.TAG_TEXT, b"../../x")),
    "stop with a body": lambda w: packet(w.MSG_POOL_STOP, body=field(w.TAG_NUMBER, 1)),
    "start with nothing": lambda w: packet(w.MSG_POOL_START),
    "start with a path": lambda w: packet(w.MSG_POOL_START, body=field(w.TAG_NUMBER, b"/etc/shadow")),
    "start with paths": lambda w: packet(w.MSG_POOL_START, body=path_fields(w)),
    "start with a number and paths":
        lambda w: packet(w.MSG_POOL_START, body=field(w.TAG_NUMBER, 0) + path_fields(w)),
    "start with two numbers":
        lambda w: packet(w.MSG_POOL_START, body=field(w.TAG_NUMBER, 0) + field(w.TAG_NUMBER, 0)),
    "start with a path for a module":
        lambda w: packet(w.MSG_POOL_START, body=field(w.TAG_NUMBER, 0) + field(w.TAG_NAME, b"../../tmp/evil")),
    "start with an option for a module":
        lambda w: packet(w.MSG_POOL_START, body=field(w.TAG_NUMBER, 0) + field(w.TAG_NAME, b"--preload=os")),
    "start with modules without end":
        lambda w: packet(w.MSG_POOL_START, body=field(w.TAG_NUMBER, 0) + field(w.TAG_NAME, b"os," * 1366 + b"os")),
    "start with modules alone": lambda w: packet(w.MSG_POOL_START, body=field(w.TAG_NAME, b"os")),
    "start with modules twice": lambda w: packet(
        w.MSG_POOL_START, body=field(w.TAG_NUMBER, 0) + field(w.TAG_NAME, b"os") + field(w.TAG_NAME, b"os")),
    "start with seven bytes": lambda w: packet(w.MSG_POOL_START, body=field(w.TAG_NUMBER, bytes(7))),
    "start with nine bytes": lambda w: packet(w.MSG_POOL_START, body=field(w.TAG_NUMBER, bytes(9))),
    "a field past the end":
        lambda w: packet(w.MSG_POOL_START, body=struct.pack("<HHI", w.TAG_NUMBER, 0, 1 << 31)),
    "a field that is not zero where it must be":
        lambda w: packet(w.MSG_POOL_START, body=struct.pack("<HHIQ", w.TAG_NUMBER, 1, 8, 0)),
    "bytes left over": lambda w: packet(w.MSG_POOL_START, body=field(w.TAG_NUMBER, 0) + b"x"),
    "spawn with nothing": lambda w: packet(w.MSG_SPAWN),
    "spawn with no plan": lambda w: packet(w.MSG_SPAWN, body=field(w.TAG_ZYGOTE, 1)),
    "spawn with a short plan": lambda w: packet(
        w.MSG_SPAWN, body=field(w.TAG_ZYGOTE, 1) + field(w.TAG_BLOB, w.plan()[:-1])),
    "spawn with a long plan": lambda w: packet(
        w.MSG_SPAWN, body=field(w.TAG_ZYGOTE, 1) + field(w.TAG_BLOB, w.plan() + b"x")),
    "spawn in another order": lambda w: packet(
        w.MSG_SPAWN, body=field(w.TAG_BLOB, w.plan()) + field(w.TAG_ZYGOTE, 1)),
    "spawn with an id map of its own": lambda w: packet(
        w.MSG_SPAWN, body=field(w.TAG_ZYGOTE, 1) + field(w.TAG_BLOB, w.plan()) +
        field(w.TAG_UID_MAP, b"0 0 4294967295")),
    "spawn with a uid": lambda w: packet(
        w.MSG_SPAWN, body=field(w.TAG_ZYGOTE, 1) + field(w.TAG_BLOB, w.plan()) + field(w.TAG_UID, 0)),
}
# What others say on the wire: kernels, init, zygotes, the warden itself; and what nobody does.
OTHERS = [0, 1, 0x10, 0x20, 0x26, 0x31, 0x33, 0x40, 0x4f, 0x55, 0x5f, 0x60, 0x62, 0x65, 0x70, 0x71,
          0x73, 0x75, 0x80, 0x5051, 0xffff]


def ends(w, bytes_):
    """Neither answered nor lived through."""
    w.send(bytes_)
    with pytest.raises(Ended):
        w.hear()
    how, said = w.end()
    assert how == (True, 0)
    return said


@pytest.mark.parametrize("what", NONSENSE)
def test_nonsense_ends_the_warden(warden, what):
    said = ends(warden, NONSENSE[what](warden))
    assert NO_REQUEST in said or what == "nothing"


@pytest.mark.parametrize("type_", OTHERS)
def test_messages_of_others_end_the_warden(warden, type_):
    body = field(warden.TAG_NUMBER, 0)
    assert NO_REQUEST in ends(warden, packet(type_, body=body))


# --- what is refused ---

@pytest.mark.parametrize("number, why", [
    (1, "this environment has no interpreter"), (2, "there is no such environment"),
    (1 << 32, "there is no such environment"), ((1 << 64) - 1, "there is no such environment")])
def test_only_environments_of_the_settings(lasting, number, why):
    lasting.start(3, number)
    said = lasting.hear()
    assert said[:2] == (lasting.MSG_POOL_DOWN, 3) and lasting.text(said) == why
    assert lasting.lives()


@pytest.mark.parametrize("name", [*LIMITS, "proxy"])
@pytest.mark.parametrize("value", [0, "most"])
def test_a_limit_that_is_none(working, name, value):
    if name == "proxy":
        value = 2 if value == 0 else 0xffffffff
    working.spawn(20, 10, **{name: (1 << 64) - 1 if value == "most" else value})
    said = working.hear()
    assert said[:2] == (working.MSG_SPAWN_FAIL, 20)
    assert working.text(said) == "a limit that is none"


@pytest.fixture
def other_kinds():
    """Descriptors, each of another kind and none of them a control socket."""
    sockets = [*socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM),
               *socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM), socket.socket()]
    pipe = os.pipe()
    fds = {
        "a pipe": pipe[0], "its other end": pipe[1],
        "a stream": sockets[0].detach(), "datagrams": sockets[2].detach(), "tcp": sockets[4].detach(),
        "a directory": os.open("/", os.O_RDONLY), "a path": os.open("/etc/passwd", os.O_PATH),
        "a file": os.open("/etc/passwd", os.O_RDONLY), "a device": os.open("/dev/null", os.O_RDWR),
        "memory": os.memfd_create("x"), "a process": os.pidfd_open(os.getpid()),
    }
    yield fds
    for fd in fds.values():
        os.close(fd)


def test_descriptors_of_other_kinds(working, other_kinds):
    before = working.descriptors()
    for kind, fds in {"none": [], **{kind: [fd] for kind, fd in other_kinds.items()}}.items():
        working.spawn(21, 10, fds=fds)
        said = working.hear()
        assert said[:2] == (working.MSG_SPAWN_FAIL, 21), kind
        assert working.text(said) == "no control socket came with the request", kind
    assert working.descriptors() == before


def test_descriptors_that_nobody_asked_for(lasting):
    before = lasting.descriptors()
    null = os.open("/dev/null", os.O_RDONLY)
    for count in (1, 8, 64, 253):  # 253: SCM_MAX_FD
        lasting.send(packet(lasting.MSG_KILL, 5), [null] * count)
    os.close(null)
    assert lasting.lives() and lasting.descriptors() == before


def test_ids_of_others(working):
    for zygote in (0, 11, (1 << 64) - 1):
        working.spawn(22, zygote)
        said = working.hear()
        assert said[:2] == (working.MSG_SPAWN_FAIL, 22) and working.text(said) == "no such zygote"
    working.start(10)
    said = working.hear()
    assert said[:2] == (working.MSG_POOL_DOWN, 10)
    assert working.text(said) == "there is a zygote with this id"
    for unknown in (23, os.getpid(), 1, (1 << 64) - 1):
        working.send(packet(working.MSG_KILL, unknown))
        working.send(packet(working.MSG_POOL_STOP, unknown))
    assert working.lives() and working.is_silent()


def test_who_a_sandbox_is_is_not_the_servers_choice(working):
    """Ids and the cgroup in the plan are the warden's to fill in."""
    ctl = working.spawn(30, 10, init_uid=0 if not ROOT else 4242, in_cgroup=7, nice=1 << 31)
    said = working.answer(working.MSG_SPAWNED, working.MSG_SPAWN_FAIL)
    assert said[:2] == (working.MSG_SPAWNED, 30), working.text(said)
    uid = struct.unpack("<Q", said[2][working.TAG_UID])[0]
    if ROOT:
        most = working.UID_BASE + working.UID_COUNT * working.UID_BLOCKS
        assert working.UID_BASE < uid < most
    else:
        assert uid == os.geteuid()
    assert working.hear(ctl)[0] == working.MSG_READY
    working.spawn(30, 10)
    said = working.hear()
    assert said[:2] == (working.MSG_SPAWN_FAIL, 30)
    assert working.text(said) == "there is a sandbox with this id"
    working.send(packet(working.MSG_KILL, 30))
    assert working.answer(working.MSG_GONE)[1] == 30


def test_a_request_again(working):
    """The same bytes twice, as somebody would who has recorded them."""
    for _ in range(2):
        ctl = working.spawn(31, 10)
        assert working.answer(working.MSG_SPAWNED, working.MSG_SPAWN_FAIL)[0] == working.MSG_SPAWNED
        assert working.hear(ctl)[0] == working.MSG_READY
        ctl.close()
        assert working.answer(working.MSG_GONE)[1] == 31


def test_a_flood_is_answered_and_leaves_nothing(working):
    before = working.descriptors()
    for turn in range(40):
        for i in range(25):
            working.send(packet(working.MSG_USAGE, 1000 + i))
            working.spawn(2000 + i, 99, fds=[])
            working.start(3000 + i, 99)
        heard = [working.hear()[0] for _ in range(75)]
        assert heard.count(working.MSG_USED) == 25, f"in turn {turn}"
        assert heard.count(working.MSG_SPAWN_FAIL) == heard.count(working.MSG_POOL_DOWN) == 25
    assert working.is_silent() and working.descriptors() == before


def test_zygotes_that_retire_make_no_more(warden):
    warden.start(12)
    assert warden.answer(warden.MSG_POOL_UP, warden.MSG_POOL_DOWN)[0] == warden.MSG_POOL_UP
    ctl = warden.spawn(40, 12)
    assert warden.answer(warden.MSG_SPAWNED)[1] == 40
    warden.send(packet(warden.MSG_POOL_STOP, 12))
    warden.spawn(41, 12)
    said = warden.answer(warden.MSG_SPAWN_FAIL)
    assert said[1] == 41 and warden.text(said) == "no such zygote"
    ctl.close()
    assert {warden.hear()[0] for _ in range(2)} == {warden.MSG_GONE, warden.MSG_POOL_DOWN}
    assert not warden.descendants()


# --- what it holds ---

def test_capabilities_are_four(lasting):
    kill, setgid, setuid, sys_admin = 5, 6, 7, 21
    want = sum(1 << n for n in (kill, setgid, setuid, sys_admin)) if ROOT else 0
    has = lasting.capabilities()
    assert has["CapEff"] == has["CapPrm"] == want and has["CapInh"] == has["CapAmb"] == 0


def test_what_it_started_goes_with_it():
    with Warden() as w:
        w.start(1)
        assert w.answer(w.MSG_POOL_UP, w.MSG_POOL_DOWN)[0] == w.MSG_POOL_UP
        w.spawn(2, 1)
        assert w.answer(w.MSG_SPAWNED)[1] == 2
        below = w.descendants()
        assert len(below) >= 3  # keeper, zygote, init
        w.send(packet(0x7777))
        assert w.end()[0] == (True, 0)
        assert not [pid for pid in below if Path(f"/proc/{pid}").exists()]


# --- places that were swapped ---

def read_in_box(w, zygote, box, path):
    """What a command in a new sandbox sees."""
    ctl = w.spawn(box, zygote)
    assert w.answer(w.MSG_SPAWNED, w.MSG_SPAWN_FAIL)[0] == w.MSG_SPAWNED
    assert w.hear(ctl)[0] == w.MSG_READY
    null, (out, out_theirs) = os.open("/dev/null", os.O_RDWR), os.pipe()
    os.fchmod(out_theirs, 0o666)
    body = b"".join(field(w.TAG_ARG, word) for word in (b"/bin/cat", str(path).encode()))
    socket.send_fds(ctl, [packet(w.MSG_COMMAND, 1, body)], [null, out_theirs, out_theirs])
    os.close(out_theirs)
    with os.fdopen(out, "rb") as said:
        text = said.read().decode()
    assert w.hear(ctl)[0] == w.MSG_COMMAND_EXIT
    os.close(null)
    ctl.close()
    return text


@pytest.fixture
def outside():
    """A folder that sandboxes have no place of their own over, as /tmp has."""
    made = Path(tempfile.mkdtemp(dir="/var/tmp", prefix="retort-warden-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def test_a_directory_that_became_a_link_shows_nothing_else(outside):
    """As root a directory is what it was when the warden started. Without privilege it is a name,
    and leads nowhere that the server could not go itself."""
    (outside / "venv").mkdir()
    (outside / "venv" / "word").write_text("mine")
    (outside / "secret").mkdir()
    (outside / "secret" / "word").write_text("another's")
    with Warden(dirs=[outside / "venv"]) as w:
        (outside / "venv").rename(outside / "was")
        (outside / "venv").symlink_to("secret")
        w.start(1)
        assert w.answer(w.MSG_POOL_UP, w.MSG_POOL_DOWN)[0] == w.MSG_POOL_UP
        seen = read_in_box(w, 1, 2, outside / "venv" / "word")
        assert seen == ("mine" if ROOT else "another's")


def test_a_cache_that_is_a_link_is_not_followed(outside):
    cache, victim = outside / "cache", outside / "victim"
    cache.mkdir()
    victim.mkdir(mode=0o700)
    with Warden(cache=cache):  # to learn the name it takes
        (name,) = os.listdir(cache)
    (cache / name).rmdir()
    (cache / name).symlink_to(victim)
    before = os.stat(victim)
    with Warden(cache=cache) as w:
        w.start(1)
        said = w.answer(w.MSG_POOL_DOWN, w.MSG_POOL_UP)
        assert w.text(said) == f"open the cache '{name}': Not a directory"
        after = os.stat(victim)
    assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)
    assert not os.listdir(victim)


def test_a_long_path_of_a_cache_is_not_cut(outside):
    """At 600 bytes the name of another directory was left over."""
    cache = outside
    while len(str(cache)) < 700:
        cache /= "d" * 100
        cache.mkdir()
    with Warden(cache=cache) as w:
        (name,) = os.listdir(cache)
        owner, most = os.stat(cache / name).st_uid, w.UID_BASE + w.UID_COUNT * w.UID_BLOCKS
        assert w.UID_BASE <= owner < most if ROOT else owner == os.geteuid()
        assert [len(os.listdir(p)) for p in cache.parents[:5]] == [1] * 5
