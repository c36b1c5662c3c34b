"""Raises capabilities in every set there is.

There are none left to raise: the bounding set is empty and no_new_privs is on.
"""

GUEST = """
def capset(effective, permitted, inheritable):
    head = ctypes.create_string_buffer(struct.pack("<Ii", 0x20080522, 0))
    data = ctypes.create_string_buffer(
        struct.pack("<6I", effective, permitted, inheritable, 0, 0, 0)
    )
    return syscall("capset", head, data)


SYS_ADMIN = 1 << 21
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
report(
    sets=sorted({status[k].strip() for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}),
    effective=capset(SYS_ADMIN, SYS_ADMIN, 0),
    permitted=capset(0, SYS_ADMIN, 0),
    inheritable=capset(0, 0, SYS_ADMIN),
    everything=capset(0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
    ambient=syscall("prctl", 47, 2, 21, 0, 0),
    bounding=syscall("prctl", 24, 21, 0, 0, 0),
    securebits=syscall("prctl", 28, 0, 0, 0, 0),
    keep=syscall("prctl", 8, 1, 0, 0, 0),
    privileges=syscall("prctl", 38, 0, 0, 0, 0),
)
"""

EXPECT = {
    "sets": ["0" * 16],
    "effective": "EPERM",
    "permitted": "EPERM",
    "inheritable": "EPERM",
    "everything": "EPERM",
    "ambient": "EPERM",
    "bounding": "EPERM",
    "securebits": "EPERM",
    "keep": "EPERM",
    "privileges": "EINVAL",
}
