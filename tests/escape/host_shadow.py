"""Reads the host's password hashes and keys.

The sandbox's /etc is its own: these files are not in it.
"""

GUEST = """
report(
    **{
        p: attempt(open, p)
        for p in (
            "/etc/shadow",
            "/etc/gshadow",
            "/etc/sudoers",
            "/etc/ssh",
            "/etc/machine-id",
            "/etc/fstab",
            "/var/lib/dpkg/status",
            "/var/log",
            "/boot",
        )
    }
)
"""

EXPECT = {
    p: "ENOENT"
    for p in (
        "/etc/shadow",
        "/etc/gshadow",
        "/etc/sudoers",
        "/etc/ssh",
        "/etc/machine-id",
        "/etc/fstab",
        "/var/lib/dpkg/status",
        "/var/log",
        "/boot",
    )
}
