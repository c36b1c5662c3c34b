"""clone3() takes its flags from memory, where a filter cannot look.

So the whole call is refused, with ENOSYS: libc then falls back to clone().
"""

GUEST = """
def clone3(flags):
    args = ctypes.create_string_buffer(struct.pack("<11Q", flags, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0))
    value, number = raw("clone3", args, 88)
    if value == 0:
        os._exit(0)
    return "ok" if value > 0 else name_of(number)


report(
    plain=clone3(0),
    user=clone3(0x10000000),
    mount=clone3(0x20000),
    time=clone3(0x80),
    short=syscall("clone3", 0, 0),
)
"""

EXPECT = {
    "plain": "ENOSYS",
    "user": "ENOSYS",
    "mount": "ENOSYS",
    "time": "ENOSYS",
    "short": "ENOSYS",
}
