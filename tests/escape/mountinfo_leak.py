"""Reads host paths, user names and disk layout from the list of mounts.

What is shown comes from the system directories alone.
"""

from harness import cell, holds

GUEST = """
report(lines=open("/proc/self/mountinfo").read().splitlines(), mounts=open("/proc/mounts").read())
"""


def check(box):
    said = box.ok(box.run(cell(GUEST)))
    text = "\n".join(said["lines"]) + said["mounts"]
    for word in (str(box.tmp), "/home/", "/root", "upperdir", "lowerdir"):
        holds(word not in text, f"the list of mounts tells of {word}:\n{text}")
