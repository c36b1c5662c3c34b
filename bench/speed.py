#!/usr/bin/env python3
"""The speed that retort promises, each figure as a ratio within one run, beside its goal.

    speed.py [--quick] [PART]... [--sessions N] [--records N] [--calm SECONDS] [--build DIR] [--out FILE]

Parts: cell create first heldout plot oneshot cold (taken in turns, round after round), then where,
burst, many, memory, live, records, start. Without a name all of them. What is compared takes turns, so that
a busy minute of the machine falls on both; beside each figure of the medians stands that of the best
samples, which a busy machine disturbs least. A goal that is missed is no failure; a session that is not
made or a cell that does not answer is: the exit status is then 1.
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import time

import anchors
import machine
import over_http
import run
import serving
import speed_alone
import speed_table
import speed_turns
import steady

ROOT = pathlib.Path(__file__).resolve().parent.parent
CONFIG = """
[pool default]
ready = %d
learn = 10

[pool cold]
description = Nothing is parked here
ready = 0
""" % run.READY
FLAGS = ["--max-sessions", "4000", "--tenant-sessions", "4000", "--log-level", "warn"]


class Bench:
    """What the parts share: a server, the client that loads it, a Jupyter kernel, the rows."""

    def __init__(self, args):
        self.args, self.quick = args, args.quick
        self.rows = []
        self.more = {}
        self.server = self.load = self._kernel = None

    def serve(self, *flags):
        """Another server with the pools of a bench: use it with `with`."""
        return serving.server(self.args.build, *FLAGS, "--python", sys.executable, *flags, config=CONFIG)

    def loading(self, server):
        return over_http.Load(self.args.build, server.port)

    def settle(self, server=None):
        """Until as many sandboxes are parked as should be."""
        with (server or self.server).client() as c:
            if not machine.wait_until(
                    lambda: c.get("/v1/pools/default").json["parked"] >= run.READY, 60):
                raise run.Failed("the pool does not fill up")
        time.sleep(run.PAUSE_MS / 1e3)

    def jupyter(self):
        """A new kernel; whoever asks stops it."""
        return anchors.Jupyter()

    def warm_jupyter(self):
        """The one kernel that stays for the whole run."""
        if not self._kernel:
            self._kernel = self.jupyter()
            self._kernel.run(run.DESCRIBE["code"])
        return self._kernel

    def row(self, *words, **more):
        self.rows.append(speed_table.Row(*words, **more))

    def end(self):
        if self._kernel:
            self._kernel.stop()


def measure(bench, names):
    """In turns what is one client's view, then what needs the machine for itself."""
    turns = [part(bench) for name, part in speed_turns.PARTS.items() if name in names]
    alone = [(name, part) for name, part in speed_alone.PARTS.items() if name in names]
    needs = turns or any(name in speed_alone.ON_THE_SERVER for name, _ in alone)
    if needs:
        with bench.serve() as server:
            bench.server, bench.load = server, bench.loading(server)
            try:
                take_turns(bench, turns)
                for name, part in alone:
                    if name in speed_alone.ON_THE_SERVER:
                        print("%s: %s" % (name, part.__doc__), file=sys.stderr)
                        part(bench)
            finally:
                bench.load.end()
    for name, part in alone:
        if name not in speed_alone.ON_THE_SERVER:
            print("%s: %s" % (name, part.__doc__), file=sys.stderr)
            part(bench)


def take_turns(bench, parts):
    order, rounds = random.Random(1), 4 if bench.quick else 16
    parts = list(parts)
    for i in range(rounds):
        if parts:
            print("round %d of %d" % (i + 1, rounds), file=sys.stderr)
        order.shuffle(parts)
        for part in parts:
            part.turn()
    for part in sorted(parts, key=lambda part: list(speed_turns.PARTS).index(part.name)):
        part.tell()


def options():
    every = [*speed_turns.PARTS, *speed_alone.PARTS]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", nargs="*", metavar="PART", help="of %s; all of them without one" % " ".join(every))
    parser.add_argument("--quick", action="store_true", help="about a minute: fewer rounds, fewer sessions")
    parser.add_argument("--sessions", type=int, help="live at once (1000; quick: 100)")
    parser.add_argument("--records", type=int, help="executions on record (1000000; quick: 50000)")
    parser.add_argument("--calm", type=int, default=0, metavar="SECONDS",
                        help="wait this long for others to let the machine alone (0)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--out", type=pathlib.Path, help="the JSON file (BUILD/bench-speed.json)")
    args = parser.parse_args()
    unknown = [name for name in args.part if name not in every]
    if unknown:
        parser.error("there is no part %s: there are %s" % (unknown[0], " ".join(every)))
    args.part = args.part or every
    args.sessions = args.sessions or (100 if args.quick else 1000)
    args.records = args.records or (50000 if args.quick else 1000000)
    return args


def main():
    args = options()
    machine.wait_until(lambda: machine.busy(2) < run.CALM, args.calm)
    begun, facts, watch, bench, wrong = time.monotonic(), machine.facts(), steady.Watch(), Bench(args), None
    try:
        measure(bench, args.part)
    except (run.Failed, RuntimeError, AssertionError, OSError, subprocess.SubprocessError) as error:
        wrong = str(error) or repr(error)
    finally:
        bench.end()
    facts["steady"] = watch.end()

    print("%(cpu)s, %(cores)d cores, %(memory_mb)d MB, Linux %(kernel)s, %(user)s, Python %(python)s" % facts)
    print(steady.tell(facts["steady"]) + "\n")
    speed_table.show(bench.rows)
    out = args.out or args.build / "bench-speed.json"
    out.write_text(json.dumps({
        "version": 1, "quick": args.quick, "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": time.monotonic() - begun, "machine": facts,
        "rows": [row.record() for row in bench.rows], "more": bench.more, "failed": wrong}, indent=1) + "\n")
    print("%d seconds; the numbers are in %s" % (time.monotonic() - begun, out))
    if wrong:
        print("failed: " + wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
