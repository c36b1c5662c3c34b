"""What the machine is, and what processes on it hold: /proc read with care."""

import contextlib
import importlib.metadata
import os
import platform
import subprocess
import sys
import time

PACKAGES = ("numpy", "pandas", "matplotlib", "ipython", "ipykernel", "jupyter_client")


def read(path):
    """The text of a file of /proc or cgroupfs; None when it is gone or not ours to see."""
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return None


# --- facts ---

def _cpu():
    for line in (read("/proc/cpuinfo") or "").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def _version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _bwrap():
    try:
        return subprocess.run(["bwrap", "--version"], capture_output=True, text=True).stdout.strip()
    except OSError:
        return None


def busy(seconds=0.5):
    """The share of the processors that somebody uses just now."""
    def ticks():
        numbers = [int(word) for word in read("/proc/stat").split("\n", 1)[0].split()[1:]]
        return sum(numbers[:8]), numbers[3] + numbers[4]  # all, of these idle or waiting for a disk
    all_before, idle_before = ticks()
    time.sleep(seconds)
    all_after, idle_after = ticks()
    return 1 - (idle_after - idle_before) / max(1, all_after - all_before)


def facts():
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "memory_mb": pages >> 20,
        "busy_before": busy(),
        "user": "root" if os.geteuid() == 0 else "rootless",
        "python": platform.python_version(),
        "python_path": sys.executable,
        "packages": {name: _version(name) for name in PACKAGES},
        "bubblewrap": _bwrap(),
    }


# --- processes ---

def _children():
    found = {}
    for name in os.listdir("/proc"):
        text = read("/proc/%s/stat" % name) if name.isdigit() else None
        if text:
            # The name in brackets is the process's own choice; what follows it is not.
            parent = int(text.rpartition(")")[2].split()[1])
            found.setdefault(parent, []).append(int(name))
    return found


def below(pid):
    """Every process below this one."""
    children = _children()
    todo, found = list(children.get(pid, ())), []
    while todo:
        one = todo.pop()
        found.append(one)
        todo += children.get(one, ())
    return found


def alive(pid):
    text = read("/proc/%d/stat" % pid)
    return text is not None and text.rpartition(")")[2].split()[0] != "Z"


def open_files(pid):
    try:
        return len(os.listdir("/proc/%d/fd" % pid))
    except OSError:
        return None


def in_sandbox(pid, server):
    """True where the process lives in a pid namespace two below the server's: a sandbox's."""
    def depth(which):
        for line in (read("/proc/%d/status" % which) or "").splitlines():
            if line.startswith("NSpid:"):
                return len(line.split())
        return 0
    return depth(pid) >= depth(server) + 2


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


# --- memory, in MB ---

def available():
    for line in read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/meminfo has no MemAvailable")


def rollup(pids):
    """Sums over the processes; "unread" says how many would not be looked at."""
    total = {"pss": 0.0, "private_dirty": 0.0, "read": 0, "unread": 0}
    for pid in pids:
        text = read("/proc/%d/smaps_rollup" % pid)
        if text is None:
            total["unread"] += 1
            continue
        total["read"] += 1
        for line in text.splitlines():
            key, _, rest = line.partition(":")
            name = {"Pss": "pss", "Private_Dirty": "private_dirty"}.get(key)
            if name:
                total[name] += int(rest.split()[0]) / 1024
    return total


# --- cgroups ---

def _mounts():
    """controller -> mount point; "" for version 2."""
    found = {}
    for line in (read("/proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split()[:3]
        if kind == "cgroup2":
            found[""] = left.split()[4]
        elif kind == "cgroup":
            for option in options.split(","):
                found.setdefault(option, left.split()[4])
    return found


def cgroup(pid):
    """(version, directory) of the group the engine put this process into; (None, None) if none."""
    mounts = _mounts()
    for line in (read("/proc/%d/cgroup" % pid) or "").splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            if "/retort/" in path and name in ("", "memory") and name in mounts:
                return (1 if name else 2), mounts[name] + path
    return None, None


def cgroup_charge(directory):
    """MB the kernel charges to a group, page tables and slab included; None where not told."""
    for name in ("memory.current", "memory.usage_in_bytes"):
        text = read(os.path.join(directory, name))
        if text:
            return int(text) / 2**20
    return None


# --- sandboxes, by their pid namespaces ---

def boxes(server):
    """{pid namespace: its processes} of every sandbox."""
    found = {}
    for pid in below(server):
        if in_sandbox(pid, server):
            with contextlib.suppress(OSError):  # it has ended
                found.setdefault(os.readlink("/proc/%d/ns/pid" % pid), []).append(pid)
    return found


def weigh(server):
    """What each sandbox holds, in MB: what its cgroups are charged, None where that is not told, and PSS."""
    held = {}
    for box, pids in boxes(server).items():
        charges = [cgroup_charge(directory)
                   for directory in {directory for _, directory in map(cgroup, pids) if directory}]
        held[box] = {"pss": rollup(pids)["pss"],
                     "cgroup": sum(charges) if charges and None not in charges else None}
    return held
