"""Every address family there is and some that there are not: Bluetooth, CAN, TIPC, XDP, RDS, NFC,
X.25.

Refused by seccomp: Unix and the internet's two are the list.
"""

GUEST = """
answers = {
    family: {syscall("socket", family, kind, 0) for kind in (1, 2, 3, 4, 5, 6)}
    for family in range(64)
}
others = {family: sorted(a) for family, a in answers.items() if family not in (1, 2, 10)}
report(
    open=sorted(f for f, a in answers.items() if "ok" in a),
    others=sorted({x for a in others.values() for x in a}),
    beyond=sorted({syscall("socket", f, 1, 0) for f in (64, 255, 65536, 0x7FFFFFFF)}),
    pairs=sorted(
        {
            syscall("socketpair", f, 1, 0, ctypes.create_string_buffer(8))
            for f in range(64)
            if f != 1
        }
    ),
)
"""

EXPECT = {
    "open": [1, 2, 10],
    "others": ["EAFNOSUPPORT"],
    "beyond": ["ENOSYS"],
    "pairs": ["EAFNOSUPPORT"],
}
