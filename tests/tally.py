"""Adds up what the suites left in a folder of results; see tests/run.

A suite's row has the sum of its runs, its seconds included.

A suite's own exit status counts too: one that died before it could write its
XML, or that ended badly with no failed test to show for it, is one failure
more, so that nothing fails in silence. pytest's status 5 means that a -k
expression chose none of its tests, which is nobody's failure.
"""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

NOTHING_CHOSEN = 5


def count(xml):
    """passed, failed, skipped of one JUnit file; None when it is not one."""
    try:
        cases = list(ET.parse(xml).iter("testcase"))
    except (OSError, ET.ParseError):
        return None
    failed = sum(c.find("failure") is not None or c.find("error") is not None for c in cases)
    skipped = sum(c.find("skipped") is not None for c in cases)
    return len(cases) - failed - skipped, failed, skipped


def read_run(path):
    """[passed, failed, skipped, seconds] of one run and what else there is to say of it, by the file
    with its status; None when no test was chosen."""
    status = int(path.read_text())
    if status == NOTHING_CHOSEN:
        return None
    counts, note = count(path.with_suffix(".xml")), ""
    passed, failed, skipped = counts or (0, 0, 0)
    if counts is None:
        failed, note = 1, f"  {path.stem} ended with status {status} and no results"
    elif status != 0 and failed == 0:
        failed, note = 1, f"  {path.stem} ended with status {status}"
    return [passed, failed, skipped, int(path.with_suffix(".seconds").read_text())], note


def main(folder):
    suites, notes = {}, {}
    for path in sorted(folder.glob("*.status"), key=lambda p: p.stat().st_mtime_ns):
        name = path.name.split(".")[0]
        if run := read_run(path):
            suites[name] = [a + b for a, b in zip(run[0], suites.get(name, [0] * 4))]
            notes[name] = notes.get(name, "") + run[1]
    print(f"{'suite':<16}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}")
    for name, (passed, failed, skipped, seconds) in suites.items():
        print(f"{name:<16}{passed:>8}{failed:>8}{skipped:>9}{seconds:>9}{notes[name]}")
    total_passed, total_failed = (sum(row[i] for row in suites.values()) for i in (0, 1))
    if total_passed + total_failed == 0:
        print("no test ran")
    print(f"{total_passed} passed, {total_failed} failed")
    return 1 if total_failed or not total_passed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
