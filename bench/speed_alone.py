"""What needs the machine for itself: many clients, much memory, a thousand sessions, a million
records, a server's start. Each part is a function that adds its rows."""

import contextlib
import functools
import os
import sqlite3
import statistics
import time

import machine
import run
from over_http import CREATE, DELETE, HEALTH, cell, delete_kept
from speed_turns import JUPYTER, ONE_SHOT
from speed_where import where

CELLS_BEFORE = 2080  # a second, with 64 clients on two cores: where the goal of 2.5 times comes from
RESTED_S = 10        # by then a session that nobody asked for anything has given back what it can


def one(value, unit="ms"):
    return {"p50": value, "unit": unit}


@contextlib.contextmanager
def sessions(load, n, step, width=8):
    """So many sessions that have run one cell."""
    load.visit(n, CREATE, cell(step), clients=min(n, width), keep=True)
    try:
        yield
    finally:
        load.ask("again", DELETE, clients=width)
        load.ask("forget")


# --- on the one server ---

def burst(bench):
    """Two hundred one-shots at once, eight sandboxes parked."""
    n, cores = 40 if bench.quick else 200, len(os.sched_getaffinity(0))
    steady, at_once, gaps, parked = [], [], [], []
    for _ in range(2 if bench.quick else 4):
        bench.settle()
        steady.append(bench.load.visit(n, ONE_SHOT, clients=2 * cores)["took_us"] / n)
        bench.settle()
        answer = bench.load.visit(n, ONE_SHOT, clients=n)
        ends = sorted(answer["visit_us"])
        at_once.append(answer["took_us"] / n)
        parked.append(ends[run.READY - 1])
        gaps.append(max(b - a for a, b in zip(ends, ends[1:])))
    steady, at_once = run.summary(steady), run.summary(at_once)
    bench.row("burst", "%d one-shots at once, each" % n, at_once,
              ("%d clients" % (2 * cores), steady), kind="ratio", goal=1.25)
    bench.row("burst", "  longest time without an answer", run.summary(gaps),
              ("each", {**at_once, "min": at_once["p50"]}), kind="ratio", goal=20)
    bench.more["burst"] = {"n": n, "until_the_parked_are_used_us": parked}


def rate(load, clients, each):
    """Cells a second, and what each took, of as many sessions as clients."""
    answer = load.ask("again", cell(run.PRINT), clients=clients, repeat=each)
    return clients * each * 1e6 / answer["took_us"], answer["steps"][0], answer["cpu_us"] / answer["took_us"]


def many(bench):
    """Cells a second of 64 clients in 64 sessions, on every core and on one."""
    clients, each, rounds = 64, 20 if bench.quick else 60, 3 if bench.quick else 6
    every = os.sched_getaffinity(0)
    try:
        # Before it starts anything: children get what their parent has.
        os.sched_setaffinity(0, {min(every)})
        with bench.serve() as narrow:
            few = bench.loading(narrow)
            os.sched_setaffinity(0, every)
            bench.settle(narrow)
            rates, took, asking = {"all": [], "one": []}, [], []
            with sessions(bench.load, clients, run.PRINT), sessions(few, clients, run.PRINT):
                for _ in range(rounds):
                    rates["one"].append(rate(few, clients, max(1, each // 2))[0])
                    second, each_took, share = rate(bench.load, clients, each)
                    rates["all"].append(second)
                    took += each_took
                    asking.append(share)
            few.end()
    finally:
        os.sched_setaffinity(0, every)
    best = {name: {"p50": statistics.median(seen), "min": min(seen), "max": max(seen), "unit": "a second"}
            for name, seen in rates.items()}
    took = run.summary(took)
    bench.row("many", "cells, 64 clients, 64 sessions", best["all"], goal=2.5 * CELLS_BEFORE, more=True)
    if len(every) > 1:
        bench.row("many", "  %d cores beside one" % len(every), best["all"],
                  ("one", best["one"]), kind="ratio", goal=0.9 * len(every), more=True)
    bench.row("many", "  p99 of each", one(took["p99"]), ("own p50", one(took["p50"])), kind="ratio", goal=5)
    bench.more["many"] = {"rates": rates, "each": took, "processors_for_asking": asking}


def memory(bench):
    """What a session holds that has run pandas: at once, and when nobody asked it anything for a while."""
    n = 8 if bench.quick else 40
    pid = bench.server.pid
    bench.settle()
    bench.load.visit(n, CREATE, cell(run.DESCRIBE), clients=2, keep=True)
    bench.settle()
    seen = {"active": machine.weigh(pid)}
    time.sleep(RESTED_S)
    seen["idle"] = machine.weigh(pid)
    # What was given back has to come again: one session after the other, twice.
    woken, warm = (bench.load.ask("again", cell(run.DESCRIBE))["steps"][0] for _ in range(2))
    gone = delete_kept(bench.load, pid, n)
    for when, held in seen.items():
        mine = [held[box] for box in gone]
        known = all(one["cgroup"] is not None for one in mine)
        seen[when] = {"pss": sum(one["pss"] for one in mine) / n,
                      "cgroup": sum(one["cgroup"] for one in mine) / n if known else None}
    bench.more["memory"] = {"n": n, **seen}
    theirs = one(bench.warm_jupyter().memory()["pss"], "MB")
    for key, what, goal in (("active", "session that has just run pandas", 8),
                            ("idle", "session idle for %d s" % RESTED_S, 3)):
        charged = seen[key]["cgroup"] is not None
        ours = one(seen[key]["cgroup" if charged else "pss"], "MB")
        bench.row("memory", what, ours, goal=goal, note="" if charged else "no cgroup is to be read: PSS")
        bench.row("memory", "  PSS beside a kernel's", one(seen[key]["pss"], "MB"), (JUPYTER, theirs), kind="ratio")
    bench.row("memory", "  its next describe()", run.summary(woken), ("the one after", run.summary(warm)), kind="ratio")


# --- on servers of their own ---

class Trivial:
    """print(2+2) in one session of a server, whatever else it holds."""

    def __init__(self, bench, server):
        self.load, self.took = bench.loading(server), []
        with server.client() as c:
            made = c.post("/v1/sessions", {}).expect(201).json
        self.step = {**cell(run.PRINT), "path": "/v1/sessions/%s/execute" % made["id"]}
        self.load.visit(1, self.step, repeat=20)

    def turn(self):
        self.load.visit(1, HEALTH, self.step, repeat=3)
        self.took += self.load.visit(1, self.step, repeat=50)["steps"][0]


def in_turns(bench, part, what, name, many, few):
    """The trivial cell of two servers that differ in one thing."""
    for _ in range(6 if bench.quick else 20):
        many.turn()
        few.turn()
    bench.row(part, what, run.summary(many.took), (name, run.summary(few.took)), kind="ratio", goal=1.15)
    for trivial in (many, few):
        trivial.load.end()


def cpu_ns(pids):
    """What these processes have used of processors so far, all their threads."""
    used = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for thread in os.listdir("/proc/%d/task" % pid):
                used += int((machine.read("/proc/%d/task/%s/schedstat" % (pid, thread)) or "0").split()[0])
    return used


def idle_cpu(server, seconds):
    """Percent of a processor: the server with its warden, and the sandboxes together."""
    own = [server.pid] + [p for p in machine.below(server.pid) if not machine.in_sandbox(p, server.pid)]
    boxed = [p for p in machine.below(server.pid) if machine.in_sandbox(p, server.pid)]
    before, begun = (cpu_ns(own), cpu_ns(boxed)), time.monotonic()
    time.sleep(seconds)
    took = (time.monotonic() - begun) * 1e9
    return 100 * (cpu_ns(own) - before[0]) / took, 100 * (cpu_ns(boxed) - before[1]) / took


def live(bench):
    """A thousand live sessions beside ten, and what they cost while nobody asks."""
    n, few = bench.args.sessions, 10
    if machine.available() < n * 6:
        raise run.Failed("%d sessions need about %d MB of memory: try --sessions with fewer" % (n, n * 6))
    with bench.serve() as crowded, bench.serve() as calm:
        bench.settle(crowded)
        bench.settle(calm)
        crowd, rest = bench.loading(crowded), bench.loading(calm)
        crowd.visit(n, CREATE, cell(run.PRINT), clients=4, keep=True)
        rest.visit(few, CREATE, cell(run.PRINT), clients=4, keep=True)
        bench.settle(crowded)
        in_turns(bench, "live", "trivial cell, %d sessions live" % n, "%d live" % few,
                 Trivial(bench, crowded), Trivial(bench, calm))
        time.sleep(2 if bench.quick else RESTED_S)
        own, boxed = idle_cpu(crowded, 5 if bench.quick else 20)
        bench.row("live", "server's CPU, %d sessions idle" % n, one(own, "%"), goal=0.1)
        bench.row("live", "  their sandboxes' CPU, together", one(boxed, "%"))
        bench.more["live"] = {"n": n, "server_kb": crowded.resident()}
        for load in (crowd, rest):
            load.end()


def fill(server, count):
    """So many executions on record, each like the one that is there, of sessions that are gone."""
    with server.client() as c:
        c.post("/v1/execute", {"code": run.PRINT["code"]}).expect(200)
    server.stop()
    path = next(server.state.rglob("*.db"))
    with contextlib.closing(sqlite3.connect(path)) as db:
        names = [row[1] for row in db.execute("PRAGMA table_info(execs)")]
        shown = ", ".join("printf('exec_%028d', n)" if name == "id"
                          else "created_ms - 1000 * n" if name == "created_ms"
                          else "printf('sess_%028d', n / 10)" if name == "session" else name for name in names)
        db.execute("WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?) "
                   "INSERT INTO execs SELECT %s FROM (SELECT * FROM execs LIMIT 1), numbers" % shown, (count,))
        db.commit()
        return db.execute("SELECT count(*) FROM execs").fetchone()[0]


def records(bench):
    """A million executions on record beside none."""
    n = bench.args.records
    with bench.serve() as full, bench.serve() as empty:
        held = fill(full, n)
        begun = time.perf_counter()
        full.start()
        bench.more["records"] = {"n": held, "start_ms": (time.perf_counter() - begun) * 1e3}
        bench.settle(full)
        bench.settle(empty)
        in_turns(bench, "records", "trivial cell, %d on record" % n, "none", Trivial(bench, full),
                 Trivial(bench, empty))


def start(bench):
    """From the command line to the first answer, to /ready, and to a cell's answer."""
    seen = {"first": [], "ready": [], "cell": []}
    for _ in range(2 if bench.quick else 6):
        server = bench.serve()
        try:
            begun = time.perf_counter()
            server.launch()
            for name, path in (("first", "/health"), ("ready", "/ready")):
                wait_for(server, path)
                seen[name].append((time.perf_counter() - begun) * 1e6)
            with server.client() as c:
                c.post("/v1/execute", {"code": run.PRINT["code"]}).expect(200)
            seen["cell"].append((time.perf_counter() - begun) * 1e6)
            server.stop()
        finally:
            server.discard()
    bench.row("start", "command to the first answer", run.summary(seen["first"]), goal=1000)
    bench.row("start", "  to ready: a pool is up", run.summary(seen["ready"]))
    bench.row("start", "  to the answer of a cell", run.summary(seen["cell"]))


def wait_for(server, path):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if server.process.poll() is not None:
            raise run.Failed("the server ended: " + server.log())
        with contextlib.suppress(OSError), server.client() as c:
            if c.get(path).status == 200:
                return
        time.sleep(0.002)
    raise run.Failed("no answer at %s within a minute" % path)


def undisturbed(part):
    """The part on a server of its own, which keeps as many sandboxes parked at any time."""
    @functools.wraps(part)
    def alone(bench):
        before = bench.server, bench.load
        try:
            with bench.serve("--ready-max", "0") as bench.server:
                bench.load = bench.loading(bench.server)
                part(bench)
                bench.load.end()
        finally:
            bench.server, bench.load = before
    return alone


PARTS = {"where": undisturbed(where), "burst": burst, "many": many, "memory": undisturbed(memory), "live": live,
         "records": records, "start": start}
ON_THE_SERVER = ("burst", "many")
