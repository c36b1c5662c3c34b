#!/usr/bin/env python3
"""Measures a cell asked for over MCP, beside the same cell over native REST in the same session.

    mcp.py [--quick] [--calm SECONDS] [--build DIR] [--out FILE]

REST, MCP over HTTP in both eras and MCP over standard input and output take turns within one run.
The target is what the protocol may cost: at most a tenth of a millisecond more than REST.
"""

import json
import os
import subprocess
import sys
import time

import over_http
import run

META = "io.modelcontextprotocol/"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
COST_MS = 0.1
ACCEPT = "Accept: application/json, text/event-stream\r\n"


def message(method, params, modern=False, id=1):
    if modern:
        params = {**params, "_meta": {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}}
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def hello():
    return message("initialize", {"protocolVersion": LEGACY, "capabilities": {},
                                  "clientInfo": {"name": "bench", "version": "1"}})


def call_of(session, step):
    return {"name": "run_code", "arguments": {"session_id": session, "code": step["code"]}}


# --- over HTTP ---

class OverHttp:
    """Requests for bench-http, in an era."""

    def __init__(self, server, modern):
        self.modern, self.session = modern, None
        if not modern:
            with server.client() as c:
                answer = c.post("/mcp", hello(), headers={"Accept": "application/json, text/event-stream"})
                self.session = answer.expect(200).headers["mcp-session-id"]

    def step(self, method, params, expect):
        headers = ACCEPT + "MCP-Protocol-Version: %s\r\n" % (MODERN if self.modern else LEGACY)
        if self.modern:
            headers += "Mcp-Method: %s\r\n" % method
            headers += "Mcp-Name: %s\r\n" % params["name"] if "name" in params else ""
            if "arguments" in params:
                headers += "Mcp-Param-Session: %s\r\n" % params["arguments"]["session_id"]
        else:
            headers += "Mcp-Session-Id: %s\r\n" % self.session
        return {"method": "POST", "path": "/mcp", "headers": headers, "expect": expect,
                "body": json.dumps(message(method, params, self.modern))}


# --- over pipes ---

class OverPipes:
    """`retort mcp`, asked one thing after the other."""

    def __init__(self, build, flags):
        self.child = subprocess.Popen([build / "retort", "mcp", *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      bufsize=0)
        self.fds = self.child.stdin.fileno(), self.child.stdout.fileno()
        self.ask(hello())

    def line(self, out):
        """Until the answer is whole; a notification may come before it."""
        to, back = self.fds
        os.write(to, out)
        got = b""
        while not (got.endswith(b"\n") and b'"id":1,' in got):
            piece = os.read(back, 1 << 16)
            if not piece:
                raise run.Failed("retort mcp ended with status %s" % self.child.wait())
            got += piece
        return got

    def ask(self, question):
        return self.line(json.dumps(question).encode() + b"\n")

    def times(self, question, expect, count):
        """Microseconds for each."""
        out, expect, took = json.dumps(question).encode() + b"\n", expect.encode(), []
        for _ in range(count):
            begun = time.perf_counter_ns()
            got = self.line(out)
            took.append((time.perf_counter_ns() - begun) / 1e3)
            if expect not in got:
                raise run.Failed("an answer without %r: %r" % (expect, got[:300]))
        return took

    def end(self):
        self.child.stdin.close()
        if self.child.wait(20) != 0:
            raise run.Failed("retort mcp ended with status %d" % self.child.returncode)


# --- the bench ---

class Bench(run.Bench):
    def __init__(self, server, load, pipes, report, quick):
        super().__init__(None, report, quick, 0)
        self.server, self.load, self.pipes = server, load, pipes
        self.http = {"legacy": OverHttp(server, False), "modern": OverHttp(server, True)}
        with server.client() as c:
            self.session = c.post("/v1/sessions", {}).expect(201).json["id"]
        first = json.loads(pipes.ask(message("tools/call", {"name": "run_code", "arguments": {"code": "1"}})).splitlines()[-1])
        self.own = first["result"]["_meta"]["dev.retort/sessionId"]

    def cells(self):
        """One cell after the other, four ways."""
        rounds, each = (2, 25) if self.quick else (20, 100)
        took = {way: {name: [] for name in ("assign", "print")} for way in ("rest", "legacy", "modern", "stdio")}
        steps = {"assign": (run.ASSIGN, "ok"), "print": (run.PRINT, "4")}

        def rest(name):
            step = {**over_http.cell(steps[name][0]), "path": "/v1/sessions/%s/execute" % self.session}
            took["rest"][name] += self.load.visit(1, step, repeat=each)["steps"][0]

        def mcp(era, name):
            step = self.http[era].step("tools/call", call_of(self.session, steps[name][0]), steps[name][1])
            took[era][name] += self.load.visit(1, step, repeat=each)["steps"][0]

        def stdio(name):
            question = message("tools/call", call_of(self.own, steps[name][0]))
            took["stdio"][name] += self.pipes.times(question, steps[name][1], each)

        variants = [lambda name=name: rest(name) for name in steps]
        variants += [lambda era=era, name=name: mcp(era, name) for era in self.http for name in steps]
        variants += [lambda name=name: stdio(name) for name in steps]
        self._rounds(rounds, variants)
        for name, what in (("assign", "x = 1"), ("print", "print(2+2)")):
            rest_ms = run.summary(took["rest"][name])
            self.report.row("%s, REST" % what, rest_ms)
            for way, text in (("legacy", "MCP over HTTP, " + LEGACY), ("modern", "MCP over HTTP, " + MODERN),
                              ("stdio", "MCP over stdio")):
                self.report.row("%s, %s" % (what, text), run.summary(took[way][name]), ("REST", rest_ms["p50"]),
                                (rest_ms["p50"] + COST_MS,))

    def lists(self):
        """What there is, as often as it goes."""
        each = 100 if self.quick else 3000
        for era, client in self.http.items():
            answer = self.load.visit(1, client.step("tools/list", {}, "run_code"), repeat=each)
            self.report.row("tools/list a second, HTTP, " + era, (1e6 * each / answer["took_us"], "a second"), n=each)
        took = self.pipes.times(message("tools/list", {}), "run_code", each)
        self.report.row("tools/list a second, stdio", (1e6 * each / sum(took), "a second"), n=each)

    def start(self, build):
        """From nothing to the first answer; no Python yet."""
        took = []
        for _ in range(3 if self.quick else 30):
            begun = time.perf_counter()
            one = OverPipes(build, ())
            took.append((time.perf_counter() - begun) * 1e6)
            one.end()
        self.report.row("retort mcp: started, initialize answered", run.summary(took), targets=(50,))


def measure(report, args):
    with over_http.serving(args) as (server, load):
        pipes = OverPipes(args.build, ["--preload", run.PRELOAD, "--python", sys.executable])
        try:
            bench = Bench(server, load, pipes, report, args.quick)
            bench.cells()
            bench.lists()
            bench.start(args.build)
        finally:
            pipes.end()


if __name__ == "__main__":
    sys.exit(over_http.main(__doc__, "bench-mcp", measure))
