"""Asks a namespace descriptor for its parent and its owner: the way up from the inside.

The kernel refuses what is not below the caller; what it gives is the sandbox's own.
"""

GUEST = """
NS_GET_USERNS, NS_GET_PARENT = 0xB701, 0xB702
fd = {kind: os.open("/proc/self/ns/" + kind, os.O_RDONLY) for kind in ("user", "pid", "net", "mnt")}
own = os.fstat(fd["user"]).st_ino


def owner(kind):
    got, number = raw("ioctl", fd[kind], NS_GET_USERNS)
    return name_of(number) if got < 0 else "own" if os.fstat(got).st_ino == own else "another"


report(
    parent_user=syscall("ioctl", fd["user"], NS_GET_PARENT),
    parent_pid=syscall("ioctl", fd["pid"], NS_GET_PARENT),
    owner_user=owner("user"),
    others=sorted({owner(k) for k in ("pid", "net", "mnt")} - {"EPERM", "own"}),
)
"""

EXPECT = {"parent_user": "EPERM", "parent_pid": "EPERM", "owner_user": "EPERM", "others": []}
