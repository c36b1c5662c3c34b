"""Gives itself an interface, an address, a route or a tunnel.

All need a capability over the network namespace; its one interface is loopback.
"""

GUEST = """
SIOCADDRT, SIOCSIFFLAGS, SIOCSIFADDR, SIOCSIFNAME, SIOCBRADDBR, SIOCADDTUNNEL = (
    0x890B,
    0x8914,
    0x8916,
    0x8923,
    0x89A0,
    0x89F1,
)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
down = ctypes.create_string_buffer(struct.pack("<16sh", b"lo", 0) + bytes(64))
route = ctypes.create_string_buffer(128)
answers = {
    n: syscall("ioctl", s.fileno(), call, arg)
    for n, call, arg in (
        ("route", SIOCADDRT, route),
        ("flags", SIOCSIFFLAGS, down),
        ("address", SIOCSIFADDR, down),
        ("name", SIOCSIFNAME, down),
    )
}
names = [line.split(":")[0].strip() for line in open("/proc/net/dev").read().splitlines()[2:]]
report(
    **answers,
    interfaces=[
        n
        for n in names
        if n
        not in (
            "tunl0",
            "sit0",
            "ip6tnl0",
            "gre0",
            "gretap0",
            "erspan0",
            "ip_vti0",
            "ip6_vti0",
            "ip6gre0",
        )
    ],
    routes=open("/proc/net/route").read().splitlines()[1:]
)
"""

EXPECT = {
    "route": "EPERM",
    "flags": "EPERM",
    "address": "EPERM",
    "name": "EPERM",
    "interfaces": ["lo"],
    "routes": [],
}
