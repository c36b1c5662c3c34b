"""Output in the order in which it was made, whoever made it."""

import time

import pytest


def test_streams_take_turns(kernel):
    cell = kernel.run("import sys\nfor i in range(200):\n"
                      "    print('o', i)\n    print('e', i, file=sys.stderr)")
    expected = ["%s %d\n" % (stream, i) for i in range(200) for stream in "oe"]
    assert [text for _, text in cell.events] == expected


def test_streams_take_turns_with_a_slow_server(kernel):
    kernel.lag = 0.02
    cell = kernel.run("import sys\nfor i in range(4):\n"
                      "    sys.stderr.write('e')\n    sys.stdout.write('o')")
    assert [t for _, t in cell.events] == ["e", "o"] * 4


def test_everyone_keeps_the_order(kernel):
    kernel.lag = 0.005
    cell = kernel.run("""
import os, sys, subprocess, logging
print('one', end='')
os.write(1, b' two')
print(' three', end='')
subprocess.run('echo " four"; echo five >&2', shell=True)
logging.warning('six')
os.system('echo seven')
display('eight')
print('nine', file=sys.stderr)
!echo ten
sys.stdout.buffer.write(b'eleven\\n')
sys.__stdout__.write('twelve\\n')
13""")
    assert cell.events == [
        ("stdout", "one two three four\n"), ("stderr", "five\nWARNING:root:six\n"),
        ("stdout", "seven\n"), ("display", {"text/plain": "'eight'"}), ("stderr", "nine\n"),
        ("stdout", "ten\neleven\ntwelve\n"), ("result", {"text/plain": "13"})]


def test_results_and_errors_in_place(kernel):
    kernel.run("get_ipython().ast_node_interactivity = 'all'")
    kernel.lag = 0.01
    cell = kernel.run("print('a');\n1\nprint('b');\n2")
    assert [k for k, _ in cell.events] == ["stdout", "result", "stdout", "result"]


def test_print_is_one_write(kernel):
    cell = kernel.run("import os\nr, w = os.pipe()\nold = os.dup(1)\nos.dup2(w, 1)\n"
                      "print('a', 1, [2], sep='-', end='!')\nos.dup2(old, 1)\nos.read(r, 99)")
    assert cell.value == "b'a-1-[2]!'"


def test_print_as_ever(kernel):
    cell = kernel.run("import io\nf = io.StringIO()\nprint('x', 2, file=f, sep='')\n"
                      "print(); print('a', None, sep=None, end=None, flush=True)\nf.getvalue()")
    assert (cell.out, cell.value) == ("\na None\n", "'x2\\n'")
    assert kernel.run("print('a', sep=3)").error["name"] == "TypeError"
    assert kernel.run("print('a', nope=3)").error["name"] == "TypeError"
    assert kernel.run("import pickle\npickle.loads(pickle.dumps(print)) is print").value == "True"


@pytest.mark.parametrize("text", ["'\\udc80'", "'\\ud800 x'", "'\\x00'", "'ä€😀'"])
def test_any_text(kernel, text):
    cell = kernel.run("import sys\nprint(%s)\nprint(%s, file=sys.stderr)" % (text, text))
    assert cell.status == 0
    assert cell.out == eval(text).encode("utf-8", "backslashreplace").decode() + "\n"
    assert cell.err == cell.out


def test_stream_is_a_text_file(kernel):
    cell = kernel.run("import sys, io\ns = sys.stdout\ns.reconfigure(encoding='utf-8')\n"
                      "s.encoding, s.fileno(), s.isatty(), s.writable(), s.closed, s.name")
    assert cell.value == "('UTF-8', 1, False, True, False, 'stdout')"
    assert kernel.run("sys.stdout.write(3)").error["name"] == "TypeError"
    assert kernel.run("sys.stdout.writelines(['a', 'b'])").out == "ab"
    assert kernel.run("sys.stdout.close()\nprint('still')").out == "still\n"


def test_stream_replaced_and_dropped(kernel):
    kernel.run("import sys, io, gc\nold = sys.stdout\n"
               "sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')")
    assert kernel.run("print('buffered')").out == "buffered\n"
    assert kernel.run("sys.stdout = old\ngc.collect();\nprint('back')").out == "back\n"


def test_large_output(kernel):
    cell = kernel.run("print('x' * 3_000_000)")
    assert len(cell.out) == 3_000_001


def test_nonblocking_pipe(kernel):
    cell = kernel.run("import os\nos.set_blocking(1, False)\nprint('y' * 1_000_000)")
    assert (cell.status, len(cell.out)) == (0, 1_000_001)


def test_threads(kernel):
    cell = kernel.run("""
import threading, sys
def work(n):
    for i in range(50):
        print('thread', n, file=sys.stderr if i % 2 else sys.stdout)
        if i % 10 == 0:
            display(n)
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
[t.start() for t in threads]
[t.join() for t in threads];""")
    assert cell.status == 0
    assert len(cell.of("display")) == 40
    assert sorted(set((cell.out + cell.err).splitlines())) == ["thread %d" % n for n in range(8)]
    assert len((cell.out + cell.err).splitlines()) == 400


def test_thread_after_the_cell(kernel):
    kernel.run("""
import threading, time, sys
def later():
    time.sleep(0.05)
    print('late')
    print('late too', file=sys.stderr)
    display('late display')
    get_ipython().displayhook(5)
threading.Thread(target=later).start()""")
    time.sleep(0.2)
    cell = kernel.run("print('next')")
    assert "late\n" in cell.out and cell.err == "late too\n"
    assert cell.of("display") == [{"text/plain": "'late display'"}]


def test_error_in_a_thread(kernel):
    cell = kernel.run("import threading\nt = threading.Thread(target=lambda: 1 / 0)\n"
                      "t.start()\nt.join()")
    assert cell.status == 0
    assert "ZeroDivisionError" in cell.err and "<cell 1>" in cell.err


def test_forked_child(kernel):
    cell = kernel.run("""
import os, sys
pid = os.fork()
if pid == 0:
    print('from the child')
    display('shown by the child')
    os._exit(0)
os.waitpid(pid, 0)[1]""")
    assert cell.out == "from the child\n'shown by the child'\n"
    assert cell.value == "0"


def test_forked_child_that_comes_out(kernel):
    cell = kernel.run("import os\npid = os.fork()\nif pid:\n    status = os.waitpid(pid, 0)[1]\n"
                      "print('parent' if pid else 'child')\n'end'")
    assert cell.out == "child\n'end'\nparent\n"
    assert kernel.run("status").value == "0"
    cell = kernel.run("pid = os.fork()\nif pid:\n    status = os.waitpid(pid, 0)[1]\n"
                      "else:\n    raise ValueError('in the child')")
    assert cell.status == 0 and "ValueError: in the child" in cell.err
    assert kernel.run("os.waitstatus_to_exitcode(status)").value == "1"


def test_fork_while_another_thread_prints(kernel):
    cell = kernel.run("""
import os, sys, threading
stop = False
def chat():
    while not stop:
        print('o'); print('e', file=sys.stderr)
t = threading.Thread(target=chat)
t.start()
for i in range(20):
    pid = os.fork()
    if pid == 0:
        print('child', file=sys.stderr)
        os._exit(0)
    os.waitpid(pid, 0)
stop = True
t.join()""")
    assert cell.status == 0
    assert cell.err.count("child\n") == 20


def test_c_level_output(kernel):
    cell = kernel.run("import ctypes\nprint('a')\n"
                      "ctypes.CDLL(None).write(1, b'b\\n', 2)\nprint('c')")
    assert cell.out == "a\nb\nc\n"
