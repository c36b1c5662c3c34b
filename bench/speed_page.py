#!/usr/bin/env python3
"""Puts the figures of a run into docs/speed.md, and draws docs/images/speed.png of them.

    speed_page.py [SPEED.json [PEERS.json]]

The files are those of `./dev bench speed` and `./dev bench peers`. In the page, what stands between
<!-- NAME --> and <!-- end --> is made here, and the rest is written by people.
"""

import json
import pathlib
import re
import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter

import run
import speed_where

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "speed.md"
PICTURE = ROOT / "docs" / "images" / "speed.png"
MET = {"yes": "yes", "at best": "at best", "NO": "**no**", None: ""}
COLOUR = {"yes": "#2a7f62", "at best": "#d99a2b", "NO": "#b5433a"}
OURS, THEIRS = "#2a7f62", "#8a94a0"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| %s |" % " | ".join(line) for line in lines)


def spread(sums, keys=("p50", "min")):
    return " / ".join(run.number(sums[key]) for key in keys if key in sums)


def machine_line(found):
    facts, steady = found["machine"], found["machine"]["steady"]
    text = "%s, %d cores, Linux %s, Python %s, on %s." % (
        facts["cpu"], facts["cores"], facts["kernel"].split("-")[0], facts["python"], found["when"][:10])
    if found.get("quick"):
        text += " With `--quick`."
    if steady["calm"]:
        return text + " The machine was calm."
    return text + (" **The machine was busy with other work**: others took %d %% of the processors before the run "
                   "began, and a loop that never waits took %.1f times its best in its worst twentieth.") % (
        100 * steady["busy_before"], steady["jitter_p95"])


def goals(speed):
    rows, part = [], None
    for row in speed["rows"]:
        if row["part"] == "where":
            continue
        best = row["ours"].get("max" if row["goal_is"] == "floor" else "min")
        ours = run.number(row["ours"]["p50"]) + (" (%s)" % run.number(best) if best is not None else "")
        beside = row["beside"] and "%s: %s" % (row["beside"]["what"], run.number(row["beside"]["p50"]))
        figure = row["said"] if row["kind"] != "value" else ""
        rows.append(["`%s`" % row["part"] if row["part"] != part else "", row["what"].strip(),
                     "%s %s" % (ours, row["ours"]["unit"]), beside or "", figure, row["goal_said"], MET[row["met"]]])
        part = row["part"]
    met = [row["met"] for row in speed["rows"] if row["met"]]
    notes = "".join("`%s`, %s: %s.\n\n" % (row["part"], row["what"].strip(), row["note"])
                    for row in speed["rows"] if row["note"])
    return "%s\n\n%s\n\n%s%d of %d goals are met, %d more at best." % (
        machine_line(speed), table(["part", "what", "median (best)", "beside: median", "figure", "goal", "met"], rows),
        notes, met.count("yes"), len(met), met.count("at best"))


def where(speed):
    works = []
    for row in [row for row in speed["rows"] if row["part"] == "where"]:
        if row["what"].startswith("  "):
            works[-1][2][row["what"].strip()] = row["ours"]["p50"]
        else:
            works.append((row["what"], row["ours"], {}))
    return table(["milliseconds: median / best", "a client waits", *speed_where.WHO],
                 [[what, spread(took), *(run.number(who[name]) if name in who else "" for name in speed_where.WHO)]
                  for what, took, who in works])


def peers(found):
    keys = ("start", "create", "cell", "first", "describe", "plot")
    rows = []
    for row in found["rows"]:
        alone = row["stays"] == "nothing"
        shown = [key if key in row and not (alone and key == "create") else None for key in keys]
        rows.append([row["name"], *(run.number(row[key]["p50"]) if key else "" for key in shown),
                     run.number(row["memory_mb"]) if row["memory_mb"] else "", row["isolates"], row["stays"]])
    text = table(["", "start", "new session", "`print(2+2)`", "session and `describe()`", "`describe()` again",
                  "plot again", "MB", "around the code", "stays"], rows)
    needs = "\n".join("- %s: it needs %s." % (one["name"], one["needs"]) for one in found["not_here"])
    return "%s\n\n%s\n\nNot in the table:\n\n%s" % (machine_line(found), text, needs)


def fill(text, name, made):
    begin, end = "<!-- %s -->" % name, "<!-- end -->"
    found = re.compile(re.escape(begin) + r".*?" + re.escape(end), re.S)
    if not found.search(text):
        raise SystemExit("%s has no place for %s" % (PAGE.name, name))
    return found.sub(lambda _: "%s\n%s\n%s" % (begin, made, end), text)


# --- the picture ---

def draw_peers(axes, found):
    rows = [row for row in found["rows"] if "first" in row][::-1]
    for at, row in enumerate(rows):
        value = row["first"]["p50"]
        axes.barh(at, value, color=OURS if row["name"] == "retort" else THEIRS, height=0.6)
        axes.text(value * 1.15, at, "%s ms" % run.number(value), va="center", fontsize=9)
    walls = {"retort": "sealed", "smolagents": "a syntax tree", "kernel gateway": "no wall"}
    names = ["%s\n(%s)" % (row["name"], walls.get(row["name"], row["isolates"])) for row in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=8)
    axes.set_xscale("log")
    axes.set_xlim(1, max(row["first"]["p50"] for row in rows) * 5)
    axes.set_title("From nothing to the answer of df.describe(), ms", fontsize=10, loc="left")


def draw_goals(axes, speed):
    rows = [row for row in speed["rows"] if row["met"]][::-1]
    for at, row in enumerate(rows):
        share = lambda figure: (row["goal"] / figure if row["goal_is"] == "floor" else figure / row["goal"])
        axes.plot(max(share(row["figure"]), 0.02), at, "o", color=COLOUR[row["met"]], markersize=6)
        if row["at_best"]:
            axes.plot(max(share(row["at_best"]), 0.02), at, "|", color=COLOUR[row["met"]], markersize=10)
    names = [row["part"] + ": " + row["what"].strip() for row in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=7.5)
    axes.axvline(1, color="#333333", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_title("As a share of the goal: left of the line it is met\n(dot: median, tick: at best)",
                   fontsize=10, loc="left")


def draw(speed, found):
    figure, (left, right) = plt.subplots(1, 2, figsize=(12.5, 6), width_ratios=(1, 1.05))
    draw_peers(left, found)
    draw_goals(right, speed)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="x", color="#e3e6ea", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: "%g" % value))
        axes.tick_params(axis="x", labelsize=8)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110, metadata={"Software": None})


def main():
    build = ROOT / "build"
    names = (sys.argv[1:] + [None, None])[:2]
    speed = json.loads(pathlib.Path(names[0] or build / "bench-speed.json").read_text())
    found = json.loads(pathlib.Path(names[1] or build / "bench-peers.json").read_text())
    text = PAGE.read_text()
    for name, made in (("goals", goals(speed)), ("where", where(speed)), ("peers", peers(found))):
        text = fill(text, name, made)
    PAGE.write_text(text)
    draw(speed, found)


if __name__ == "__main__":
    main()
