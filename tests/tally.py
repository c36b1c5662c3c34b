"""Adds up what the suites left in a folder of results; see tests/run.

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


def main(folder):
    total_passed = total_failed = 0
    print(f"{'suite':<16}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}")
    for path in sorted(folder.glob("*.status"), key=lambda p: p.stat().st_mtime_ns):
        status = int(path.read_text())
        if status == NOTHING_CHOSEN:
            continue
        counts = count(path.with_suffix(".xml"))
        passed, failed, skipped = counts or (0, 0, 0)
        note = ""
        if counts is None:
            failed, note = 1, f"  ended with status {status} and no results"
        elif status != 0 and failed == 0:
            failed, note = 1, f"  ended with status {status}"
        seconds = path.with_suffix(".seconds").read_text().strip()
        print(f"{path.stem:<16}{passed:>8}{failed:>8}{skipped:>9}{seconds:>9}{note}")
        total_passed += passed
        total_failed += failed
    if total_passed + total_failed == 0:
        print("no test ran")
    print(f"{total_passed} passed, {total_failed} failed")
    return 1 if total_failed or not total_passed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
