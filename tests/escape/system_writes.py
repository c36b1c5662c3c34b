"""Changes the system it shares with the host: libraries, the interpreter, packages, /etc.

Read-only mounts; where the file belongs to someone else, that is said first. The three places
that can be written to are the ones that are said to be.
"""

GUEST = """
import IPython

site = os.path.dirname(IPython.__file__)
targets = [
    "/x",
    "/usr/x",
    "/usr/bin/x",
    "/usr/local/bin/x",
    "/etc/x",
    "/dev/x",
    "/opt/x",
    "/run/x",
    "/var/x",
    site + "/x.pth",
]
writable = []
for top, dirs, _ in os.walk("/"):
    dirs[:] = [
        d
        for d in dirs
        if os.path.join(top, d) not in ("/proc", "/usr/share", "/usr/lib", "/usr/include")
    ]
    try:
        os.close(os.open(top, os.O_TMPFILE | os.O_WRONLY))
        writable.append(top)
    except OSError:
        pass
report(
    made=sorted({attempt(os.mkdir, t) for t in targets} | {attempt(open, t, "w") for t in targets}),
    opened=sorted(
        {
            reopen(p, os.O_WRONLY)
            for p in (os.path.realpath(sys.executable), os.__file__, "/etc/passwd", "/etc/hosts")
        }
    ),
    mode=attempt(os.chmod, os.__file__, 0o666),
    owner=attempt(os.chown, os.__file__, 1000, 1000),
    times=attempt(os.utime, os.__file__),
    removed=attempt(os.unlink, os.__file__),
    renamed=attempt(os.rename, "/etc/passwd", "/etc/p"),
    truncated=attempt(os.truncate, "/etc/passwd", 0),
    writable=sorted(w for w in writable if not w.startswith("/tmp/")),
)
"""

EXPECT = {
    "made": ["EROFS"],
    "opened": (["EACCES"], ["EACCES", "EROFS"]),
    "mode": "EROFS",
    "owner": "EROFS",
    "times": "EROFS",
    "removed": "EROFS",
    "renamed": "EROFS",
    "truncated": ("EACCES", "EROFS"),
    "writable": ["/dev/shm", "/tmp", "/workspace"],
}
