"""Watches files of the system, to see when another session or the host opens them.

The inode is everybody's, and so are its events. inotify is not there; fcntl knows no F_NOTIFY.
"""

GUEST = """
import fcntl
usr = os.open("/usr", os.O_RDONLY | os.O_DIRECTORY)
report(
    init=syscall("inotify_init1", 0),
    watch=syscall("inotify_add_watch", usr, b"/usr/lib", 0x20),
    old=attempt(fcntl.fcntl, usr, fcntl.F_NOTIFY, fcntl.DN_ACCESS),
    others=attempt(fcntl.fcntl, usr, fcntl.F_GETFL),
)
"""

EXPECT = {"init": "ENOSYS", "watch": "ENOSYS", "old": "EINVAL", "others": "ok"}
