"""Calls the kernel with x32 numbers, which mean the same calls and compare as different ones.

The filter knows one architecture; these are unknown calls.
"""

MACHINE = "x86_64"

GUEST = """
X32 = 0x40000000


def x32(name, *args):
    got = child(lambda: raw(NR[name] | X32, *args)[1])
    return name_of(got) if isinstance(got, int) and got else got


report(
    getpid=x32("getpid"),
    unshare=x32("unshare", 0x10000000),
    mount=x32("mount", 0, 0, 0, 0, 0),
    ptrace=x32("ptrace", 0, 0, 0, 0),
    own_numbers=sorted(
        {name_of(child(lambda n=n: raw(n | X32, 0, 0, 0)[1])) for n in range(512, 548)}
    ),
)
"""

EXPECT = {
    "getpid": "ENOSYS",
    "unshare": "ENOSYS",
    "mount": "ENOSYS",
    "ptrace": "ENOSYS",
    "own_numbers": ["ENOSYS"],
}
