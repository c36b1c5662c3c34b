"""Calls what the kernel keeps for programs of the last century.

On no list, so ENOSYS; what is refused by name says EPERM.
"""

MACHINE = "x86_64"

GUEST = """
names = (
    "uselib",
    "ustat",
    "sysfs",
    "_sysctl",
    "nfsservctl",
    "create_module",
    "get_kernel_syms",
    "query_module",
)
report(
    answers=sorted({syscall(n, 0, 0, 0) for n in names}),
    dcookie=syscall("lookup_dcookie", 0, 0, 0),
    sysfs_type=syscall("sysfs", 3),
)
"""

EXPECT = {"answers": ["ENOSYS"], "dcookie": "EPERM", "sysfs_type": "ENOSYS"}
