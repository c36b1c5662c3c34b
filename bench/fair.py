#!/usr/bin/env python3
"""Measures how long a session waits for the files of others, at both levels of durability.

    fair.py [--writers N] [--files N] [--durability LEVEL] [--first] [--build DIR] [--out FILE]

WRITERS sessions write FILES small files each, all at a time, and are deleted in the end. A neighbour makes every kind
of call over and over meanwhile, and before, when it is alone. Shown is what a call takes alone at the median, and how
much more it takes beside the others: at the 99th percentile, and at most. More than 50 ms is missed.

Processes that have nothing to do with the server tell what the machine itself makes anybody wait: one writes over the
same 4 KiB of a file again and again, with an fdatasync(), one sleeps for a millisecond; one makes a file and gives it a
name, as an upload does, and one starts a program, as a call does that needs a sandbox. What a call takes more than the
longest of those that are like it is the server's. On a machine with much else to do most of it is waiting for a
processor: with --first (as root) only the start of a program does, and what runs in sandboxes.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import re
import statistics
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

GOAL_MS = 50
START = "start of a program"
MAKE = "new file, not synced"
ONLY_LIKE = {START: ("cell", "new session"), MAKE: ("upload of 10 bytes",)}
CONFIG = """
[pool default]

[pool asking]
approval = always_ask
approval-by = either
"""
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
    def __init__(self, server, key, files):
        super().__init__(daemon=True)
        self.server, self.key, self.files = server, key, files
        self.session = server.client(key).session()
        self.outcome = None

    def run(self):
        code = {"code": WRITE.format(files=self.files)}
        with self.server.client(self.key).stream(self.session.path + "/execute", code) as stream:
            self.outcome = stream.until(type="done")

    def delete(self):
        """On a new connection: the server has closed one that nobody used for minutes."""
        with self.server.client(self.key) as client:
            client.delete(self.session.path).expect(204)


def other_bytes():
    """Ten that were not sent before: the same would be the same blob."""
    return b"%010d" % (time.monotonic_ns() % 10**10)


class Neighbour:
    """Each kind of call in turns. A call that needs the id of another has that of the call before it."""

    def __init__(self, server, key):
        self.client = server.client(key)
        self.session = self.client.session()
        self.asking = self.client.post("/v1/sessions", {"pool": "asking"}).expect(201).json["id"]
        self.session.run("open('one', 'w').write('x')")
        self.files = self.session.path + "/files"
        self.id = None

    def remember(self, answer, status):
        self.id = answer.expect(status).json["id"]

    def ask(self):
        answer = self.client.post(f"/v1/sessions/{self.asking}/execute", {"code": f"{time.monotonic_ns()}"})
        self.id = re.search(r"apr_\w+", answer.expect(403).text)[0]

    def calls(self):
        c = self.client
        return {
            "upload of 10 bytes": lambda: c.put(self.files + "/sent", other_bytes()).expect(201),
            "download of 1 byte": lambda: c.get(self.files + "/one").expect(200),
            "list of files": lambda: c.get(self.files).expect(200),
            "cell": lambda: self.session.run("1"),
            "new session": lambda: self.remember(c.post("/v1/sessions", {}), 201),
            "session deleted": lambda: c.delete("/v1/sessions/" + self.id).expect(204),
            "new key": lambda: self.remember(c.post("/v1/keys", {"tenant": "local", "name": "k"}), 201),
            "key revoked": lambda: c.delete("/v1/keys/" + self.id).expect(204),
            "approval asked": self.ask,
            "approval decided": lambda: c.post("/v1/approvals/" + self.id, {"decision": "decline"}).expect(200),
        }

    def measure(self, until):
        """What each took, in milliseconds."""
        calls = self.calls()
        took = {name: [] for name in calls}
        while not (took["cell"] and until()):
            for name, call in calls.items():
                begun = time.monotonic()
                call()
                took[name].append(1000 * (time.monotonic() - begun))
        return took


def write_over(path):
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.write(fd, bytes(4096))
    os.fsync(fd)

    def once():
        os.pwrite(fd, os.urandom(4096), 0)
        os.fdatasync(fd)
        time.sleep(0.001)
    return once


def make_files(place):
    """As the server makes a blob: without a name at first."""
    place.mkdir()
    dir = os.open(place, os.O_DIRECTORY)

    def once():
        fd = os.open(place, os.O_TMPFILE | os.O_RDWR, 0o600)
        os.write(fd, b"x")
        os.link(f"/proc/self/fd/{fd}", str(time.monotonic_ns()), dst_dir_fd=dir, follow_symlinks=True)
        os.close(fd)
        time.sleep(0.001)
    return once


def start_program():
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
    time.sleep(0.001)


class Control(multiprocessing.Process):
    """Does one thing over and over; told() has what it took since the last time."""

    def __init__(self, make, *args):
        super().__init__(daemon=True)
        self.make, self.args = make, args
        self.pipe, self.end = multiprocessing.Pipe()
        self.start()

    def run(self):
        once, took = self.make(*self.args), []
        while True:
            begun = time.monotonic()
            once()
            took.append(1000 * (time.monotonic() - begun))
            if self.end.poll():
                self.end.recv()
                self.end.send(took)
                took = []

    def told(self):
        self.pipe.send("?")
        return self.pipe.recv()


def quantile(took, part):
    took = sorted(took)
    return took[min(len(took) - 1, int(part * len(took)))]


def row(name, alone, beside, machine_ms):
    own = statistics.median(alone)
    most = max(beside) - own
    return {"name": name, "calls": len(beside), "alone_ms": round(own, 2), "alone_max_ms": round(max(alone) - own, 1),
            "p99_ms": round(quantile(beside, 0.99) - own, 1), "max_ms": round(most, 1),
            "missed": most - machine_ms > GOAL_MS}


def put_first(*pids):
    """Before all others on the machine. Sandboxes are not: they were not started by these threads."""
    for pid in pids:
        for thread in os.listdir(f"/proc/{pid}/task"):
            os.sched_setscheduler(int(thread), os.SCHED_RR, os.sched_param(1))


class Run:
    """One server, with one level of durability."""

    def __init__(self, server, args):
        self.server, self.args = server, args
        key = {"tenant": "local", "name": "bench", "admin": True}
        self.key = server.client().post("/v1/keys", key).expect(201).json["secret"]
        self.neighbour = Neighbour(server, self.key)
        self.controls = {"fdatasync() of 4 KiB": Control(write_over, server.files / "control"),
                         "sleep of 1 ms": Control(lambda: lambda: time.sleep(0.001)),
                         MAKE: Control(make_files, server.files / "made"),
                         START: Control(lambda: start_program)}
        self.alone, self.rows = None, []
        if args.first:
            put_first(server.pid, os.getpid(), *(c.pid for name, c in self.controls.items() if name != START))

    def phase(self, when, until):
        for control in self.controls.values():
            control.told()
        took = self.neighbour.measure(until)
        told = {name: control.told() for name, control in self.controls.items()}
        if self.alone is None:
            self.alone = {**took, **told}
            return
        own = [row(name, self.alone[name], told[name], float("inf")) for name in told]
        self.rows += [{"when": when, **r} for r in own]
        for name in took:
            machine_ms = max(r["max_ms"] for r in own if name in ONLY_LIKE.get(r["name"], [name]))
            self.rows.append({"when": when, **row(name, self.alone[name], took[name], machine_ms)})

    def measure(self):
        end = time.monotonic() + 5
        self.phase("alone", lambda: time.monotonic() > end)
        crowd = [Writer(self.server, self.key, self.args.files) for _ in range(self.args.writers)]
        for writer in crowd:
            writer.start()
        self.phase("others write", lambda: not any(w.is_alive() for w in crowd))
        deleters = [threading.Thread(target=w.delete, daemon=True) for w in crowd]
        for deleter in deleters:
            deleter.start()
        self.phase("others are deleted", lambda: not any(d.is_alive() for d in deleters))
        for control in self.controls.values():
            control.kill()
        return [w.outcome for w in crowd if not w.outcome or w.outcome["status"] != "ok"]


def show(level, rows):
    print(f"\ndurability = {level}")
    print(f"{'what, and when':42} {'calls':>7} {'alone ms':>9} {'+p99 ms':>9} {'+max ms':>9}")
    for r in rows:
        print(f"{r['name'] + ', ' + r['when']:42} {r['calls']:7} {r['alone_ms']:9} {r['p99_ms']:9} {r['max_ms']:9}"
              f"{'  missed' if r['missed'] else ''}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--files", type=int, default=60000)
    parser.add_argument("--durability", choices=["process", "power"])
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "bench-fair.json")
    args = parser.parse_args()

    from support.server import Server
    result, failed = {}, []
    for level in [args.durability] if args.durability else ["process", "power"]:
        with Server("--disk", "1G", "--timeout", "600", "--memory", "1G", "--durability", level, config=CONFIG,
                    program=str(args.build / "retort")) as server:
            run = Run(server, args)
            failed += run.measure()
        show(level, run.rows)
        result[level] = run.rows
    args.out.write_text(json.dumps({"writers": args.writers, "files": args.files, "levels": result}, indent=1))
    if failed:
        print("not saved:", failed, file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
