"""Writes to init's own knobs in /proc, and to those of the guest itself.

/proc is mounted read-only; where a file belongs to someone else, that is said first.
"""

GUEST = """
names = (
    "oom_score_adj",
    "oom_adj",
    "coredump_filter",
    "timerslack_ns",
    "comm",
    "sched",
    "uid_map",
    "gid_map",
    "setgroups",
    "projid_map",
    "autogroup",
    "loginuid",
    "attr/current",
    "attr/exec",
)
answers = {
    reopen(f"/proc/{who}/{n}", os.O_WRONLY)
    for n in names
    for who in ("1", "self", str(os.getpid()))
}
report(written="ok" in answers, answers=sorted(answers - {"ENOENT"}))
"""

EXPECT = {"written": False, "answers": (["EACCES", "EROFS"], ["EROFS"])}
