"""Looks for descriptors that a command inherited: the interpreter's socket, init's, a directory.

A command has its three and nothing else.
"""

from outside import holds, same, shell

SCRIPT = r"""
for n in /proc/self/fd/*; do
    printf '%s %s\n' "${n##*/}" "$(readlink "$n" | sed 's/[0-9]\{2,\}/N/g')"
done
"""


def check(box):
    lines = dict(line.split(" ", 1) for line in box.run(shell(SCRIPT)).text().splitlines())
    same(sorted(lines)[:3], ["0", "1", "2"], "descriptors")
    same([lines["1"], lines["2"]], ["pipe:[N]", "pipe:[N]"], "stdout and stderr")
    holds(lines["0"] in ("/dev/null", "pipe:[N]"), f"stdin is {lines['0']}")
    # What is left is the shell's own: the pipe of its substitution and the directory it lists.
    others = {k: v for k, v in lines.items() if int(k) > 2}
    holds(
        all(v.startswith("pipe:") or v in ("", "/proc/N/fd") for v in others.values()),
        f"also open: {others}",
    )
