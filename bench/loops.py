#!/usr/bin/env python3
"""Hundreds of loops at once against a model server that misbehaves: every one of them ends, nothing
runs twice, and the process is afterwards as it was before.

    loops.py [--loops N] [--waves N] [--build DIR]

Each loop runs code twice, which counts itself in a file of its workspace. Faults are thrown in while
they are asked: busy, broken, cut and senseless replies. After each wave memory, descriptors and
processes are looked at; the first wave warms up, and the last may not have more than the second.
"""

import argparse
import json
import os
import pathlib
import random
import sys
import tempfile
import threading
import time

import machine

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAULTS = [{"fault": "429", "retry_after": "1"}, "500", "cut-stream", "bad-json", "bad-stream",
          "error-in-stream", "no-parallel"]
IDLE_MS = 1500
# What may come on top: the database's cache until it is full, sessions that sleep (each wave has its
# own), a sandbox more or less at the moment of looking.
ALLOWED = {"memory_mb": 16, "fds": 16, "processes": 12}
COUNT = "with open('count', 'a') as f: f.write('x')\nprint('run', %d, len(open('count').read()))"


class Trouble(threading.Thread):
    """Throws in a fault now and then, until it is told to stop."""

    def __init__(self, desk):
        super().__init__(daemon=True)
        self.desk, self.over, self.random = desk, threading.Event(), random.Random(1)

    def run(self):
        while not self.over.wait(0.05):
            with self.desk.lock:
                if len(self.desk.faults) < 3:
                    self.desk.faults.append(self.random.choice(FAULTS))


def turns():
    """The plan's turn has the first call, too: a question for the plan offers no tools."""
    return [[{"text": json.dumps({"steps": ["count", "count again"]})}, {"python": COUNT % 1}],
            [{"python": COUNT % 2}],
            [{"tool": {"name": "finish", "input": {"answer": "It was counted."}}}]]


def look(driver):
    pid = driver.process.pid
    memory = next(line.split()[1] for line in open("/proc/%d/status" % pid) if line.startswith("VmRSS"))
    return {"memory_mb": int(memory) / 1024,
            "fds": machine.open_files(pid), "processes": len(machine.below(pid))}


def check(driver, record, wrong):
    """Twice, and no more; once, where the model was lost on the way."""
    runs = driver.executions(record)
    counted = [e for e in runs if e["status"] == "ok"]
    if record["status"] not in ("completed", "failed", "incomplete"):
        wrong.append("%s ended with %s" % (record["id"], record["status"]))
    if record["status"] == "completed" and len(counted) != 2:
        wrong.append("%s has run %d times" % (record["id"], len(counted)))
    if len(runs) != record["total_rounds"] or len({e["code"] for e in runs}) != len(runs):
        wrong.append("%s has run something twice: %s" % (record["id"], [e["code"] for e in runs]))


def wave(driver, count, wrong):
    request = json.dumps({"turns": turns()})
    loops = [driver.start(request) for _ in range(count)]
    records = [loop.end(600) for loop in loops]
    for record in records:
        check(driver, record, wrong)
    for loop in loops:
        del driver.loops[loop.id]
    return [record["status"] for record in records]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--loops", type=int, default=200)
    parser.add_argument("--waves", type=int, default=4)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    args = parser.parse_args()

    for place in ("tests", "tests/agent"):
        sys.path.append(str(ROOT / place))
    os.environ["RETORT_BIN"] = str(args.build / "retort")
    from agent import Driver
    from support.model_server import ModelServer

    wrong, looks = [], []
    with tempfile.TemporaryDirectory(prefix="retort-soak-") as place, ModelServer() as server:
        desk = server.desk()
        driver = Driver(pathlib.Path(place) / "store", script=None, idle_ms=IDLE_MS,
                        tenant_loops=args.loops,
                        models=[{"label": "m", "api": "openai", "url": desk.openai}])
        trouble = Trouble(desk)
        trouble.start()
        for number in range(args.waves):
            begun = time.monotonic()
            ends = wave(driver, args.loops, wrong)
            took = time.monotonic() - begun
            time.sleep(3 * IDLE_MS / 1000)
            looks.append(look(driver))
            print("wave %d: %s in %.1f s; %s" % (
                number + 1, ", ".join("%d %s" % (ends.count(e), e) for e in sorted(set(ends))), took,
                ", ".join("%s %d" % item for item in looks[-1].items())), flush=True)
            if ends.count("completed") < 0.9 * len(ends):
                wrong.append("only %d of %d loops were completed" % (ends.count("completed"), len(ends)))
            desk.requests.clear()
        trouble.over.set()
        driver.close()
    for name, more in ALLOWED.items():
        if len(looks) > 2 and looks[-1][name] > looks[1][name] + more:
            wrong.append("%s has grown from %d to %d" % (name, looks[1][name], looks[-1][name]))
    for text in wrong[:20]:
        print("failed: %s" % text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
