"""pip where the network is shut: it says so, and a wheel that is there can be installed."""

import io
import os
import subprocess
import tempfile
import zipfile

import pytest
from support import retort

SHUT = "there is no network in this session"
WHEEL = "small_thing-2.0-py3-none-any.whl"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as z:
        z.writestr("small_thing.py", "def main():\n    print('a script')\n\n\nnumber = 7\n")
        z.writestr("small_thing-2.0.dist-info/METADATA",
                   "Metadata-Version: 2.1\nName: small-thing\nVersion: 2.0\n")
        z.writestr("small_thing-2.0.dist-info/WHEEL",
                   "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr("small_thing-2.0.dist-info/entry_points.txt",
                   "[console_scripts]\nsmall-thing = small_thing:main\n")
        z.writestr("small_thing-2.0.dist-info/RECORD", "")
    path = tmp_path_factory.mktemp("wheel") / WHEEL
    path.write_bytes(made.getvalue())
    return path


@pytest.fixture(scope="module")
def venv():
    """Not in /tmp, where a sandbox has its own files."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", "--system-site-packages",
                        place + "/env"], check=True)
        os.chmod(place, 0o755)
        yield place + "/env/bin/python"


@pytest.fixture(scope="module")
def venv_with_pip():
    """As `retort environment create` makes one: its bin has pip and pip3."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--system-site-packages", place + "/env"], check=True)
        os.chmod(place, 0o755)
        yield place + "/env/bin/python"


@pytest.mark.parametrize("line", ["!pip install no-such-thing", "%pip install no-such-thing",
                                  "!python3 -m pip install no-such-thing",
                                  "!pip3 download no-such-thing"])
def test_shut_network_is_named(line):
    (cell,) = retort.run("-c", line).answers
    assert cell.stderr.count(SHUT) == 1 and "egress-hosts = pypi.org" in cell.stderr, cell


@pytest.mark.parametrize("line", ["pip install no-such-thing", "pip3 download no-such-thing"])
@pytest.mark.parametrize("kind", ["system", pytest.param("venv", marks=pytest.mark.once),
                                  pytest.param("venv_with_pip", marks=pytest.mark.once)])
def test_shut_network_is_named_in_a_shell(kind, line, request):
    python = [] if kind == "system" else ["--python", request.getfixturevalue(kind)]
    (command,) = retort.run(*python, "--shell", line).answers
    assert command.status == "raised" and command.stderr.count(SHUT) == 1, command


@pytest.mark.parametrize("kind", ["system", "venv"])
def test_installed_is_found_at_once(kind, wheel, venv):
    python = ["--python", venv] if kind == "venv" else []
    run = retort.run(*python, "-f", wheel, "-c", f"!pip install -q ./{WHEEL}\nimport small_thing\nsmall_thing.number",
                     "--shell", "python -c 'import small_thing; print(small_thing.number)'; small-thing",
                     "-c", "small_thing.__file__")
    assert run[0].result == "7", run[0]
    assert run[1].stdout == "7\na script\n", run[1]
    assert run[2].result.startswith("'/tmp/.local/lib/python")
    assert not run[0].files  # what pip installs is not a result of the cell


def test_python_is_python3():
    run = retort.run("--shell", "python -c 'import sys; print(sys.executable)'; "
                                "python3 -c 'import sys; print(sys.executable)'")
    first, second = run[0].stdout.splitlines()
    assert first == second
