"""Rewrites the kernel's notion of where its own program lies (PR_SET_MM), to pass for another.

Needs a capability over the host.
"""

GUEST = """
PR_SET_MM, START_CODE, ENV_START, EXE_FILE = 35, 1, 10, 13
report(
    code=syscall("prctl", PR_SET_MM, START_CODE, 4096, 0, 0),
    environment=syscall("prctl", PR_SET_MM, ENV_START, 4096, 0, 0),
    file=syscall("prctl", PR_SET_MM, EXE_FILE, os.open("/bin/cat", os.O_RDONLY), 0, 0),
)
"""

EXPECT = {"code": "EPERM", "environment": "EPERM", "file": "EPERM"}
