"""Has the kernel merge its pages with equal pages of other sessions, whose writes then tell by their time (KSM).

Neither madvise() nor prctl() takes the wish.
"""

GUEST = """
import mmap
page = mmap.mmap(-1, 4096)
at = ctypes.addressof(ctypes.c_char.from_buffer(page))
report(
    page=syscall("madvise", at, 4096, 12),
    all=syscall("prctl", 67, 1, 0, 0, 0),
    other=syscall("madvise", at, 4096, 4),
)
"""

EXPECT = {"page": "EINVAL", "all": "EINVAL", "other": "ok"}
