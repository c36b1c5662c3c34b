"""Reaches the less visited protocols of the internet families: SCTP, DCCP (CVE-2017-6074), UDP-
Lite, MPTCP, L2TP, SMC.

Refused by seccomp: of the internet families there is TCP and UDP.
"""

GUEST = """
SCTP, DCCP, UDPLITE, MPTCP, L2TP, SMC = 132, 33, 136, 262, 115, 256
found = {}
for name, kind, protocol in (
    ("sctp", 1, SCTP),
    ("sctp_many", 5, SCTP),
    ("dccp", 6, DCCP),
    ("udplite", 2, UDPLITE),
    ("mptcp", 1, MPTCP),
    ("l2tp", 2, L2TP),
    ("smc", 1, SMC),
):
    found[name] = sorted({syscall("socket", family, kind, protocol) for family in (2, 10)})
report(**found)
"""

EXPECT = {k: ["ENOSYS"] for k in ("sctp", "sctp_many", "dccp", "udplite", "mptcp", "l2tp", "smc")}
