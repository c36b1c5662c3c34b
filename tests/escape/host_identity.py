"""Is root on the host while it is uid 1000 inside.

Seen from the host, a guest started by root has a uid that belongs to nobody, and no two live
sessions have the same; one started by a user has that user's and no capability.
"""

from pathlib import Path

from outside import cell, holds, processes_with, same, until

GUEST = """
sleeper = subprocess.Popen(["sleep", SECONDS])
print("up", flush=True)
sleeper.wait()
"""


def status_of(word):
    found = []
    until(lambda: found.extend(processes_with(word)) or found, "the guest's process to show up")
    lines = Path("/proc", str(found[0]), "status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def check(box):
    words = [f"1{n}{box.tmp.stat().st_ino}.5" for n in (1, 2)]
    live = [box.start(cell(GUEST, SECONDS=w)) for w in words]
    for session in live:
        session.wait_for("up")
    seen = [status_of(w) for w in words]
    uids = [s["Uid"].split() for s in seen]
    for s, ids in zip(seen, uids):
        same(len(set(ids)), 1, "real, effective, saved and file system uid are one")
        same([s["CapEff"], s["CapPrm"], s["CapBnd"], s["CapAmb"]], ["0" * 16] * 4, "capabilities")
        same([s["NoNewPrivs"], s["Seccomp"]], ["1", "2"], "no_new_privs and seccomp")
    if box.has_own_users:
        holds(all(int(u[0]) >= 65536 for u in uids), f"uids on the host: {uids}")
        holds(uids[0] != uids[1], f"two live sessions share a uid on the host: {uids}")
    else:
        same([int(u[0]) for u in uids], [box.user.pw_uid] * 2, "uids on the host")
