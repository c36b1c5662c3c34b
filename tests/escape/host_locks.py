"""Reads who holds locks on which files, of the host's processes and of other sessions'.

There is no such list.
"""

GUEST = """
held = open("/workspace/held", "w")
import fcntl
fcntl.flock(held, fcntl.LOCK_EX)
report(listed=reopen("/proc/locks", os.O_RDONLY), own=attempt(fcntl.flock, held, fcntl.LOCK_UN))
"""

EXPECT = {"listed": "ENOENT", "own": "ok"}
