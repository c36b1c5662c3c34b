"""Sees when others read a file of the system, without inotify: drops its pages from the cache of the host, and looks
now and then whether they are there again (page cache attacks, Gruss et al., 2019).

To drop succeeds and does nothing, which shows in a descriptor that is not there. A read that wants only what is in the
cache, or leaves nothing there, is refused; mincore() tells nothing of a file that is not the caller's.
"""

GUEST = """
system = os.open("/usr/bin/env", os.O_RDONLY)
page = ctypes.create_string_buffer(4096)
vector = (ctypes.c_void_p * 2)(ctypes.addressof(page), 4096)
size = os.fstat(system).st_size
there = ctypes.create_string_buffer(size // 4096 + 1)
libc.mmap.restype = ctypes.c_void_p
base = libc.mmap(None, ctypes.c_size_t(size), 1, 1, system, ctypes.c_long(0))
told = syscall("mincore", ctypes.c_void_p(base), ctypes.c_size_t(size), there)
report(
    drop=syscall("fadvise64", system, 0, 0, 4),
    nobody=syscall("fadvise64", 999, 0, 0, 4),
    high_bits=syscall("fadvise64", 999, 0, 0, ctypes.c_ulong(4 | 1 << 32)),
    other_advice=syscall("fadvise64", system, 0, 0, 2),
    cached_only=syscall("preadv2", system, vector, 1, 0, 0, 8),
    uncached=syscall("preadv2", system, vector, 1, 0, 0, 0x80),
    both=syscall("preadv2", system, vector, 1, 0, 0, 0x88),
    plain=syscall("preadv2", system, vector, 1, 0, 0, 0),
    mincore=told if told != "ok" else sorted({b & 1 for b in there.raw[:(size + 4095) // 4096]}),
)
"""

EXPECT = {"drop": "ok", "nobody": "ok", "high_bits": "ok", "other_advice": "ok", "cached_only": "ENOTSUP",
          "uncached": "ENOTSUP", "both": "ENOTSUP", "plain": "ok", "mincore": [1]}
