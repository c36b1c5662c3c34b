#!/usr/bin/env python3
"""Writes seccomp.json: what a container of retort may not ask of the kernel.

An engine's own profile lets nobody without CAP_SYS_ADMIN make namespaces, mount or name a host, and sandboxes are made
of that. This one refuses by name what neither retort nor a session needs; the filters of the sandboxes, which are
much narrower, come on top of it for whatever runs in a session.
"""

import json

REFUSED = {
    "the kernel and its modules": "bpf create_module delete_module finit_module get_kernel_syms init_module "
                                  "kexec_file_load kexec_load query_module",
    "the machine": "acct iopl ioperm nfsservctl quotactl quotactl_fd reboot swapoff swapon syslog uselib vhangup "
                   "vm86 vm86old lookup_dcookie",
    "its clock": "clock_adjtime clock_adjtime64 clock_settime clock_settime64 adjtimex settimeofday stime",
    "keys, which have no namespace": "add_key keyctl request_key",
    "doors into the kernel that few need and many have broken": "io_uring_enter io_uring_register io_uring_setup "
                                                               "userfaultfd perf_event_open fanotify_init",
    "files past every namespace": "open_by_handle_at",
    "other processes' memory pages": "move_pages migrate_pages kcmp",
    "what is gone": "_sysctl sysfs ustat afs_syscall getpmsg putpmsg security tuxcall vserver",
}

if __name__ == "__main__":
    print(json.dumps({"defaultAction": "SCMP_ACT_ALLOW",
                      "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"],
                      "syscalls": [{"names": names.split(), "action": "SCMP_ACT_ERRNO", "errnoRet": 1, "comment": why}
                                   for why, names in REFUSED.items()]}, indent=1))
