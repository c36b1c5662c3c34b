#!/usr/bin/env python3
"""Measures `1+1` through each door, beside native REST that does the same.

    doors.py [--quick] [--calm SECONDS] [--build DIR] [--out FILE]

A door that keeps its variables is held against REST in one warm session, a door that keeps nothing
against REST with a new session for each call. They take turns within one run. What a door may cost
is a tenth of a millisecond over REST.
"""

import json
import sys

import over_http
import run

COST_MS = 0.1
# In milliseconds. Qwen-Agent's code_interpreter reads "until 0.2 s of silence" before each call and
# after it, so that 1+1 takes 0.42 s: two waits, on any machine.
QWEN = ("Qwen-Agent's own, two waits of 0.2 s", 420)
KEPT, ALONE = "REST, in a session", "REST, execute alone"

ACCEPT = {"Accept": "application/json, text/event-stream"}


def post(path, body, expect):
    return {"method": "POST", "path": path, "body": json.dumps(body), "expect": expect}


def rest(client):
    session = client.post("/v1/sessions", {}).expect(201).json["id"]
    return post("/v1/sessions/%s/execute" % session, {"code": "1+1"}, '"result":"2"')


def alone(client):
    return post("/v1/execute", {"code": "1+1"}, '"result":"2"')


def azure(path, body, expect):
    return lambda client: post("/azure/pools/default/%s?identifier=bench-azure" % path, body, expect)


def azure_mcp(client):
    return post("/azure/pools/default/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "runPythonCodeInRemoteEnvironment",
        "arguments": {"environmentId": "bench-azure", "pythonCode": "1+1"}}}, '"result":2')


def qwen(client):
    return post("/qwen/code_interpreter?instance=bench", {"code": "1+1"}, "execute_result")


def executor(client):
    return post("/qwen/python_executor", {"code": "print(1+1)"}, '["2","Done"]')


def prisme(client):
    return post("/prisme/execute_python", {"code": "1+1"}, '"result":2')


def function(client):
    body = {"functions": {"two": {"code": "return 1+1"}}}
    client.post("/prisme/v2/functions/bench", body).expect(200)
    return post("/prisme/v2/functions/bench/run/two", {}, '"result":2')


def over_mcp(path, tool, expect):
    """A tool of a room of its own, in a conversation."""
    def make(client):
        begun = client.post(path, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"}}}, headers=ACCEPT).expect(200)
        call = post(path, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": tool, "arguments": {"code": "1+1"}}}, expect)
        return {**call, "headers": "Accept: %s\r\nMcp-Session-Id: %s\r\n" % (
            ACCEPT["Accept"], begun.headers["mcp-session-id"])}
    return make


# Name; a function from a client to the request that runs 1+1; the row of REST that does the same, or
# None for those rows themselves; another anchor, where there is one.
DOORS = [
    (KEPT, rest, None, None),
    (ALONE, alone, None, None),
    ("Azure, code/execute", azure("code/execute", {"properties": {"code": "1+1"}}, '"result":2'), KEPT, None),
    ("Azure, executions", azure("executions", {"code": "1+1"}, '"executionResult":2'), KEPT, None),
    ("Azure, MCP", azure_mcp, KEPT, None),
    ("Qwen, code_interpreter", qwen, KEPT, QWEN),
    ("Qwen, MCP", over_mcp("/qwen/mcp", "code_interpreter", "execute_result"), KEPT, QWEN),
    ("Qwen, python_executor", executor, ALONE, None),
    ("Prisme, execute_python", prisme, ALONE, None),
    ("Prisme, a function", function, ALONE, None),
    ("Prisme, MCP", over_mcp("/prisme/mcp", "execute_python", '\\"result\\":2'), ALONE, None),
]


class Bench(run.Bench):
    def __init__(self, server, load, report, quick):
        super().__init__(None, report, quick, 0)
        self.load = load
        with server.client() as client:
            self.steps = {name: make(client) for name, make, _, _ in DOORS}

    def doors(self):
        rounds, each = (2, 25) if self.quick else (20, 100)
        took = {name: [] for name in self.steps}

        def ask(name):
            took[name] += self.load.visit(1, self.steps[name], repeat=each)["steps"][0]

        for name in self.steps:
            self.load.visit(1, self.steps[name])  # its session is made, and warm
        self._rounds(rounds, [lambda name=name: ask(name) for name in self.steps])
        sums = {name: run.summary(took[name]) for name in took}
        for name, _, base, anchor in DOORS:
            rest_ms = sums[base]["p50"] if base else None
            self.report.row("1+1, " + name, sums[name], anchor or (base and (base, rest_ms)),
                            (rest_ms + COST_MS,) if base else ())


def measure(report, args):
    with over_http.serving(args) as (server, load):
        Bench(server, load, report, args.quick).doors()


if __name__ == "__main__":
    sys.exit(over_http.main(__doc__, "bench-doors", measure))
