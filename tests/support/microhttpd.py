"""Which version of libmicrohttpd the program runs with."""

import ctypes
import ctypes.util

_library = ctypes.CDLL(ctypes.util.find_library("microhttpd") or "libmicrohttpd.so.12")
_library.MHD_get_version.restype = ctypes.c_char_p

# From this version on the library refuses most malformed heads itself, in words of its own.
STRICT = tuple(map(int, _library.MHD_get_version().decode().split("."))) >= (0, 9, 78)
