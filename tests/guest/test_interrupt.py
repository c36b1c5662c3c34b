"""SIGINT: ends a cell, touches nothing else."""

import os
import time
from pathlib import Path

import pytest

from support.retort import wait_until

BEGUN = "open('begun', 'w').close()"


def start(kernel, code):
    """Returns when the code has left its mark, and is most likely in the middle of what comes next."""
    mark = Path(kernel.folder, "begun")
    mark.unlink(missing_ok=True)
    kernel.start(code)
    wait_until(mark.exists, "the cell to begin")
    time.sleep(0.1)


def interrupted(kernel, code):
    """finish() does not wait for as long as any of the cells would go on."""
    start(kernel, code)
    kernel.interrupt()
    return kernel.finish()


@pytest.mark.parametrize("code", [
    "x = 1\nwhile True:\n    pass",
    "import time\nx = 1\ntime.sleep(30)",
    "x = 1\nimport asyncio\nawait asyncio.sleep(30)",
    "x = 1\n!sleep 30",
    "%%time\nx = 1\nimport time\ntime.sleep(30)",
    "x = 1\nimport subprocess\nsubprocess.run(['sleep', '30'])",
    "x = 1\nimport threading\nthreading.Event().wait(30)",
    "x = 1\ny = !sleep 30",
    "x = 1\nwhile True:\n    print('flood')",
    "import sys\nx = 1\nwhile True:\n    print('o'); print('e', file=sys.stderr); display(1)",
])
def test_cell_ends_and_state_stays(kernel, code):
    cell = interrupted(kernel, code.replace("x = 1", "x = 1; " + BEGUN))
    assert cell.status == 2
    assert (cell.error["name"], cell.error["text"]) == ("KeyboardInterrupt", "")
    assert cell.error["frames"][0][0] == "<cell 1>"
    assert kernel.run("x").value == "1"


def test_interrupted_await_does_not_go_on(kernel):
    interrupted(kernel, f"import asyncio\nprint('first')\n{BEGUN}\nawait asyncio.sleep(0.3)\nprint('rest')")
    cell = kernel.run("await asyncio.sleep(0.4)\nprint('second')")
    assert cell.out == "second\n"


def test_bash_cell(kernel):
    seconds = f"30.{os.getpid():08}"  # others sleep on this machine, too
    cell = interrupted(kernel, f"%%bash\ntouch begun\nsleep {seconds} | cat\necho never")
    assert cell.status == 2
    assert cell.out == ""
    assert kernel.run(f"!ps -e -o args | grep '[s]leep {seconds}$'").out == ""


def test_between_cells_it_is_ignored(kernel):
    kernel.run("x = 1")
    kernel.interrupt()
    time.sleep(0.05)
    kernel.interrupt()
    cell = kernel.run("x")
    assert (cell.status, cell.value) == (0, "1")


def test_late_interrupt_hits_nothing(kernel):
    for _ in range(30):
        kernel.start("x = 1")
        kernel.interrupt()
        assert kernel.finish().status in (0, 2)
    assert kernel.run("2").value == "2"


def test_code_may_catch_it(kernel):
    cell = interrupted(kernel, f"import time\ntry:\n    {BEGUN}\n    time.sleep(30)\n"
                               "except KeyboardInterrupt:\n    print('caught')")
    assert (cell.status, cell.out) == (0, "caught\n")


def test_while_the_server_is_slow(kernel):
    kernel.lag = 0.02
    cell = interrupted(kernel, f"import sys\n{BEGUN}\nfor i in range(10**9):\n    display(i)\n    print(i)\n"
                               "    print(i, file=sys.stderr)")
    assert cell.status == 2
    kernel.lag = 0
    shown = [int(d["text/plain"]) for d in cell.of("display")]
    assert shown == list(range(len(shown)))
    assert kernel.run("print('o'); print('e', file=sys.stderr); display(1)").events == [
        ("stdout", "o\n"), ("stderr", "e\n"), ("display", {"text/plain": "1"})]


def test_own_handler(kernel):
    kernel.run("import signal, time\nhits = []\n"
               "signal.signal(signal.SIGINT, lambda *a: hits.append(1));")
    start(kernel, BEGUN + "\nwhile not hits: time.sleep(0.01)\nlen(hits)")
    kernel.interrupt()
    assert kernel.finish().value == "1"


def test_volleys(kernel):
    for n in range(6):
        start(kernel, f"x = {n}\n{BEGUN}\nimport time\ntime.sleep(30)")
        for _ in range(20):
            kernel.interrupt()
        assert kernel.finish().status == 2
    assert kernel.run("x").value == "5"
