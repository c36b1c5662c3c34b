#!/usr/bin/env python3
"""Measures how long a session waits for the files of others.

    fair.py [--writers N] [--files N] [--first] [--build DIR] [--out FILE]

WRITERS sessions write FILES small files each, all at a time, and delete them in the end. A neighbour
uploads ten bytes, downloads one byte and lists its files over and over meanwhile, and before, when it
is alone. Shown is what a call takes then and now; no time is a failure. On a machine with much else to do most of
it is waiting for a processor: with --first (as root) the server and the neighbour never do.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

WRITE = """
import os
for d in range({files} // 500):
    os.makedirs(f"d{{d}}", exist_ok=True)
    for i in range(500):
        with open(f"d{{d}}/{{i}}", "wb") as f:
            f.write(os.urandom(16))
print("written")
"""


class Writer(threading.Thread):
    def __init__(self, server, files):
        super().__init__(daemon=True)
        self.server, self.files = server, files
        self.session = server.client().session()
        self.saved, self.outcome = None, None

    def run(self):
        with self.session.stream(WRITE.format(files=self.files)) as stream:
            stream.until_said("written")
            self.saved = time.monotonic()
            self.outcome = stream.until(type="done")

    def delete(self):
        """On a new connection: the server has closed one that nobody used for minutes."""
        with self.server.client() as client:
            client.delete(self.session.path).expect(204)


class Neighbour:
    """Three kinds of calls in turns, and what each took, in milliseconds."""

    def __init__(self, server):
        self.client = server.client()
        self.session = self.client.session()
        self.session.run("open('one', 'w').write('x')")
        self.path = self.session.path + "/files"

    def measure(self, until):
        calls = {"upload": lambda: self.client.put(self.path + "/sent", b"x" * 10).expect(201),
                 "download": lambda: self.client.get(self.path + "/one").expect(200),
                 "list": lambda: self.client.get(self.path).expect(200)}
        took = {name: [] for name in calls}
        while not until():
            for name, call in calls.items():
                begun = time.monotonic()
                call()
                took[name].append(1000 * (time.monotonic() - begun))
        return took


def row(name, took):
    took = sorted(took)
    at = lambda part: took[min(len(took) - 1, int(part * len(took)))]
    return {"name": name, "calls": len(took), "p50_ms": round(statistics.median(took), 2),
            "p99_ms": round(at(0.99), 2), "max_ms": round(took[-1], 2)}


def put_first(*pids):
    """Before all others on the machine. Sandboxes are not: they were not started by these threads."""
    for pid in pids:
        for thread in os.listdir(f"/proc/{pid}/task"):
            os.sched_setscheduler(int(thread), os.SCHED_RR, os.sched_param(1))


def measure(server, writers, files):
    neighbour = Neighbour(server)
    rows, end = [], time.monotonic() + 3
    alone = neighbour.measure(lambda: time.monotonic() > end)
    crowd = [Writer(server, files) for _ in range(writers)]
    for writer in crowd:
        writer.start()
    saving = neighbour.measure(lambda: not any(w.is_alive() for w in crowd))
    failed = [w.outcome for w in crowd if not w.outcome or w.outcome["status"] != "ok"]
    deleters = [threading.Thread(target=w.delete, daemon=True) for w in crowd]
    for deleter in deleters:
        deleter.start()
    deleting = neighbour.measure(lambda: not any(d.is_alive() for d in deleters))
    for when, took in (("alone", alone), ("others write and save", saving), ("others are deleted", deleting)):
        rows += [row(f"{name}, {when}", times) for name, times in took.items() if times]
    return rows, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--files", type=int, default=60000)
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "bench-fair.json")
    args = parser.parse_args()

    from support.server import Server
    with Server("--disk", "1G", "--timeout", "600", "--memory", "1G", program=str(args.build / "retort")) as server:
        if args.first:
            put_first(server.pid, os.getpid())
        rows, failed = measure(server, args.writers, args.files)
    print(f"{'what':42} {'calls':>7} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8}")
    for r in rows:
        print(f"{r['name']:42} {r['calls']:7} {r['p50_ms']:8} {r['p99_ms']:8} {r['max_ms']:8}")
    args.out.write_text(json.dumps({"writers": args.writers, "files": args.files, "rows": rows}, indent=1))
    if failed:
        print("not saved:", failed, file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
