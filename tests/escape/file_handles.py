"""Opens host files by inode number, past every mount: "shocker", the first Docker escape.

Refused by seccomp.
"""

GUEST = """
handle = ctypes.create_string_buffer(struct.pack("<IiQ", 8, 1, 2) + bytes(120))
where = ctypes.c_int()
fd = os.open("/", os.O_RDONLY)
report(
    name=syscall("name_to_handle_at", -100, b"/usr", handle, ctypes.byref(where), 0),
    open=syscall("open_by_handle_at", fd, handle, os.O_RDONLY),
    usr=syscall("open_by_handle_at", os.open("/usr", os.O_RDONLY), handle, os.O_RDONLY),
)
"""

EXPECT = {"name": "EPERM", "open": "EPERM", "usr": "EPERM"}
