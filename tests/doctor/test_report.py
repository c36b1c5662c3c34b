"""What doctor tells of this machine as it is, and how it looks."""

import ctypes
import importlib.metadata
import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import doctor
from support import retort

FLOOR = ["processes", "user namespace", "mount namespace", "pid namespace", "own /proc",
         "network namespace", "ipc namespace", "uts namespace", "cgroup namespace", "mount API",
         "disk limits", "no_new_privs", "seccomp", "clone3", "pidfd", "openat2", "close_range",
         "memfd", "thread id address"]
REST = ["user ids", "cgroups", "Landlock", "own size", "time namespace",
        "memory image"]
PACKAGES = {"IPython": "ipython", "matplotlib_inline": "matplotlib-inline", "numpy": "numpy",
            "pandas": "pandas", "matplotlib": "matplotlib", "seaborn": "seaborn",
            "scikit-learn": "scikit-learn", "scipy": "scipy", "sympy": "sympy",
            "openpyxl": "openpyxl", "Pillow": "pillow"}


@pytest.fixture(scope="module")
def report():
    return doctor.run()


@pytest.fixture(scope="module")
def text():
    status, out, err = retort.call("doctor")
    assert (status, err) == (0, ""), out
    return out.decode()


def installed(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def test_every_layer_has_a_row(report):
    assert [name for name, row in report.rows.items() if row["section"] == "Layers"
            and row["floor"]] == FLOOR
    assert [name for name, row in report.rows.items() if row["section"] == "Layers"
            and not row["floor"]] == REST


def test_this_machine_is_fit(report):
    assert report.exit == 0, report
    assert report.names("missing") == []
    assert report.document["floor"] is True
    assert report.verdict.startswith("fit to run strangers' code")
    assert report.stderr == ""


def test_weaker_rows_are_in_the_verdict(report):
    for name in report.names("weaker"):
        assert name in report.verdict.partition(" in: ")[2]
        assert report[name]["cost"]


def test_good_rows_cost_nothing(report):
    for name in report.names("ok"):
        assert report[name]["detail"] and not report[name]["cost"] and not report[name]["remedy"]


def test_who_asks(report):
    assert report.document["uid"] == os.geteuid()
    assert report.document["kernel"] == os.uname().release
    if "own" in retort.sandbox_users():
        assert report["user ids"]["state"] == "ok"
        assert "two of its own" in report["user ids"]["detail"]
    else:
        assert report["user ids"]["state"] == "weaker"
        assert str(os.geteuid()) in report["user ids"]["detail"]
        assert "uidmap" in report["user ids"]["remedy"] and "--add-subuids" in report["user ids"]["remedy"]


def test_cgroups_are_told_by_version(report):
    row = report["cgroups"]
    assert row["state"] == "weaker" or re.match("version [12]", row["detail"])
    assert row["state"] == "ok" or "watchdog that looks every 50 ms" in row["cost"]


def test_landlock_is_told_by_version(report):
    row = report["Landlock"]
    version = re.match(r"version (\d+)", row["detail"])
    if row["state"] == "ok":
        assert int(version[1]) >= 6
    elif version:
        assert "not scoped" in row["detail"]


def test_python_and_packages(report):
    python = report.document["python"]
    assert python["executable"] == "/usr/bin/python3"
    asked = subprocess.run([python["executable"], "-V"], stdout=subprocess.PIPE, text=True)
    assert asked.stdout.split()[1] == python["version"]
    assert report.document["packages"] == {name: installed(d) for name, d in PACKAGES.items()}
    for name, version in report.document["packages"].items():
        row = report[name]
        assert row["section"] == "Python"
        assert row["state"] == ("ok" if version else "weaker")
        assert row["detail"] == version or "apt install python3-" in row["detail"]


def test_a_cell_was_run(report):
    times = report.document["trial"]
    parts = [times[part] for part in ("interpreter_ms", "create_ms", "cell_ms")]
    assert all(part > 0 for part in parts)
    assert times["answer_ms"] == pytest.approx(sum(parts), abs=1)
    assert report["one cell"]["detail"].startswith("print(6*7) gave 42")


def test_two_sessions_drew_numbers(report):
    row = report["randomness"]
    assert (row["state"], row["floor"], row["section"]) == ("ok", True, "Trial")
    drawn = row["detail"].partition(" from ")[2].split(", ")
    assert drawn[:6] == ["libc", "os.urandom", "random", "secrets", "uuid4", "OpenSSL"]
    assert ("numpy" in drawn) == (installed("numpy") is not None)


# --- as text ---

def told(text):
    """The rows of the text: name and state, by section."""
    rows, section = [], None
    for line in text.splitlines():
        if re.match("[A-Z]", line):
            section = line
        if found := re.match(r"  (ok|weaker|missing) +(.{18}) ", line):
            rows.append((section, found[2].strip(), found[1]))
    return rows


def test_text_has_the_same_rows(report, text):
    assert told(text) == [(row["section"], row["name"], row["state"])
                          for row in report.document["rows"]]


def test_text_fits(text):
    for line in text.splitlines():
        words = line.split()
        assert len(line) <= 80 or len(words) == 1, line  # a path is not broken
        assert line == line.rstrip()


def test_text_ends_with_the_verdict(report, text):
    verdict = " ".join(text[text.index("\nverdict: "):].split())
    assert verdict == "verdict: " + report.verdict


def test_no_colour_in_a_pipe(text):
    assert "\033" not in text


@pytest.mark.parametrize("extra, coloured", [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False),
                                             ({"TERM": "xterm", "NO_COLOR": "1"}, False)])
def test_colour_on_a_terminal(extra, coloured):
    ours, theirs = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k not in ("TERM", "NO_COLOR")} | extra
    process = subprocess.Popen([retort.PROGRAM, "doctor", "--python", "/bin/true"], stdout=theirs,
                               stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait(retort.SECONDS) == 1
    assert (b"\033[32mok" in shown and b"\033[31mmissing" in shown) == coloured
    assert b"verdict: " in shown.replace(b"\033[0m", b"")


# --- other Pythons ---

def test_a_python_that_is_none():
    report = doctor.run("--python", "/bin/true")
    assert report.exit == 1
    assert report["python"]["state"] == "missing" and "/bin/true" in report["python"]["detail"]
    assert report.document["python"] is None and report.document["trial"] is None
    assert report.document["floor"] is True and "no cell runs" in report.verdict


def test_a_python_that_is_not_there():
    report = doctor.run("--python", "/nowhere/python3")
    assert report.exit == 1
    assert "/nowhere/python3" in report["python"]["detail"]


@pytest.fixture
def bare_python():
    """Not below /tmp, where a sandbox has its own files."""
    with tempfile.TemporaryDirectory(prefix=".retort-test-", dir=Path.home()) as folder:
        venv = Path(folder, "venv")
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", venv], check=True)
        yield venv / "bin" / "python3"


def test_a_python_without_packages(bare_python):
    report = doctor.run("--python", bare_python)
    assert report.exit == 1
    assert report.document["python"]["executable"] == str(bare_python)
    assert set(report.document["packages"].values()) == {None}
    assert report.names("missing", "Python") == ["IPython", "matplotlib_inline"]
    assert report.names("weaker", "Python") == [n for n in PACKAGES][2:]
    assert "pip install scikit-learn (Debian: apt install python3-sklearn)" in \
        report["scikit-learn"]["detail"]
    assert "pip install ipython" in report["one cell"]["detail"]
    assert "no IPython" in report.verdict


# A Python whose generators say the same in every fork, in all that they do or in one of them.
EQUAL = {
    "os.urandom": """
import os
os.urandom = lambda n: bytes(range(n))
""",
    "random": """
import random
random.getrandbits = random.Random(1).getrandbits
""",
}


@pytest.mark.once
@pytest.mark.parametrize("name", EQUAL)
def test_sessions_that_draw_the_same_are_below_the_floor(bare_python, name):
    """The image of an interpreter could hold the state of a generator that forking does not renew."""
    packages = next(bare_python.parent.parent.glob("lib/python3*/site-packages"))
    packages.joinpath("equal_numbers.py").write_text(EQUAL[name])
    packages.joinpath("a.pth").write_text("/usr/lib/python3/dist-packages\nimport equal_numbers\n")
    report = doctor.run("--python", bare_python)
    row = report["randomness"]
    assert report["one cell"]["state"] == "ok", report
    assert row["state"] == "missing" and row["cost"], report
    assert name in row["detail"].partition(" the same numbers from ")[2].split(", ")
    assert "libc" not in row["detail"]
    assert report.exit == 1 and row["detail"] in report.verdict


# --- manners ---

def groups():
    """Those of other servers may go while this looks, which os.walk() does not mind."""
    return {os.path.join(place, name) for place, names, _ in os.walk("/sys/fs/cgroup")
            if os.path.basename(place) == "retort" for name in names}


def a_child():
    """The number of a process that was there for a moment."""
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def test_nothing_is_left_behind():
    """As their reaper this process would find any that doctor leaves."""
    PR_SET_CHILD_SUBREAPER = 36
    assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    before, first = groups(), a_child()
    try:
        assert doctor.run().exit == 0
        until = time.monotonic() + retort.SOON
        while time.monotonic() < until:
            try:
                os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            time.sleep(0.01)
        else:
            pytest.fail(f"still there: {retort.below(os.getpid())}")
    finally:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    # Others may have come meanwhile. Theirs are of living processes, or of processes that cannot be
    # seen from here; the number in the name of one of ours lies between those of two children.
    last = a_child()

    def left():
        numbers = ((path, int(Path(path).name.partition("-")[0])) for path in groups() - before)
        return [path for path, pid in numbers if first < pid < last and not retort.is_alive(pid)]

    # A server beside this one that has just ended removes its own a moment later. Ours would stay.
    retort.wait_until(lambda: not left(), "groups to be gone")


def test_nobody_reads():
    reader, writer = os.pipe()
    os.close(reader)
    process = retort.start("doctor", "--python", "/bin/true", stdout=writer)
    os.close(writer)
    try:
        assert process.wait(retort.SECONDS) in (-13, 141)
    finally:
        retort.end(process)


def test_verbose_keeps_the_document_clean():
    report = doctor.run("--verbose", "--python", "/bin/true")
    assert report.document["python"] is None


@pytest.mark.parametrize("args", [("--memory", "1G"), ("extra",), ("--jsno",)])
def test_usage(args):
    status, out, err = retort.call("doctor", *args)
    assert (status, out) == (2, b"") and err.startswith("retort: ")


def test_runs_under_this_python():
    assert sys.executable == "/usr/bin/python3"  # what installed() asks is what doctor found
