"""Events keep their order, whoever wrote them: Python, C code, other processes."""

import pytest

from support import retort

pytestmark = pytest.mark.once

session = retort.Session()

streams = session.cell(
    "import sys\n"
    "for i in range(3):\n"
    "    print('out', i)\n"
    "    print('err', i, file=sys.stderr)\n")
everyone = session.cell(
    "import ctypes, logging, os, subprocess, sys\n"
    "from IPython.display import display\n"
    "libc = ctypes.CDLL(None)\n"
    "print('print')\n"
    "libc.printf(b'printf\\n'); libc.fflush(None)\n"
    "sys.stderr.write('stderr\\n')\n"
    "os.write(2, b'os.write 2\\n')\n"
    "print('after C')\n"
    "display('display')\n"
    "subprocess.run(['sh', '-c', 'echo child out'])\n"
    "logging.getLogger().warning('logged')\n"
    "subprocess.run(['sh', '-c', 'echo child err >&2'])\n"
    "print('after the child')\n"
    "os.write(1, b'os.write 1\\n')\n"
    "print('to stderr', file=sys.stderr)\n"
    "print('end')\n"
    "'result'")
many_turns = session.cell(
    "for i in range(300):\n"
    "    os.write(1 + i % 2, b'%d\\n' % i)\n"
    "    if i % 50 == 0: display(i)\n")
displays_between = session.cell(
    "for i in range(20):\n    print(i)\n    display(i)\n")
shell_between = session.cell("print('a')\n!echo b\nprint('c', file=sys.stderr)\n!echo d >&2\nprint('e')")
error_last = session.cell("print('kept'); print('also', file=sys.stderr)\n!echo child\n1 / 0")
forked = session.cell(
    "print('parent')\n"
    "pid = os.fork()\n"
    "if pid == 0:\n    print('child'); os._exit(0)\n"
    "os.waitpid(pid, 0)\nprint('parent again')")
threads = session.cell(
    "import threading\n"
    "def say(n):\n    for i in range(50): print('thread', n, 'line', i)\n"
    "all = [threading.Thread(target=say, args=(n,)) for n in range(4)]\n"
    "[t.start() for t in all]; [t.join() for t in all]\nprint('joined')")


def test_streams_alternate():
    assert streams.order == [(kind, f"{short} {i}\n") for i in range(3)
                             for kind, short in (("stdout", "out"), ("stderr", "err"))]


def test_every_road():
    assert everyone.order == [
        ("stdout", "print\nprintf\n"), ("stderr", "stderr\nos.write 2\n"), ("stdout", "after C\n"),
        ("display", "'display'"), ("stdout", "child out\n"), ("stderr", "logged\nchild err\n"),
        ("stdout", "after the child\nos.write 1\n"), ("stderr", "to stderr\n"), ("stdout", "end\n"),
        ("result", "'result'")]


def test_raw_writes_keep_their_own_order():
    # Two pipes written with plain write(2), back to back: each keeps its order and none is lost.
    for stream, parity in (("stdout", 0), ("stderr", 1)):
        assert many_turns.text_of(stream).split() == [str(i) for i in range(300) if i % 2 == parity]
    assert [d["text/plain"] for d in many_turns.displays] == [str(i) for i in range(0, 300, 50)]


def test_displays_between_prints():
    assert displays_between.order == [(kind, text) for i in range(20)
                                      for kind, text in (("stdout", f"{i}\n"), ("display", str(i)))]


def test_shell_lines_between_prints():
    assert shell_between.order == [("stdout", "a\nb\n"), ("stderr", "c\nd\n"), ("stdout", "e\n")]


def test_what_was_printed_before_an_error():
    assert error_last.order == [("stdout", "kept\n"), ("stderr", "also\n"), ("stdout", "child\n"),
                                ("error", "ZeroDivisionError")]


def test_output_of_a_fork():
    assert forked.stdout == "parent\nchild\nparent again\n"
    assert forked.status == "ok"


def test_lines_of_threads_are_whole():
    lines = threads.stdout.splitlines()
    assert lines[-1] == "joined"
    assert sorted(lines[:-1]) == sorted(f"thread {n} line {i}" for n in range(4) for i in range(50))


late = retort.Session()

leaving = late.cell(
    "import sys, threading, time\n"
    "from IPython.display import display\n"
    "def later():\n"
    "    time.sleep(0.3)\n"
    "    print('from the thread'); print('its error', file=sys.stderr)\n"
    "thread = threading.Thread(target=later)\n"
    "thread.start()\nprint('cell ends')")
# A command does not disturb the interpreter, and gives the thread time.
pause = late.shell("sleep 1")
following = late.cell("thread.join()\nprint('next cell')")
child_leaves = late.cell("import subprocess\n"
                         "child = subprocess.Popen(['sh', '-c', 'sleep 0.3; echo from the child'])")
pause_again = late.shell("sleep 1")
child_followed = late.cell("child.wait()")
dying_thread = late.cell("def fail(): raise ValueError('in a thread')\n"
                         "t = threading.Thread(target=fail); t.start(); t.join()")


def test_output_after_the_cell_comes_with_the_next_answer():
    assert leaving.stdout == "cell ends\n"
    assert pause.events == []
    marked = [(e["type"], e["text"], e.get("late", False)) for e in following.events]
    assert marked == [("stdout", "from the thread\n", True), ("stderr", "its error\n", True),
                      ("stdout", "next cell\n", False)]


def test_output_of_a_child_after_the_cell():
    assert child_leaves.events == []
    (text, result) = child_followed.events
    assert (text["text"], text["late"]) == ("from the child\n", True)
    assert child_followed.result == "0"


def test_exception_in_a_thread_is_told():
    assert dying_thread.status == "ok"
    assert "ValueError: in a thread" in dying_thread.stderr
