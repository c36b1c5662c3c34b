"""Uses a descriptor that was left open: the runc escape CVE-2024-21626 was one of a directory.

A cell has /dev/null, two pipes and one socket, and nothing else.
"""

GUEST = """
import stat

kinds = {}
for n in range(1024):
    try:
        mode = os.fstat(n).st_mode
    except OSError:
        continue
    kinds[str(n)] = stat.filemode(mode)[0]
report(
    zero=os.readlink("/proc/self/fd/0"),
    kinds="".join(kinds[k] for k in ("0", "1", "2")),
    rest=sorted(v for k, v in kinds.items() if int(k) > 2),
    directories=[k for k, v in kinds.items() if v == "d"],
)
"""

EXPECT = {"zero": "/dev/null", "kinds": "cpp", "rest": ["s"], "directories": []}
