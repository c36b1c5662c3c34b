"""Exit status, the document and where executions stop."""

import json
import os
import signal
import subprocess
import time

import pytest

from support import retort


def status(*args, **options):
    return retort.call("run", *args, **options)[0]


def test_status_of_a_good_end():
    code, out, err = retort.call("run", "-c", "print('out')\n6 * 7", "--shell", "echo err >&2")
    assert (code, out, err) == (0, b"out\n42\n", "err\n")


@pytest.mark.parametrize("expected, args", [
    (1, ["-c", "1 / 0"]),
    (1, ["-c", "not python at all"]),
    (1, ["--shell", "exit 7"]),
    (1, ["-c", "import os; os._exit(0)"]),
    (124, ["--timeout", "0.2", "-c", "while True: pass"]),
    (124, ["--timeout", "0.2", "--shell", "sleep 60"]),
], ids=["raised", "syntax", "command", "died", "timeout", "command timeout"])
def test_status_of_a_bad_end(expected, args):
    code, out, err = retort.call("run", *args, "-c", "print('not reached')")
    assert (code, out) == (expected, b""), err
    assert err != "" or "--shell" in args


def test_status_of_too_much_memory():
    code, out, err = retort.call("run", "--memory", "150M", "-c",
                                 "held = []\nwhile True: held.append(b'x' * (1 << 20))")
    # Without a cgroup the code may hear of it before it is killed.
    assert code == (1 if "MemoryError" in err and not retort.has_groups() else 137)
    assert (out, err.splitlines()[-1].count("the memory limit of 150 MiB")) == (b"", 1)


@pytest.mark.once
def test_stops_at_the_first_failure():
    run = retort.run("-c", "1", "-c", "1 / 0", "-c", "2")
    assert run.statuses == ["ok", "raised"] and run.exit == 1


@pytest.mark.once
def test_keep_going_tells_of_the_first_failure():
    run = retort.run("--keep-going", "--timeout", "0.3", "-c", "1 / 0", "-c", "while True: pass",
                     "--shell", "exit 3", "-c", "'end'")
    assert run.statuses == ["raised", "timeout", "raised", "ok"] and run.exit == 1
    run = retort.run("--keep-going", "--timeout", "0.3", "-c", "while True: pass", "-c", "1 / 0")
    assert run.exit == 124


@pytest.mark.once
def test_document(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("print('from a script')")
    code, out, err = retort.call("run", "--json", script, "-c", "1", "--shell", "true", "-",
                                 input=b"print('from stdin')\n")
    assert (code, err) == (0, "")
    assert out.count(b"\n") == 1 and out.endswith(b"}\n")
    document = json.loads(out)
    assert set(document) == {"version", "executions", "exit"}
    sources = [(e["kind"], e["source"]) for e in document["executions"]]
    assert sources == [("cell", str(script)), ("cell", "-c"), ("command", "--shell"), ("cell", "-")]
    assert document["executions"][3]["events"] == [{"type": "stdout", "text": "from stdin\n"}]
    for execution in document["executions"]:
        assert set(execution) == {"kind", "source", "events", "outcome"}
        outcome = execution["outcome"]
        assert set(outcome) == {"status", "limits_hit", "state_lost", "exit_code", "message", "wall_ms",
                                "cpu_ms", "memory_peak_bytes", "output_bytes", "output_dropped"}
        assert outcome["status"] == "ok" and outcome["message"] == ""
        assert 0 < outcome["wall_ms"] < 60_000


def test_measures():
    run = retort.run("-c", "x = bytearray(64 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\n"
                     "import time\nuntil = time.process_time() + 0.3\n"
                     "while time.process_time() < until: pass\nprint('done')")
    outcome = run[0].outcome
    assert outcome["wall_ms"] >= 300 and outcome["output_bytes"] == 5
    if retort.has_groups():
        assert 250 <= outcome["cpu_ms"] <= outcome["wall_ms"] * 2
        assert 64 << 20 <= outcome["memory_peak_bytes"] < 1 << 30


@pytest.mark.once
def test_scripts_from_everywhere(tmp_path):
    (tmp_path / "-odd name.py").write_text("x = 'odd name'")
    (tmp_path / "bom.py").write_bytes(b"\xef\xbb\xbfy = 'bom'\r\n")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = subprocess.Popen(["sh", "-c", f"echo \"z = 'fifo'\" > '{fifo}'"])
    code, out, err = retort.call("run", "bom.py", str(fifo), "-", "--", "-odd name.py", cwd=tmp_path,
                                 input=b"print(y, z)\n")
    writer.wait(retort.SECONDS)
    assert (code, out) == (0, b"bom fifo\n"), err
    code, out, err = retort.call("run", "-cprint(1)", "--code=print(2)", "--shell=echo 3")
    assert (code, out) == (0, b"1\n2\n3\n"), err


@pytest.mark.once
def test_empty_standard_input():
    assert status("-") == 0


def test_interrupt_stops_the_code():
    process = retort.start("run", "--json", "-v", "-c", "import time\ntime.sleep(100)", "-c", "1")
    try:
        for line in process.stderr:
            if b"-> running" in line:
                break
        os.kill(process.pid, signal.SIGINT)
        run = retort.Run(*retort.finish(process))
        assert (run.exit, run.statuses) == (130, ["interrupted"])
    finally:
        retort.end(process)


def test_interrupt_leaves_the_session_to_the_next_cell():
    code = "import time\nx = 5\ntry:\n    print('up')\n    time.sleep(100)\nfinally:\n    print('cleaned up')"
    with retort.Live("--keep-going", "-c", code, "-c", "print('x is', x)") as live:
        live.wait_for("up")
        os.kill(live.pid, signal.SIGINT)
        assert live.wait() == 130
    assert "cleaned up" in live.lines and "x is 5" in live.lines


def test_second_interrupt_ends_it():
    code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('up')\nimport time\ntime.sleep(100)"
    with retort.Live("--grace", "60", "-c", code) as live:
        live.wait_for("up")
        os.kill(live.pid, signal.SIGINT)
        time.sleep(1)
        assert live.process.poll() is None
        os.kill(live.pid, signal.SIGINT)
        assert live.wait() == 130


def test_termination():
    with retort.Live("-c", "print('up')\nimport time\ntime.sleep(100)") as live:
        live.wait_for("up")
        os.kill(live.pid, signal.SIGTERM)
        assert live.wait() not in (0, 1, 2, 3)


@pytest.mark.once
def test_reader_that_goes_away():
    process = retort.start("run", "-c", "while True: print('line')", stderr=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"line\n"
        process.stdout.close()
        process.stdout = None
        assert process.wait(retort.SECONDS) == 141
        assert process.stderr.read() == b""
    finally:
        retort.end(process)


@pytest.mark.once
def test_full_disk_under_stdout():
    with open("/dev/full", "wb") as full:
        code, _, err = retort.call("run", "-c", "print('line')", stdout=full)
        assert code == 3 and "No space left" in err
        assert retort.call("run", "--json", "-c", "1", stdout=full)[0] == 3


def test_closed_standard_streams():
    line = f"{retort.PROGRAM} run -c \"open('made.txt', 'w').write('x'); print('out')\" <&- >&- 2>&-"
    done = subprocess.run(["sh", "-c", line], timeout=retort.SECONDS)
    assert done.returncode == 0
