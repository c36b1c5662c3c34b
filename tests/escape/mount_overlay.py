"""Mounts an overlay whose layers it owns, to carry a setuid file up (CVE-2021-3493, CVE-2023-0386).

Refused by seccomp: neither the user namespace nor the mount can be had.
"""

GUEST = """
for d in "lower", "upper", "work", "merged":
    os.mkdir("/tmp/" + d)
options = b"lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work"
report(
    namespace=syscall("unshare", 0x10000000 | 0x20000),
    overlay=syscall("mount", b"overlay", b"/tmp/merged", b"overlay", 0, options),
    fuse=syscall(
        "mount", b"fuse", b"/tmp/lower", b"fuse", 0, b"fd=3,rootmode=40000,user_id=0,group_id=0"
    ),
    device=reopen("/dev/fuse", os.O_RDWR),
)
"""

EXPECT = {"namespace": "EPERM", "overlay": "EPERM", "fuse": "EPERM", "device": "ENOENT"}
