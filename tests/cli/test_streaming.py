"""Output streams as it comes, and looks as it should."""

import os
import subprocess

import retort

def test_output_comes_before_the_end():
    code = "import time\nfor i in range(4):\n    print('tick', i)\n    time.sleep(0.7)"
    process = retort.start("run", "-c", code, stderr=subprocess.DEVNULL)
    try:
        for i in range(4):
            assert process.stdout.readline() == b"tick %d\n" % i
            if i < 3:
                assert process.poll() is None
        assert process.wait(retort.SECONDS) == 0
    finally:
        retort.end(process)


def test_stderr_and_parts_of_lines_come_too():
    code = "import sys, time\nprint('.', end='', file=sys.stderr)\ntime.sleep(3)\nprint('end')"
    process = retort.start("run", "-c", code)
    try:
        assert os.read(process.stderr.fileno(), 10) == b"."
        assert process.poll() is None
        assert process.communicate(timeout=retort.SECONDS)[0] == b"end\n"
    finally:
        retort.end(process)


def test_commands_stream():
    process = retort.start("run", "--shell", "echo first; sleep 2; echo second")
    try:
        assert process.stdout.readline() == b"first\n"
        assert process.poll() is None
        assert process.communicate(timeout=retort.SECONDS)[0] == b"second\n"
    finally:
        retort.end(process)


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


def test_escape_sequences_reach_a_pipe_unchanged():
    code, out, _ = retort.call("run", "-c", r"print('\x1b[31mred\x1b[0m')")
    assert (code, out) == (0, b"\x1b[31mred\x1b[0m\n")


def test_bytes_reach_a_pipe_unchanged():
    code, out, _ = retort.call("run", "-c", "import os; os.write(1, bytes(range(256)));")
    assert (code, out) == (0, bytes(range(256)))


def test_no_newline_is_added():
    code, out, err = retort.call("run", "-c", "print('a', end='')", "-c", "print('b', end='')")
    assert (code, out, err) == (0, b"ab", "")


def test_verbose_tells_and_quiet_does_not():
    assert retort.call("run", "-c", "1;") == (0, b"", "")
    code, out, err = retort.call("run", "-v", "-c", "1;")
    assert (code, out) == (0, b"") and "idle" in err
