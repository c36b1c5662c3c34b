"""Carries data out in the names it looks up: the "no network" mode of AWS AgentCore still
resolved DNS.

There is no name server, and the loopback that a resolver falls back to is the sandbox's own. The
program runs in a network namespace of ours, where a name server waits on loopback and hears
nothing.
"""

import os
import subprocess

from outside import Island, cell, same

GUEST = """
def lookup(name):
    try:
        return socket.getaddrinfo(name, 80)[0][4][0]
    except socket.gaierror as e:
        return {socket.EAI_AGAIN: "EAI_AGAIN", socket.EAI_NONAME: "EAI_NONAME"}.get(
            e.errno, e.errno
        )


def direct(server):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(0.3)
    return attempt(lambda: (s.connect((server, 53)), s.send(b"\\0" * 30), s.recv(100)))


report(
    name=lookup("data.example.invalid"),
    local=lookup("localhost"),
    own=direct("127.0.0.1"),
    servers=[line for line in open("/etc/resolv.conf") if line.startswith("nameserver")],
)
"""

LISTENER = """
import select, socket

s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("0.0.0.0", 53))
print("up", flush=True)
input()
print(len(select.select([s], [], [], 0)[0]))
"""


def check(box):
    want = {"name": "EAI_NONAME", "local": "127.0.0.1", "own": "ECONNREFUSED", "servers": []}
    if os.geteuid() != 0:
        same(box.ok(box.run(cell(GUEST))), want)
        return
    island = Island(box.stack)
    server = subprocess.Popen(
        [*island.near, "/usr/bin/python3", "-c", LISTENER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    box.stack.callback(server.kill)
    same(server.stdout.readline(), "up\n", "the name server")
    same(box.ok(box.run(cell(GUEST), prefix=island.near)), want)
    same(server.communicate("\n")[0], "0\n", "datagrams that the name server heard")
