"""Makes a program setuid and setgid and runs it, in each place it may write to.

The bits can be set on its own files and mean nothing: nosuid mounts, no_new_privs.
"""

GUEST = """
import shutil

found = {}
for place in "/workspace", "/tmp", "/dev/shm":
    path = place + "/id"
    shutil.copy("/usr/bin/id", path)
    os.chmod(path, 0o6755)
    ids = [
        subprocess.run([path, how], capture_output=True, text=True).stdout.strip()
        for how in ("-u", "-g")
    ]
    found[place] = [
        *ids,
        bool(os.statvfs(place).f_flag & os.ST_NOSUID),
        attempt(os.chown, path, 0, -1),
    ]
report(**found)
"""

# Rootless there is no such user to give it to.
EXPECT = {
    p: ["1000", "1000", True, ("EPERM", "EINVAL")] for p in ("/workspace", "/tmp", "/dev/shm")
}
