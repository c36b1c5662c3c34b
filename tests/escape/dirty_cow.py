"""Races a write to a private mapping against its own throwing away (CVE-2016-5195).

The write needs /proc/self/mem, and /proc is read-only.
"""

GUEST = """
import mmap

fd = os.open(os.__file__, os.O_RDONLY)
page = mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)
opened = reopen("/proc/self/mem", os.O_RDWR)
stop = time.monotonic() + 0.3


def forget():
    while time.monotonic() < stop:
        page.madvise(mmap.MADV_DONTNEED)


thread = threading.Thread(target=forget)
thread.start()
thread.join()
report(opened=opened, changed=os.pread(fd, 64, 0) != page[:64])
"""

EXPECT = {"opened": "EROFS", "changed": False}
