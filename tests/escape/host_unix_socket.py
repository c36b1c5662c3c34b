"""Connects to a service of the host by its socket file: Docker's gives the host away
(CVE-2025-9074).

None of the host's directories with sockets is in the box; a link to one leads nowhere.
"""

import socket

from outside import cell, same

GUEST = """
def to(path):
    return attempt(socket.socket(socket.AF_UNIX).connect, path)


os.symlink(PATH, "/workspace/link")
report(
    answers=sorted(
        {
            to(p)
            for p in (
                PATH,
                "/workspace/link",
                "/var/run/docker.sock",
                "/run/docker.sock",
                "/run/dbus/system_bus_socket",
                "/run/systemd/private",
                "/run/containerd/containerd.sock",
            )
        }
    ),
    run=os.listdir("/run"),
)
"""


def check(box):
    path = box.tmp / "host.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(0o777)
        listener.listen()
        same(box.ok(box.run(cell(GUEST, PATH=str(path)))), {"answers": ["ENOENT"], "run": []})
