"""Runs every setuid program of the system: su, passwd, mount, whatever is installed.

None of them gains anything: the loader shows its table to all of them, which it does for nobody
whose program is setuid in effect (so CVE-2023-4911 has nothing to overflow either).
"""

GUEST = """
import stat

programs = []
for top in (
    "/usr/bin",
    "/usr/sbin",
    "/usr/lib/openssh",
    "/usr/lib/dbus-1.0",
    "/usr/libexec",
    "/usr/local/bin",
):
    for name in os.listdir(top) if os.path.isdir(top) else []:
        path = os.path.join(top, name)
        mode = os.lstat(path).st_mode
        if stat.S_ISREG(mode) and mode & 0o6000:
            programs.append(path)
secure, uids = set(), set()
for path in programs:
    env = {
        "LD_SHOW_AUXV": "1",
        "PATH": "/usr/bin",
        "GLIBC_TUNABLES": "glibc.malloc.mxfast=glibc.malloc.mxfast=A",
    }
    try:
        out = subprocess.run(
            [path, "--help"], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL
        ).stdout
    except PermissionError:
        continue  # for a group of the host's that nobody here is in
    table = dict(
        line.split(":", 1) for line in out.splitlines() if line.startswith("AT_") and ":" in line
    )
    secure.add(table.get("AT_SECURE", "hidden").strip())
    uids.add(table.get("AT_EUID", "hidden").strip())
su = subprocess.run(["su", "-c", "id -u"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
report(
    some=len(programs) > 2,
    secure=sorted(secure),
    uids=sorted(uids),
    su=[su.returncode != 0, su.stdout],
)
"""

EXPECT = {"some": True, "secure": ["0"], "uids": ["1000"], "su": [True, ""]}
