"""Loads another kernel, or a module into this one.

Refused by seccomp.
"""

GUEST = """
report(
    kexec=syscall("kexec_load", 0, 0, 0, 0),
    kexec_file=syscall("kexec_file_load", -1, -1, 0, 0, 0),
    module=syscall("init_module", b"\\x7fELF", 4, b""),
    module_file=syscall("finit_module", 0, b"", 0),
    remove=syscall("delete_module", b"x", 0),
)
"""

EXPECT = {
    "kexec": "EPERM",
    "kexec_file": "EPERM",
    "module": "EPERM",
    "module_file": "EPERM",
    "remove": "EPERM",
}
