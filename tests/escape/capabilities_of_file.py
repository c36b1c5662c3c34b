"""Writes capabilities onto a program of its own and runs it.

Needs CAP_SETFCAP, which is gone; nosuid mounts and no_new_privs would ignore them.
"""

GUEST = """
import shutil

shutil.copy("/bin/cat", "/workspace/cat")
v2 = struct.pack("<IIIII", 0x02000001, 0xFFFFFFFF, 0, 0xFFFFFFFF, 0)
v3 = struct.pack("<IIIIII", 0x03000001, 0xFFFFFFFF, 0, 0xFFFFFFFF, 0, 0)
status = subprocess.run(
    ["/workspace/cat", "/proc/self/status"], capture_output=True, text=True
).stdout
report(
    v2=attempt(os.setxattr, "/workspace/cat", "security.capability", v2),
    v3=attempt(os.setxattr, "/workspace/cat", "security.capability", v3),
    trusted=attempt(os.setxattr, "/workspace/cat", "trusted.overlay.opaque", b"y"),
    effective=[line.split()[1] for line in status.splitlines() if line.startswith("CapEff")],
)
"""

EXPECT = {"v2": "EPERM", "v3": "EPERM", "trusted": "EPERM", "effective": ["0" * 16]}
