"""Lifts its limits by writing to cgroup files, or has the host run its release agent
(CVE-2022-0492).

No cgroup file system is in the box, none can be mounted, no namespace can be had to mount it in.
"""

GUEST = """
os.mkdir("/tmp/cg")
report(
    namespace=syscall("unshare", 0x02000000 | 0x10000000),
    v1=syscall("mount", b"cgroup", b"/tmp/cg", b"cgroup", 0, b"memory"),
    rdma=syscall("mount", b"cgroup", b"/tmp/cg", b"cgroup", 0, b"rdma"),
    v2=syscall("mount", b"none", b"/tmp/cg", b"cgroup2", 0, 0),
    agent=attempt(open, "/sys/fs/cgroup/release_agent", "w"),
    limit=attempt(open, "/sys/fs/cgroup/memory.max", "w"),
    self=reopen("/proc/self/cgroup", os.O_WRONLY),
)
"""

EXPECT = {
    "namespace": "EPERM",
    "v1": "EPERM",
    "rdma": "EPERM",
    "v2": "EPERM",
    "agent": "ENOENT",
    "limit": "ENOENT",
    "self": "EACCES",
}
