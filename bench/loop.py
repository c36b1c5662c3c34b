#!/usr/bin/env python3
"""What a round of the agent's loop costs over the bare cell it runs.

    loop.py [--quick] [--calm SECONDS] [--build DIR] [--out FILE]

The model is a script and answers at once, so what is left is ours: the reply is read, the record
written, the observation made and the next question put together. Loops of twelve rounds and of two
are timed in turns; their difference is ten rounds, without what a loop costs once.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import machine
import over_http
import run

ROOT = pathlib.Path(__file__).resolve().parent.parent
COST_MS = 2
LONG, SHORT = 12, 2


def measure(report, args):
    for place in ("tests", "tests/agent"):
        sys.path.append(str(ROOT / place))
    os.environ["RETORT_BIN"] = str(args.build / "retort")
    from agent import Driver
    from support.script import finish, plan, python

    def loop(driver, rounds, **more):
        begun = time.perf_counter()
        record = driver.play(plan("a", "b", "c", "d", "e", "f"),
                             *[python("print(%d)" % i) for i in range(rounds - 1)],
                             finish("done"), **more)
        if record["status"] != "completed" or record["total_rounds"] != rounds - 1:
            raise run.Failed("a loop has ended with %s" % json.dumps(record)[:500])
        return (time.perf_counter() - begun) * 1e6, record["sandbox_id"]

    with tempfile.TemporaryDirectory(prefix="retort-bench-") as place:
        driver = Driver(pathlib.Path(place) / "store")
        _, session = loop(driver, SHORT)
        took = {LONG: [], SHORT: []}
        cells = []
        for _ in range(3 if args.quick else 40):
            for rounds in took:
                took[rounds].append(loop(driver, rounds, sandbox=session)[0])
            cells += driver.ask(do="cells", session=session, count=LONG - SHORT)["took"]
        driver.close()
    rounds = [(many - few) / (LONG - SHORT) for many, few in zip(took[LONG], took[SHORT])]
    cell = run.summary(cells)
    report.row("a bare cell, in the service", cell)
    report.row("a round of a loop", run.summary(rounds), ("the bare cell", cell["p50"]),
               (cell["p50"] + COST_MS,))
    report.row("a loop of %d rounds" % (SHORT - 1), run.summary(took[SHORT]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few samples: does it run at all?")
    parser.add_argument("--calm", type=int, default=0, metavar="SECONDS",
                        help="wait this long for others to let the machine alone (0)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--out", type=pathlib.Path, help="the JSON file (BUILD/bench-loop.json)")
    args = parser.parse_args()

    machine.wait_until(lambda: machine.busy(2) < run.CALM, args.calm)
    facts, report = machine.facts(), run.Report()
    try:
        measure(report, args)
    except (run.Failed, RuntimeError, AssertionError, OSError, subprocess.SubprocessError) as error:
        report.fail(str(error))
    over_http.show(report, facts)
    out = args.out or args.build / "bench-loop.json"
    out.write_text(json.dumps({"version": 1, "quick": args.quick, "machine": facts, "rows": report.rows,
                               "failed": report.wrong}, indent=1) + "\n")
    print("the numbers are in %s" % out)
    for text in report.wrong:
        print("failed: %s" % text)
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
