"""Each limit is hit once: the outcome names it in one line, and a neighbour's answers keep coming."""

import pytest

from support import retort

MiB = 1024 * 1024


def names(answer, limit, *words):
    """The outcome names this limit, in its list and in one plain line."""
    assert limit in answer.limits, answer
    assert answer.message and "\n" not in answer.message and len(answer.message) < 200
    for word in words:
        assert word in answer.message, answer.message


@pytest.fixture
def run(neighbour):
    return retort.run


def test_wall_time(run):
    got = run("--keep-going", "--timeout", "0.4", "-c", "x = 5\nwhile True: pass", "-c", "x",
              "--shell", "sleep 60", "-c", "import time; time.sleep(60)", "-c", "!sleep 60",
              "-c", "import asyncio\nawait asyncio.sleep(60)", "-c", "x")
    assert got.statuses == ["timeout", "ok", "timeout", "timeout", "timeout", "timeout", "ok"]
    for answer in (got[0], got[2], got[3], got[4], got[5]):
        names(answer, "wall_time", "time limit of 0.400 s")
        assert 300 < answer.outcome["wall_ms"] < 30_000
        assert not answer.lost
    assert got[1].result == got[6].result == "5"
    assert got.exit == 124


def test_cpu_time(run):
    got = run("--keep-going", "--cpu-time", "0.5", "--timeout", "50",
              "-c", "import time; time.sleep(0.8); 'sleeping costs nothing'",
              "-c", "x = 1\nwhile True: pass", "-c", "x",
              "-c", "import subprocess\nsubprocess.run(['sh', '-c', 'while :; do :; done'])",
              "--shell", "while :; do :; done", "-c", "x")
    assert got.statuses == ["ok", "timeout", "ok", "timeout", "timeout", "ok"]
    for i in (1, 3, 4):
        names(got[i], "cpu_time", "CPU time limit of 0.500 s")
    assert got[2].result == got[5].result == "1"


GROW = "held = []\nwhile True: held.append(bytearray(b'x') * (1 << 20))"


def test_memory(run):
    got = run("--keep-going", "--memory", "200M", "-c", "open('kept.txt', 'w').write('x'); y = 1", "-c", GROW,
              "-c", "'y' in globals(), open('kept.txt').read()",
              "-c", "import subprocess, sys\nsubprocess.run([sys.executable, '-c', " + repr(GROW) + "]).returncode",
              "--shell", "head -c 400M /dev/zero | tail -c 390M > /dev/null", "-c", "'goes on'")
    names(got[1], "memory", "memory limit of 200 MiB")
    if retort.has_groups():
        assert got[1].status == "memory" and got[1].lost and "variables are lost" in got[1].message
        assert got[2].result == "(False, 'x')"
        assert got[3].result == "-9"  # the child goes
    else:  # the code hears of it, and keeps what it has, so that there is no room for a child's
        assert got[1].status == "raised" and got[1].error["name"] == "MemoryError"
        assert got[2].result == "(True, 'x')"
        assert got[3].status == "memory" and got[3].lost
    names(got[4], "memory")
    assert got[-1].result == "'goes on'"
    assert got.exit == (1 if got[1].status == "raised" else 137)


def test_memory_asked_for_at_once(run):
    got = run("--keep-going", "--memory", "200M", "-c", "x = 1\nb'x' * (1 << 50)", "-c", "x")
    assert got[0].error["name"] == "MemoryError"
    names(got[0], "memory")
    assert got[1].result == "1"


def test_processes(run):
    fork = ("import os, time\nn = 0\ntry:\n    while True:\n        if os.fork() == 0:\n"
            "            time.sleep(20); os._exit(0)\n        n += 1\nexcept OSError:\n"
            "    print(n)\n    raise")
    got = run("--keep-going", "--pids", "20", "-c", fork, "-c", "!pkill -9 sleep; true\nn")
    assert got[0].status == "raised" and got[0].error["name"] == "BlockingIOError"
    names(got[0], "processes", "20 processes")
    assert 5 <= int(got[0].stdout) < 20


def test_threads(run):
    got = run("--keep-going", "--pids", "20", "-c",
              "import threading, time\nfor n in range(100):\n"
              "    threading.Thread(target=time.sleep, args=(3,), daemon=True).start()")
    assert got[0].status == "raised" and got[0].error["name"] == "RuntimeError"
    names(got[0], "processes")


def test_disk(run):
    got = run("--keep-going", "--disk", "5M", "-c", "open('big', 'wb').write(bytes(10 << 20))",
              "-c", "import os\nos.path.getsize('big') <= 5 << 20, os.remove('big')",
              "-c", "open('again', 'wb').write(bytes(4 << 20));",
              "--shell", "head -c 9M /dev/zero > more",
              "-c", "import shutil\nshutil.disk_usage('/workspace').total")
    assert got[0].error["message"].startswith("[Errno 28]")
    names(got[0], "disk", "5 MiB", "/workspace")
    assert got[1].result == "(True, None)"
    assert got[2].status == "ok"
    assert got[3].status == "raised"
    names(got[3], "disk")
    assert int(got[4].result) == 5 * MiB


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
def test_tmp(run, folder):
    got = run("--keep-going", "--tmp", "5M", "-c", f"open('{folder}/big', 'wb').write(bytes(10 << 20))",
              "-c", "open('here.txt', 'w').write('x');")
    assert got[0].error["message"].startswith("[Errno 28]")
    names(got[0], "tmp", "5 MiB")
    assert "disk" not in got[0].limits
    assert got[1].status == "ok"


def test_many_small_files(run):
    got = run("--keep-going", "--timeout", "100", "-c",
              "import os\nos.mkdir('many')\nfor i in range(10**6): open(f'many/{i}', 'w').close()",
              "-c", "import shutil\nshutil.rmtree('many')\nopen('one', 'w').write('x');")
    assert got[0].error["message"].startswith("[Errno 28]")
    names(got[0], "disk")
    assert len(got[0].of("file")) <= 200


def test_open_files(run):
    got = run("--keep-going", "--open-files", "50", "-c",
              "held = []\nwhile True: held.append(open('/dev/null'))",
              "-c", "n = len(held); held.clear(); open('/dev/null').close(); n")
    assert got[0].error["name"] == "OSError" and "[Errno 24]" in got[0].error["message"]
    names(got[0], "open_files", "50 open files")
    assert 20 < int(got[1].result) < 50


def test_output(run):
    got = run("--keep-going", "--output", "64K", "-c",
              "print('begin')\nfor i in range(20_000): print('line', i)\nprint('end')", "-c", "print('next')")
    answer = got[0]
    assert answer.status == "ok"
    names(answer, "output", "64 KiB")
    text = answer.stdout
    assert text.startswith("begin\nline 0\n") and text.endswith("line 19999\nend\n")
    assert len(text) <= 64 * 1024
    assert answer.outcome["output_bytes"] == 10 + sum(len(f"line {i}\n") for i in range(20_000))
    assert answer.outcome["output_dropped"] == answer.outcome["output_bytes"] - len(text)
    assert "left out" in answer.text_of("status")
    assert got[1].order == [("stdout", "next\n")] and got[1].limits == []


def test_output_of_commands_and_displays(run):
    got = run("--keep-going", "--output", "64K", "--shell", "seq 100000; echo end >&2",
              "-c", "from IPython.display import display, HTML\ndisplay(HTML('x' * 100_000))\nprint('after')",
              "-c", "print('x' * 100_000)\n1 / 0")
    names(got[0], "output")
    assert got[0].stdout.startswith("1\n2\n") and got[0].stdout.endswith("100000\n")
    assert got[0].stderr == "end\n"
    names(got[1], "output")
    assert got[1].displays == [] and got[1].stdout == "after\n"
    assert got[2].error["name"] == "ZeroDivisionError"


def test_artifact_count(run, tmp_path):
    got = run("--artifacts", "5", "--out", tmp_path, "-c",
              "for i in range(12): open(f'{i:02}.txt', 'w').write('x')", "-c", "1")
    assert got[0].status == "ok" and got[1].files == {}
    names(got[0], "artifact_count", "5 reported files")
    assert sorted(got[0].files) == [f"{i:02}.txt" for i in range(5)]
    assert "7 more files" in got[0].text_of("status")
    assert len(list(tmp_path.iterdir())) == 5


def test_artifact_size(run, tmp_path):
    got = run("--artifact-size", "1M", "--out", tmp_path, "-c",
              "open('big.bin', 'wb').write(bytes((1 << 20) + 1)); open('fits.bin', 'wb').write(bytes(1 << 20));")
    names(got[0], "artifact_size", "1 MiB")
    events = {e["path"]: e for e in got[0].of("file")}
    assert events["big.bin"]["too_large"] is True and "too_large" not in events["fits.bin"]
    assert [p.name for p in tmp_path.iterdir()] == ["fits.bin"]


def test_cpus(run):
    got = run("--cpus", "0.25", "-c", "import time\nbegan = time.perf_counter()\n"
              "while time.process_time() < 0.6: pass\ntime.perf_counter() - began")
    assert got[0].status == "ok"
    if retort.has_groups():
        assert float(got[0].result) > 1.5


def test_nothing_is_hit_by_ordinary_work(run):
    got = run("-c", "import numpy, json, subprocess\nnumpy.ones(10**6).sum()\n"
              "subprocess.run(['true'])\nopen('x.txt', 'w').write('x')\nprint('fine')")
    assert got[0].limits == [] and got[0].message == ""
