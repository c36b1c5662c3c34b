"""Learns from its own addresses and hashes where another session's memory lies.

Every zygote has an address layout and a hash seed of its own.
"""

from harness import cell, holds

GUEST = "report(hash=hash('kestrel'), object=id(object()), libc=ctypes.cast(libc.getpid, ctypes.c_void_p).value, stack=open('/proc/self/stat').read().rsplit(') ', 1)[1].split()[25])"


def check(box):
    one, two = (box.ok(box.run(cell(GUEST))) for _ in range(2))
    for name in ("hash", "object", "libc"):
        holds(one[name] != two[name], f"{name} is the same in two sessions: {one[name]}")
