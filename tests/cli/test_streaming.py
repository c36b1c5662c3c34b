"""Output streams as it comes, and looks as it should."""

import os
import signal

import pytest

from support import retort

# Each waits for ever once it has printed, so what is read here has come before the end.
CELL = """
import subprocess, sys, time
print("printed")
sys.stderr.write("part of a line")
subprocess.run(["echo", "from a child"])
time.sleep(1000)
"""
COMMAND = "echo printed; printf 'part of a line' >&2; sh -c 'echo from a child'; sleep 1000"


@pytest.mark.parametrize("work", [("-c", CELL), ("--shell", COMMAND)], ids=["cell", "command"])
def test_output_comes_before_the_end(work):
    process = retort.start("run", *work)
    try:
        assert process.stdout.readline() == b"printed\n"
        assert os.read(process.stderr.fileno(), 100) == b"part of a line"
        assert process.stdout.readline() == b"from a child\n"
        assert process.poll() is None
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(retort.SECONDS) == 130
    finally:
        retort.end(process)


@pytest.mark.once
def test_what_goes_where():
    code, out, err = retort.call(
        "run", "--keep-going",
        "-c", "import sys\nprint('out')\nprint('err', file=sys.stderr)\n'result'",
        "-c", "from IPython.display import HTML, display\ndisplay('shown')\nHTML('<b>x</b>')",
        "-c", "open('note.txt', 'w').write('x' * 2048);",
        "-c", "raise ValueError('why')")
    assert code == 1
    assert out.decode().splitlines()[:3] == ["out", "'result'", "'shown'"]
    assert "err\n" in err and "ValueError: why" in err and '<cell 4>' in err
    assert "made: note.txt (" in err and "--out" in err


@pytest.mark.once
def test_escape_sequences_reach_a_pipe_unchanged():
    code, out, _ = retort.call("run", "-c", r"print('\x1b[31mred\x1b[0m')")
    assert (code, out) == (0, b"\x1b[31mred\x1b[0m\n")


@pytest.mark.once
def test_bytes_reach_a_pipe_unchanged():
    code, out, _ = retort.call("run", "-c", "import os; os.write(1, bytes(range(256)));")
    assert (code, out) == (0, bytes(range(256)))


@pytest.mark.once
def test_no_newline_is_added():
    code, out, err = retort.call("run", "-c", "print('a', end='')", "-c", "print('b', end='')")
    assert (code, out, err) == (0, b"ab", "")


@pytest.mark.once
def test_verbose_tells_and_quiet_does_not():
    assert retort.call("run", "-c", "1;") == (0, b"", "")
    code, out, err = retort.call("run", "-v", "-c", "1;")
    assert (code, out) == (0, b"") and "idle" in err
