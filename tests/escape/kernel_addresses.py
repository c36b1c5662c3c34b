"""Learns where the kernel lies, the first step of every kernel exploit.

The lists of them are not there; what is told of a process has zeros in their place.
"""

GUEST = """
def addresses(path):
    try:
        return sum(int(line.split()[0], 16) != 0 for line in open(path))
    except OSError as e:
        return 0


report(
    symbols=addresses("/proc/kallsyms"),
    modules=sum(not line.rstrip().endswith("0x0000000000000000") for line in open("/proc/modules"))
    if os.access("/proc/modules", os.R_OK)
    else 0,
    wchan=open("/proc/self/wchan").read() in ("0", ""),
    stack=attempt(lambda: open("/proc/self/stack").read()),
    stat_wchan=open("/proc/self/stat").read().rsplit(") ", 1)[1].split()[32],
)
"""

EXPECT = {"symbols": 0, "modules": 0, "wchan": True, "stack": "EACCES", "stat_wchan": "0"}
