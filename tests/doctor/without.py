"""Runs a program on a kernel that lacks something, as far as the program can see.

    python3 without.py CALL[:ARGUMENT]=ERRNO... -- PROGRAM...

Each named system call fails with that error; with an ARGUMENT only where its first one is that
number. The filter stays for everything the program starts, as a container's does.
"""

import ctypes
import errno
import os
import sys

ALLOW, ERRNO, EQUAL = 0x7FFF0000, 0x00050000, 4

lib = ctypes.CDLL("libseccomp.so.2")


class Compare(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int),
                ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


lib.seccomp_init.restype = ctypes.c_void_p
lib.seccomp_load.argtypes = [ctypes.c_void_p]
lib.seccomp_rule_add_array.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint,
                                       ctypes.POINTER(Compare)]


def refuse(filter, rule):
    call, error = rule.split("=")
    call, _, argument = call.partition(":")
    compare = (Compare * 1)(Compare(0, EQUAL, int(argument or 0), 0))
    number = lib.seccomp_syscall_resolve_name(call.encode())
    action = ERRNO | getattr(errno, error)
    if lib.seccomp_rule_add_array(filter, action, number, 1 if argument else 0, compare) < 0:
        sys.exit(f"no rule for {rule}")


def main(rules, program):
    filter = lib.seccomp_init(ALLOW)
    for rule in rules:
        refuse(filter, rule)
    if lib.seccomp_load(filter) < 0:
        sys.exit("the filter was not loaded")
    os.execv(program[0], program)


if __name__ == "__main__":
    at = sys.argv.index("--")
    main(sys.argv[1:at], sys.argv[at + 1:])
