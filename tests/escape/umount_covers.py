"""Takes away every mount there is, in the hope that the host's files are below one of them.

Refused by seccomp, for each line of mountinfo and each way to ask.
"""

GUEST = """
MNT_FORCE, MNT_DETACH, MNT_EXPIRE = 1, 2, 4
places = [line.split()[4] for line in open("/proc/self/mountinfo")]
answers = {
    syscall("umount2", p.encode(), how)
    for p in places
    for how in (0, MNT_FORCE, MNT_DETACH, MNT_EXPIRE)
}
report(many=len(places) > 3, answers=sorted(answers))
"""

EXPECT = {"many": True, "answers": ["EPERM"]}
