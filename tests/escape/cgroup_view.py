"""Finds its cgroup, and from there the host's: which container, which session, which neighbours.

The cgroup namespace starts at the sandbox's own group.
"""

GUEST = """
report(
    paths=sorted({line.strip().split(":", 2)[2] for line in open("/proc/self/cgroup")}),
    init=sorted({line.strip().split(":", 2)[2] for line in open("/proc/1/cgroup")}),
    mounted=any("cgroup" in line.split(" - ")[1] for line in open("/proc/self/mountinfo")),
)
"""

EXPECT = {"paths": ["/"], "init": ["/"], "mounted": False}
