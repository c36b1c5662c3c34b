"""Modules that sessions import: which are told of, and which are imported before the next ones start."""

import json
import os
import pathlib
import subprocess

import pytest
from harness import GUEST, PYTHON, Kernel, Zygote
from support.retort import wait_until

MODULES = {
    "good": "import good_inside",
    "good_inside": "",
    "fails": "1 / 0",
    "leaves": "import sys; sys.exit()",
    "dies": "import os; os._exit(0)",
    "speaks": "print('hello')",
    "complains": "import os; os.write(2, b'no')",
    "warns": "import warnings; warnings.warn('old')",
    "hides": "import warnings; warnings.simplefilter('ignore')",
    "of_its_own": "import warnings\nclass W(UserWarning): pass\nwarnings.simplefilter('ignore', W)",
    "threads": "import threading, time; threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "starts": "import subprocess\nchild = subprocess.Popen(['sleep', '60'])\nopen('pid', 'w').write(str(child.pid))",
    "opens": "file = open('/etc/passwd')",
    "sets": "import os; os.environ['HOME'] = '/'",
    "adds": "import os; os.environ['ADDED'] = '1'",
    "patches": "import builtins; builtins.print = None",
    "handles": "import signal; signal.signal(signal.SIGUSR1, lambda *a: None)",
    "moves": "import os; os.chdir('/')",
    "extends": "import sys; sys.path.append('/nowhere')",
    "shares": "import mmap; memory = mmap.mmap(-1, 4096)",
    "hooks": "import sys; sys.excepthook = print",
    "computes": "n = 0\nwhile True: n += 1",
    "eats": "data = bytearray(b'x') * (400 << 20)",
    "draws": "import random; mine = random.Random(); again = random.Random(42)",
    "system": "import random; mine = random.SystemRandom()",
    "draws_much": "import random; all = [random.Random() for _ in range(100)]",
    "draws_numpy": "import numpy as np; mine, again = np.random.default_rng(), np.random.default_rng(42)\n"
                   "old, old_again = np.random.RandomState(), np.random.RandomState(42)",
}
GOOD = ["good", "of_its_own", "adds", "draws", "draws_numpy", "system"]
SCRIPT = """
import gc, json, sys, types
sys.path[:0] = %r
sys.modules["_retort"] = types.ModuleType("_retort")
gc.disable()
from retort_guest import fresh, learned
learned.CPU_S, learned.WALL_S = 1, 10
import numpy.random
with fresh.noted():
    names = learned.load(sys.argv[1].split(","))
import draws, draws_numpy
things = [draws.mine, draws_numpy.mine, draws_numpy.old, draws.again, draws_numpy.again, draws_numpy.old_again]
states = [getattr(g, "getstate", None) or (lambda g=g: str(g._bit_generator.state)) for g in things]
before = [state() for state in states]
fresh.reseed()
print(json.dumps([names, [was != state() for was, state in zip(before, states)], "good_inside" in sys.modules]))
"""


def without(name):
    """What a module prints then waits in a buffer."""
    return {key: value for key, value in os.environ.items() if key != name}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modules")
    for name, text in MODULES.items():
        (folder / (name + ".py")).write_text(text)
    script = SCRIPT % [str(folder), str(GUEST)]
    done = subprocess.run([PYTHON, "-B", "-c", script, ",".join([*MODULES, "no.such", "good.main.__main__"])],
                          capture_output=True, text=True, cwd=folder, env=without("PYTHONUNBUFFERED"))
    assert done.returncode == 0, done.stderr
    started = pathlib.Path("/proc", (folder / "pid").read_text(), "stat")
    wait_until(lambda: not started.exists() or started.read_text().split()[2] == "Z", "what was started to end")
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", MODULES.keys() - {"good_inside"})
def test_only_what_does_no_harm(loaded, name):
    assert (name in loaded[0]) == (name in GOOD)


def test_generators_are_seeded_anew_in_each_session(loaded):
    """But not those that are meant to be the same everywhere."""
    assert loaded[1] == [True] * 3 + [False] * 3


def test_generators_of_what_is_preloaded(tmp_path):
    (tmp_path / "own_random.py").write_text(MODULES["draws"])
    before = "import sys; sys.path.append(%r)" % str(tmp_path)
    zygote = Zygote("own_random", before=before)
    try:
        assert zygote.said == "up", zygote.said + zygote.logged()
        kernels = [Kernel(zygote), Kernel(zygote)]
        draws = [k.run("import own_random as o\no.mine.random(), o.again.random()").value for k in kernels]
        (mine, again), (other, same) = map(eval, draws)
        assert mine != other and again == same
        for kernel in kernels:
            kernel.close()
    finally:
        zygote.close()


def test_what_they_import_comes_along(loaded):
    assert loaded[2] is True


def test_told_is_what_the_code_asked_for(kernel):
    assert kernel.run("x = 1").modules == ""
    kernel.run("open('mine.py', 'w').write('import sched')")
    # xml and xml.dom come along, its own module and what that imports do not, nor what is not there.
    done = kernel.run("import sys\nsys.path.insert(0, '')\nimport mine\nimport xml.dom.minidom\n"
                      "try:\n    import no_such\nexcept ImportError:\n    pass")
    assert done.modules == "xml,xml.dom,xml.dom.minidom"
    assert kernel.run("import xml.dom.minidom").modules == ""
    assert kernel.run("def f():\n    import wave\nf()").modules == "wave"


def test_told_has_an_end(kernel):
    code = ("import sys, types, importlib.machinery\n"
            "for path in ['a' * 200, 'ümlaut', '__main__']:\n    sys.modules[path] = types.ModuleType(path)\n"
            "import encodings\nfor name in ['cp%d' % n for n in (437, 737, 775, 850, 852, 855, 856, 857, 858)]:\n"
            "    __import__('encodings.' + name)")
    assert len(kernel.run(code).modules.split(",")) == 9
    kernel.run("import pkgutil\nfor m in pkgutil.iter_modules(encodings.__path__):\n"
               "    try:\n        __import__('encodings.' + m.name)\n    except ImportError:\n        pass")
    assert kernel.run("import wave, sched").modules == ""


def test_learned_in_the_zygote():
    zygote = Zygote(learned="sched,no.such,this")
    try:
        assert zygote.said == "up sched", zygote.said + zygote.logged()
        kernel = Kernel(zygote)
        assert kernel.run("import sys\n'sched' in sys.modules").value == "True"
        kernel.close()
    finally:
        zygote.close()
