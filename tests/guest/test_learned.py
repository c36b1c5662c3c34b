"""Modules that sessions import: which are told of, and which are imported before the next ones start."""

import json
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
    "hooks": "import sys; sys.excepthook = print",
    "computes": "n = 0\nwhile True: n += 1",
    "eats": "data = bytearray(b'x') * (400 << 20)",
    "draws": "import random; mine = random.Random(); again = random.Random(42)",
    "system": "import random; mine = random.SystemRandom()",
}
GOOD = ["good", "of_its_own", "adds", "draws", "system"]
SCRIPT = """
import gc, json, sys, types
sys.path[:0] = %r
sys.modules["_retort"] = types.ModuleType("_retort")
gc.disable()
from retort_guest import fresh, learned
learned.CPU_S, learned.WALL_S = 1, 10
names = learned.load(sys.argv[1].split(","))
draws = sys.modules.get("draws")
mine = draws and [any(g is thing for g in fresh.generators) for thing in (draws.mine, draws.again)]
print(json.dumps([names, mine, "good_inside" in sys.modules]))
"""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modules")
    for name, text in MODULES.items():
        (folder / (name + ".py")).write_text(text)
    script = SCRIPT % [str(folder), str(GUEST)]
    done = subprocess.run([PYTHON, "-B", "-c", script, ",".join([*MODULES, "no.such", "good.main.__main__"])],
                          capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    started = pathlib.Path("/proc", (folder / "pid").read_text(), "stat")
    wait_until(lambda: not started.exists() or started.read_text().split()[2] == "Z", "what was started to end")
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", MODULES.keys() - {"good_inside"})
def test_only_what_does_no_harm(loaded, name):
    assert (name in loaded[0]) == (name in GOOD)


def test_generators_are_seeded_anew_in_each_session(loaded):
    """But not one that is meant to be the same everywhere."""
    assert loaded[1] == [True, False]


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
