"""A Server whose state directory is a file system of its own: one that can be full, broken or cut off."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from support import retort
from support.server import Server, mounts


def run(*words):
    subprocess.run(list(map(str, words)), check=True, capture_output=True)


class Disk(Server):
    """with Disk(flag, ..., options="size=8m") as server: a tmpfs; image: a file with an ext4 instead."""

    def __init__(self, *flags, options="size=32m", image=None, **more):
        super().__init__(*flags, **more)
        self.state.mkdir(mode=0o700)
        try:
            if image:
                # The journal is written when something is synced, and not by the clock.
                run("mount", "-o", "loop,commit=300,noatime", image, self.state)
            else:
                run("mount", "-t", "tmpfs", "-o", options, "retort-test-disk", self.state)
        except BaseException:
            super().discard()
            raise
        self.mounts = mounts()

    def discard(self):
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None
        self.unmount()
        super().discard()

    def unmount(self):
        # A process that has just ended may still have a file open.
        retort.wait_until(lambda: not os.path.ismount(self.state) or
                          subprocess.run(["umount", self.state], capture_output=True).returncode == 0,
                          "the file system can be unmounted", retort.SECONDS)

    def remount(self, options):
        run("mount", "-o", "remount," + options, self.state)

    def metric(self, name):
        with self.client() as client:
            lines = client.get("/metrics").expect(200).text.splitlines()
        return next(int(float(line.split()[1])) for line in lines if line.startswith(name + " "))

    def flushes(self):
        return self.metric("retort_store_flushes_total")

    def wait_flushed(self):
        retort.wait_until(lambda: self.metric("retort_store_unflushed") == 0, "all of it on the disk",
                          retort.SECONDS)


def make_image(path, megabytes=64):
    with open(path, "wb") as f:
        f.truncate(megabytes << 20)
    run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", path)
    return path


@contextlib.contextmanager
def cut(server, image, copy):
    """What a power cut would leave of the disk at this moment: the server writes nothing while it is
    copied, and what the kernel had begun to write is written. It does not go on before the copy has been
    looked at: on a slow machine its clients would fill the disk meanwhile."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        retort.wait_until(lambda: state_of(server.pid) == "T", "the server is stopped")
        before, now = None, Path(image).read_bytes()
        while now != before:
            time.sleep(0.05)
            before, now = now, Path(image).read_bytes()
        Path(copy).write_bytes(now)
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def state_of(pid):
    return retort.field(pid, "State")[0].upper()
