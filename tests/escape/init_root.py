"""/proc/1 as a way out: init's root, working directory, program and namespaces.

Init is not dumpable, so that nobody in the box may look through its links.
"""

GUEST = """
report(
    root=attempt(os.listdir, "/proc/1/root"),
    cwd=attempt(os.listdir, "/proc/1/cwd"),
    exe=attempt(os.readlink, "/proc/1/exe"),
    mount_namespace=attempt(os.readlink, "/proc/1/ns/mnt"),
    open_namespace=reopen("/proc/1/ns/user", os.O_RDONLY),
    map_files=attempt(os.listdir, "/proc/1/map_files"),
    through=attempt(open, "/proc/1/root/etc/passwd"),
)
"""

EXPECT = {
    "root": "EACCES",
    "cwd": "EACCES",
    "exe": "EACCES",
    "mount_namespace": "EACCES",
    "open_namespace": "EACCES",
    "map_files": "EACCES",
    "through": "EACCES",
}
