"""Many runs, many dead interpreters, many commands: nothing piles up."""

import os
import secrets
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support import retort

RUNS = 20
CYCLES = 15


def one_run(number):
    mark = "mark-" + secrets.token_hex(8)
    code = f"import subprocess\nsubprocess.Popen(['sh', '-c', 'sleep 1000; :', {mark!r}])\nprint('up')\n" \
           "import time; time.sleep(0.2)"
    with retort.Live("-c", code, "-c", "1 / 0" if number % 2 else "1;") as live:
        live.wait_for("up")
        below = retort.below(live.pid)
        instances = retort.instances(below)
        assert live.wait() == number % 2
    return mark, below, instances


def test_twenty_runs_leave_nothing():
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(one_run, range(RUNS)))
    left = [p for _, below, _ in done for p in below if retort.is_alive(p)]
    assert left == [], [Path(f"/proc/{p}/cmdline").read_bytes() for p in left]
    assert [mark for mark, _, _ in done if retort.with_word(mark)] == []
    assert retort.groups_of({name for _, _, instances in done for name in instances}) == []


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_descriptors_of_the_server_do_not_pile_up():
    cycle = ["-c", "import os; os._exit(1)", "--shell", "echo x; sleep 1000 & disown",
             "-c", "open('f', 'w').write('x'); print('cycle')"]
    last = ["-c", "print('last'); import time; time.sleep(60)"]
    # With users of its own the program is in a namespace of its own, and shows its descriptors to nobody.
    with retort.Live("--sandbox-users", "one", "--keep-going", *cycle, "-c", "print('first'); import time; time.sleep(1)",
                     *cycle * CYCLES, *last, stderr=subprocess.DEVNULL) as live:
        live.wait_for("first")
        before, threads = open_files(live.pid), retort.field(live.pid, "Threads")
        processes = len(retort.below(live.pid))
        live.wait_for("last")
        assert open_files(live.pid) <= before + 2
        assert retort.field(live.pid, "Threads") == threads
        # Of what the commands left behind, the next dead interpreter took all but the last.
        assert len(retort.below(live.pid)) <= processes + 1


@pytest.mark.once
@pytest.mark.parametrize("pause", [0, 0.03], ids=["fast", "slow"])
def test_memory_of_the_server_does_not_pile_up(pause):
    """Twelve megabytes of output; for the slow reader each cell waits for the one before it."""
    code = "import os\nfor i in range(200): print('x' * 1000); os.write(2, b'y' * 1000)"
    with retort.Live("-c", "print('first')", *retort.cells(*[code] * 60),
                     "-c", "print('last'); import time; time.sleep(60)",
                     pause=pause, stderr=subprocess.DEVNULL) as live:
        live.wait_for("first")
        before = int(retort.field(live.pid, "VmRSS")[0])
        live.wait_for("last")
        assert int(retort.field(live.pid, "VmHWM")[0]) < before + 6 * 1024
