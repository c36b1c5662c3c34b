"""Reads or writes init's memory: the pristine interpreter that every later kernel is forked from.

Init is not dumpable; /proc is read-only besides.
"""

GUEST = """
report(
    read=reopen("/proc/1/mem", os.O_RDONLY),
    write=reopen("/proc/1/mem", os.O_RDWR),
    maps=attempt(lambda: open("/proc/1/maps").read()),
    smaps=attempt(lambda: open("/proc/1/smaps").read()),
    pagemap=attempt(lambda: open("/proc/1/pagemap", "rb").read(8)),
    auxv=attempt(lambda: open("/proc/1/auxv", "rb").read(8)),
    stack=attempt(lambda: open("/proc/1/stack").read()),
    syscall=attempt(lambda: open("/proc/1/syscall").read()),
    clear_refs=reopen("/proc/1/clear_refs", os.O_WRONLY),
)
"""

# Rootless the files are its own user's, and the first refusal is that of the read-only mount.
EXPECT = {k: "EACCES" for k in ("read", "maps", "smaps", "pagemap", "auxv", "stack")} | {
    "write": ("EACCES", "EROFS"),
    "syscall": ("EACCES", "EPERM"),
    "clear_refs": ("EACCES", "EROFS"),
}
