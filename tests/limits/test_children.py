"""Whatever a session started ends with it, however it was started."""

import os
import secrets
import signal

from support import retort

SPREAD = """
import os, subprocess, sys
def sleeper(**options):
    return subprocess.Popen(["sh", "-c", "sleep 1000; :", MARK], **options)

sleeper()
sleeper(start_new_session=True)
subprocess.Popen(["setsid", "-f", "sh", "-c", "sleep 1000; :", MARK])
subprocess.run(["sh", "-c", f"(setsid sh -c 'sleep 1000; :' {MARK} &) &"])
subprocess.run(["bash", "-c", f"nohup sh -c 'sleep 1000; :' {MARK} > /dev/null 2>&1 & disown"])
if os.fork() == 0:  # the old way to become a daemon
    os.setsid()
    if os.fork() == 0:
        os.execvp("sh", ["sh", "-c", "trap '' HUP INT TERM; sleep 1000; :", MARK])
    os._exit(0)
print("spread")
"""
COUNT = 6


def test_nothing_outlives_its_session():
    mark = "mark-" + secrets.token_hex(8)
    with retort.Live("-c", f"MARK = {mark!r}\n{SPREAD}", "--shell", f"sh -c 'sleep 1000; :' {mark} & disown",
                     "-c", "import time; time.sleep(60)") as live:
        live.wait_for("spread")
        retort.wait_until(lambda: len(retort.with_word(mark)) > COUNT, "the children")
        os.kill(live.pid, signal.SIGINT)
        assert live.wait() == 130
    retort.wait_until(lambda: not retort.with_word(mark), "the end of every child")


def test_nothing_outlives_a_killed_interpreter():
    mark = "mark-" + secrets.token_hex(8)
    run = retort.run("--keep-going", "-c", f"MARK = {mark!r}\n{SPREAD}", "-c", "import os; os._exit(1)",
                     "--shell", f"cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -c {mark[:-1]}[{mark[-1]}]")
    assert run.statuses == ["ok", "died", "raised"]
    assert run[2].stdout == "0\n"


def test_children_may_live_between_cells():
    run = retort.run("-c", "import subprocess\nchild = subprocess.Popen(['sleep', '1000'])",
                     "--shell", "true", "-c", "child.poll() is None")
    assert run[2].result == "True"
