#!/usr/bin/env python3
"""Measures the console in a browser: how much output, how many cells it bears while one types and scrolls.

    console.py [--quick] [--calm SECONDS] [--build DIR] [--out FILE]

bench/console.mjs does the work, with the server and the browser of tests/console.
"""

import json
import os
import subprocess
import sys

import over_http
import run

# Milliseconds a person does not notice: a tenth of a second for a key, and three frames for scrolling.
TARGETS = {"typing": (100,), "scrolling": (50,), "shown": ()}
WORDS = {"typing": "a key", "scrolling": "a screen down", "shown": "until it is there"}


def measure(report, args):
    env = {**os.environ, "RETORT_BIN": str(args.build / "retort"), "RETORT_NPM": str(args.build / "npm"),
           "RETORT_REPO": str(over_http.ROOT)}
    done = subprocess.run(["node", over_http.ROOT / "bench/console.mjs"], capture_output=True, text=True, env=env)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for row in rows:
        if row.get("error"):
            report.fail("%s: %s" % (row["name"], row["error"]))
    found = next((row["found"] for row in rows if "found" in row), None)
    if not found:
        raise RuntimeError(done.stderr[-2000:])
    for what, parts in found.items():
        for part, times in parts.items():
            report.row("%s, %s" % (what, WORDS[part]), run.summary(times, scale=1), None, TARGETS[part])


if __name__ == "__main__":
    sys.exit(over_http.main(__doc__, "bench-console", measure))
