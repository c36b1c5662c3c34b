"""Any new namespace gives rights back: most kernel escapes of the last years start with one.

Refused by seccomp for every flag, also when a harmless one stands beside it.
"""

FLAGS_OF = {
    "user": 0x10000000,
    "mount": 0x20000,
    "pid": 0x20000000,
    "net": 0x40000000,
    "ipc": 0x08000000,
    "uts": 0x04000000,
    "cgroup": 0x02000000,
    "time": 0x80,
}

GUEST = f"""
flags = {FLAGS_OF!r}
CLONE_FS = 0x200
report(
    alone={{name: syscall("unshare", flag) for name, flag in flags.items()}},
    beside={{name: syscall("unshare", flag | CLONE_FS) for name, flag in flags.items()}},
    high_bits=syscall("unshare", 0x10000000 | 1 << 32),
)
"""

EVERY = {name: "EPERM" for name in FLAGS_OF}
EXPECT = {"alone": EVERY, "beside": EVERY, "high_bits": "EPERM"}
