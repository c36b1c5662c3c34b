"""Walks out of Python with Python: the way of smolagents CVE-2025-5120, n8n CVE-2026-0863 and all
their kin.

It succeeds, as it must: nothing here relies on the language. What it reaches is the box.
"""

from outside import cell, same

GUEST = """
found = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == "_wrap_close"][0]
system = found.__init__.__globals__["popen"]
by_error = None
try:
    raise ValueError
except ValueError as e:
    by_error = e.__traceback__.tb_frame.f_builtins["__import__"]("os")
report(
    id=system("id -u").read().strip(),
    shadow=system("cat /etc/shadow >/dev/null 2>&1; echo $?").read().strip(),
    decoy=attempt(by_error.stat, DECOY),
    format="{0.__init__.__globals__}".format(found).count("kestrel"),
    frames=[name for name in sys._current_frames() if "kestrel" in repr(name)],
)
"""


def check(box):
    decoy, _ = box.decoy()
    same(
        box.ok(box.run(cell(GUEST, DECOY=str(decoy)), env={"TOKEN": "kestrel"})),
        {"id": "1000", "shadow": "1", "decoy": "ENOENT", "format": 0, "frames": []},
    )
