"""Writes to the memory that all sessions of a zygote share: one write would be in every other
session.

It is mapped privately and no descriptor of it is left; the links to mapped files need a
capability over the host, and holes can be punched through shared mappings only.
"""

GUEST = """
MADV_REMOVE = 9
shared = []
for line in open("/proc/self/maps"):
    fields = line.split(None, 5)
    if len(fields) == 6 and fields[5].startswith("/memfd:"):
        start, end = (int(x, 16) for x in fields[0].split("-"))
        shared.append((f"{start:x}-{end:x}", fields[1], start))
opened = {
    reopen("/proc/self/map_files/" + name, flags)
    for name, _, _ in shared
    for flags in (os.O_RDONLY, os.O_RDWR)
}
removed = {syscall("madvise", start, 4096, MADV_REMOVE) for _, _, start in shared}
report(
    private=all(mode.endswith("p") for _, mode, _ in shared),
    opened=sorted(opened - {"EPERM"}),
    removed=sorted(removed - {"EACCES"}),
    descriptors=[
        n
        for n in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{n}") and "memfd" in os.readlink(f"/proc/self/fd/{n}")
    ],
)
"""

EXPECT = {"private": True, "opened": [], "removed": [], "descriptors": []}
