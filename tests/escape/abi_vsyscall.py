"""Calls the kernel at the fixed address of 2003, past every address randomisation.

The page can be called and not read, and a call in it is filtered like any other.
"""

MACHINE = "x86_64"

GUEST = """
PAGE = 0xFFFFFFFFFF600000


def call():
    seconds = ctypes.c_long()
    return (
        0
        if ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_void_p)(PAGE + 0x400)(ctypes.addressof(seconds))
        else 1
    )


report(read=child(lambda: ctypes.string_at(PAGE, 8) and 1), time=child(call) in (0, "SIGSEGV"))
"""

EXPECT = {"read": "SIGSEGV", "time": True}
