"""Opens every one of the kernel's settings for writing, the thousand nobody thinks of.

/proc is read-only and the settings belong to the host's root; those that do not are refused
for the first reason.
"""

GUEST = """
paths = [os.path.join(top, n) for top, _, names in os.walk("/proc/sys") for n in names]
opened = [p for p in paths if reopen(p, os.O_WRONLY) == "ok"]
report(many=len(paths) > 300, opened=opened)
"""

EXPECT = {"many": True, "opened": []}
