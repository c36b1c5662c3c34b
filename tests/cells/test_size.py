"""A session that asks how large its machine is hears its own limits, by whichever way it asks."""

import os

from support import retort

MEMORY, DISK, TMP = 300 << 20, 96 << 20, 48 << 20

session = retort.Session("--memory", "300M", "--cpus", "1", "--disk", "96M", "--tmp", "48M")
pair = retort.Session("--cpus", "2")

memory = session.cell("""
rows = dict(line.split(":") for line in open("/proc/meminfo"))
total, available = (int(rows[k].split()[0]) * 1024 for k in ("MemTotal", "MemAvailable"))
needed = {"MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "Active", "Inactive", "Shmem",
          "Slab", "SReclaimable", "SwapTotal", "SwapFree"}
import os
pages = [os.sysconf(n) * os.sysconf("SC_PAGE_SIZE") for n in ("SC_PHYS_PAGES", "SC_AVPHYS_PAGES")]
print(total, pages[0], 0 < pages[1] <= pages[0], 0 < available <= total, needed - set(rows))
""")
processors = session.cell("""
import multiprocessing, os, joblib
print(os.cpu_count(), multiprocessing.cpu_count(), joblib.cpu_count(), len(os.sched_getaffinity(0)))
""")
disk = session.cell("""
import os, shutil
print([shutil.disk_usage(p).total for p in (".", "/workspace", "/tmp", "/dev/shm", os.environ["HOME"])])
""")
fills = session.cell("""
before = shutil.disk_usage("/workspace").free
open("some.bin", "wb").write(bytes(4 << 20))
print(before - shutil.disk_usage("/workspace").free)
""")
clock = session.cell("""
import time
up, mono, boot = (float(open("/proc/uptime").read().split()[0]), time.monotonic(),
                  time.clock_gettime(time.CLOCK_BOOTTIME))
btime = next(int(l.split()[1]) for l in open("/proc/stat") if l.startswith("btime"))
print(0 < mono <= boot, abs(up - boot) < 30, abs(time.time() - boot - btime) < 30)
deadline = time.monotonic() + 0.01
time.sleep(0.01)
print(time.monotonic() >= deadline)
""")
tools = session.shell(
    "free -b | awk '/^Mem/ {print $2}'; env -u OMP_NUM_THREADS nproc; getconf _NPROCESSORS_ONLN; uptime | grep -c 'load average: 0.00'; "
    "ps -e -o comm= | grep -c python3; top -bn1 | grep -c python3; df -B1 --output=size /workspace | tail -1; "
    "df >/dev/null && echo df; pgrep -c python3; w -h; grep -c . /proc/version; grep -q ' /workspace ' /proc/mounts && echo mounts; "
    "grep -c lo: /proc/net/dev")
two = pair.cell("""
import os, joblib
print(os.cpu_count(), joblib.cpu_count(), len(os.sched_getaffinity(0)), open("/proc/cpuinfo").read().count("processor\\t"))
""")


def test_memory():
    assert memory.stdout == f"{MEMORY} {MEMORY} True True set()\n"


def test_processors():
    assert processors.stdout == "1 1 1 1\n"
    n = min(2, len(os.sched_getaffinity(0)))  # what this test may use, and the server after it
    assert two.stdout == f"{n} {n} {n} {n}\n"


def test_disk():
    assert disk.stdout == f"{[DISK, DISK, TMP, TMP, TMP]}\n"
    assert fills.stdout == f"{4 << 20}\n"


def test_clock():
    assert clock.stdout == "True True True\nTrue\n"


def test_tools_of_the_shell():
    init_and_kernel = "2"
    assert tools.stdout.split() == [
        str(MEMORY), "1", "1", "1", init_and_kernel, init_and_kernel, str(DISK), "df", init_and_kernel,
        "1", "mounts", "1"]
