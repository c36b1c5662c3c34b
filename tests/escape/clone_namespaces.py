"""A child in a new namespace, through the call that every fork uses and so cannot be closed.

Refused by seccomp, which looks at the flags.
"""

FLAGS_OF = {
    "user": 0x10000000,
    "mount": 0x20000,
    "pid": 0x20000000,
    "net": 0x40000000,
    "ipc": 0x08000000,
    "uts": 0x04000000,
    "cgroup": 0x02000000,
}

GUEST = f"""
SIGCHLD = 17

def clone(flags):
    value, number = raw("clone", flags | SIGCHLD, 0, 0, 0, 0)
    if value == 0:
        os._exit(0)
    if value > 0:
        os.waitpid(value, 0)
    return "ok" if value > 0 else name_of(number)

report(plain=clone(0), high_bits=clone(0x10000000 | 1 << 32),
       **{{name: clone(flag) for name, flag in {FLAGS_OF!r}.items()}})
"""

EXPECT = {"plain": "ok", "high_bits": "EPERM"} | {name: "EPERM" for name in FLAGS_OF}
