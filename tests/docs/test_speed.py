"""The table of `./dev bench speed`: what it holds against a goal, how it says so, and what docs/speed.md has of it."""

import re
import sys

import pytest

from support import retort

sys.path.append(str(retort.REPO / "bench"))

import speed_table  # noqa: E402


def row(*words, **more):
    return speed_table.Row("part", "what", *words, **more)


def ms(p50, low):
    return {"min": low, "p50": p50, "p95": 2 * p50, "max": 3 * p50, "unit": "ms"}


HEALTH = ("GET /health", ms(0.25, 0.125))


@pytest.mark.parametrize(("made", "figure", "at_best", "met"), [
    (row(ms(0.5, 0.25), HEALTH, kind="over", goal=0.3), 0.25, 0.125, "yes"),
    (row(ms(0.5, 0.25), HEALTH, kind="over", goal=0.2), 0.25, 0.125, "at best"),
    (row(ms(0.5, 0.25), HEALTH, kind="over", goal=0.1), 0.25, 0.125, "NO"),
    (row(ms(0.5, 0.5), HEALTH, kind="ratio", goal=2), 2, 4, "yes"),
    (row(ms(0.5, 0.5), HEALTH, kind="ratio", goal=1.9), 2, 4, "NO"),
    (row(ms(0.5, 0.5), HEALTH, kind="ratio"), 2, 4, None),
    (row(ms(0.5, 0.25), goal=0.25), 0.5, 0.25, "at best"),
    # A rate has to be reached, and its best is its most.
    (row({"min": 1, "p50": 2, "max": 4, "unit": "a second"}, goal=3, more=True), 2, 4, "at best"),
    (row({"min": 1, "p50": 2, "max": 4, "unit": "a second"}, goal=5, more=True), 2, 4, "NO"),
    (row({"p50": 9, "unit": "MB"}, goal=8), 9, None, "NO"),
])
def test_goal(made, figure, at_best, met):
    assert (made.figure, made.at_best, made.met()) == (figure, at_best, met)
    assert made.record()["figure"] == figure and made.record()["met"] == met


def test_smaller_than_half_is_said_as_a_part():
    assert row(ms(0.05, 0.05), HEALTH, kind="ratio", goal=1 / 30).cells()[4:7] == ["1/5", "1/2.50", "<= 1/30"]


def test_what_missed_is_counted(capsys):
    speed_table.show([row(ms(0.5, 0.25), goal=1), row(ms(0.5, 0.25), goal=0.25), row(ms(0.5, 0.25), goal=0.1),
                      row(ms(0.5, 0.25))])
    assert capsys.readouterr().out.endswith("\n1 of 3 goals are met, 1 more at best.\n")


# --- the page ---

PAGE = (retort.REPO / "docs" / "speed.md").read_text()


def made(name):
    """What bench/speed_page.py has put there, without the line of the machine."""
    return re.search(rf"<!-- {name} -->\n(.*?)<!-- end -->", PAGE, re.S)[1]


def rows_of(name):
    lines = [line for line in made(name).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_page_tells_how_each_part_is_measured():
    turns, alone = ((retort.REPO / "bench" / f"speed_{name}.py").read_text() for name in ("turns", "alone"))
    parts = {*re.findall(r'^    name = "(\w+)"$', turns, re.M),
             *re.findall(r'"(\w+)":', re.search(r"^PARTS = (.*?)}$", alone, re.M | re.S)[1])}
    assert {"cell", "plot", "records", "where"} <= parts
    assert set(re.findall(r"^\| `(\w+)` \| [^|]*\|$", PAGE, re.M)) == parts - {"where"}
    assert {row[0].strip("`") for row in rows_of("goals")} - {""} == parts - {"where"}
    assert "the part `where`" in PAGE


def test_page_counts_what_its_table_has():
    verdicts = [row[6] for row in rows_of("goals")]
    assert set(verdicts) <= {"yes", "at best", "**no**", ""}
    assert [bool(row[5]) for row in rows_of("goals")] == [bool(verdict) for verdict in verdicts]
    said = re.search(r"^(\d+) of (\d+) goals are met, (\d+) more at best\.$", made("goals"), re.M)
    assert tuple(map(int, said.groups())) == (
        verdicts.count("yes"), len(verdicts) - verdicts.count(""), verdicts.count("at best"))
