"""Asks for the size of the disks that files of the system are on, and of the memory behind a device.

Init answers these two calls: what is not a volume of the session's own has the size of its workspace. The
path is looked up as the user of the code would, from the caller's own directory.
"""

GUEST = """
def size(of):
    try:
        s = os.statvfs(of)
    except OSError as e:
        return errno.errorcode[e.errno]
    return [s.f_blocks * s.f_frsize >> 20, s.f_files]

def within(directory, of):
    os.chdir(directory)
    return size(of)

def through(path, flags):
    fd = os.open(path, flags)
    try:
        return [size(fd), within("/", f"/proc/self/fd/{fd}")]
    finally:
        os.close(fd)

os.mkdir("/workspace/own", 0o700)
os.symlink("/usr/bin", "/workspace/own/link")
open("/workspace/own/kept", "w").write("x" * (3 << 20))
volume = os.statvfs("/workspace")
own = within("/workspace/own", "kept")
STATFS, FSTATFS = (43, 44) if platform.machine() == "aarch64" else (137, 138)
room = ctypes.create_string_buffer(120)
raw(STATFS, b"/usr", room)
report(
    system=[size(p) for p in ("/", "/usr", "/usr/bin/env", "/etc/ld.so.cache", "/dev", "/dev/null", "/proc")],
    descriptors=through("/usr", os.O_RDONLY) + through("/dev/null", os.O_RDWR) + through("/usr/bin/env", os.O_PATH),
    own=[size(p) for p in ("/workspace", "/tmp", "/dev/shm")] + [own, size("/workspace/own/kept")],
    linked=[within("/workspace/own", "link"), within("/workspace/own", "link/../bin/env")],
    used=(volume.f_blocks - volume.f_bfree) * volume.f_frsize >= 3 << 20,
    system_id=room.raw[56:64].hex(),
    child=child(lambda: os.statvfs("/usr").f_blocks == volume.f_blocks),
    wrong=[size(p) for p in ("/none", "/workspace/own/none", "/usr/bin/env/below", "/workspace/" + "x" * 300, "")],
    long=syscall(STATFS, b"/" * 5000, room),
    nowhere=[syscall(STATFS, b"/usr", 8), syscall(STATFS, 8, room), syscall(FSTATFS, 1, 8)],
    descriptor=syscall(FSTATFS, 999, room),
    passed=[syscall(STATFS, b"/usr", room, 0, 0, 0, n) for n in (0, 1, -1)],
)
"""

WORKSPACE, VOLUME = [1024, 65536], [256, 65536]

EXPECT = {
    "system": [WORKSPACE] * 7,
    "descriptors": [WORKSPACE] * 6,
    "own": [WORKSPACE, VOLUME, VOLUME, WORKSPACE, WORKSPACE],
    "linked": [WORKSPACE, WORKSPACE],
    "used": True,
    "system_id": "0" * 16,
    "child": True,
    "wrong": ["ENOENT", "ENOENT", "ENOTDIR", "ENAMETOOLONG", "ENOENT"],
    "long": "ENAMETOOLONG",
    "nowhere": ["EFAULT", "EFAULT", "EFAULT"],
    "descriptor": "EBADF",
    "passed": ["ok", "ok", "ok"],
}
