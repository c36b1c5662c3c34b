"""The programs that make namespaces and map ids for others: unshare, newuidmap, newgidmap.

The first fails on the system call, the others are worth nothing without their setuid bit.
"""

from outside import same, shell

SCRIPT = """
unshare --user --map-root-user true 2>/dev/null; echo unshare $?
unshare --mount true 2>/dev/null; echo mount $?
for tool in newuidmap newgidmap; do
    if command -v $tool >/dev/null; then $tool $$ 0 0 1 >/dev/null 2>&1 && echo $tool mapped; fi
done
echo 0 0 1 2>/dev/null >/proc/self/uid_map || echo uid_map refused
echo deny 2>/dev/null >/proc/self/setgroups || echo setgroups refused
true
"""


def check(box):
    run = box.run(shell(SCRIPT))
    same(run.text(), "unshare 1\nmount 1\nuid_map refused\nsetgroups refused\n", "the tools said")
