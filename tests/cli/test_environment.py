"""retort environment: Pythons with packages of their own, made from wheels that lie beside the test."""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

from support import retort
from support.server import Server

FINE = 'VALUE = "from a wheel"\n'
PATIENCE = 280  # a Python of its own gets a pip of its own first: many times what anything else here takes


def wheel(folder, name, source, version="1.0"):
    """A wheel with one module of the same name."""
    info = f"{name}-{version}.dist-info"
    files = {f"{name}.py": source, f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    rows = [f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},"
            f"{len(text.encode())}" for path, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]) + "\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)


class Place:
    """A folder with environments, wheels and lists. Not below /tmp, where a sandbox has files of its own."""

    def __init__(self, folder):
        self.folder, self.environments, self.wheels = folder, folder / "environments", folder / "wheels"
        self.wheels.mkdir()
        wheel(self.wheels, "walnut", FINE)
        wheel(self.wheels, "hazel", "import walnut\n")
        wheel(self.wheels, "rotten", "import nowhere\n")

    def packages(self, *names):
        (self.folder / "packages.txt").write_text("# what is wanted\n" + "\n".join(names) + "\n")
        return self.folder / "packages.txt"

    def call(self, *words):
        code, out, err = retort.call("environment", *words, "--environments", self.environments, seconds=PATIENCE)
        return code, out.decode(), err

    def create(self, name, *names, more=("--offline", "--system-packages")):
        return self.call("create", name, "--packages", self.packages(*names), "--wheels", self.wheels, *more)

    def refused(self, *words):
        code, out, err = self.call(*words)
        assert (code, out) == (2, ""), err
        return err.splitlines()[-1]

    def list(self):
        code, out, err = self.call("list", "--json")
        assert code == 0, err
        return {e["name"]: e for e in json.loads(out)}


@pytest.fixture(scope="module")
def place():
    folder = Path(tempfile.mkdtemp(prefix="retort-environments-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield Place(folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def nuts(place):
    """The name of an environment that is ready."""
    code, out, err = place.create("nuts", "walnut", "hazel>=1.0  # needs the other")
    assert code == 0, err
    assert out.startswith("nuts is ready: 2 packages import in Python 3.") and "--python nuts" in out
    assert "installing 2 packages" in err and "importing them" in err
    return "nuts"


def test_a_session_has_its_packages(place, nuts):
    run = retort.run("--environments", place.environments, "--python", nuts, "-c",
                     "import walnut, hazel, sys, os; print(walnut.VALUE, sys.prefix)\n"
                     "try: open(walnut.__file__, 'a')\nexcept OSError as e: print(e.strerror)",
                     "--shell", "python -c 'import walnut; print(walnut.VALUE)'")
    value, refused = run[0].stdout.splitlines()
    assert value == f"from a wheel {place.environments / nuts}"
    assert refused in ("Permission denied", "Read-only file system")  # another user's, or one's own
    assert run[1].stdout == "from a wheel\n"


@pytest.mark.once
def test_list(place, nuts):
    assert place.list()[nuts] == {"name": nuts, "ready": True, "python": place.list()[nuts]["python"],
                                  "packages": ["hazel", "walnut"]}
    _, out, _ = place.call("list")
    assert [line.split()[0::3] for line in out.splitlines()] == [["NAME", "STATE"], [nuts, "ready"]]


def test_a_pool_by_name(place, nuts):
    config = f"[server]\nenvironments = {place.environments}\n[pool plain]\n[pool nutty]\npython = {nuts}\n"
    with Server(config=config) as server, server.client() as client:
        with client.session(pool="nutty") as session:
            assert session.run("import walnut; walnut.VALUE")["result"] == "'from a wheel'"
        with client.session(pool="plain") as session:
            assert "ModuleNotFoundError" in json.dumps(session.run("import walnut"))
        retort.wait_until(lambda: "walnut" in {p["name"]: p for p in client.get("/v1/pools").json["data"]}["nutty"]["packages"],
                          "the packages of the pool")


@pytest.mark.once
@pytest.mark.parametrize("name", ["../up", "a/b", "", "Big", ".hidden", "python3", "x" * 64, "a b", "\u00e4"])
def test_names(place, name):
    for words in (["create", name, "--packages", place.packages("walnut")], ["delete", name]):
        assert "cannot be the name of an environment" in place.refused(*words)
    assert not (place.folder / "up").exists()


@pytest.mark.once
def test_one_name_once(place, nuts):
    assert "there is an environment nuts" in place.refused("create", nuts, "--packages", place.packages("walnut"))


@pytest.mark.once
@pytest.mark.parametrize(("names", "more", "sentence"), [
    (["pecan"], [], "there is no package pecan for this Python"),
    (["walnut", "rotten"], [], "cannot import rotten; mend the list of packages"),
    (["wal nut"], [], "the list of packages has a line that is no package"),
])
def test_what_can_be_wrong_is_told_and_can_be_mended(place, names, more, sentence):
    code, out, err = place.create("broken", *names)
    assert (code, out) == (2, "") and sentence in err.splitlines()[-1], err
    assert place.list()["broken"]["ready"] is False
    code, _, err = retort.call("run", "--environments", place.environments, "--python", "broken", "-c", "1")
    assert code == 2 and "environment broken is not finished" in err
    code, _, err = place.create("broken", "walnut")
    assert code == 0, err
    assert place.list()["broken"]["packages"] == ["walnut"]
    assert place.call("delete", "broken")[0] == 0
    assert "broken" not in place.list() and not (place.environments / "broken").exists()


@pytest.mark.once
@pytest.mark.parametrize(("text", "sentence"), [
    ("", "names no package; write one package per line"),
    ("# nothing yet\n\n", "names no package; write one package per line"),
    ("--prefer-binary\n", "names no package; write one package per line"),
    ("walnut==9\n", "there is no package walnut==9 for this Python in {wheels}; there is 1.0"),
    ("pecan\n", "there is no package pecan for this Python in {wheels}; with --offline no index is asked"),
])
def test_lists_that_name_nothing_to_install(place, text, sentence):
    (place.folder / "odd.txt").write_text(text)
    said = place.refused("create", "odd", "--packages", place.folder / "odd.txt", "--wheels", place.wheels,
                         "--offline", "--system-packages")
    assert sentence.format(wheels=place.wheels) in said
    place.call("delete", "odd")


@pytest.mark.once
def test_the_package_that_sessions_need(place):
    """Without the packages of the base, IPython has to be among the wheels."""
    said = place.refused("create", "bare", "--packages", place.packages("walnut"), "--wheels", place.wheels, "--offline")
    assert "add it to the wheels, or use --system-packages" in said and "IPython" in said
    place.call("delete", "bare")


@pytest.mark.once
@pytest.mark.parametrize("line", ["\ufeffwalnut", "./wheels/walnut-1.0-py3-none-any.whl", "-r packages.txt", "walnut\r"])
def test_every_way_to_name_a_package(place, line):
    """A mark of order, a path, another list: each is counted and imported like a plain name."""
    place.packages("walnut")
    (place.folder / "odd.txt").write_text(line + "\n", newline="")
    code, out, err = retort.call("environment", "create", "odd", "--packages", place.folder / "odd.txt", "--wheels",
                                 place.wheels, "--offline", "--system-packages", "--environments", place.environments,
                                 cwd=place.folder)
    assert code == 0 and out.startswith(b"odd is ready: 1 package imports"), err
    assert place.list()["odd"]["packages"] == ["walnut"]
    assert place.call("delete", "odd")[0] == 0


@pytest.mark.once
def test_arguments_are_checked_before_anything_is_made(place):
    for words, sentence in [
            (["--packages", place.packages("walnut"), "--wheels", place.packages("walnut")], "packages.txt: Not a directory"),
            (["--packages", place.packages("walnut"), "--wheels", "nowhere"], "nowhere: No such file or directory"),
            (["--packages", "nowhere.txt"], "there is no file nowhere.txt"),
            (["--packages", "/dev/stdin"], "/dev/stdin is not a file"),
            (["--packages", place.wheels], "is not a file")]:
        assert sentence in place.refused("create", "never", *words, "--offline", "--system-packages")
        assert "never" not in place.list()


@pytest.mark.once
def test_not_below_tmp(place, tmp_path):
    """Sessions have a /tmp of their own, so no session could use it."""
    code, _, err = retort.call("environment", "create", "lost", "--packages", place.packages("walnut"), "--wheels",
                               place.wheels, "--offline", "--system-packages", "--environments", "/tmp/retort-lost")
    assert code == 2 and "cannot be below /tmp" in err.splitlines()[-1]
    assert not os.path.exists("/tmp/retort-lost")


@pytest.mark.once
def test_json(place):
    code, out, err = place.create("jay", "walnut", more=("--offline", "--system-packages", "--json"))
    assert code == 0, err
    assert json.loads(out) == place.list()["jay"]
    code, out, _ = place.call("delete", "jay", "--json")
    assert code == 0 and json.loads(out) == {"name": "jay", "deleted": True}


@pytest.mark.once
def test_one_variable_for_every_command(place, nuts):
    """RETORT_ENVIRONMENTS says where environments are: to those who make them and to those who use them."""
    env = {**os.environ, "RETORT_ENVIRONMENTS": str(place.environments)}
    done = subprocess.run([retort.PROGRAM, "run", "--python", nuts, "-c", "import walnut; print(walnut.VALUE)"], env=env,
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "from a wheel\n"), done.stderr


@pytest.mark.once
def test_without_a_network(place):
    """An index that does not answer is named as such."""
    env = {**os.environ, "PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "1", "PIP_FIND_LINKS": ""}
    done = subprocess.run([retort.PROGRAM, "environment", "create", "lonely", "--packages", place.packages("walnut"),
                           "--system-packages", "--environments", place.environments], env=env,
                          capture_output=True, text=True)
    assert done.returncode == 2 and "the package index does not answer" in done.stderr.splitlines()[-1]
    assert place.call("delete", "lonely")[0] == 0


@pytest.mark.once
def test_what_was_interrupted_goes_on(place):
    """Killed while it installs: not ready, not usable, and the next call finishes it."""
    slow = place.folder / "slow"
    slow.mkdir()
    (slow / "packages.txt").write_text("-r more.txt\n")
    os.mkfifo(slow / "more.txt")

    def is_read():  # pip waits for the list, as long as somebody may write to it
        try:
            writers.append(os.open(slow / "more.txt", os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True

    writers = []
    command = [retort.PROGRAM, "environment", "create", "torn", "--packages", slow / "packages.txt", "--wheels", place.wheels,
               "--offline", "--system-packages", "--environments", place.environments]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        retort.wait_until(is_read, "pip", 100)
        assert "another command works on environment torn" in place.refused("delete", "torn")
        assert place.list()["torn"]["ready"] is False
        below = retort.below(process.pid)
        process.kill()
        for pid in below:
            os.kill(pid, 9)
    os.close(writers[0])
    code, _, err = place.create("torn", "walnut")
    assert code == 0, err
    assert place.list()["torn"]["ready"]
    assert place.call("delete", "torn")[0] == 0


@pytest.mark.once
@pytest.mark.parametrize(("words", "sentence"), [
    (["create", "x"], "which packages?"),
    (["create", "x", "--packages", "nowhere.txt"], "there is no file nowhere.txt; 'science' is the one list"),
    (["create"], "write it like this: retort environment create NAME"),
    (["delete", "nobody"], "there is no environment nobody"),
    (["paint"], "environment has no 'paint'"),
    ([], "create, list or delete?"),
])
def test_usage(place, words, sentence):
    assert sentence in place.refused(*words)
    place.call("delete", "x")


@pytest.mark.once
def test_another_base(place):
    code, _, err = place.call("create", "based", "--packages", place.packages("walnut"), "--wheels", place.wheels,
                              "--offline", "--base", "/usr/bin/no-python")
    assert code == 2 and "cannot run Python '/usr/bin/no-python'" in err
    code, _, err = place.create("based", "walnut", more=("--offline", "--system-packages", "--base", sys.executable))
    assert code == 0, err
    assert place.call("delete", "based")[0] == 0


@pytest.mark.once
def test_the_list_that_comes_with_it(place, tmp_path, monkeypatch):
    """Without wheels it cannot be made here; it is read, and the first of it is asked for. A folder of
    the same name is none of its business."""
    (tmp_path / "science").mkdir()
    monkeypatch.chdir(tmp_path)
    code, _, err = place.call("create", "all", "--packages", "science", "--offline", "--system-packages", "--wheels",
                              place.wheels)
    assert code == 2 and "installing 56 packages" in err
    names = (place.environments / "all/packages.txt").read_text()
    assert "\nscikit-learn\n" in names and "\ngeopandas\n" in names
    assert place.call("delete", "all")[0] == 0
