"""Makes itself the last one the kernel kills when memory runs out, or a sibling the first.

/proc is mounted read-only.
"""

GUEST = """
sleeper = subprocess.Popen(["sleep", "5"])
report(
    own=attempt(lambda: open("/proc/self/oom_score_adj", "w").write("-1000")),
    raised=attempt(lambda: open("/proc/self/oom_score_adj", "w").write("1000")),
    other=attempt(lambda: open(f"/proc/{sleeper.pid}/oom_score_adj", "w").write("-1000")),
    old=attempt(lambda: open("/proc/self/oom_adj", "w").write("-17")),
)
sleeper.kill()
"""

EXPECT = {"own": "EROFS", "raised": "EROFS", "other": "EROFS", "old": "EROFS"}
