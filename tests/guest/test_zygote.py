"""Preparing the interpreter, and what differs between its children."""

import os
import time

import pytest
from harness import PYTHON, Kernel, Zygote


@pytest.fixture
def start():
    made = []

    def make(*args, **kwargs):
        made.append(Zygote(*args, **kwargs))
        return made[-1]

    yield make
    for zygote in made:
        zygote.close()


def test_no_ipython(start):
    said = start(flags=["-S"]).said
    assert said.startswith("fail Python at %s has no IPython and no matplotlib_inline" % PYTHON)
    assert "'pip install ipython matplotlib-inline'" in said
    assert "(Debian: apt install python3-ipython python3-matplotlib-inline)" in said


def test_no_matplotlib_inline(start):
    hide = "import sys; sys.modules['matplotlib_inline'] = None"
    zygote = start(flags=["-S"], before="import site; site.main(); " + hide)
    assert zygote.said == (
        "fail Python at %s has no matplotlib_inline: install it with 'pip install "
        "matplotlib-inline' (Debian: apt install python3-matplotlib-inline)" % PYTHON)


def test_preload_that_fails(start):
    assert start("json,no_such_module").said == (
        "fail Python at %s cannot import 'no_such_module': "
        "ModuleNotFoundError: No module named 'no_such_module'" % PYTHON)


def test_zygote_that_breaks(start):
    zygote = start(before="import IPython.core.interactiveshell as i; del i.ExecutionInfo")
    assert zygote.said.startswith("fail Python at %s cannot be prepared: ImportError" % PYTHON)
    assert "Traceback" in zygote.logged()


def test_zygote_is_silent(plain_zygote, science_zygote):
    slow = "Matplotlib is building the font cache; this may take a moment.\n"  # where it takes 5 s
    assert plain_zygote.logged() == science_zygote.logged().replace(slow, "") == ""


def test_font_list_is_made_once(plain_zygote, science_zygote):
    for zygote in (plain_zygote, science_zygote):
        assert [f for f in os.listdir(zygote.home + "/mpl") if f.startswith("fontlist")]


def test_preloads_are_there_and_not_in_the_way(science):
    assert science.run("import sys\n'pandas' in sys.modules").value == "True"
    assert science.run("pd").error["name"] == "NameError"


def test_nothing_is_left_of_warming_up(kernel):
    names = kernel.run("[n for n in globals() if not n.startswith('__')]").value
    own = {"In", "Out", "_", "_dh", "_i", "_i1", "_ih", "_ii", "_iii", "_oh", "exit", "get_ipython",
           "quit"}
    assert set(eval(names)) - {"open"} == own  # open: from IPython 8.8 on
    assert kernel.run("len(In), len(Out), __, ___, _dh").value == \
        "(3, 1, '', '', [%r])" % kernel.folder
    assert kernel.run("import sys\nhasattr(sys, 'last_value')").value == "False"
    assert kernel.run("import linecache\nsorted(k for k in linecache.cache if k[0] == '<')").value \
        == "['<cell 1>', '<cell 2>', '<cell 3>', '<cell 4>']"


def test_ipython_has_no_terminal_until_it_is_asked_for(kernel):
    loaded = ("import sys\n"
              "sorted({name.partition('.')[0] for name in sys.modules} & {'IPython', 'jedi', 'prompt_toolkit'})")
    assert kernel.run(loaded).value == "['IPython']"
    assert kernel.run("import IPython\nIPython.no_such_name").error["name"] == "AttributeError"
    assert kernel.run("type(get_ipython().Completer).__name__").value == "'IPCompleter'"
    assert kernel.run("get_ipython().complete('prin')[1]").value == "['print']"
    assert kernel.run("%config IPCompleter.greedy = True\nget_ipython().Completer.greedy").value == "True"
    # Its modules import each other, whichever is asked for first.
    assert kernel.run("from IPython.terminal.interactiveshell import TerminalInteractiveShell as T\n"
                      "T.__name__").value == "'TerminalInteractiveShell'"
    assert kernel.run("from IPython import embed\nembed.__module__").value == "'IPython.terminal.embed'"
    assert kernel.run("IPython.terminal.embed.embed is IPython.embed is embed").value == "True"
    assert kernel.run(loaded).value == "['IPython', 'prompt_toolkit']"


LATER = ["cProfile", "logging.config", "pexpect", "pstats", "pydoc", "stack_data", "urllib.request"]


def test_what_only_some_commands_need_is_there_when_they_are_given(kernel):
    loaded = "import sys\nsorted({%s} & set(sys.modules))" % ", ".join(map(repr, LATER))
    # Version 9 takes a class out of one of them at once.
    newer = kernel.run("import IPython\nIPython.version_info[0] >= 9").value == "True"
    assert kernel.run(loaded).value == ("['stack_data']" if newer else "[]")
    assert kernel.run("type(get_ipython().run_line_magic('prun', '-q -r sum([1])')).__name__").value == "'Stats'"
    refused = kernel.run("%load http://127.0.0.1:1/x.py").error
    assert (refused["name"], "Connection refused" in refused["text"]) == ("URLError", True)
    assert "ZeroDivisionError" in kernel.run(
        "from IPython.core.ultratb import VerboseTB\n"
        "try:\n    1 / 0\nexcept Exception as error:\n"
        "    print(VerboseTB(color_scheme='NoColor').text(type(error), error, error.__traceback__))").out
    assert kernel.run("from IPython.utils._process_posix import ProcessHandler\n"
                      "ProcessHandler().sh[-2:]").value == "'sh'"
    assert "Return the number of items" in kernel.run("help(len)").out
    assert kernel.run("from traitlets.config import Application\n"
                      "[h.level for h in Application(log_level='ERROR').log.handlers]").value == "[40]"
    # They are the modules themselves, whoever asks.
    for name in LATER:
        cell = kernel.run("import importlib, sys\nm = importlib.import_module(%r)\n"
                          "(type(m).__name__, m is sys.modules[%r], bool(m.__spec__))" % (name, name))
        assert cell.value == "('module', True, True)", name
    assert kernel.run("from IPython.core import ultratb\nimport stack_data\n"
                      "ultratb.stack_data.FrameInfo is stack_data.FrameInfo").value == "True"
    assert kernel.run("import urllib.request\nisinstance(urllib.request.Request('http://a'), "
                      "urllib.request.Request)").value == "True"
    assert eval(kernel.run(loaded).value) == LATER


def test_only_the_users_paths(kernel):
    assert kernel.run("import sys\nsys.path[0], any('retort' in p for p in sys.path)").value \
        == "('', False)"


def test_one_thread_and_few_fds(science):
    cell = science.run("import os\n"
                       "len(os.listdir('/proc/self/task')), os.environ['OMP_NUM_THREADS']")
    assert cell.value == "(1, '1')"
    assert science.run("import threading\nthreading.main_thread().native_id == os.getpid()").value \
        == "True"
    cell = science.run("sorted(os.readlink('/proc/self/fd/' + f).split(':')[0] "
                       "for f in os.listdir('/proc/self/fd') if int(f) != 999 "
                       "and os.path.exists('/proc/self/fd/' + f))")
    assert set(eval(cell.value)) <= {"/dev/null", "pipe", "socket", "/proc/%d/fd" % science.pid}


RANDOM = """
import random, uuid, secrets, tempfile, os, numpy, ssl, multiprocessing
print(random.random())
print(numpy.random.rand())
print(uuid.uuid1(), uuid.uuid4())
print(secrets.token_hex(8))
print(tempfile.mktemp())
print(ssl.RAND_bytes(8))
print(bytes(multiprocessing.current_process().authkey))
"""


def test_children_differ(science_zygote):
    seen = []
    for _ in range(3):
        kernel = Kernel(science_zygote)
        seen.append(kernel.run(RANDOM).out.splitlines())
        kernel.close()
    for values in zip(*seen):
        assert len(set(values)) == 3, values


def test_fork_hooks_work_in_a_kernel(science):
    cell = science.run("""
import os, random
random.seed(1)
def child():
    r, w = os.pipe()
    if os.fork() == 0:
        os.write(w, str(random.random()).encode())
        os._exit(0)
    os.wait()
    return os.read(r, 99)
child() != child()""")
    assert cell.value == "True"


def test_crash_says_where(kernel):
    kernel.start("def crash():\n    import ctypes\n    ctypes.string_at(0)\ncrash()")
    with pytest.raises(AssertionError, match="kernel died"):
        kernel.finish()
    kernel.drain_all()
    text = "".join(data for kind, data in kernel.events if kind == "stderr")
    assert "Segmentation fault" in text and '"<cell 1>", line 3 in crash' in text


def test_kernel_ends_with_its_server(kernel):
    kernel.run("x = 1")
    kernel.sock.shutdown(2)
    for _ in range(200):
        if not os.path.exists("/proc/%d" % kernel.pid):
            return
        with open("/proc/%d/stat" % kernel.pid) as stat:
            if stat.read().rsplit(")", 1)[1].split()[0] == "Z":
                return
        time.sleep(0.01)
    raise AssertionError("it lives on")
