"""Types into the terminal of whoever started the program (CVE-2017-5226, CVE-2023-1523).

Refused by seccomp by the low 32 bits, which is what the kernel looks at: filters that compared
all 64 were walked around (CVE-2019-10063). The guest has no terminal besides.
"""

GUEST = """
TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS = 0x5412, 0x541C, 0x5423, 0x541D
byte = ctypes.create_string_buffer(b"\\x02")
found = {
    n: sorted(
        {
            syscall("ioctl", fd, call | high, byte)
            for fd in (0, 1, 2)
            for high in (0, 1 << 32, 0xDEAD << 40)
        }
    )
    for n, call in (
        ("type", TIOCSTI),
        ("paste", TIOCLINUX),
        ("line", TIOCSETD),
        ("console", TIOCCONS),
    )
}
report(**found, tty=[os.isatty(n) for n in (0, 1, 2)], control=reopen("/dev/tty", os.O_RDWR))
"""

EXPECT = {
    "type": ["EPERM"],
    "paste": ["EPERM"],
    "line": ["EPERM"],
    "console": ["EPERM"],
    "tty": [False] * 3,
    "control": "ENOENT",
}
