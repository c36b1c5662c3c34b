"""Loads a program into the kernel (CVE-2020-8835, CVE-2021-3490 and their many sisters).

Refused by seccomp for every command.
"""

GUEST = """
MAP_CREATE, PROG_LOAD, OBJ_GET = 0, 5, 7
exit0 = ctypes.create_string_buffer(bytes.fromhex("b700000000000000" "9500000000000000"))
license = ctypes.create_string_buffer(b"GPL")
load = ctypes.create_string_buffer(
    struct.pack("<IIQQ", 1, 2, ctypes.addressof(exit0), ctypes.addressof(license)) + bytes(104)
)
array = ctypes.create_string_buffer(struct.pack("<IIII", 2, 4, 8, 1) + bytes(112))
report(
    map=syscall("bpf", MAP_CREATE, array, 128),
    load=syscall("bpf", PROG_LOAD, load, 128),
    get=syscall("bpf", OBJ_GET, array, 128),
)
"""

EXPECT = {"map": "EPERM", "load": "EPERM", "get": "EPERM"}
