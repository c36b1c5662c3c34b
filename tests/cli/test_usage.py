"""Every way to call it wrong: one sentence, status 2, nothing half done."""

import os
import shutil
import subprocess
import tempfile

import pytest

from support import retort

pytestmark = pytest.mark.once

MiB = 1024 * 1024


def refused(*args, **options):
    """The sentence of a call that must be refused."""
    status, out, err = retort.call(*args, **options)
    assert (status, out) == (2, b""), (status, out[:200], err)
    assert err.startswith("retort: ") and err.count("\n") == 1 and err.endswith("\n"), err
    return err.strip()


@pytest.mark.parametrize("args, says", [
    ((), "--help"),
    (("runn", "-c", "1"), "did you mean run?"),
    (("frobnicate",), "frobnicate"),
    (("help", "frobnicate"), "frobnicate"),
    (("help", "serv"), "did you mean serve?"),
    (("run", "--session", "a", "--server", "ftp://files.example", "-c", "1"), "such as http://127.0.0.1:8000"),
    (("repl", "--session", "a", "--server", "nonsense"), "such as http://127.0.0.1:8000"),
    (("--nosuch",), "--nosuch"),
    (("-c", "1"), "-c"),
    (("",), "--help"),
    (("run",), "nothing to run"),
    (("run", "--json"), "nothing to run"),
    (("run", "--jsn", "-c", "1"), "did you mean --json?"),
    (("run", "--nothing-like-it", "-c", "1"), "--nothing-like-it"),
    (("run", "-x", "-c", "1"), "-x"),
    (("run", "-c"), "-c needs a value"),
    (("run", "--timeout"), "--timeout needs a value"),
    (("run", "--shell"), "--shell needs a value"),
    (("run", "--json=maybe", "-c", "1"), "maybe"),
    (("run", "--timeout", "0", "-c", "1"), "--timeout"),
    (("run", "--timeout", "-1", "-c", "1"), "--timeout"),
    (("run", "--timeout", "soon", "-c", "1"), "soon"),
    (("run", "--timeout", "", "-c", "1"), "--timeout"),
    (("run", "--timeout", "1e3", "-c", "1"), "1e3"),
    (("run", "--timeout", "nan", "-c", "1"), "nan"),
    (("run", "--timeout", "99999999999999999999", "-c", "1"), "--timeout"),
    (("run", "--memory", "lots", "-c", "1"), "lots"),
    (("run", "--memory", "1", "-c", "1"), "too little"),
    (("run", "--memory", "0", "-c", "1"), "too little"),
    (("run", "--memory", "12Q", "-c", "1"), "12Q"),
    (("run", "--memory", "-5M", "-c", "1"), "-5M"),
    (("run", "--memory", "1.5", "-c", "1"), "1.5"),
    (("run", "--memory", "0x10M", "-c", "1"), "0x10M"),
    (("run", "--memory", "1 G", "-c", "1"), "1 G"),
    (("run", "--memory", "99999999999G", "-c", "1"), "--memory"),
    (("run", "--disk", "1K", "-c", "1"), "too little"),
    (("run", "--pids", "1", "-c", "1"), "too little"),
    (("run", "--pids", "2.5", "-c", "1"), "2.5"),
    (("run", "--cpus", "0", "-c", "1"), "--cpus"),
    (("run", "--open-files", "all", "-c", "1"), "all"),
    (("run", "--output", "1", "-c", "1"), "too little"),
    (("run", "--artifact-size", "0", "-c", "1"), "--artifact-size"),
    (("run", "--python", "", "-c", "1"), "--python"),
    (("run", "--out", "", "-c", "1"), "--out"),
    (("run", "-f", "", "-c", "1"), "-f"),
    (("run", ""), "empty"),
    (("run", "-", "-"), "once"),
    (("doctor", "extra"), "extra"),
    (("doctor", "--timeout", "3"), "--timeout"),
], ids=lambda value: " ".join(value) if isinstance(value, tuple) else None)
def test_bad_arguments(args, says):
    assert says in refused(*args)


def test_script_that_is_not_there(tmp_path):
    sentence = refused("run", tmp_path / "absent.py")
    assert "absent.py" in sentence and "No such file" in sentence


def test_directory_as_script(tmp_path):
    assert "is a directory" in refused("run", tmp_path)


def test_unreadable_script(tmp_path):
    script = tmp_path / "secret.py"
    script.write_text("1")
    script.chmod(0)
    if os.geteuid() != 0:
        assert "Permission denied" in refused("run", script)
    else:  # root reads what it likes; a link to itself nobody can
        script.unlink()
        script.symlink_to(script)
        assert "secret.py" in refused("run", script)


@pytest.mark.parametrize("name, data, says", [
    ("nul.py", b"x = 1\n\0\n", "NUL byte in line 2"),
    ("latin1.py", b"# ok\n# caf\xe9\n", "line 2"),
    ("utf16.py", "x = 1\n".encode("utf-16"), "text"),
    ("random.py", bytes(range(256)) * 16, "text"),
    ("elf.py", b"\x7fELF\x02\x01\x01\0\0\0", "text"),
])
def test_binary_garbage(tmp_path, name, data, says):
    script = tmp_path / name
    script.write_bytes(data)
    sentence = refused("run", script)
    assert name in sentence and says in sentence


def test_garbage_in_arguments():
    assert "UTF-8" in refused("run", "-c", b"'\xff'".decode("utf-8", "surrogateescape"))
    assert "UTF-8" in refused("run", "--shell", b"echo \xff".decode("utf-8", "surrogateescape"))


def test_large_scripts(tmp_path):
    for size in (100 * MiB, 16 * MiB + 1):
        script = tmp_path / f"{size}.py"
        with open(script, "wb") as f:
            f.truncate(size)
        assert "too large" in refused("run", script)
    with open("/dev/zero", "rb") as endless:
        assert "too large" in refused("run", "-", stdin=endless)
    with open("/dev/zero", "rb"):
        assert "too large" in refused("run", "/dev/zero")


def test_long_command():
    assert "32" in refused("run", "--shell", "echo " + "x" * 100_000)


def test_names_are_shown_harmlessly(tmp_path):
    sentence = refused("run", tmp_path / "a\n\x1b[31mred")
    assert "\x1b" not in sentence


def test_every_script_is_checked_before_the_first_runs(tmp_path):
    (tmp_path / "good.py").write_text("open('made', 'w').close(); print('ran')")
    out = tmp_path / "out"
    refused("run", "--out", out, tmp_path / "good.py", tmp_path / "absent.py")
    refused("run", "--out", out, "-c", "print('ran')", "--timeout", "never")
    refused("run", "--out", out, "-f", tmp_path / "absent.csv", "-c", "print('ran')")
    assert not out.exists()


def test_files_that_cannot_be_put(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    for folder in ("one", "two"):
        (tmp_path / folder / "same.csv").write_text("a")
    os.mkfifo(tmp_path / "pipe")
    assert "same.csv" in refused("run", "-f", tmp_path / "one/same.csv", "-f", tmp_path / "two/same.csv",
                                 "-c", "1")
    assert "absent.csv" in refused("run", "-f", tmp_path / "absent.csv", "-c", "1")
    assert "is a directory" in refused("run", "-f", tmp_path, "-c", "1")
    assert "not a file" in refused("run", "-f", tmp_path / "pipe", "-c", "1")
    with open(tmp_path / "large.bin", "wb") as f:
        f.truncate(2 * MiB)
    assert "--disk" in refused("run", "--disk", "1M", "-f", tmp_path / "large.bin", "-c", "1")


def test_out_that_is_no_directory(tmp_path):
    (tmp_path / "file").write_text("")
    assert "not a directory" in refused("run", "--out", tmp_path / "file", "-c", "1")
    assert "--out" in refused("run", "--out", tmp_path / "file/below", "-c", "1")
    assert "--out" in refused("run", "--out", "/proc/nowhere", "-c", "1")


def test_closed_stdin_as_script():
    read, write = os.pipe()
    os.close(read)
    try:
        assert "standard input" in refused("run", "-", stdin=write)
    finally:
        os.close(write)


@pytest.mark.parametrize("args", [("--help",), ("run", "--help"), ("--version",), ("help", "configuration"),
                                  ("serve", "--check-config"), ("doctor",), ("doctor", "--json"),
                                  ("environment", "list"), ("run", "-c", "print(1)"), ("run", "--json", "-c", "1")])
def test_a_full_disk_behind_standard_output_is_told(args):
    with open("/dev/full", "w") as full:
        status, _, err = retort.call(*args, stdout=full)
    assert status == 3 and err == "retort: cannot write to standard output: No space left on device\n", err


@pytest.mark.parametrize("args, option", [(("environment", "list"), "--environments DIR"), (("keys", "list"), "--state DIR")])
def test_without_a_home_it_says_which_option(args, option):
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder:  # the program may be below a home that is closed to others
        os.chmod(folder, 0o755)
        program = shutil.copy(retort.PROGRAM, folder)
        done = subprocess.run([*user, "env", "-i", "PATH=/usr/bin:/bin", program, *args], capture_output=True, text=True)
    assert done.returncode == 2 and f"there is no home directory; say where with {option}" in done.stderr, done
