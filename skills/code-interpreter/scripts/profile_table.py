"""profile_table.py FILE...: what is in the columns of a CSV file, one line each.

For every column: how many values there are, how many are missing and how many differ; the range
and the mean where all of them are numbers, the most frequent values where they are not.
"""

import csv
import sys
from collections import Counter


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def describe(name, values):
    there = [v for v in values if v not in ("", None)]
    line = f"{name}: {len(there)} values, {len(values) - len(there)} missing, " \
           f"{len(set(there))} distinct"
    numbers = [number(v) for v in there]
    if there and None not in numbers:
        return f"{line}, {min(numbers):g} to {max(numbers):g}, mean {sum(numbers) / len(numbers):g}"
    common = ", ".join(f"{v!r} {n}x" for v, n in Counter(there).most_common(3))
    return f"{line}, most often {common}" if common else line


def main(paths):
    if not paths:
        sys.exit("profile_table.py FILE...: no file was named")
    for path in paths:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file))
        print(f"{path}: {len(rows)} rows")
        for name in rows[0] if rows else []:
            print(" ", describe(name, [row[name] for row in rows]))


if __name__ == "__main__":
    main(sys.argv[1:])
