"""Starts a new program, as file and from memory, in the hope that the filter stays behind.

Filters and no_new_privs are inherited through fork and exec; anonymous files are refused.
"""

GUEST = """
import shutil

shutil.copy("/bin/cat", "/workspace/cat")


def fields(argv):
    text = subprocess.run(argv, capture_output=True, text=True).stdout
    return [
        line.split()[1]
        for line in text.splitlines()
        if line.split(":")[0] in ("NoNewPrivs", "Seccomp")
    ]


report(
    system=fields(["cat", "/proc/self/status"]),
    copied=fields(["/workspace/cat", "/proc/self/status"]),
    shell=fields(["sh", "-c", "cat /proc/self/status"]),
    memory=syscall("memfd_create", b"x", 0),
    secret=syscall("memfd_secret", 0),
)
"""

EXPECT = {
    "system": ["1", "2"],
    "copied": ["1", "2"],
    "shell": ["1", "2"],
    "memory": "ENOSYS",
    "secret": "ENOSYS",
}
