"""Clones the mount tree into a descriptor, where nothing covers anything any more.

Refused by seccomp; open_tree_attr() is newer than the filter and so does not exist.
"""

GUEST = """
OPEN_TREE_CLONE, AT_RECURSIVE = 1, 0x8000
report(
    clone=syscall("open_tree", -100, b"/", OPEN_TREE_CLONE),
    recursive=syscall("open_tree", -100, b"/", OPEN_TREE_CLONE | AT_RECURSIVE),
    plain=syscall("open_tree", -100, b"/workspace", 0),
    attr=syscall("open_tree_attr", -100, b"/", OPEN_TREE_CLONE, 0, 0),
)
"""

EXPECT = {"clone": "EPERM", "recursive": "EPERM", "plain": "EPERM", "attr": "ENOSYS"}
