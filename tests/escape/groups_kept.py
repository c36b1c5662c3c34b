"""Keeps the supplementary groups of whoever started the program, such as docker or disk
(CVE-2022-36109).

As root they are dropped. Rootless they cannot be: the kernel keeps them, unnamed, and none of the
files they open is in the box.
"""

GUEST = """
report(named=[g for g in os.getgroups() if g not in (1000, 65534)])
"""

EXPECT = {"named": []}
