#!/usr/bin/env python3
"""retort beside what people use in its place, on the same cells in the same run.

    peers.py [--quick] [PEER]... [--build DIR] [--out FILE]

`./dev bench peers` installs them from PyPI and npm into build/peers. Each is driven from the Python it
is installed in (peer_driver.py), all with Debian's Python and pandas beneath; rounds go in turns. The
table says what each one isolates: a figure without a wall around it is not the same thing. What could
not be had is named with the reason.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import machine
import over_http
import run
import serving
import steady
from peer_cells import CELL, DESCRIBE, PLOT

ROOT = pathlib.Path(__file__).resolve().parent.parent
OURS = "retort"
HELD = 8       # sessions of ours that are weighed together
RESTED_S = 10  # after so long without a question

# Name; where from; what is around the code; what stays from call to call.
PEERS = {
    OURS: ("this tree", "namespaces, cgroup, Landlock, seccomp", "variables and files"),
    "kernel gateway": ("PyPI jupyter_kernel_gateway", "nothing: a process of the same user", "variables"),
    "smolagents": ("PyPI smolagents", "a walk over the syntax tree, in the agent's process", "variables"),
    "monty": ("PyPI pydantic-monty", "an interpreter of its own, without CPython's libraries", "variables"),
    "pyodide, node": ("npm pyodide", "WebAssembly; node may do everything", "variables"),
    "pyodide, deno": ("npm pyodide, deno", "WebAssembly, and Deno's permissions", "variables"),
    "bubblewrap": ("Debian bubblewrap", "namespaces, a read-only root", "nothing"),
    "sandbox-runtime": ("npm @anthropic-ai/sandbox-runtime", "bubblewrap, seccomp, a proxy", "nothing"),
    "sandlock": ("PyPI sandlock", "Landlock, seccomp", "nothing"),
}


def has(command):
    return shutil.which(command) is not None


def virtual():
    flags = machine.read("/proc/cpuinfo") or ""
    return os.path.exists("/dev/kvm") and (" svm " in flags or " vmx " in flags)


# Why others are not in the table: (name, whether this machine has what it takes, what that is).
NOT_HERE = (
    ("microsandbox (PyPI)", virtual,
     "a processor that runs virtual machines, and an image from a registry of containers"),
    ("E2B's code-interpreter", virtual,
     "Firecracker, and a server that no package registry has: its package is a client"),
    ("llm-sandbox (PyPI)", lambda: has("docker") or has("podman"),
     "Docker or Podman, and an image from a registry of containers"),
    ("dify-sandbox", lambda: False, "its Go module, which the proxy of Go's modules does not give"),
    ("pandas in pyodide", lambda: False, "wheels of a web server of its own: neither npm nor PyPI has them"),
)


class Driver:
    """A peer in its own process."""

    def __init__(self, name, peers):
        self.name = name
        python = peers / "python" / "bin" / "python"
        self.child = subprocess.Popen(
            [python, ROOT / "bench" / "peer_driver.py", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env={**os.environ, "PEERS_NPM": str(peers / "npm")})
        self.start_us = self._answer()["start_us"]

    def _answer(self):
        line = self.child.stdout.readline()
        if not line:
            raise run.Failed("%s ended with status %s" % (self.name, self.child.wait()))
        return json.loads(line)

    def ask(self, what):
        self.child.stdin.write(what + "\n")
        self.child.stdin.flush()
        return self._answer()

    def end(self):
        self.child.stdin.close()
        self.child.wait(60)


def step(cell):
    return over_http.cell({"code": cell[0], "expect": cell[1]})


class Retort:
    """Ours: a server, over HTTP, as its clients use it."""
    name = OURS

    def __init__(self, args):
        self.server = serving.server(args.build, "--python", "/usr/bin/python3", "--ready", str(run.READY),
                                     "--log-level", "error")
        begun = time.perf_counter()
        self.server.start()
        self.start_us = (time.perf_counter() - begun) * 1e6
        self.load = over_http.Load(args.build, self.server.port)

    def ask(self, what):
        return {"round": self._round, "hold": self._hold, "weigh": self._weigh}[what]()

    def _settle(self):
        with self.server.client() as c:
            machine.wait_until(lambda: c.get("/v1/pools/default").json["parked"] >= run.READY, 30)

    def _round(self):
        self._settle()
        visit, warm = self.load.visit, [step(CELL)]
        create, *cells, _ = visit(1, over_http.CREATE, *warm * 6, over_http.DELETE)["steps"]
        first = visit(1, over_http.CREATE, *[step(DESCRIBE)] * 4, over_http.DELETE, until=1)
        plots = visit(1, over_http.CREATE, *[step(PLOT)] * 3, over_http.DELETE)["steps"][2:4]
        return {"took": {"create": create, "cell": sum(cells[1:], []), "first": first["visit_us"],
                         "describe": sum(first["steps"][2:5], []), "plot": sum(plots, [])},
                "missing": {}}

    def _hold(self):
        self._settle()
        self.load.visit(HELD, over_http.CREATE, step(CELL), step(DESCRIBE), step(PLOT), clients=2, keep=True)
        self._settle()
        return {}

    def _weigh(self):
        held = machine.weigh(self.server.pid)
        gone = over_http.delete_kept(self.load, self.server.pid, HELD)
        return {"memory_mb": sum(held[box]["pss"] for box in gone) / HELD}

    def end(self):
        self.load.end()
        self.server.stop()
        self.server.discard()


def begin(name, args, wrong):
    try:
        return Retort(args) if name == OURS else Driver(name, args.build / "peers")
    except (run.Failed, OSError) as error:
        wrong[name] = str(error)
        return None


def measure(args):
    seen, wrong, peers = {}, {}, []
    try:
        for name in args.peer:
            print("starting %s" % name, file=sys.stderr)
            peer = begin(name, args, wrong)
            if peer:
                peers.append(peer)
                seen[name] = {**{key: [] for key in COLUMNS}, "memory_mb": None, "missing": {}}
                seen[name]["start"] += [peer.start_us] if peer.start_us else []
        def everybody(what):
            print(what, file=sys.stderr)
            for peer in [p for p in peers if p.name not in wrong]:
                try:
                    yield seen[peer.name], peer.ask(what)
                except run.Failed as error:
                    wrong[peer.name] = str(error)

        for _ in range(2 if args.quick else 8):
            for mine, one in everybody("round"):
                for key, values in one["took"].items():
                    mine[key] += values
                mine["missing"].update(one["missing"])
        list(everybody("hold"))
        time.sleep(RESTED_S)
        for mine, one in everybody("weigh"):
            mine["memory_mb"] = one["memory_mb"]
    finally:
        for peer in peers:
            peer.end()
    return seen, wrong


COLUMNS = ("start", "create", "cell", "first", "describe", "plot")
HEAD = ("", "start", "create", "print(2+2)", "create -> describe()", "describe()", "plot", "MB", "around the code",
        "stays")


def rows(seen):
    found = []
    for name, one in seen.items():
        sums = {key: run.summary(one[key]) for key in COLUMNS if one[key]}
        found.append({"name": name, "from": PEERS[name][0], "isolates": PEERS[name][1], "stays": PEERS[name][2],
                      **sums, "memory_mb": one["memory_mb"], "missing": one["missing"]})
    return found


def show(found, wrong):
    lines = [HEAD]
    for row in found:
        alone = row["stays"] == "nothing"
        figures = [run.number(row[key]["p50"]) if key in row else "-" for key in COLUMNS]
        if alone:
            figures[1] = "-"
        lines.append((row["name"], *figures, run.number(row["memory_mb"]) if row["memory_mb"] else "-",
                      row["isolates"], row["stays"]))
    width = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    for line in lines:
        print("  ".join(text.ljust(width[i]) for i, text in enumerate(line)).rstrip())
    print("\nMedians, in milliseconds; describe() and plot when they have run in that session before; MB: of a\n"
          "session that has run all of it and was left alone for %d s, as proportional set size. A peer without\n"
          "sessions starts anew for each call." % RESTED_S)
    for row in found:
        for what, why in row["missing"].items():
            print("%s: no %s: %s" % (row["name"], what, why))
    for name, why in wrong.items():
        print("%s: not measured: %s" % (name, why))
    for name, here, needs in NOT_HERE:
        print("%s: not here: it needs %s%s" % (name, needs, "" if here() else ", and this machine has not"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("peer", nargs="*", metavar="PEER", help="of: " + "; ".join(PEERS))
    parser.add_argument("--quick", action="store_true", help="two rounds")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--out", type=pathlib.Path, help="the JSON file (BUILD/bench-peers.json)")
    args = parser.parse_args()
    unknown = [name for name in args.peer if name not in PEERS]
    if unknown:
        parser.error("there is no peer %s: there are %s" % (unknown[0], "; ".join(PEERS)))
    args.peer = args.peer or list(PEERS)

    facts, watch = machine.facts(), steady.Watch()
    seen, wrong = measure(args)
    facts["steady"] = watch.end()
    found = rows(seen)
    print("%(cpu)s, %(cores)d cores, %(memory_mb)d MB, Linux %(kernel)s, %(user)s, Python %(python)s" % facts)
    print(steady.tell(facts["steady"]) + "\n")
    show(found, wrong)
    out = args.out or args.build / "bench-peers.json"
    out.write_text(json.dumps({
        "version": 1, "quick": args.quick, "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": facts, "rows": found, "failed": wrong,
        "not_here": [{"name": name, "needs": needs, "here": here()} for name, here, needs in NOT_HERE]},
        indent=1) + "\n")
    print("the numbers are in %s" % out)
    return 1 if OURS in wrong else 0


if __name__ == "__main__":
    sys.exit(main())
