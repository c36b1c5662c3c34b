"""Who is on a processor while a client waits: the part `where` of bench/speed.py.

/proc/PID/task/TID/schedstat tells each thread's time in nanoseconds, so a busy machine changes little
of it: what waits for a processor is not on one.
"""

import contextlib
import os

import machine
import run
from over_http import CREATE, DELETE, cell
from speed_turns import PLOT

WHO = ("server's loop", "its other threads", "warden and zygote", "the sandbox", "the next sandbox, meanwhile")
LOOP, THREADS, WARDEN, TAKEN, REFILL = WHO


def tasks(pid):
    found = {}
    try:
        for thread in os.listdir("/proc/%d/task" % pid):
            text = machine.read("/proc/%d/task/%s/schedstat" % (pid, thread))
            found[int(thread)] = int(text.split()[0]) if text else 0
    except OSError:
        pass
    return found


def snapshot(server):
    """{(who, which): nanoseconds}. Which is a thread, a process, or a sandbox: by its pid namespace."""
    found = {}
    for thread, ns in tasks(server).items():
        found[LOOP if thread == server else THREADS, thread] = ns
    for pid in machine.below(server):
        key = WARDEN, pid
        if machine.in_sandbox(pid, server):
            with contextlib.suppress(OSError):
                key = TAKEN, os.readlink("/proc/%d/ns/pid" % pid)
        found[key] = found.get(key, 0) + sum(tasks(pid).values())
    return found


def spent(before, after, later, count):
    """Milliseconds for each of `count`. A sandbox that is still there when the sessions are deleted
    was nobody's: the pool made it meanwhile."""
    sums = dict.fromkeys(WHO, 0)
    for (who, which), ns in after.items():
        spare = who == TAKEN and (who, which) in later
        sums[REFILL if spare else who] += ns - before.get((who, which), 0)
    return {who: ns / 1e6 / count for who, ns in sums.items()}


def where(bench):
    """Who is on a processor for a cell, a session, a first cell, a first plot."""
    n, load, pid = 4, bench.load, bench.server.pid
    cells = 200 if bench.quick else 1000
    rounds = 2 if bench.quick else 10

    def one_cell(took):
        load.visit(1, CREATE, cell(run.PRINT), keep=True)
        bench.settle()
        before = snapshot(pid)
        took += load.ask("again", cell(run.PRINT), repeat=cells)["steps"][0]
        return before, snapshot(pid), cells

    def sessions(*steps):
        def measure(took):
            before = snapshot(pid)
            took += load.visit(n, CREATE, *steps, keep=True)["steps"][-1]
            return before, snapshot(pid), n
        return measure

    works = {"print(2+2)": one_cell, "a session from the parked": sessions(),
             "first describe(), its session": sessions(cell(run.DESCRIBE)),
             "first plot, its session": sessions(cell(PLOT))}
    seen = {what: [] for what in works}
    took = {what: [] for what in works}
    for _ in range(rounds):
        for what, measure in works.items():
            bench.settle()
            before, after, count = measure(took[what])
            load.ask("again", DELETE)
            load.ask("forget")
            bench.settle()
            seen[what].append(spent(before, after, snapshot(pid), count))
    for what, rounds_seen in seen.items():
        bench.row("where", what, run.summary(took[what]))
        for who in rounds_seen[0]:
            values = sorted(one[who] for one in rounds_seen)
            if values[len(values) // 2] >= 0.0005:
                bench.row("where", "  " + who, {"min": values[0], "p50": values[len(values) // 2], "unit": "ms"})
    bench.more["where"] = seen
