"""Deals the tests to runs that go on side by side: see tests/run.

    deal.py plan SUITE:WHO...     a line for each run, the longest first: SUITE WHO NUMBER FILE...
    deal.py learn RESULTS         writes tests/seconds anew, from what `./dev test` left in that folder

WHO is root or user, or all where one run will do for both. A suite that takes long is dealt to several
runs, which have numbers; the others have 0 for a number, and their folder for a file.

tests/seconds has the files that take longest, with their seconds as root (or all) and as user. Only their
proportions count. A file without a row is taken for a short one, so a table that is out of date makes the
whole longer and nothing worse.
"""

import math
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

TESTS = Path(__file__).resolve().parent
TABLE = TESTS / "seconds"
WHO = ("root", "user")
SHORT = 2.0  # seconds; what takes less has no row
PIECES = 24  # a run takes about so much of the whole: the last one to end should not be alone for long


def read_table():
    rows = (line.split() for line in TABLE.read_text().splitlines() if not line.startswith("#"))
    return {name: dict(zip(WHO, map(float, seconds))) for name, *seconds in rows}


def weigh(suite, who, table):
    """{file: seconds} of a suite. Guests of escape are files with names of their own: those that count have a row."""
    names = {str(path.relative_to(TESTS)) for path in (TESTS / suite).rglob("test_*.py")}
    names |= {name for name in table if name.startswith(suite + "/") and (TESTS / name).exists()}
    column = "user" if who == "user" else "root"
    return {name: table.get(name, {}).get(column, SHORT) for name in names}


def deal(weights, runs):
    """[(seconds, files)]: the longest file first, each to the run that has least so far."""
    hands = [[0.0, []] for _ in range(runs)]
    for name in sorted(weights, key=lambda n: (-weights[n], n)):
        least = min(hands, key=lambda hand: hand[0])
        least[0] += weights[name]
        least[1].append(name)
    return [(seconds, sorted(files)) for seconds, files in hands if files]


def plan(wanted):
    table = read_table()
    suites = [(suite, who, weigh(suite, who, table)) for suite, who in wanted]
    piece = max(sum(sum(weights.values()) for _, _, weights in suites) / PIECES, 1)
    lines = []
    for suite, who, weights in suites:
        seconds = sum(weights.values())
        # Guests of escape share their servers and have jobs of their own.
        runs = 1 if suite == "escape" else max(1, min(math.ceil(seconds / piece), len(weights)))
        if runs == 1:
            lines.append((seconds, f"{suite} {who} 0 tests/{suite}"))
            continue
        for number, (seconds, files) in enumerate(deal(weights, runs), 1):
            lines.append((seconds, " ".join([suite, who, str(number), *("tests/" + f for f in files)])))
    for _, line in sorted(lines, key=lambda line: -line[0]):
        print(line)


def learn(results):
    found = {}
    for xml in results.glob("*.xml"):
        who = "user" if "-user" in xml.name else "root"
        for case in ET.parse(xml).iter("testcase"):
            file = case.get("classname", "").replace(".", "/") + ".py"
            if not xml.stem.endswith(".again") and (TESTS / file).is_file():
                row = found.setdefault(file, dict.fromkeys(WHO, 0.0))
                row[who] += float(case.get("time"))
    rows = [f"{file} {row['root']:.0f} {row['user']:.0f}" for file, row in sorted(found.items())
            if max(row.values()) >= SHORT]
    TABLE.write_text("# Written by tests/deal.py learn: file, seconds as root, seconds as the ordinary user.\n"
                     + "\n".join(rows) + "\n")


if __name__ == "__main__":
    if sys.argv[1] == "learn":
        learn(Path(sys.argv[2]))
    else:
        plan([word.split(":") for word in sys.argv[2:]])
