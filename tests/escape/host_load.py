"""Sees how busy the host is, and so when its neighbours work.

The load and the processors' counters are not the host's: they do not move.
"""

GUEST = """
def numbers():
    cpus = [l.split() for l in open("/proc/stat") if l.startswith("cpu")]
    return open("/proc/loadavg").read().split()[:3], cpus

before = numbers()
end = time.process_time() + 0.3
while time.process_time() < end:
    pass
after = numbers()
keys = [l.split()[0] for l in open("/proc/stat") if not l.startswith("cpu")]
report(
    load=after[0],
    load_by_call=os.getloadavg(),
    moved=before != after,
    counted=sorted({n for row in after[1] for n in row[1:]}),
    more=keys,
)
"""

EXPECT = {
    "load": ["0.00", "0.00", "0.00"],
    "load_by_call": [0, 0, 0],
    "moved": False,
    "counted": ["0"],
    "more": ["intr", "ctxt", "btime", "processes", "procs_running", "procs_blocked"],
}
