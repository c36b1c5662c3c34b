"""Replaces the packet filter's tables through a plain TCP socket (CVE-2016-3134, CVE-2021-22555).

Needs a capability over the network namespace, which is gone.
"""

GUEST = """
IPT_SO_SET_REPLACE, IPT_SO_GET_INFO, SOL_IP, SOL_IPV6 = 64, 64, 0, 41
s4, s6 = socket.socket(), socket.socket(socket.AF_INET6)
refused = {"EPERM", "ENOPROTOOPT"}
answers = [
    attempt(s4.setsockopt, SOL_IP, IPT_SO_SET_REPLACE, bytes(128)),
    attempt(s4.getsockopt, SOL_IP, IPT_SO_GET_INFO, 84),
    attempt(s6.setsockopt, SOL_IPV6, IPT_SO_SET_REPLACE, bytes(128)),
]
report(
    tables=set(answers) <= refused,
    mark=attempt(s4.setsockopt, 1, 36, 7),
    force=attempt(s4.setsockopt, 1, 33, 1 << 30),
    transparent=attempt(s4.setsockopt, SOL_IP, 19, 1),
    priority=attempt(s4.setsockopt, 1, 12, 99),
)
"""

EXPECT = {
    "tables": True,
    "mark": "EPERM",
    "force": "EPERM",
    "transparent": "EPERM",
    "priority": "EPERM",
}
