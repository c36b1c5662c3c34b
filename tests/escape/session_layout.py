"""Learns from its own addresses and hashes where another session's memory lies.

Every zygote has an address layout and a hash seed of its own.
"""

from outside import cell, holds

GUEST = """
report(
    hash=hash("kestrel"),
    object=id(object()),
    libc=ctypes.cast(libc.getpid, ctypes.c_void_p).value,
)
"""


def check(box):
    one, two = (box.ok(box.run(cell(GUEST), alone=True)) for _ in range(2))
    for name in ("hash", "object", "libc"):
        holds(one[name] != two[name], f"{name} is the same in two sessions: {one[name]}")
