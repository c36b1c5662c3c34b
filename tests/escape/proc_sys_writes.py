"""Opens every one of the kernel's settings for writing, the thousand nobody thinks of.

They are not there.
"""

GUEST = """
paths = [os.path.join(top, n) for top, _, names in os.walk("/proc/sys") for n in names]
opened = [p for p in paths if reopen(p, os.O_WRONLY) == "ok"]
report(
    paths=paths,
    opened=opened,
    by_name=sorted({reopen("/proc/sys/" + p, os.O_WRONLY) for p in
                    ("kernel/hostname", "vm/drop_caches", "net/ipv4/ip_forward", "user", "")}),
)
"""

EXPECT = {"paths": [], "opened": [], "by_name": ["ENOENT"]}
