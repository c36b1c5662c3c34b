"""Finds the files of another live session: workspace, /tmp, /dev/shm.

Each session's are mounts of its own, in a mount namespace of its own.
"""

from outside import cell, holds, same

VICTIM = """
for place in "/workspace", "/tmp", "/dev/shm":
    open(place + "/victim.txt", "w").write("kestrel-secret")
    os.chmod(place + "/victim.txt", 0o666)
os.chmod("/workspace", 0o777)
print("up", flush=True)
time.sleep(20)
"""

GUEST = """
found = [
    os.path.join(top, n)
    for start in ("/workspace", "/tmp", "/dev", "/run", "/var", "/opt", "/etc")
    for top, dirs, names in os.walk(start)
    for n in names
    if n == "victim.txt"
]
links = [
    p
    for p in os.listdir("/proc")
    if p.isdigit() and os.path.exists(f"/proc/{p}/root/workspace/victim.txt")
]
report(found=found, through_proc=links)
"""


def check(box):
    victim = box.start(cell(VICTIM))
    victim.wait_for("up")
    same(box.ok(box.run(cell(GUEST))), {"found": [], "through_proc": []})
    holds(victim.process.poll() is None, "the other session ended")
