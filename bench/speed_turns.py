"""What one client sees of a server: parts that take turns. Each has turn(), a round's samples, and
tell(), its rows."""

import json
import time

import machine
import run
from over_http import CREATE, DELETE, HEALTH, cell

# What no pool imports by itself. A data frame of a CSV, a model, an equation, a picture.
HELD_OUT = {
    "csv + groupby": ("""\
import io
import pandas as pd
text = "town,day,rides\\n" + "".join("t%d,%d,%d\\n" % (i % 9, i % 31, i * 7 % 101) for i in range(2000))
frame = pd.read_csv(io.StringIO(text))
by = frame.groupby("town")["rides"].agg(["mean", "max"]).sort_values("mean")
print(len(by), int(by["max"].max()))
""", "9 100"),
    "sklearn fit": ("""\
import numpy as np
from sklearn.linear_model import LinearRegression
x = np.arange(400.0).reshape(200, 2)
fit = LinearRegression().fit(x, x @ [2.0, 3.0] + 1)
print(round(fit.predict([[1.0, 2.0]])[0], 3))
""", "9.0"),
    "sympy solve": ("""\
import sympy
x = sympy.symbols("x")
print(sympy.solve(x**2 - 5 * x + 6, x))
""", "[2, 3]"),
    "PIL resize": ("""\
from PIL import Image
picture = Image.new("RGB", (640, 480), (200, 100, 50)).resize((160, 120), Image.LANCZOS)
print(picture.size, picture.getpixel((3, 3)))
""", "(160, 120) (200, 100, 50)"),
}
PLOT = {"code": """\
import matplotlib.pyplot as plt
fig, ax = plt.subplots()
ax.plot([1, 2, 3, 4], [1, 4, 9, 16], label="squares")
ax.set_title("Squares")
ax.legend()
plt.show()
""", "expect": "image/png"}
ONE_SHOT = {"method": "POST", "path": "/v1/execute", "body": json.dumps({"code": run.PRINT["code"]}),
            "expect": '"status":"ok"'}
COLD = {**CREATE, "body": json.dumps({"pool": "cold"})}
OVER_HEALTH = 0.2
JUPYTER = "ipykernel"


def pause():
    """The sandbox before is gone by then, and a new one is parked."""
    time.sleep(run.PAUSE_MS / 1e3)


class Cell:
    """A trivial cell in a session that is up, GET /health in between."""
    name = "cell"

    def __init__(self, bench):
        self.bench, self.step = bench, None
        self.took, self.health, self.jupyter = [], [], []

    def turn(self):
        bench, few = self.bench, 40 if self.bench.quick else 100
        if not self.step:
            with bench.server.client() as c:
                made = c.post("/v1/sessions", {}).expect(201).json
                self.step = {**cell(run.PRINT), "path": "/v1/sessions/%s/execute" % made["id"]}
        bench.load.visit(1, HEALTH, self.step, repeat=5)  # others had the processor's caches
        health, took = bench.load.visit(1, HEALTH, self.step, repeat=few)["steps"]
        self.health += health
        self.took += took
        kernel = bench.warm_jupyter()
        self.jupyter += [kernel.run(run.PRINT["code"], "4") for _ in range(10)]

    def tell(self):
        took = run.summary(self.took)
        self.bench.row("cell", "print(2+2), session is up", took,
                       ("GET /health", run.summary(self.health)), kind="over", goal=OVER_HEALTH)
        self.bench.row("cell", "  beside a kernel", took, (JUPYTER, run.summary(self.jupyter)),
                       kind="ratio", goal=1 / 30)


class Create:
    """A session made from the parked, GET /health before each."""
    name = "create"

    def __init__(self, bench):
        self.bench, self.took, self.health = bench, [], []

    def turn(self):
        self.bench.settle()
        for _ in range(8):
            health, took, _ = self.bench.load.visit(1, HEALTH, CREATE, DELETE)["steps"]
            self.health += health
            self.took += took
            pause()

    def tell(self):
        took, health = run.summary(self.took), run.summary(self.health)
        self.bench.row("create", "session from the parked", took, ("GET /health", health), kind="over",
                       goal=OVER_HEALTH)
        self.bench.row("create", "  its p95", {"p50": took["p95"], "unit": "ms"},
                       ("own p50", {"p50": took["p50"]}), kind="ratio", goal=2,
                       note="GET /health's in the same rounds is %.1f times its p50" % (health["p95"] / health["p50"]))


class Cold:
    """A session of a pool that parks none."""
    name = "cold"

    def __init__(self, bench):
        self.bench, self.took = bench, []

    def turn(self):
        for _ in range(4 if self.bench.quick else 8):
            self.took += self.bench.load.visit(1, HEALTH, COLD, DELETE)["steps"][1]
            pause()

    def tell(self):
        self.bench.row("cold", "session, none parked", run.summary(self.took), goal=2.5)


class Firsts:
    """Cells that are the first of their session: from the request for a session to the cell's answer,
    and the same cell when it has run in that session before."""

    def __init__(self, bench, cells):
        self.bench, self.cells = bench, cells
        self.first = {what: [] for what in cells}
        self.warm = {what: [] for what in cells}
        self.alone = {what: [] for what in cells}

    def visits(self, what, count):
        step = cell(self.cells[what])
        for _ in range(count):
            answer = self.bench.load.visit(1, CREATE, step, step, step, step, DELETE, until=1)
            self.first[what] += answer["visit_us"]
            self.alone[what] += answer["steps"][1]
            # The second run still meets pages that the first did not.
            self.warm[what] += answer["steps"][3] + answer["steps"][4]
            pause()

    def row(self, what, shown, goal):
        self.bench.row(self.name, shown, run.summary(self.first[what]),
                       ("warm", run.summary(self.warm[what])), kind="ratio", goal=goal)
        self.bench.more.setdefault("first_cell_alone", {})[what] = run.summary(self.alone[what])


class First(Firsts):
    """create -> describe() -> JSON."""
    name = "first"

    def __init__(self, bench):
        super().__init__(bench, {"describe()": run.DESCRIBE})
        self.jupyter = []

    def turn(self):
        self.bench.settle()
        self.visits("describe()", 4)
        # A kernel takes most of a second to start: a few are enough to tell a factor of hundreds.
        if len(self.jupyter) < 3:
            kernel = self.bench.jupyter()
            try:
                self.jupyter.append(kernel.start_us + kernel.run(run.DESCRIBE["code"], "499.5"))
            finally:
                kernel.stop()

    def tell(self):
        self.row("describe()", "create -> describe() -> JSON", 1.25)
        self.bench.row("first", "  beside a kernel, started for it", run.summary(self.first["describe()"]),
                       (JUPYTER, run.summary(self.jupyter)), kind="ratio")


class HeldOut(Firsts):
    """create -> a cell with libraries or calls that no pool was warmed up with."""
    name = "heldout"

    def __init__(self, bench):
        super().__init__(bench, {what: {"code": code, "expect": expect}
                                 for what, (code, expect) in HELD_OUT.items()})
        self.missing, self.fresh = set(), None

    def turn(self):
        self.bench.settle()
        if not self.fresh:
            self.learn()
            return
        self.visit_all()

    def learn(self):
        """What a pool meets for the first time, until it has learned what is imported."""
        self.visit_all(2)
        self.fresh = {what: run.summary(self.first[what]) for what in self.cells if what not in self.missing}
        for samples in (*self.first.values(), *self.warm.values(), *self.alone.values()):
            samples.clear()
        wanted = {"sklearn", "sympy"} & {what.split()[0] for what in self.fresh}
        with self.bench.server.client() as c:
            if not machine.wait_until(
                    lambda: wanted <= set(c.get("/v1/pools/default").json["learned"]), 120):
                raise run.Failed("the pool does not learn %s" % " and ".join(sorted(wanted)))

    def visit_all(self, count=None):
        for what in self.cells:
            if what in self.missing:
                continue
            try:
                self.visits(what, count or (1 if self.bench.quick else 2))
            except run.Failed as error:
                if "ModuleNotFoundError" not in str(error):
                    raise
                self.missing.add(what)

    def tell(self):
        for what in self.cells:
            if what not in self.missing:
                self.row(what, "create -> %s -> JSON" % what, 1.5)
                if what.split()[0] in ("sklearn", "sympy"):
                    self.bench.row(self.name, "  not yet learned", self.fresh[what],
                                   ("warm", run.summary(self.warm[what])), kind="ratio")


class Plot:
    """The first picture of a session, and its second."""
    name = "plot"

    def __init__(self, bench):
        self.bench, self.first, self.second, self.jupyter = bench, [], [], []

    def turn(self):
        self.bench.settle()
        for _ in range(2):
            _, first, second, _ = self.bench.load.visit(1, CREATE, cell(PLOT), cell(PLOT), DELETE)["steps"]
            self.first += first
            self.second += second
            pause()
        kernel = self.bench.warm_jupyter()
        kernel.run(PLOT["code"], "<Figure size")
        self.jupyter.append(kernel.run(PLOT["code"], "<Figure size"))

    def tell(self):
        first, second = run.summary(self.first), run.summary(self.second)
        self.bench.row("plot", "first plot of a session", first, ("second", second), kind="ratio", goal=1.25)
        self.bench.row("plot", "  second plot beside a kernel's", second,
                       (JUPYTER, run.summary(self.jupyter)), kind="ratio")


class OneShot:
    """POST /v1/execute back to back, and what its two halves take by themselves."""
    name = "oneshot"

    def __init__(self, bench):
        self.bench, self.took, self.halves = bench, [], []

    def turn(self):
        self.bench.settle()
        for _ in range(8):
            answer = self.bench.load.visit(1, CREATE, cell(run.PRINT), DELETE, until=1)
            self.halves += answer["visit_us"]
            pause()
        self.bench.settle()
        self.took += self.bench.load.visit(25 if self.bench.quick else 50, ONE_SHOT)["steps"][0]

    def tell(self):
        took = run.summary(self.took)
        self.bench.row("oneshot", "execute, back to back", took,
                       ("create + cell", run.summary(self.halves)), kind="ratio", goal=1.5)
        self.bench.row("oneshot", "  its p95", {"p50": took["p95"], "unit": "ms"},
                       ("own p50", {"p50": took["p50"]}), kind="ratio", goal=3)


PARTS = {part.name: part for part in (Cell, Create, First, HeldOut, Plot, OneShot, Cold)}
