"""`retort mcp` ends: by its input, by a signal, with its client, killed. Nothing is left, whoever started it."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from support import retort
from support.mcp import text_of
from support.stdio import NOBODY, Local, users

BUSY = "import time\nopen('running', 'w').close()\nwhile True:\n    try: time.sleep(100)\n    except BaseException: pass"


@pytest.fixture(params=users())
def user(request):
    return request.param


def busy(client):
    """A call that will not end by itself, and a program of its own beside it."""
    client.initialize()
    client.call("run_code", code="import subprocess; subprocess.Popen(['sleep', '1000'])")
    client.begin_call("run_code", code=BUSY)
    retort.wait_until(lambda: "running" in text_of(client.call("list_files")), "the code to run")
    client.remember()
    assert len(client.family) > 3 and len(client.left()) == 1


@pytest.mark.parametrize("how", [None, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL],
                         ids=["eof", "term", "int", "hup", "kill"])
def test_an_end_in_the_middle_of_a_call(how):
    with Local() as c:
        busy(c)
        c.leave(how)


@pytest.mark.parametrize("how", [None, signal.SIGKILL], ids=["eof", "kill"])
def test_the_same_for_an_ordinary_user(how):
    with Local(user=users()[-1]) as c:
        busy(c)
        c.leave(how)


def test_an_end_while_it_is_being_built():
    for pause in (0, 0.02, 0.1):
        with Local() as c:
            c.begin_call("run_code", code="1")
            time.sleep(pause)
            c.leave()


def test_a_reader_that_goes():
    """Nobody reads what it says: nobody waits for it."""
    with Local(reads=False) as c:
        c.process.stdout.close()
        c.begin("tools/list")
        assert c.process.wait(retort.SECONDS) == 0


CLIENT = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[2:], stdin=0, stdout=1)
print(child.pid, file=sys.stderr, flush=True)
os.read(int(sys.argv[1]), 1)
os.kill(os.getpid(), 9)
"""


def test_a_client_that_dies_with_its_pipes_held_open():
    """Somebody else has them open, so there is no end of input."""
    wait, go = os.pipe()
    through = Local(through=[sys.executable, "-c", CLIENT, str(wait)])
    out = through.place / "out"
    hold, held = os.pipe()
    client = subprocess.Popen(through.command(), stdin=hold, stdout=open(out, "wb"), stderr=subprocess.PIPE,
                              env=through.env, pass_fds=(wait,))
    pid = int(client.stderr.readline())
    os.write(held, b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code",'
                   b'"arguments":{"code":"6 * 7"}}}\n')
    retort.wait_until(lambda: b"42" in out.read_bytes(), "an answer", retort.SECONDS)
    family = [pid, *retort.below(pid)]
    assert len(family) > 1
    os.write(go, b"x")
    client.wait(retort.SECONDS)
    retort.wait_until(lambda: not any(retort.is_alive(p) for p in family), "the end of all of them")
    for fd in (wait, go, hold, held):
        os.close(fd)
    client.stderr.close()
    out.unlink()
    retort.wait_until(lambda: not through.left(), "the end of its files")
    through.place.rmdir()


# --- where it is started ---

def test_without_home(user):
    with Local(user=user, env={"HOME": None, "XDG_CACHE_HOME": None, "USER": None}) as c:
        assert "42" in text_of(c.call("run_code", code="6 * 7"))


@pytest.mark.parametrize("place", ["relative/tmp", "/proc", "/" + "x" * 5000], ids=["relative", "closed", "long"])
def test_odd_temporary_directories(place):
    with Local(env={"TMPDIR": place}) as c:
        assert "42" in text_of(c.call("run_code", code="6 * 7"))
        files = Path(f"/proc/{c.process.pid}/fd")
        state = next(p for p in map(os.path.realpath, files.iterdir()) if "retort-mcp-" in p)
        c.leave()
        assert not os.path.exists(state)


def test_a_folder_it_may_not_read(user):
    # The one who starts it is there already when the door is shut.
    place = Path(tempfile.mkdtemp(prefix="retort-test-mcp-"))
    if user == "user":
        os.chown(place, NOBODY, NOBODY)
    with Local(user=user, through=["sh", "-c", f'cd {place} && chmod 0 . && exec "$0" "$@"']) as c:
        assert "42" in text_of(c.call("run_code", code="6 * 7"))
    place.rmdir()


def test_state_that_is_kept(user):
    place = Path(tempfile.mkdtemp(prefix="retort-test-mcp-"))
    place.chmod(0o777)
    state = place / "state"
    try:
        with Local("--state", str(state), user=user) as c:
            c.initialize()
            said = text_of(c.call("run_code", code="open('kept', 'w').write('kept')"))
            session = re.search(r"sess_[a-z0-9]+", said)[0]
        assert (state / "retort.db").exists()
        with Local(user=user, env={"RETORT_STATE": str(state)}) as c:
            c.initialize()
            assert "kept" in text_of(c.call("run_code", code="print(open('kept').read())", session_id=session))
    finally:
        shutil.rmtree(place)


# --- settings ---

def test_flags_and_environment():
    with Local("--preload", "", "--ready", "0", "--pids", "40", env={"RETORT_PIDS": "9999", "RETORT_OPEN_FILES": "50"},
               small=False) as c:
        text = text_of(c.call("run_code", code="import resource, os\nprint(resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
                                               "n = 0\ntry:\n    while os.fork():\n        n += 1\n    import signal; signal.pause()\n"
                                               "except OSError:\n    print('forks', n < 40)"))
        assert "50\n" in text and "forks True" in text
    for flags, env, why in ((["--nonsense"], {}, "no option"), ([], {"RETORT_MEMORY": "x"}, "RETORT_MEMORY"),
                            (["--pool", "none"], {}, "no pool none"), (["word"], {}, "takes no argument")):
        status, out, err = retort.call("mcp", *flags, env={**os.environ, **env})
        assert (status, out) == (2, b"") and why in err


def test_a_machine_that_cannot():
    """It says so as a result; the protocol goes on."""
    with Local("--python", "/nonexistent/python") as c:
        c.initialize()
        for _ in range(2):
            result = c.call("run_code", code="1")
            assert result["isError"] and "/nonexistent/python" in text_of(result)
        assert c.request("ping") == {}


def test_the_clients_fds_are_nobody_elses(user):
    """Not even the processes behind it have them."""
    with Local(user=user) as c:
        c.initialize()
        c.call("run_code", code="1")
        pipes = {os.readlink(f"/proc/{os.getpid()}/fd/{f.fileno()}") for f in (c.process.stdin, c.process.stdout)}
        c.remember()
        for pid, _ in c.family:
            seen = {os.readlink(p) for p in Path(f"/proc/{pid}/fd").iterdir()}
            assert not seen & pipes
        own = {n: os.readlink(f"/proc/{c.process.pid}/fd/{n}") for n in (0, 1)}
        assert own[0] == "/dev/null" and own[1] == str(c.place / "log")
