"""`retort run --session` and `retort repl`: sessions of a server that outlive the command."""

import signal
import subprocess

import pytest
from support import retort
from support.server import Server

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def server():
    with Server() as server:
        yield server


def call(server, *words, key=None, **options):
    env = {**server.env, "RETORT_SERVER": f"http://127.0.0.1:{server.port}"}
    if key:
        env["RETORT_KEY"] = key
    done = subprocess.run([retort.PROGRAM, *map(str, words)], capture_output=True, text=True, env=env,
                          timeout=retort.SECONDS, **options)
    return done.returncode, done.stdout, done.stderr


def test_variables_and_files_stay(server, tmp_path):
    (tmp_path / "towns é.csv").write_text("Lyon\n")
    code, out, err = call(server, "run", "--session", "trip", "-f", tmp_path / "towns é.csv",
                          "-c", "x = 20; print('set')", "--shell", "echo $((1 + 1)) > two; cat two")
    assert (code, out) == (0, "set\n2\n"), err
    code, out, err = call(server, "run", "--session", "trip", "-c", "x + 1",
                          "-c", "open('two').read() + open('towns é.csv').read()")
    assert (code, out) == (0, "21\n'2\\nLyon\\n'\n"), err


def test_errors_and_exit_status(server):
    code, out, err = call(server, "run", "--session", "bad", "-c", "print(1)\n1 / 0", "-c", "print(2)")
    assert (code, out) == (1, "1\n") and "ZeroDivisionError" in err
    code, out, err = call(server, "run", "--session", "bad", "--keep-going", "-c", "1 / 0", "-c", "print(2)")
    assert (code, out) == (1, "2\n")
    code, _, err = call(server, "run", "--session", "bad", "--timeout", "0.3", "-c", "while True: pass")
    assert code == 124 and "time limit" in err
    code, _, err = call(server, "run", "--session", "bad", "--shell", "exit 7")
    assert code == 1


def test_pictures_are_told_of(server):
    code, out, err = call(server, "run", "--session", "picture", "-c",
                          "import PIL.Image; PIL.Image.new('RGB', (6, 4))")
    assert code == 0 and "[image/png 6x4" in err


@pytest.mark.parametrize("flags, word", [(["--memory", "1G"], "--memory is for a session that is made here"),
                                         (["--out", "x"], "--out is for"), (["--session", ""], "")])
def test_refused(server, flags, word):
    code, _, err = call(server, "run", "--session", "x", *flags, "-c", "1")
    assert code == 2 and word in err, err


def test_no_server_and_no_key(server):
    done = subprocess.run([retort.PROGRAM, "run", "--session", "x", "--server", "http://127.0.0.1:9", "-c", "1"],
                          capture_output=True, text=True)
    assert done.returncode == 3 and "retort serve" in done.stderr
    with Server() as locked:
        secret = locked.keys("create", "--tenant", "acme", "--quiet").strip()
        retort.wait_until(lambda: call(locked, "run", "--session", "k", "-c", "1")[0] == 2, "the key to count")
        assert "RETORT_KEY" in call(locked, "run", "--session", "k", "-c", "1")[2]
        assert call(locked, "run", "--session", "k", "-c", "5", key=secret)[:2] == (0, "5\n")


def test_interrupt_keeps_the_session(server):
    env = {**server.env, "RETORT_SERVER": f"http://127.0.0.1:{server.port}"}
    process = subprocess.Popen([retort.PROGRAM, "run", "--session", "stop", "-c",
                                "kept = 5\nprint('begun', flush=True)\nwhile True: pass"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True)
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(retort.SECONDS) == 130
    process.communicate()
    assert call(server, "run", "--session", "stop", "-c", "kept")[1] == "5\n"


CELLS = "x = 20\nfor i in range(2):\n    print(i)\n\nx + 1\n!echo shell\nprint(\n  'open'\n)\n1 / 0\nx\n"


@pytest.mark.parametrize("words", [[], ["--session", "typed"]], ids=["own", "named"])
def test_repl(server, words):
    code, out, err = call(server, "repl", *words, input=CELLS)
    assert out == "0\n1\n21\nshell\nopen\n20\n" and "ZeroDivisionError" in err and code == 0, err


def test_repl_goes_on_with_a_session(server):
    call(server, "repl", "--session", "later", input="y = 3\n")
    assert call(server, "repl", "--session", "later", input="y\n")[1] == "3\n"
