"""Becomes the server of a World: started by world.py, as the root of new namespaces."""

import json
import os
import socket
import subprocess
import sys


def enter(plan):
    """In the new namespaces, as their root: furnishes them, hands out the listeners, becomes the server."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in plan["addresses"]:
        subprocess.run(["ip", "address", "add", address, "dev", "lo"], check=True)
    for where, what in plan["mounts"].items():
        subprocess.run(["mount", "--bind", what, where], check=True)
    with socket.socket(fileno=plan["fd"]) as parent:
        listeners = [socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True,
                                          backlog=128) for port in plan["ports"]]
        socket.send_fds(parent, [b"x"], [listener.fileno() for listener in listeners])
    for listener in listeners:
        listener.close()
    os.execvp(plan["command"][0], plan["command"])


if __name__ == "__main__":
    enter(json.loads(sys.argv[1]))
