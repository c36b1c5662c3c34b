"""Adds up what the suites left in a folder of results; see tests/run.

A suite's row has the sum of its runs, its seconds included.

A suite's own exit status counts too: one that died before it could write its
XML, or that ended badly with no failed test to show for it, is one failure
more, so that nothing fails in silence. pytest's status 5 means that a -k
expression chose none of its tests, which is nobody's failure.

A test that failed and passed the second look (NAME.again.xml) counts as passed
and is named below the sums.
"""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

NOTHING_CHOSEN = 5


def verdicts(xml):
    """[(test, "passed", "failed" or "skipped")] of one JUnit file; None when it is not one."""
    try:
        cases = list(ET.parse(xml).iter("testcase"))
    except (OSError, ET.ParseError):
        return None
    return [(f"{c.get('classname')}::{c.get('name')}",
             "failed" if c.find("failure") is not None or c.find("error") is not None
             else "skipped" if c.find("skipped") is not None else "passed") for c in cases]


def read_run(path, unsteady):
    """[passed, failed, skipped, seconds] of one run and what else there is to say of it, by the file
    with its status; None when no test was chosen. Adds to the list of unsteady tests."""
    status = int(path.read_text())
    if status == NOTHING_CHOSEN:
        return None
    found, note = verdicts(path.with_suffix(".xml")), ""
    bad = {name for name, verdict in found or () if verdict == "failed"}
    second = verdicts(path.with_suffix(".again.xml")) or []
    # A test that failed and whose teardown failed too has two rows: both must be well now.
    steadied = {name for name, _ in second if all(v == "passed" for n, v in second if n == name)} & bad
    unsteady += sorted(f"{path.stem} {name}" for name in steadied)
    counts = [sum(v == wanted for n, v in found or () if n not in steadied)
              for wanted in ("passed", "failed", "skipped")]
    counts[0] += len(steadied)
    if found is None:
        counts[1], note = 1, f"  {path.stem} ended with status {status} and no results"
    elif status != 0 and not bad:
        counts[1], note = 1, f"  {path.stem} ended with status {status}"
    return [*counts, int(path.with_suffix(".seconds").read_text())], note


def main(folder):
    suites, notes, unsteady = {}, {}, []
    for path in sorted(folder.glob("*.status"), key=lambda p: p.stat().st_mtime_ns):
        name = path.name.split(".")[0]
        if path.stem.endswith(".again"):
            continue
        if run := read_run(path, unsteady):
            suites[name] = [a + b for a, b in zip(run[0], suites.get(name, [0] * 4))]
            notes[name] = notes.get(name, "") + run[1]
    print(f"{'suite':<16}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}")
    for name, (passed, failed, skipped, seconds) in suites.items():
        print(f"{name:<16}{passed:>8}{failed:>8}{skipped:>9}{seconds:>9}{notes[name]}")
    for test in unsteady:
        print(f"unsteady: {test} failed, and passed by itself")
    total_passed, total_failed = (sum(row[i] for row in suites.values()) for i in (0, 1))
    if total_passed + total_failed == 0:
        print("no test ran")
    print(f"{total_passed} passed, {total_failed} failed")
    return 1 if total_failed or not total_passed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
