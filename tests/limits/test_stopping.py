"""Code that does not want to stop: interrupted where that works, killed and replaced where not."""

import pytest

from support import retort

SETUP = "open('kept.txt', 'w').write('kept'); x = 5"
AFTER = "print('x' in globals(), open('kept.txt').read())"

# SIGINT reaches these: variables stay.
POLITE = {
    "loop": "while True: pass",
    "sleep": "import time; time.sleep(100)",
    "regular expression": "import re\nre.match('(a+)+$', 'a' * 40 + 'b')",
    "number": "int('9' * 4000) ** 10_000_000",
    "wait for a child": "import subprocess; subprocess.run(['sleep', '100'])",
    "lock": "import threading; l = threading.Lock(); l.acquire(); l.acquire()",
    "join": "import threading, time\nt = threading.Thread(target=time.sleep, args=(6,))\nt.start(); t.join()",
    "socket": "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); s.accept()",
    "cleaning up": "import time\ntry:\n    time.sleep(100)\nfinally:\n    print('cleaned up')",
}

# It does not reach these, or does not help.
STUBBORN = {
    "C loop": "sum(range(10**12))",
    "endless iterator": "import collections, itertools\ncollections.deque(itertools.repeat(0), maxlen=0)",
    "foreign loop": "import ctypes\n"
                    "while True: ctypes.CDLL(None).qsort(bytes(1 << 24), 1 << 24, 1, ctypes.CDLL(None).strcmp)",
    "swallowed": "import time\nwhile True:\n    try: time.sleep(1)\n    except BaseException: pass",
    "blocked": "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass",
    "ignored": "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
    "own handler": "import signal\nsignal.signal(signal.SIGINT, lambda *a: None)\nwhile True: pass",
    "stopped": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
}


@pytest.fixture(scope="module")
def polite():
    return retort.run("--keep-going", "--timeout", "0.3", "--grace", "20", "-c", SETUP,
                      *retort.cells(*POLITE.values()), "-c", AFTER)


@pytest.fixture(scope="module")
def stubborn():
    return retort.run("--keep-going", "--timeout", "0.25", "--grace", "0.25",
                      *retort.cells(*[c for code in STUBBORN.values() for c in (SETUP, code, AFTER)]))


@pytest.mark.parametrize("name", POLITE)
def test_interrupted(polite, name):
    answer = polite[1 + list(POLITE).index(name)]
    assert answer.status == "timeout" and answer.limits == ["wall_time"]
    assert not answer.lost and "variables and files are kept" in answer.message
    assert answer.error["name"] == "KeyboardInterrupt"


def test_state_after_interrupts(polite):
    assert polite[len(POLITE) + 1].stdout == "True kept\n"
    assert polite[1 + list(POLITE).index("cleaning up")].stdout == "cleaned up\n"


@pytest.mark.parametrize("name", STUBBORN)
def test_killed_and_replaced(stubborn, name):
    before, answer, after = (stubborn[3 * list(STUBBORN).index(name) + i] for i in range(3))
    assert before.status == "ok"
    assert answer.status == "timeout" and "wall_time" in answer.limits
    assert answer.lost and "variables are lost, files are kept" in answer.message
    assert after.stdout == "False kept\n"


def test_output_before_the_kill_is_kept():
    run = retort.run("--timeout", "0.5", "--grace", "0.3", "-c", STUBBORN["ignored"].replace(
        "while", "print('printed'); open('made.txt', 'w').write('x')\nwhile"))
    assert run[0].stdout == "printed\n"
    assert set(run[0].files) == {"made.txt"}


def test_interrupt_by_the_code_itself():
    run = retort.run("--keep-going", "-c", "import os, signal\nx = 1\nos.kill(os.getpid(), signal.SIGINT)",
                     "-c", "x")
    assert run[0].status == "raised" and run[0].error["name"] == "KeyboardInterrupt"
    assert run[1].result == "1"


def test_commands_that_do_not_stop():
    run = retort.run("--keep-going", "--timeout", "0.4", "--grace", "0.4", "-c", "x = 5",
                     "--shell", "trap '' INT TERM; echo up; while :; do sleep 1; done", "-c", "x")
    assert run.statuses == ["ok", "timeout", "ok"]
    assert run[1].stdout == "up\n" and run[1].outcome["exit_code"] == 137
    assert not run[1].lost
    assert run[2].result == "5"
