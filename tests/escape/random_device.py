"""Stirs or drains the host's random pool through the device it may read.

Adding entropy that counts, and clearing the pool, need a capability.
"""

GUEST = """
RNDADDENTROPY, RNDZAPENTCNT, RNDCLEARPOOL, RNDRESEEDCRNG, RNDADDTOENTCNT = (
    0x40085203,
    0x5204,
    0x5206,
    0x5207,
    0x40045201,
)
fd = os.open("/dev/urandom", os.O_RDWR)
entropy = ctypes.create_string_buffer(struct.pack("<ii", 64, 8) + bytes(8))
report(
    answers=sorted(
        {
            syscall("ioctl", fd, RNDADDENTROPY, entropy),
            syscall("ioctl", fd, RNDZAPENTCNT, 0),
            syscall("ioctl", fd, RNDCLEARPOOL, 0),
            syscall("ioctl", fd, RNDRESEEDCRNG, 0),
            syscall("ioctl", fd, RNDADDTOENTCNT, entropy),
        }
    )
)
"""

EXPECT = {"answers": ["EACCES"]}
