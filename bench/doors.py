#!/usr/bin/env python3
"""Measures `1+1` through each door, beside native REST, in one warm session each.

    doors.py [--quick] [--calm SECONDS] [--build DIR] [--out FILE]

The doors take turns within one run. What a door may cost is a tenth of a millisecond over REST.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import machine
import over_http
import run

ROOT = pathlib.Path(__file__).resolve().parent.parent
COST_MS = 0.1
# Numbers that others have published, not measured here; in milliseconds.
QWEN = ("Qwen-Agent's own, as published", 420)


ACCEPT = {"Accept": "application/json, text/event-stream"}


def post(path, body, expect):
    return {"method": "POST", "path": path, "body": json.dumps(body), "expect": expect}


def rest(client):
    session = client.post("/v1/sessions", {}).expect(201).json["id"]
    return post("/v1/sessions/%s/execute" % session, {"code": "1+1"}, '"result":"2"')


def azure(path, body, expect):
    return lambda client: post("/azure/pools/default/%s?identifier=bench-azure" % path, body, expect)


def azure_mcp(client):
    return post("/azure/pools/default/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "runPythonCodeInRemoteEnvironment",
        "arguments": {"environmentId": "bench-azure", "pythonCode": "1+1"}}}, '"result":2')


def qwen(client):
    return post("/qwen/code_interpreter?instance=bench", {"code": "1+1"}, "execute_result")


def qwen_mcp(client):
    begun = client.post("/qwen/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}},
        headers=ACCEPT).expect(200)
    return {**post("/qwen/mcp", {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "code_interpreter", "arguments": {"code": "1+1"}}}, "execute_result"),
        "headers": "Accept: %s\r\nMcp-Session-Id: %s\r\n" % (ACCEPT["Accept"],
                                                            begun.headers["mcp-session-id"])}


# Name; a function from a client to the request that runs 1+1; an anchor, or None: REST, the first row.
DOORS = [
    ("REST", rest, None),
    ("Azure, code/execute", azure("code/execute", {"properties": {"code": "1+1"}}, '"result":2'), None),
    ("Azure, executions", azure("executions", {"code": "1+1"}, '"executionResult":2'), None),
    ("Azure, MCP", azure_mcp, None),
    ("Qwen, code_interpreter", qwen, QWEN),
    ("Qwen, MCP", qwen_mcp, QWEN),
]


class Bench(run.Bench):
    def __init__(self, server, load, report, quick):
        super().__init__(None, report, quick, 0)
        self.load = load
        with server.client() as client:
            self.steps = {name: make(client) for name, make, _ in DOORS}

    def doors(self):
        rounds, each = (2, 25) if self.quick else (20, 100)
        took = {name: [] for name in self.steps}

        def ask(name):
            took[name] += self.load.visit(1, self.steps[name], repeat=each)["steps"][0]

        for name in self.steps:
            self.load.visit(1, self.steps[name])  # its session is made, and warm
        self._rounds(rounds, [lambda name=name: ask(name) for name in self.steps])
        base = run.summary(took["REST"])
        self.report.row("1+1, REST", base)
        for name, _, anchor in DOORS[1:]:
            self.report.row("1+1, " + name, run.summary(took[name]), anchor or ("REST", base["p50"]),
                            (base["p50"] + COST_MS,))


def measure(report, args):
    for place in ("tests", "tests/serve"):
        sys.path.append(str(ROOT / place))
    os.environ["RETORT_BIN"] = str(args.build / "retort")
    from server import Server

    with Server(*over_http.FLAGS, "--python", sys.executable, small=False) as server:
        load = over_http.Load(args.build, server.port)
        try:
            Bench(server, load, report, args.quick).doors()
        finally:
            load.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few samples: does it run at all?")
    parser.add_argument("--calm", type=int, default=0, metavar="SECONDS",
                        help="wait this long for others to let the machine alone (0)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--out", type=pathlib.Path, help="the JSON file (BUILD/bench-doors.json)")
    args = parser.parse_args()

    machine.wait_until(lambda: machine.busy(2) < run.CALM, args.calm)
    facts, report = machine.facts(), run.Report()
    try:
        measure(report, args)
    except (run.Failed, RuntimeError, AssertionError, OSError, subprocess.SubprocessError) as error:
        report.fail(str(error))
    over_http.show(report, facts)
    out = args.out or args.build / "bench-doors.json"
    out.write_text(json.dumps({"version": 1, "quick": args.quick, "machine": facts, "rows": report.rows,
                               "failed": report.wrong}, indent=1) + "\n")
    print("the numbers are in %s" % out)
    for text in report.wrong:
        print("failed: %s" % text)
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
