"""Runs a 32-bit program, whose every system call goes by the other door.

Its first call is refused with ENOSYS; it cannot even say goodbye, and dies of its own fault.
"""

MACHINE = "x86_64"

GUEST = """
base = 0x08048000
# mov eax, 310 (unshare); mov ebx, CLONE_NEWUSER; int 0x80
# mov ebx, eax; neg ebx; mov eax, 1 (exit); int 0x80; ud2
code = (
    b"\\xb8"
    + struct.pack("<I", 310)
    + b"\\xbb"
    + struct.pack("<I", 0x10000000)
    + b"\\xcd\\x80\\x89\\xc3\\xf7\\xdb\\xb8\\x01\\x00\\x00\\x00\\xcd\\x80\\x0f\\x0b"
)
size = 52 + 32 + len(code)
header = (
    b"\\x7fELF\\x01\\x01\\x01"
    + bytes(9)
    + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + 84, 52, 0, 0, 52, 32, 1, 0, 0, 0)
)
program = struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 4096)
open("/workspace/elf32", "wb").write(header + program + code)
os.chmod("/workspace/elf32", 0o755)
try:
    left = subprocess.run(["/workspace/elf32"]).returncode
    left = signal.Signals(-left).name if left < 0 else left
except OSError as e:
    left = name_of(e.errno)
report(ended=left)
"""

EXPECT = {"ended": "SIGILL"}
