#!/usr/bin/env python3
"""Measures the engine beside a Jupyter kernel and bubblewrap; prints a table, writes a JSON file.

    run.py [--quick] [--only PART]... [--sessions N] [--calm SECONDS] [--build DIR] [--out FILE]

What is compared is taken in turns within one run, so that a busy minute of the machine falls on
everybody. No time is ever a failure; a session that does not open, a cell that does not answer,
or anything left behind is: the exit status is then 1.
"""

import argparse
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import anchors
import machine

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRELOAD = "numpy,pandas,matplotlib,matplotlib.pyplot"
READY = 8
PAUSE_MS = 20  # between two samples: the sandbox before is gone by then
RESTED_S = 8   # by then a kernel that nobody asked for anything has given back what it can
CALM = 0.15    # a machine that is less busy than this is ours to measure on

PRINT = {"code": "print(2+2)", "expect": "4"}
ASSIGN = {"code": "x = 1"}
DESCRIBE = {"code": 'import pandas as pd; '
                    'pd.DataFrame({"a":range(1000),"b":range(1000)}).describe()',
            "expect": "499.5"}
# Nothing in it is what the interpreter was warmed up with, so that warming up is not mistaken for
# speed in general.
HELD_OUT = {"code": """\
import numpy as np
import pandas as pd
days = pd.date_range("2024-01-01", periods=500, freq="h")
left = pd.DataFrame({"k": np.arange(500) % 50, "v": np.arange(500.0)}, index=days)
right = pd.DataFrame({"k": np.arange(50), "w": np.arange(50) % 7})
both = left.reset_index().merge(right, on="k").set_index("index").sort_index()
mean = both["v"].rolling(24).mean().resample("D").max()
counts = both["w"].value_counts()
print(len(mean), int(counts.sum()))
""", "expect": "21 500"}
EXIT = {"code": "import os; os._exit(1)", "status": "died"}
TRUE = {"code": "true", "command": True}


class Failed(Exception):
    """Something did not run."""


# --- the engine's end ---

class Engine:
    """bench-engine, and what it is asked; see engine.c."""

    def __init__(self, build):
        # A cache of our own: what else runs on this machine neither fills it nor empties it.
        cache = build if os.access(build, os.W_OK) else pathlib.Path(tempfile.gettempdir())
        self.child = subprocess.Popen(
            [build / "bench" / "bench-engine", build / "guest",
             cache / ("bench-cache-%d" % os.geteuid()), sys.executable, PRELOAD, str(READY)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.child.pid

    def start(self):
        """Waits until both pools can fork."""
        begun = time.perf_counter()
        self._answer()
        self.start_ms = (time.perf_counter() - begun) * 1e3

    def _answer(self):
        line = self.child.stdout.readline()
        if not line:
            raise Failed("bench-engine ended with status %s" % self.child.wait())
        answer = json.loads(line)
        if answer["failed"]:
            raise Failed("%d of %d failed, the first with: %s" % (
                answer["failed"], answer["failed"] + answer["ok"], answer["why"]))
        return answer

    def ask(self, do, *steps, **more):
        self.child.stdin.write(json.dumps({"do": do, "steps": steps, **more}) + "\n")
        self.child.stdin.flush()
        return self._answer()

    def visit(self, pool, n, *steps, **more):
        return self.ask("visit", *steps, pool=pool, n=n, **more)

    def sandboxed(self):
        """The processes in sandboxes of either pool."""
        return [pid for pid in machine.below(self.pid) if machine.in_sandbox(pid, self.pid)]

    def holds(self):
        """What sessions cost the system besides memory, in numbers that can be compared."""
        boxed = self.sandboxed()
        warden = [pid for pid in machine.below(self.pid)
                  if machine.read("/proc/%d/comm" % pid) == "retort-warden\n"]
        directory = next((found for _, found in map(machine.cgroup, boxed) if found), None)
        return {
            "processes": len(machine.below(self.pid)),
            "server_fds": machine.open_files(self.pid),
            "warden_fds": machine.open_files(warden[0]) if warden else None,
            "cgroups": directory and sum(
                entry.is_dir() for entry in os.scandir(os.path.dirname(directory))),
        }

    def settle(self):
        """One visit of the parked pool waits until it is full."""
        self.visit("parked", 1, pause_ms=PAUSE_MS)
        self.visit("none", 1, pause_ms=200)
        time.sleep(0.3)

    def end(self):
        """Ends it and tells what it leaves behind."""
        pids = machine.below(self.pid)
        _, directory = next((c for c in map(machine.cgroup, self.sandboxed()) if c[1]), (None, None))
        self.child.stdin.close()
        status = self.child.wait(60)
        machine.wait_until(lambda: not any(map(machine.alive, pids)), 10)
        return {
            "status": status,
            "processes": sum(map(machine.alive, pids)),
            "cgroups": int(bool(directory) and os.path.exists(os.path.dirname(directory))),
        }


# --- numbers ---

def rank(values, share):
    """Nearest rank: a value that was measured, not one between two."""
    return values[max(0, math.ceil(share * len(values)) - 1)]


def summary(values, unit="ms", scale=1e-3):
    values = sorted(value * scale for value in values)
    return {"n": len(values), "unit": unit, "p50": rank(values, .5), "p95": rank(values, .95),
            "p99": rank(values, .99), "min": values[0], "max": values[-1],
            "mean": sum(values) / len(values)}


def slope(points):
    """Least squares, through where it will."""
    n = len(points)
    mean_x = sum(x for x, _ in points) / n
    mean_y = sum(y for _, y in points) / n
    over = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return over / sum((x - mean_x) ** 2 for x, _ in points)


class Report:
    """Rows for people, everything for machines."""

    def __init__(self):
        self.rows = []
        self.more = {}
        self.wrong = []

    def row(self, what, ours, anchor=None, targets=(), n=None):
        """ours: a summary, or one number with its unit. anchor: (name, number in the same unit)."""
        if not isinstance(ours, dict):
            number, unit = ours
            ours = {"n": n, "unit": unit, "p50": number}
        self.rows.append({
            "what": what, **ours,
            "anchor": anchor and {"name": anchor[0], "p50": anchor[1]},
            "ratio": anchor and ours["p50"] and anchor[1] / ours["p50"],
            "targets": list(targets),
            "met": [ours["p50"] <= target for target in targets],
        })

    def fail(self, what):
        self.wrong.append(what)


# --- the parts ---

class Bench:
    def __init__(self, engine, report, quick, sessions):
        self.engine = engine
        self.report = report
        self.quick = quick
        self.sessions = sessions
        self.random = random.Random(1)

    def _rounds(self, count, variants):
        """Each variant once a round, in a new order each round."""
        variants = list(variants)
        for _ in range(count):
            self.random.shuffle(variants)
            for variant in variants:
                variant()

    def create(self):
        """Opening a session, and its first answer."""
        rounds, each = (2, 3) if self.quick else (10, 10)
        cells = {"print": PRINT, "describe": DESCRIBE, "held_out": HELD_OUT}
        opened = {"parked": [], "none": []}
        first = {(pool, cell): [] for pool in opened for cell in cells}
        rested = []
        anchor = {name: [] for name in ("jupyter", "jupyter_describe", "jupyter_held_out",
                                        "bwrap", "bwrap_describe", "bwrap_held_out",
                                        "python", "python_describe", "python_held_out")}

        def ours(pool, cell):
            answer = self.engine.visit(pool, each, cells[cell], pause_ms=PAUSE_MS)
            opened[pool] += answer["open_us"]
            first[pool, cell] += answer["first_us"]

        def plain(name, around):
            anchor[name].append(anchors.python("print(2+2)", around))
            anchor[name + "_describe"].append(anchors.python(DESCRIBE["code"], around))
            if not self.quick:
                anchor[name + "_held_out"].append(anchors.python(HELD_OUT["code"], around))

        def jupyter():
            kernel = anchors.Jupyter()
            try:
                anchor["jupyter"].append(kernel.start_us)
                took = kernel.run(DESCRIBE["code"], DESCRIBE["expect"])
                anchor["jupyter_describe"].append(kernel.start_us + took)
                took = kernel.run(HELD_OUT["code"], HELD_OUT["expect"])
                anchor["jupyter_held_out"].append(took)
            finally:
                kernel.stop()

        variants = [lambda pool=pool, cell=cell: ours(pool, cell) for pool, cell in first]
        variants += [lambda: plain("bwrap", anchors.BWRAP), lambda: plain("python", ())]
        self._rounds(rounds, variants + ([] if self.quick else [jupyter]))
        if self.quick:
            jupyter()
        else:
            for _ in range(3):
                rested += self._rested()

        anchor = {name: summary(values) for name, values in anchor.items() if values}
        self.report.more["anchors_create"] = anchor
        row = self.report.row
        names = {"parked": "from the parked", "none": "none parked"}
        # No anchor: a session is handed out when its box is closed, perhaps before the interpreter
        # in it is up. What a kernel's "ready" compares with is the first answer.
        row("open, from the parked", summary(opened["parked"]), targets=(0.5, 0.25))
        row("open, none parked", summary(opened["none"]), targets=(3, 1.5))
        for pool, name in names.items():
            row("open + print(2+2), " + name, summary(first[pool, "print"]),
                ("Jupyter, ready", anchor["jupyter"]["p50"]))
            row("", summary(first[pool, "print"]), ("bwrap python3", anchor["bwrap"]["p50"]))
        for pool, name in names.items():
            row("open + describe(), " + name, summary(first[pool, "describe"]),
                ("Jupyter", anchor["jupyter_describe"]["p50"]), (12, 8))
            row("", summary(first[pool, "describe"]),
                ("bwrap python3", anchor["bwrap_describe"]["p50"]))
        if rested:
            row("open + describe(), parked for %d s" % RESTED_S, summary(rested),
                ("Jupyter", anchor["jupyter_describe"]["p50"]), (12, 8))
        for pool, name in names.items():
            seen = anchor.get("bwrap_held_out")
            row("open + held-out cell, " + name, summary(first[pool, "held_out"]),
                seen and ("bwrap python3", seen["p50"]))
        row("(anchor) bare python3: print", anchor["python"])
        row("(anchor) bare python3: describe()", anchor["python_describe"])

    def _rested(self):
        """First cells of sandboxes that have waited: the samples above take the youngest, always."""
        time.sleep(RESTED_S)
        opened = self.engine.visit("parked", READY, width=READY, keep=True)["open_us"]
        self.engine.settle()
        cells = self.engine.ask("again", DESCRIBE)["steps"][0]
        self.engine.ask("close")
        return [a + b for a, b in zip(opened, cells)]

    def warm(self):
        """An interpreter that is up."""
        rounds, cells, few = (2, 25, 3) if self.quick else (10, 200, 20)
        took = {name: [] for name in ("assign", "print", "describe", "true", "replace")}
        anchor = {name: [] for name in ("assign", "print", "describe")}
        self.engine.visit("none", 1, PRINT, DESCRIBE, keep=True)
        kernel = anchors.Jupyter()
        steps = {"assign": ASSIGN, "print": PRINT, "describe": DESCRIBE, "true": TRUE}

        def ours(name, count):
            took[name] += self.engine.ask("again", steps[name], repeat=count)["steps"][0]

        def replace():
            ends, answers = self.engine.ask("again", EXIT, PRINT, repeat=few)["steps"]
            took["replace"] += [a + b for a, b in zip(ends, answers)]

        def theirs(name):
            step = steps[name]
            anchor[name] += [kernel.run(step["code"], step.get("expect", "")) for _ in range(few)]

        try:
            kernel.run(DESCRIBE["code"])
            variants = [lambda: ours("assign", cells), lambda: ours("print", cells),
                        lambda: ours("describe", few), lambda: ours("true", few)]
            variants += [lambda name=name: theirs(name) for name in anchor]
            self._rounds(rounds, variants)
            for _ in range(max(1, rounds // 4)):
                replace()
        finally:
            kernel.stop()
        self.engine.ask("close")

        anchor = {name: summary(values) for name, values in anchor.items()}
        self.report.more["anchors_warm"] = anchor
        row = self.report.row
        row("warm cell: x = 1", summary(took["assign"]), ("Jupyter", anchor["assign"]["p50"]),
            (0.5, 0.2))
        row("warm cell: print(2+2)", summary(took["print"]), ("Jupyter", anchor["print"]["p50"]),
            (0.5, 0.2))
        row("warm cell: describe()", summary(took["describe"]),
            ("Jupyter", anchor["describe"]["p50"]))
        row("command: true", summary(took["true"]))
        row("os._exit() to the next answer", summary(took["replace"]))

    def memory(self):
        """What one session holds."""
        n = 10 if self.quick else 100
        kernels = [anchors.Jupyter() for _ in range(1 if self.quick else 3)]
        try:
            for kernel in kernels:
                kernel.run(DESCRIBE["code"], DESCRIBE["expect"])
            theirs = [kernel.memory() for kernel in kernels]
        finally:
            for kernel in kernels:
                kernel.stop()
        pss = sum(one["pss"] for one in theirs) / len(theirs)
        dirty = sum(one["private_dirty"] for one in theirs) / len(theirs)

        self.engine.settle()
        others = set(self.engine.sandboxed())
        before = machine.available()

        def look():
            time.sleep(0.5)
            left = machine.available()
            pids = [pid for pid in self.engine.sandboxed() if pid not in others]
            sums = machine.rollup(pids)
            groups = {directory for _, directory in map(machine.cgroup, pids) if directory}
            charges = [machine.cgroup_charge(directory) for directory in groups]
            return {
                "n": n, "processes": len(pids), "unread": sums["unread"],
                "available_mb": (before - left) / n,
                "pss_mb": sums["pss"] / n, "private_dirty_mb": sums["private_dirty"] / n,
                "cgroup_mb": sum(charges) / n if charges and None not in charges else None,
            }

        self.engine.visit("none", n, keep=True, width=2)
        seen = {"idle": look()}
        self.engine.ask("again", DESCRIBE, width=2)
        seen["pandas"] = look()
        if not self.quick:
            time.sleep(RESTED_S)
            seen["rested"] = look()
        self.engine.ask("close")
        self.report.more["memory"] = {**seen, "jupyter": theirs}

        row = self.report.row
        for key, what, targets in (("pandas", "after a pandas cell", (9,)),
                                   ("rested", "some idle seconds later", (5, 2)),
                                   ("idle", "no cell run yet", ())):
            one = seen.get(key)
            if not one:
                continue
            what = "MB, %s: " % what
            if not self.quick:  # of so few, what others allocate meanwhile would be the most of it
                row(what + "MemAvailable", (one["available_mb"], "MB"), n=n, targets=targets)
            if one["cgroup_mb"] is not None:
                row(what + "its cgroup", (one["cgroup_mb"], "MB"), n=n)
            row(what + "PSS", (one["pss_mb"], "MB"), ("Jupyter", pss), n=n)
            row(what + "Private_Dirty", (one["private_dirty_mb"], "MB"), ("Jupyter", dirty), n=n)

    def thousand(self):
        """Many at once, all alive."""
        n = 20 if self.quick else self.sessions
        need = n * 14
        if machine.available() < need:
            raise Failed("%d sessions need about %d MB of memory: try --sessions with fewer"
                         % (n, need))
        self.engine.settle()
        before = self.engine.holds()
        points = [(0, machine.available())]
        opened, first = [], []
        begun = time.perf_counter()
        batch = max(1, n // 10)
        while len(opened) < n:
            answer = self.engine.visit("none", min(batch, n - len(opened)), DESCRIBE, keep=True,
                                       width=2)
            opened += answer["open_us"]
            first += answer["first_us"]
            points.append((len(opened), machine.available()))
        filled_s = time.perf_counter() - begun
        answers = self.engine.ask("again", PRINT, width=2)
        after = self.engine.visit("none", 5 if self.quick else 50, PRINT, pause_ms=PAUSE_MS)
        held = self.engine.holds()
        begun = time.perf_counter()
        self.engine.ask("close")
        machine.wait_until(
            lambda: len(machine.below(self.engine.pid)) <= before["processes"], 120)
        closed_s = time.perf_counter() - begun
        left = self._leaks(before)

        mb = -slope(points[2:] if len(points) > 4 else points)
        self.report.more["live"] = {
            "n": n, "answered": answers["ok"], "filled_s": filled_s, "closed_s": closed_s,
            "mb_per_session": mb, "available_mb": points, "before": before, "during": held,
            "after": left,
        }
        row = self.report.row
        row("%d live, each ran describe(): answered" % n, (answers["ok"], "of %d" % n), n=n)
        row("  time to open them all", (filled_s, "s"), n=n)
        row("  MB a session, slope of MemAvailable", (mb, "MB"), n=n,
            targets=(9,) if not self.quick else ())
        row("  open + describe(), two at a time", summary(first))
        row("  print(2+2) in each", summary(answers["steps"][0]))
        row("  open one more, none parked", summary(after["open_us"]), targets=(3, 1.5))
        row("  until all are closed and gone", (closed_s, "s"), n=n)

    def _leaks(self, before):
        """Waits until the engine holds what it held; whatever it holds more after that is a leak."""
        def over():
            now = self.engine.holds()
            return {key: now[key] - before[key] for key in before
                    if before[key] is not None and now[key] is not None and now[key] > before[key]}
        machine.wait_until(lambda: not over(), 10)
        left = over()
        if left:
            self.report.fail("left behind by closed sessions: %s" % left)
        return left

    def burst(self):
        """Everybody at once."""
        n = 20 if self.quick else 200
        self.engine.settle()
        before = self.engine.holds()
        answer = self.engine.visit("parked", n, DESCRIBE, width=n)
        row = self.report.row
        row("%d open + describe() at once: answered" % n, (answer["ok"], "of %d" % n), n=n)
        row("  until the outcome", summary(answer["first_us"]))
        row("  until the last", (answer["took_us"] / 1e6, "s"), n=n)
        self.engine.settle()
        self.report.more["burst"] = {"n": n, "ok": answer["ok"], "took_s": answer["took_us"] / 1e6,
                                     "leaks": self._leaks(before)}


PARTS = {"create": Bench.create, "warm": Bench.warm, "memory": Bench.memory,
         "burst": Bench.burst, "live": Bench.thousand}


# --- telling ---

def number(value):
    if value >= 100:
        return "%.0f" % value
    if value >= 10 or value == int(value):
        return "%.1f" % value if value != int(value) else "%d" % value
    return "%.2f" % value if value >= 0.1 else "%.3f" % value


def cells(row):
    ours = " / ".join(number(row[key]) for key in ("p50", "p95", "p99") if key in row)
    anchor = row["anchor"]
    met = ""
    if row["targets"]:
        met = "no" if not row["met"][0] else "yes" if all(row["met"]) else "the first"
    return [
        row["what"], str(row["n"] or ""),
        "%s %s" % (anchor["name"], number(anchor["p50"])) if anchor else "",
        "%s %s" % (ours, row["unit"]),
        "%sx" % number(row["ratio"]) if row["ratio"] else "",
        ", then ".join(number(target) for target in row["targets"]), met,
    ]


def show(report, facts):
    head = ["what", "n", "anchor p50", "ours p50 / p95 / p99", "ratio", "target", "met"]
    lines = [head] + [cells(row) for row in report.rows]
    width = [max(len(line[i]) for line in lines) for i in range(len(head))]
    print("%(cpu)s, %(cores)d cores, %(memory_mb)d MB, Linux %(kernel)s, %(user)s, "
          "cgroup %(cgroup)s, Python %(python)s" % facts)
    print(", ".join("%s %s" % item for item in facts["packages"].items()), "|", facts["bubblewrap"])
    if facts["busy_before"] > CALM:
        print("The machine was %d %% busy before this began: the times say more about that than "
              "about anything else." % (100 * facts["busy_before"]))
    print()
    for i, line in enumerate(lines):
        print("  ".join(text.ljust(width[k]) for k, text in enumerate(line)).rstrip())
        if i == 0:
            print("  ".join("-" * w for w in width))
    print()
    print("These are calls of the engine. The targets for opening and for warm cells are meant over "
          "HTTP,\nwhich is not in them: met here is met so far.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few samples: does it run at all?")
    parser.add_argument("--only", action="append", choices=PARTS, help="this part; may be repeated")
    parser.add_argument("--sessions", type=int, default=1000, help="live at once (1000)")
    parser.add_argument("--calm", type=int, default=0, metavar="SECONDS",
                        help="wait this long for others to let the machine alone (0)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--out", type=pathlib.Path, help="the JSON file (BUILD/bench.json)")
    args = parser.parse_args()

    # Where we may not write, somebody else has built.
    if os.access(args.build, os.W_OK):
        subprocess.run(["ninja", "-C", args.build, "bench/bench-engine", "guest.stamp"], check=True,
                       stdout=subprocess.DEVNULL)
    machine.wait_until(lambda: machine.busy(2) < CALM, args.calm)
    begun = time.monotonic()
    facts = machine.facts()
    report = Report()
    engine = Engine(args.build)
    try:
        engine.start()
        report.more["engine_start_ms"] = engine.start_ms
        engine.settle()
        version = next((v for v, _ in map(machine.cgroup, engine.sandboxed()) if v), None)
        facts["cgroup"] = "v%d" % version if version else "none"
        bench = Bench(engine, report, args.quick, args.sessions)
        for name, part in PARTS.items():
            if not args.only or name in args.only:
                print("%s: %s" % (name, part.__doc__), file=sys.stderr)
                part(bench)
    except (Failed, RuntimeError, subprocess.SubprocessError) as error:
        report.fail(str(error))
    left = engine.end()
    if any(left.values()):
        report.fail("left behind by the engine: %s" % left)

    facts.setdefault("cgroup", "unknown")
    show(report, facts)
    out = args.out or args.build / "bench.json"
    out.write_text(json.dumps({
        "version": 1, "quick": args.quick, "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": time.monotonic() - begun, "machine": facts, "rows": report.rows,
        "more": report.more, "failed": report.wrong}, indent=1) + "\n")
    print("%d seconds; the numbers are in %s" % (time.monotonic() - begun, out))
    for text in report.wrong:
        print("failed: %s" % text)
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
