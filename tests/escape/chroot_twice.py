"""The oldest way out of a chroot: keep a descriptor of the old root, chroot again, walk up.

Refused by seccomp, and the root is a mount of its own: there is nothing above it.
"""

GUEST = """
os.mkdir("/tmp/in")
root = os.stat("/")
fd = os.open("/", os.O_RDONLY)
answer = syscall("chroot", b"/tmp/in")
os.fchdir(fd)
for _ in range(64):
    os.chdir("..")
report(chroot=answer, here=syscall("chroot", b"."), above=not os.path.samestat(os.stat("."), root))
"""

EXPECT = {"chroot": "EPERM", "here": "EPERM", "above": False}
