"""What every hostile guest starts with: raw system calls, errors by name, one report line.

PRELUDE is put in front of each cell. A guest says what it attempted and what came of it with
report(mount="EPERM"); the host compares that with what the file expects. "ok" is the word for an
attempt that was not refused.
"""

# By number, not through libc's wrappers: what is under test is the kernel's answer, and libc hides
# some calls, rewrites others and has never heard of the newest. x86_64, then aarch64.
NUMBERS = """
mount 165 40        umount2 166 39       pivot_root 155 41    chroot 161 51        setns 308 268
unshare 272 97      clone 56 220         ptrace 101 117       process_vm_readv 310 270
process_vm_writev 311 271                bpf 321 280          perf_event_open 298 241
keyctl 250 219      add_key 248 217      request_key 249 218  kexec_load 246 104
kexec_file_load 320 294                  init_module 175 105  finit_module 313 273
delete_module 176 106                    reboot 169 142       swapon 167 224       swapoff 168 225
sethostname 170 161 setdomainname 171 162                     settimeofday 164 170
clock_settime 227 112                    adjtimex 159 171     clock_adjtime 305 266
quotactl 179 60     acct 163 89          userfaultfd 323 282  socket 41 198        socketpair 53 199
personality 135 92  ioctl 16 29          prlimit64 302 261    kcmp 312 272
name_to_handle_at 303 264                open_by_handle_at 304 265                seccomp 317 277
mknodat 259 33      setuid 105 146       setgid 106 144       setresuid 117 147    setresgid 119 149
setgroups 116 159   capset 126 91        prctl 157 167        syslog 103 116
fanotify_init 300 262                    iopl 172 -           ioperm 173 -         modify_ldt 154 -
move_pages 279 239  migrate_pages 256 238                     sched_setscheduler 144 119
sched_setattr 314 274                    sched_setparam 142 118
sched_setaffinity 203 122                ioprio_set 251 30    mlockall 151 230     mlock 149 228
shmget 29 194       shmat 30 196         msgget 68 186        semget 64 190        mq_open 240 180
getpid 39 172       getppid 110 173      kill 62 129          tgkill 234 131
rt_sigqueueinfo 129 138
execveat 322 281    memfd_create 319 279 vhangup 153 58       lookup_dcookie 212 18
uselib 134 -        ustat 136 -          sysfs 139 -          _sysctl 156 -        nfsservctl 180 42
create_module 174 - get_kernel_syms 177 -                     query_module 178 -
setpriority 141 140 setxattr 188 5       vmsplice 278 75      mmap 9 222           madvise 28 233
fcntl 72 25         timer_create 222 107 inotify_init1 294 26 inotify_add_watch 254 27
fsync 74 82         fdatasync 75 83      sync_file_range 277 84                    sync 162 81
syncfs 306 267      fadvise64 221 223    preadv2 327 286      mincore 27 232
pidfd_send_signal 424 424                io_uring_setup 425 425
io_uring_enter 426 426
io_uring_register 427 427                open_tree 428 428    move_mount 429 429   fsopen 430 430
fsconfig 431 431    fsmount 432 432      fspick 433 433       pidfd_open 434 434   clone3 435 435
openat2 437 437     pidfd_getfd 438 438  process_madvise 440 440
mount_setattr 442 442
quotactl_fd 443 443 memfd_secret 447 447 process_mrelease 448 448                  statmount 457 457
listmount 458 458   open_tree_attr 467 467
"""


def numbers(machine):
    words = NUMBERS.split()
    column = 2 if machine == "aarch64" else 1
    return {w[0]: int(w[column]) for w in zip(*[iter(words)] * 3) if w[column] != "-"}


PRELUDE = r'''
import ctypes, errno, json, os, platform, signal, socket, struct, subprocess, sys, threading, time

NR = __NUMBERS__[platform.machine()]
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

def name_of(number):
    return errno.errorcode.get(number, str(number))

def raw(call, *args):
    """(value, errno) of a system call, by name or number. Integers go in 64 bits wide."""
    number = NR.get(call) if isinstance(call, str) else call
    if number is None:
        return -1, errno.ENOSYS  # not a call of this machine
    ctypes.set_errno(0)
    value = libc.syscall(ctypes.c_long(number),
                         *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    return value, (ctypes.get_errno() if value == -1 else 0)

def syscall(call, *args):
    value, number = raw(call, *args)
    return name_of(number) if value == -1 else "ok"

def attempt(call, *args, **kw):
    """"ok", or the name of what it failed with."""
    try:
        call(*args, **kw)
        return "ok"
    except OSError as e:
        return name_of(e.errno) if e.errno else type(e).__name__
    except BaseException as e:
        return type(e).__name__

def reopen(path, flags):
    return attempt(lambda: os.close(os.open(path, flags)))

def report(**kw):
    """One line, past sys.stdout: a guest may have broken that."""
    os.write(1, json.dumps(kw).encode() + b"\n")

def child(call):
    """Runs call in a fork: its small integer result, or the name of the signal that ended it."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 255
        try:
            code = call() or 0
        finally:
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return os.WEXITSTATUS(status)

if raw("getpid")[0] != os.getpid():
    raise SystemError("the system call table is not this machine's")
'''.replace(
    "__NUMBERS__", repr({m: numbers(m) for m in ("x86_64", "aarch64")})
)

# The guest's end of the conversation with the server: its own socket, spoken to without the rules.
WIRE = r'''
MSG_CELL, MSG_ACK, MSG_IDLE, MSG_SYNC, MSG_DISPLAY, MSG_CLEAR, MSG_RESULT, MSG_ERROR, MSG_DONE = (
    0x10, 0x11, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26)
TAG_STATUS, TAG_MIME, TAG_DATA = 3, 9, 10
MORE = 1

def own_sockets():
    """Every Unix socket this process holds that it did not make itself."""
    found = []
    for fd in range(3, 1024):
        try:
            if (os.fstat(fd).st_mode & 0o170000) == 0o140000:
                found.append(socket.socket(fileno=os.dup(fd)))
        except OSError:
            pass
    return found

def wire():
    return own_sockets()[0]

def packet(kind, body=b"", flags=0, length=None, id=0):
    return struct.pack("<HHIQ", kind, flags, len(body) if length is None else length, id) + body

def field(tag, data, length=None):
    return struct.pack("<HxxI", tag, len(data) if length is None else length) + data

def number(tag, value):
    return field(tag, struct.pack("<Q", value))

def done(status=0):
    return packet(MSG_DONE, number(TAG_STATUS, status))
'''
