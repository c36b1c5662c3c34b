"""The rows of bench/speed.py: what was measured, beside what, and whether that is where it should be."""

import run


class Row:
    """One line of the table.

    ours, beside: summaries (run.summary), or for one number {"p50": ..., "unit": ...}.
    kind: what is held against the goal. "ratio" is ours / beside, "over" is ours - beside, "value"
    is ours alone. more: the goal is a floor, not a ceiling.
    """

    def __init__(self, part, what, ours, beside=None, kind="value", goal=None, more=False, note=""):
        self.part, self.what, self.ours, self.kind = part, what, ours, kind
        self.beside_name, self.beside = beside or (None, None)
        self.goal, self.more, self.note = goal, more, note
        self.figure = self._figure("p50")
        best = "max" if more else "min"
        self.at_best = self._figure(best) if best in ours else None

    def _figure(self, which):
        ours = self.ours[which]
        if self.kind == "value":
            return ours
        beside = self.beside.get(which, self.beside["p50"])
        return ours - beside if self.kind == "over" else ours / beside

    def met(self):
        """None without a goal; "at best" where only the figure of the best moments is good enough."""
        def good(figure):
            return figure is not None and (figure >= self.goal if self.more else figure <= self.goal)
        if self.goal is None:
            return None
        return "yes" if good(self.figure) else "at best" if good(self.at_best) else "NO"

    def say(self, figure):
        """A figure or a goal as people read it: a third is 1/3 where we are the smaller one."""
        if figure is None:
            return ""
        if self.kind == "over":
            return "%+.2f %s" % (figure, self.ours["unit"])
        if self.kind == "value":
            return "%s %s" % (run.number(figure), self.ours["unit"])
        return "1/%s" % run.number(1 / figure) if 0 < figure < 0.5 else "%sx" % run.number(figure)

    def cells(self):
        ours = " / ".join(run.number(self.ours[key]) for key in ("min", "p50", "p95") if key in self.ours)
        beside = ""
        if self.beside:
            spread = [run.number(self.beside[key]) for key in ("min", "p50") if key in self.beside]
            beside = "%s %s" % (self.beside_name, " / ".join(spread))
        plain = self.kind == "value" and self.goal is None
        return [
            self.part, self.what, "%s %s" % (ours, self.ours["unit"]), beside,
            "" if plain else self.say(self.figure),
            "" if plain else self.say(self.at_best),
            "" if self.goal is None else (">= " if self.more else "<= ") + self.say(self.goal),
            self.met() or "",
        ]

    def record(self):
        return {
            "part": self.part, "what": self.what, "ours": self.ours,
            "beside": self.beside and {"what": self.beside_name, **self.beside},
            "kind": self.kind, "figure": self.figure, "at_best": self.at_best,
            "goal": self.goal, "goal_is": "floor" if self.more else "ceiling", "met": self.met(),
            "said": self.say(self.figure), "goal_said": self.say(self.goal), "note": self.note,
        }


HEAD = ["part", "what", "min / p50 / p95", "beside: min / p50", "figure", "at best", "goal", "met"]


def show(rows):
    lines = [HEAD] + [row.cells() for row in rows]
    width = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    before = None
    for i, line in enumerate(lines):
        shown = [("" if k == 0 and text == before else text).ljust(width[k]) for k, text in enumerate(line)]
        before = line[0]
        print("  ".join(shown).rstrip())
        if i == 0:
            print("  ".join("-" * w for w in width))
    for row in rows:
        if row.note:
            print("%s: %s: %s" % (row.part, row.what.strip(), row.note))
    goals = [row.met() for row in rows if row.met()]
    print("\n%d of %d goals are met, %d more at best." % (goals.count("yes"), len(goals), goals.count("at best")))
