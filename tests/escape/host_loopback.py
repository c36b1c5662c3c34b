"""Connects to a service on the host's loopback, by every address loopback has.

The network namespace has a loopback of its own, where nobody listens.
"""

import select
import socket

from outside import cell, same

GUEST = """
def tcp(family, address, port=None):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.settimeout(2)
    return attempt(s.connect, (address, port or PORT))


def own():
    s = socket.create_server(("127.0.0.1", 0))
    return tcp(socket.AF_INET, "127.0.0.1", s.getsockname()[1])


udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.sendto(b"out", ("127.0.0.1", PORT))
report(
    four=sorted(
        {tcp(socket.AF_INET, a) for a in ("127.0.0.1", "127.0.1.1", "127.255.255.254", "0.0.0.0")}
    ),
    six=sorted({tcp(socket.AF_INET6, a) for a in ("::1", "::ffff:127.0.0.1", "::")}),
    own=own(),
)
"""


def check(box):
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(
        socket.AF_INET, socket.SOCK_DGRAM
    ) as udp:
        port = tcp.getsockname()[1]
        udp.bind(("127.0.0.1", port))
        with socket.create_connection(("127.0.0.1", port)):
            tcp.accept()[0].close()
        run = box.run(cell(GUEST, PORT=port))
        same(box.ok(run), {"four": ["ECONNREFUSED"], "six": ["ECONNREFUSED"], "own": "ok"})
        same(select.select([tcp, udp], [], [], 0.1)[0], [], "what arrived at the host's listener")
