"""Speaks to the hypervisor below the host (CVE-2021-26708).

Refused by seccomp.
"""

GUEST = """
AF_VSOCK = 40
report(
    stream=syscall("socket", AF_VSOCK, 1, 0),
    dgram=syscall("socket", AF_VSOCK, 2, 0),
    packets=syscall("socket", AF_VSOCK, 5, 0),
    device=reopen("/dev/vsock", os.O_RDWR),
)
"""

EXPECT = {
    "stream": "EAFNOSUPPORT",
    "dgram": "EAFNOSUPPORT",
    "packets": "EAFNOSUPPORT",
    "device": "ENOENT",
}
