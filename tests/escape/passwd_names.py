"""Learns who has an account on the host.

The box has its own three names, and knows no others by number.
"""

GUEST = """
import grp, pwd

report(
    users=[p.pw_name for p in pwd.getpwall()],
    groups=[g.gr_name for g in grp.getgrall()],
    me=[os.getuid(), os.geteuid(), os.getgid(), os.getegid(), pwd.getpwuid(os.getuid()).pw_name],
    host=open("/etc/hostname").read().strip(),
)
"""

EXPECT = {
    "users": ["root", "user", "nobody"],
    "groups": ["root", "user", "nogroup"],
    "me": [1000, 1000, 1000, 1000, "user"],
    "host": "retort",
}
