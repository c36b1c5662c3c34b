"""Connects to another machine.

No route leads out of the sandbox's network namespace. The program runs in a network namespace of
ours with a cable to a second one: it could reach the listener there, and its guest cannot. Two of
the listener's addresses stand for the metadata service and for a private network.
"""

import os
import subprocess

from outside import Island, cell, same

GUEST = """
def route(address):  # connect() on a datagram socket looks for a route and sends nothing
    return attempt(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect, (address, 9))


def tcp(address):
    s = socket.socket()
    s.settimeout(2)
    return attempt(s.connect, (address, 8080))


report(
    routes=sorted({route(a) for a in ADDRESSES}),
    six=attempt(socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).connect, ("2001:db8::1", 9)),
    tcp=sorted({tcp(a) for a in ADDRESSES if CABLE}),
    broadcast=attempt(
        lambda: (
            s := socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
            s.setsockopt(1, 6, 1),
            s.connect(("255.255.255.255", 9)),
        )
    ),
)
"""

LISTENER = """
import select, socket

s = socket.create_server(("0.0.0.0", 8080))
print("up", flush=True)
input()
print(len(select.select([s], [], [], 0)[0]))
"""

CONTROL = (
    "import socket, sys; [socket.create_connection((a, 8080), 2).close() for a in sys.argv[1:]]"
)


def check(box):
    addresses = [Island.FAR, "169.254.169.254", "10.99.99.99"]
    want = {
        "routes": ["ENETUNREACH"],
        "six": "ENETUNREACH",
        "tcp": ["ENETUNREACH"],
        "broadcast": "ENETUNREACH",
    }
    if os.geteuid() != 0:
        same(box.ok(box.run(cell(GUEST, ADDRESSES=addresses, CABLE=False))), want | {"tcp": []})
        return
    island = Island(box.stack, also=addresses[1:])
    listen = [*island.far, "/usr/bin/python3", "-c", LISTENER]
    server = subprocess.Popen(listen, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    box.stack.callback(server.kill)
    same(server.stdout.readline(), "up\n", "the listener")
    same(box.ok(box.run(cell(GUEST, ADDRESSES=addresses, CABLE=True), prefix=island.near)), want)
    same(server.communicate("\n")[0], "0\n", "connections that arrived")
    server = subprocess.Popen(listen, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    box.stack.callback(server.kill)
    server.stdout.readline()
    subprocess.run([*island.near, "/usr/bin/python3", "-c", CONTROL, *addresses], check=True)
    same(server.communicate("\n")[0], "1\n", "the same addresses, from outside the box")
