"""Which Python runs the cells: the system's, a virtual environment's, another one; or a sentence."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from support import retort

SYSTEM = "/usr/bin/python3"


def make_venv(folder, *options):
    subprocess.run([SYSTEM, "-m", "venv", "--without-pip", *options, folder], check=True,
                   timeout=retort.SECONDS)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def folder():
    """Not below /tmp, where a sandbox has its own files."""
    with tempfile.TemporaryDirectory(prefix=".retort-test-", dir=Path.home()) as name:
        yield Path(name)


@pytest.fixture(scope="module")
def venv(folder):
    return make_venv(folder / "with all", "--system-site-packages")


def refused(python, *more):
    """The sentence with which a Python is refused."""
    status, out, err = retort.call("run", "--python", python, "-c", "1", *more)
    assert (status, out) == (2, b""), err
    assert err.startswith("retort: ") and err.count("\n") == 1, err
    return err


def test_the_systems_python_by_default():
    run = retort.run("-c", "import os, sys; os.path.realpath(sys.executable)")
    assert run[0].result == repr(os.path.realpath(SYSTEM))


def test_venv(venv):
    home = venv.parents[1]
    (site,) = home.glob("lib/python3*/site-packages")
    (site / "only_here.py").write_text("answer = 42\n")
    (site / "preloaded.py").write_text("answer = 43\n")
    run = retort.run("--python", venv, "--preload", "preloaded",
                     "-c", "import sys, only_here, preloaded, IPython\n"
                           "print(sys.executable, sys.prefix, only_here.answer, preloaded.answer, sep='\\n')",
                     "--shell", "command -v python; python -c 'import sys; print(sys.prefix)'",
                     "-c", "!python -c 'import only_here; print(only_here.answer)'",
                     "-c", "open(sys.prefix + '/new', 'w')")
    assert run[0].stdout.splitlines() == [str(venv), str(home), "42", "43"]
    assert run[1].stdout.splitlines() == [str(venv), str(home)]
    assert run[2].stdout == "42\n"
    assert "Read-only file system" in run[3].error["message"]


def test_venv_without_ipython(folder):
    python = make_venv(folder / "bare")
    sentence = refused(python)
    assert "IPython" in sentence and "pip install ipython" in sentence
    assert str(python) in sentence


def test_venv_where_a_sandbox_has_its_own_files(tmp_path):
    python = make_venv(tmp_path / "hidden")
    assert str(python) in refused(python)


def test_joblib_has_processes_when_it_is_preloaded():
    """It tries a semaphore when it is imported, and there is none yet."""
    run = retort.run("--preload", "joblib", "-c", "import sys, multiprocessing\n"
                     "print(sys.modules['joblib'].parallel.DEFAULT_BACKEND, multiprocessing.Lock().acquire())")
    assert run[0].stdout == "loky True\n"


def test_module_to_preload_that_is_not_there():
    status, out, err = retort.call("run", "--preload", "no_such_module", "-c", "1")
    assert status == 2 and out == b""
    assert "no_such_module" in err and err.count("\n") == 1


def other_python():
    """The first python3 in PATH where that is not the system's, as a list of one or none."""
    for folder in os.get_exec_path():
        path = Path(folder, "python3")
        if os.access(path, os.X_OK):
            prefix = subprocess.run([path, "-c", "import sys; print(sys.base_prefix)"], text=True,
                                    capture_output=True, timeout=retort.SECONDS).stdout.strip()
            return [] if prefix in ("/usr", "") else [path]
    return []


@pytest.mark.parametrize("python", [Path(SYSTEM), *other_python()], ids=str)
def test_named_python(python):
    looks = "import importlib.util as u; exit(not all(map(u.find_spec, ['IPython', 'matplotlib_inline'])))"
    if subprocess.run([python, "-c", looks], timeout=retort.SECONDS).returncode != 0:
        assert "IPython" in refused(python)
        return
    run = retort.run("--python", python, "-c", "import sys; sys.base_prefix")
    host = subprocess.run([python, "-c", "import sys; print(repr(sys.base_prefix))"], text=True,
                          capture_output=True, timeout=retort.SECONDS).stdout.strip()
    assert run[0].result == host


def test_no_such_python():
    assert "/nonexistent/python" in refused("/nonexistent/python")
    assert "no-such-python-in-path" in refused("no-such-python-in-path")


def test_directory_for_a_python(tmp_path):
    assert str(tmp_path) in refused(tmp_path)


@pytest.mark.parametrize("program", ["/bin/true", "/bin/false", "/bin/echo", "/bin/cat"])
def test_program_that_is_no_python(program):
    assert program in refused(program)


def test_file_that_is_no_program(tmp_path):
    plain = tmp_path / "plain.txt"
    plain.write_text("text\n")
    assert str(plain) in refused(plain)
    plain.chmod(0o755)
    assert str(plain) in refused(plain)
