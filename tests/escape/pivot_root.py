"""Swaps the root for another directory; the old one, with the host below it, comes along.

Refused by seccomp.
"""

GUEST = """
os.makedirs("/tmp/new/old")
report(
    move=syscall("pivot_root", b"/tmp/new", b"/tmp/new/old"),
    in_place=syscall("pivot_root", b".", b"."),
)
"""

EXPECT = {"move": "EPERM", "in_place": "EPERM"}
