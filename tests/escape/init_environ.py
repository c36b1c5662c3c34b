"""Reads init's environment: whatever the host's had would be in there.

Init is not dumpable; and the zygote was started with an environment of ours.
"""

from outside import cell, same

GUEST = """
everywhere = b""
for pid in [p for p in os.listdir("/proc") if p.isdigit()] + ["self"]:
    for name in "environ", "cmdline":
        try:
            everywhere += open(f"/proc/{pid}/{name}", "rb").read()
        except OSError:
            pass
memory = "".join(os.environ) + "".join(os.environ.values())
report(
    init=attempt(lambda: open("/proc/1/environ", "rb").read()),
    seen=WORD.encode() in everywhere or WORD in memory,
)
"""


def check(box):
    run = box.run(
        cell(GUEST, WORD="kestrel" + "-secret"),
        env={"API_TOKEN": "kestrel-secret", "RETORT_X": "kestrel-secret"},
    )
    same(box.ok(run), {"init": "EACCES", "seen": False})
