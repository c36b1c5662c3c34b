"""The newer mount calls, which filters written before them forget.

fsconfig() is also where CVE-2022-0185 overflowed. Refused by seccomp.
"""

GUEST = """
report(
    fsopen=syscall("fsopen", b"tmpfs", 0),
    fsconfig=syscall("fsconfig", 0, 1, b"source", b"x" * 4095, 0),
    fsmount=syscall("fsmount", 0, 0, 0),
    fspick=syscall("fspick", -100, b"/", 0),
)
"""

EXPECT = {"fsopen": "EPERM", "fsconfig": "EPERM", "fsmount": "EPERM", "fspick": "EPERM"}
