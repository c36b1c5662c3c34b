"""Meets another live session on loopback, by an abstract name or by a file.

Network and mount namespaces are each session's own.
"""

import secrets

from outside import cell, same

VICTIM = """
listeners = [socket.create_server(("127.0.0.1", PORT))]
for name in "\\0" + NAME, "/tmp/" + NAME, "/dev/shm/" + NAME:
    s = socket.socket(socket.AF_UNIX)
    s.bind(name)
    s.listen()
    listeners.append(s)
print("up", flush=True)
time.sleep(20)
"""

GUEST = """
unix = [
    attempt(socket.socket(socket.AF_UNIX).connect, p)
    for p in ("\\0" + NAME, "/tmp/" + NAME, "/dev/shm/" + NAME)
]
report(
    unix=unix,
    tcp=attempt(socket.create_connection, ("127.0.0.1", PORT), 2),
    bind=attempt(socket.create_server, ("127.0.0.1", PORT)),
)
"""


def check(box):
    given = {"PORT": 18765, "NAME": "retort-escape-" + secrets.token_hex(8)}
    victim = box.start(cell(VICTIM, **given))
    victim.wait_for("up")
    same(
        box.ok(box.run(cell(GUEST, **given))),
        {"unix": ["ECONNREFUSED", "ENOENT", "ENOENT"], "tcp": "ECONNREFUSED", "bind": "ok"},
    )
