"""Makes a device node: the disk, the kernel's memory, the overlay's whiteout that needs no
capability.

Refused by Landlock; by the missing capability below it; and every mount is nodev.
"""

GUEST = """
import stat

found = {}
for place in "/workspace", "/tmp", "/dev/shm":
    path = place + "/node"
    found[place] = [
        attempt(os.mknod, path, 0o666 | kind, os.makedev(*number))
        for kind, number in (
            (stat.S_IFCHR, (1, 1)),
            (stat.S_IFBLK, (254, 0)),
            (stat.S_IFBLK, (8, 0)),
            (stat.S_IFCHR, (0, 0)),
            (stat.S_IFCHR, (5, 2)),
        )
    ]
    found[place].append(bool(os.statvfs(place).f_flag & os.ST_NODEV))
report(**found)
"""

EXPECT = {p: ["EACCES"] * 5 + [True] for p in ("/workspace", "/tmp", "/dev/shm")}
