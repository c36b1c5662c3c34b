"""Learns how the host was started: its command line, the kernel's configuration, this boot's id.

Of /proc only the processes and a handful of files are there; the rest does not exist.
"""

PATHS = [
    "cmdline", "bootconfig", "config.gz", "modules", "kallsyms", "iomem", "ioports", "devices",
    "filesystems", "crypto", "consoles", "kcore", "kmsg", "misc", "mtrr", "partitions", "swaps",
    "sys/kernel/random/boot_id", "sys/kernel/osrelease", "sys/kernel/hostname",
    "sys/kernel/ns_last_pid", "sys/vm/overcommit_memory", "acpi", "bus", "driver", "fs", "irq",
    "tty", "cgroups", "key-users", "keys", "execdomains", "scsi", "device-tree",
]

GUEST = f"""
report(answers={{p: reopen("/proc/" + p, os.O_RDONLY) for p in {PATHS!r}}})
"""

EXPECT = {"answers": {p: "ENOENT" for p in PATHS}}
