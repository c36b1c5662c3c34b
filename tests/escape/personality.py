"""Turns off address randomisation and non-executable data for everything it starts from then on.

Refused by seccomp; asking what is set, and setting the default, are not.
"""

GUEST = """
READ_IMPLIES_EXEC, ADDR_NO_RANDOMIZE, MMAP_PAGE_ZERO, PER_LINUX32 = (
    0x0400000,
    0x0040000,
    0x0100000,
    8,
)
report(
    query=syscall("personality", 0xFFFFFFFF),
    default=syscall("personality", 0),
    executable=syscall("personality", READ_IMPLIES_EXEC),
    fixed=syscall("personality", ADDR_NO_RANDOMIZE),
    zero_page=syscall("personality", MMAP_PAGE_ZERO),
    bits32=syscall("personality", PER_LINUX32),
    high_bits=syscall("personality", ADDR_NO_RANDOMIZE | 1 << 32),
)
"""

EXPECT = {
    "query": "ok",
    "default": "ok",
    "executable": "ENOSYS",
    "fixed": "ENOSYS",
    "zero_page": "ENOSYS",
    "bits32": "ENOSYS",
    "high_bits": "ENOSYS",
}
