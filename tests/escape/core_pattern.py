"""Has the host run a program of the guest's choice when something crashes (CVE-2022-0811).

/proc/sys is the host's, and not there.
"""

from pathlib import Path

from outside import cell, same

GUEST = """
report(
    pattern=attempt(lambda: open("/proc/sys/kernel/core_pattern", "w").write("|/workspace/x")),
    modprobe=reopen("/proc/sys/kernel/modprobe", os.O_WRONLY),
    poweroff=reopen("/proc/sys/kernel/poweroff_cmd", os.O_WRONLY),
    binfmt=reopen("/proc/sys/fs/binfmt_misc/register", os.O_WRONLY),
    hotplug=reopen("/proc/sys/kernel/hotplug", os.O_WRONLY),
)
"""


def check(box):
    before = Path("/proc/sys/kernel/core_pattern").read_text()
    same(
        box.ok(box.run(cell(GUEST))),
        {
            "pattern": "ENOENT",
            "modprobe": "ENOENT",
            "poweroff": "ENOENT",
            "binfmt": "ENOENT",
            "hotplug": "ENOENT",
        },
    )
    same(Path("/proc/sys/kernel/core_pattern").read_text(), before, "the host's core pattern")
