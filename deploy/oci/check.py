#!/usr/bin/env python3
"""check.py LAYOUT COMPOSE: runs the image under podman, with crun and runc and each set of privileges, and says what
it got; then with deploy/compose, by the program COMPOSE (podman-compose).

Ends with 1 when a row of `rows` is not what it says: that table is the one of docs/running.md. Everything is
done in a mount namespace of its own, in containers without a network, and with an image store that is thrown away.
"""

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
OWN = f"seccomp={HERE}/seccomp.json"

# Name; flags; whether code runs; rows of doctor that must be missing, or else weaker than they could be.
ROWS = [
    ("nothing", [], False, {"own /proc", "uts namespace"}),
    ("without unmask=ALL", ["--security-opt", OWN], False, {"own /proc"}),
    ("without a seccomp profile", ["--security-opt", "unmask=ALL"], False, {"uts namespace"}),
    ("an ordinary user", ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--security-opt", "unmask=ALL",
                          "--security-opt", OWN, "--read-only", "--tmpfs", "/tmp"], True, {"user ids", "cgroups"}),
    ("root", ["--user", "0", "--cap-drop", "ALL", "--cap-add", "SYS_ADMIN,SETUID,SETGID,SETPCAP,SETFCAP,CHOWN,FOWNER,"
              "DAC_OVERRIDE,KILL", "--security-opt", "unmask=ALL", "--security-opt", OWN], True, {"cgroups"}),
]


def hybrid():
    """crun takes cgroups of version 1 or 2, not both at once."""
    if os.path.ismount("/sys/fs/cgroup/unified"):
        subprocess.run(["umount", "/sys/fs/cgroup/unified"], check=True)


class Podman:
    def __init__(self, place, runtime):
        # No more than this machine's own limits, which only root of the host may raise.
        self.first = ["podman", "--root", f"{place}/root", "--runroot", f"{place}/run", "--storage-driver", "vfs",
                      "--cgroup-manager", "cgroupfs", "--runtime", runtime]
        self.run_flags = ["run", "--rm", "--network", "none", "--ulimit", "nofile=4096:4096", "--ulimit",
                          "nproc=4000:4000"]

    def call(self, *words, **more):
        return subprocess.run([*self.first, *words], capture_output=True, text=True, timeout=300, **more)

    def run(self, *words):
        return self.call(*self.run_flags, *words)


def doctor(podman, image, flags):
    done = podman.run(*flags, image, "doctor", "--json")
    try:
        document = json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"{flags}: {done.stderr[-500:]}")
    return document["exit"] == 0, {r["name"]: r["state"] for r in document["rows"] if r["section"] == "Layers"}


def check_layout(layout):
    """Every blob has the hash of its name, and the list of contents names what is in the image."""
    for blob in (layout / "blobs/sha256").iterdir():
        assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name, blob
    index = json.loads((layout / "index.json").read_text())
    image, listed = index["manifests"]
    spdx = json.loads((layout / "sbom.spdx.json").read_text())
    names = {p["name"] for p in spdx["packages"]}
    assert spdx["spdxVersion"] == "SPDX-2.3" and {"retort", "libc6", "python3-ipython"} <= names
    ids = [x["SPDXID"] for x in (*spdx["packages"], *spdx["files"])]
    assert len(ids) == len(set(ids))
    assert {f["fileName"] for f in spdx["files"]} >= {"./usr/bin/retort"}
    assert listed["artifactType"] == "application/spdx+json"
    print(f"layout: {len(names)} packages, {len(spdx['files'])} files of ours, "
          f"{sum(f.stat().st_size for f in layout.rglob('*') if f.is_file()) >> 20} MiB")
    return image["annotations"]["org.opencontainers.image.ref.name"]


def ask_for_42(podman, name, key):
    """From inside, as the container has no network."""
    ask = ("import json, urllib.request as u; r = u.Request('http://127.0.0.1:8000/v1/execute', "
           "json.dumps({'code': '6 * 7'}).encode(), {'authorization': 'Bearer %s', 'content-type': "
           "'application/json'}); print(json.load(u.urlopen(r))['result'])" % key)
    until = time.monotonic() + 120
    while True:
        done = podman.call("exec", name, "python3", "-c", ask)
        if done.stdout.strip() == "42":
            return
        assert time.monotonic() < until, done.stderr + podman.call("logs", name).stderr
        time.sleep(0.5)


def serve(podman, image, flags):
    """The image as it is meant to run: a key first, then a server that runs a cell and stops when it is told to."""
    volume = podman.call("volume", "create").stdout.strip()
    mount = ["-v", f"{volume}:/var/lib/retort:U"]
    key = podman.run(*flags, *mount, image, "keys", "create", "--tenant", "t", "--quiet").stdout.strip()
    assert key.startswith("rt_"), key
    name = podman.call("run", "-d", *podman.run_flags[2:], *flags, *mount, image).stdout.strip()
    ask_for_42(podman, name, key)
    uid = podman.call("exec", name, "stat", "-c", "%u", "/proc/1").stdout.strip()
    podman.call("stop", "-t", "60", name)
    status = podman.call("inspect", "-f", "{{.State.ExitCode}}", name).stdout.strip()
    podman.call("rm", "-f", name)
    assert uid == "10001" and status == "0", (uid, status)
    print("serve: a cell gave 42, as user 10001; SIGTERM ended it with 0")


# What this machine cannot give: a network of its own, and more than its own limits.
LESS = """
services:
  retort:
    network_mode: none
    ulimits: {nofile: 4096, nproc: 4000}
"""


def compose(podman, image, place, program):
    """deploy/compose/compose.yaml as it stands, by the commands in it."""
    own = Path(place, "bin")
    own.mkdir()
    words = shlex.join([shutil.which("podman"), *podman.first[1:]])
    own.joinpath("podman").write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    own.joinpath("podman").chmod(0o755)
    Path(place, "less.yaml").write_text(LESS)
    env = {**os.environ, "PATH": f"{own}:{os.environ['PATH']}", "RETORT_IMAGE": image}

    def call(*words):
        done = subprocess.run([program, "-f", "compose.yaml", "-f", f"{place}/less.yaml", *words], capture_output=True,
                              text=True, timeout=300, env=env, cwd=HERE.parent / "compose")
        assert done.returncode == 0, done.stderr
        return done.stdout

    key = call("run", "-T", "--rm", "retort", "keys", "create", "--tenant", "acme", "--quiet").split()[-1]
    assert key.startswith("rt_"), key
    try:
        call("up", "-d")
        name = podman.call("ps", "--format", "{{.Names}}").stdout.strip()
        ask_for_42(podman, name, key)
        healthy = podman.call("healthcheck", "run", name)
        assert healthy.returncode == 0, healthy.stdout + healthy.stderr
    finally:
        call("down", "-v")
    print("compose: a cell gave 42, and the health check is content")


def main(layout, compose_program):
    layout, bad = Path(layout).resolve(), 0
    tag = check_layout(layout)
    hybrid()
    place = tempfile.mkdtemp(prefix="retort-oci-", dir="/var/tmp")
    try:
        for runtime in ("crun", "runc"):
            podman = Podman(place, runtime)
            done = podman.call("pull", "-q", f"oci:{layout}:{tag}")
            image = done.stdout.strip()
            assert done.returncode == 0, done.stderr
            for name, flags, runs, not_well in ROWS:
                ran, rows = doctor(podman, image, flags)
                found = {row for row, state in rows.items() if state != "ok"}
                missing = {row for row, state in rows.items() if state == "missing"}
                good = ran == runs and (found <= not_well if runs else missing == not_well)
                bad += not good
                print(f"{'ok ' if good else 'NOT'} {runtime} {name}: {'runs code' if ran else 'runs none'}; "
                      f"missing {sorted(missing)}, weaker {sorted(found - missing)}")
            serve(podman, image, ROWS[3][1])
        compose(Podman(place, "crun"), image, place, compose_program)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 1 if bad else 0


if __name__ == "__main__":
    if len(sys.argv) == 3:
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, __file__, "-",
                              *sys.argv[1:]])
    sys.exit(main(*sys.argv[2:]))
