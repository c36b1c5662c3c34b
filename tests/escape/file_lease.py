"""Holds up everyone who opens a shared file: a lease on the interpreter, a mandatory lock, an
immutable flag.

A lease is for the owner of a file; the flag needs a capability and a writable mount; locks are
advisory.
"""

GUEST = """
import fcntl

F_SETLEASE = 1024
FS_IOC_SETFLAGS, FS_IMMUTABLE_FL = 0x40086602, 0x10
program = os.open(os.path.realpath(sys.executable), os.O_RDONLY)
own = os.open("/workspace/x", os.O_CREAT | os.O_RDWR)
flags = ctypes.create_string_buffer(struct.pack("<Q", FS_IMMUTABLE_FL))
report(
    lease=attempt(fcntl.fcntl, program, F_SETLEASE, fcntl.F_RDLCK),
    immutable=syscall("ioctl", own, FS_IOC_SETFLAGS, flags),
    system=syscall("ioctl", program, FS_IOC_SETFLAGS, flags),
)
"""

EXPECT = {"lease": "EACCES", "immutable": "EPERM", "system": "EROFS"}
