"""Counts the host's processors and learns which of them it was given.

/proc/cpuinfo and /proc/stat have as many as the session may use at once.
"""

import os

from outside import cell, same

GUEST = """
rows = [line.split(":") for line in open("/proc/cpuinfo") if ":" in line]
values = {}
for key, value in rows:
    values.setdefault(key.strip(), []).append(value.strip())
report(
    processors=values["processor"],
    of_stat=[l.split()[0] for l in open("/proc/stat") if l.startswith("cpu")],
    of_libc=[os.cpu_count(), os.sysconf("SC_NPROCESSORS_ONLN"), os.sysconf("SC_NPROCESSORS_CONF")],
    topology=sorted({v for k in ("physical id", "core id", "apicid") for v in values.get(k, [])}),
    microcode=values.get("microcode"),
)
"""


def check(box):
    for cpus in ("0.5", "1", "2"):
        n = min(max(1, int(float(cpus))), os.cpu_count())
        said = box.ok(box.run(cell(GUEST), flags=["--cpus", cpus]))
        said["topology"] = [t for t in said["topology"] if int(t) >= n]
        same(
            said,
            {
                "processors": [str(i) for i in range(n)],
                "of_stat": ["cpu", *(f"cpu{i}" for i in range(n))],
                "of_libc": [n, n, n],
                "topology": [],
                "microcode": None,
            },
            f"with --cpus {cpus} the guest reported",
        )
