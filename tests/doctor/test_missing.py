"""What doctor tells where a layer is not there: which one, what to do, and exit status 1 below
the floor. Nothing of the host is changed for it: layers are taken away from doctor alone."""

import re
import subprocess

import pytest

import doctor
from support import retort


def is_below(report, *names):
    """The floor does not hold, for want of these rows alone."""
    assert report.exit == 1, report
    assert report.document["floor"] is False
    assert report.verdict.startswith("below the isolation floor (namespaces and seccomp)")
    missing = report.verdict.partition("missing: ")[2].partition(".")[0]
    assert missing.split(", ") == list(names), report
    for name in names:
        assert report[name]["state"] == "missing" and report[name]["cost"] and report[name]["remedy"]
    assert report.verdict.endswith(" Help: " + report[names[0]]["remedy"])
    assert report["one cell"]["detail"] == "not tried: the floor does not hold"


def is_blocked(report, *names):
    for name in names:
        assert report[name]["detail"].startswith("not reached: "), report
        assert not report[name]["cost"] and not report[name]["remedy"]


INSIDE = ["mount namespace", "pid namespace", "own /proc", "network namespace", "ipc namespace",
          "uts namespace", "cgroup namespace", "mount API", "disk limits", "Landlock", "time namespace"]

# Numbers of prctl(2).
SET_SECCOMP, SET_NO_NEW_PRIVS, GET_TID_ADDRESS = 22, 38, 40


# --- a kernel, or a container's filter, without a call ---

@pytest.mark.parametrize("rule, row", [
    ("clone3=ENOSYS", "clone3"),
    ("openat2=ENOSYS", "openat2"),
    ("pidfd_open=ENOSYS", "pidfd"),
    ("pidfd_send_signal=ENOSYS", "pidfd"),
    ("close_range=ENOSYS", "close_range"),
    ("open_tree=ENOSYS", "mount API"),
    ("mount_setattr=ENOSYS", "mount API"),
    ("move_mount=EPERM", "mount API"),
    ("sethostname=EPERM", "uts namespace"),
    (f"prctl:{GET_TID_ADDRESS}=EINVAL", "thread id address"),
    (f"prctl:{SET_SECCOMP}=EINVAL", "seccomp"),
    ("unshare:0x02000000=EINVAL", "cgroup namespace"),
    ("unshare:0x08000000=EINVAL", "ipc namespace"),
])
def test_call_refused(rule, row):
    call, _, argument = rule.partition("=")[0].partition(":")
    if argument:
        rule = rule.replace(argument, str(int(argument, 0)))
    report = doctor.run(under=doctor.without(rule))
    is_below(report, row)
    assert "Invalid argument" in report[row]["detail"] or "not implemented" in report[row]["detail"] \
        or "not permitted" in report[row]["detail"]


def test_no_privileges_can_be_given_up():
    report = doctor.run(under=doctor.without(f"prctl:{SET_NO_NEW_PRIVS}=EINVAL"))
    is_below(report, "no_new_privs", "seccomp")
    assert report["Landlock"]["state"] == "weaker"


def test_no_file_in_memory():
    report = doctor.run(under=doctor.without("memfd_create=ENOSYS"))
    is_below(report, "seccomp", "memfd")
    assert report["memory image"]["state"] == "weaker"


def test_a_filter_refuses_namespaces():
    report = doctor.run(under=doctor.without("unshare=EPERM", "clone3=EPERM"))
    is_below(report, "user namespace", "clone3")
    is_blocked(report, *INSIDE)
    assert "a seccomp filter is around this process" in report["user namespace"]["detail"]
    assert "--security-opt seccomp=unconfined" in report.verdict


def test_no_process():
    report = doctor.run(under=doctor.without(*(f"{call}=EAGAIN" for call in
                                               ("clone", "clone3", "fork", "vfork"))))
    is_below(report, "processes")
    is_blocked(report, "user namespace", "seccomp", "cgroups", *INSIDE)
    assert "ulimit -u" in report.verdict


# --- Landlock is above the floor ---

@pytest.mark.parametrize("error, detail", [("ENOSYS", "not in this kernel: Function not implemented"),
                                           ("EOPNOTSUPP", "built in, but not enabled")])
def test_no_landlock(error, detail):
    report = doctor.run(under=doctor.without(f"landlock_create_ruleset={error}"))
    assert report.exit == 0, report
    assert report["Landlock"]["state"] == "weaker" and report["Landlock"]["detail"] == detail
    assert "lsm=" in report["Landlock"]["remedy"]
    assert "Landlock" in report.verdict


# --- user namespaces ---

def test_root_with_one_uid():
    report = doctor.run(under=doctor.after(":"))
    assert report.exit == 0, report
    assert report["user ids"]["state"] == "weaker"
    assert report["user ids"]["detail"] == "one for all, the caller's: 0"
    assert "Map user ids 1879048192 to 1879113727" in report["user ids"]["remedy"]


@pytest.mark.parametrize("limit, detail", [
    (0, "none can be made (user.max_user_namespaces is 0)"),
    (1, "inside of one: none can be made (user.max_user_namespaces is 1)"),
])
def test_user_namespaces_limited(limit, detail):
    report = doctor.run(under=doctor.after(f"echo {limit} >/proc/sys/user/max_user_namespaces"))
    assert report["user namespace"]["detail"] == detail
    assert "sysctl -w user.max_user_namespaces=" in report.verdict
    is_below(report, "user namespace")
    if limit == 0:
        is_blocked(report, *INSIDE)


@pytest.mark.parametrize("short, row", [("net", "network namespace"), ("uts", "uts namespace"),
                                        ("ipc", "ipc namespace"), ("cgroup", "cgroup namespace")])
def test_other_namespaces_limited(short, row):
    report = doctor.run(under=doctor.after(f"echo 0 >/proc/sys/user/max_{short}_namespaces"))
    is_below(report, row)
    assert report[row]["detail"] == f"none can be made: user.max_{short}_namespaces is used up"
    assert f"sysctl -w user.max_{short}_namespaces=" in report.verdict


def test_mount_namespaces_limited():
    report = doctor.run(under=doctor.after("echo 0 >/proc/sys/user/max_mnt_namespaces"))
    is_below(report, "mount namespace", "own /proc", "mount API", "disk limits")


# --- mounts ---

def test_masked_proc():
    """As in a container: parts of /proc lie under other mounts."""
    report = doctor.run(under=doctor.after("mount -t tmpfs none /proc/bus", "--mount"))
    is_below(report, "own /proc")
    assert "systempaths=unconfined" in report.verdict


# As debootstrap makes it: a directory. Here the system's own ones are shown in it.
CHROOT = """
mount -t tmpfs none {stage}
mkdir {stage}/root
for at in /*; do
    if [ -L "$at" ]; then
        cp -P "$at" {stage}/root/
    elif [ -d "$at" ]; then
        mkdir "{stage}/root$at"
        mount --rbind "$at" "{stage}/root$at"
    fi
done
set -- chroot {stage}/root "$@"
"""

# As some containers make it: a mount, which from inside looks like any root.
CHROOT_ON_MOUNT = """
mount --rbind / {stage}
set -- chroot {stage} "$@"
"""


@pytest.mark.parametrize("script, reason", [
    (CHROOT, "this process is in a chroot, where the kernel makes none"),
    (CHROOT_ON_MOUNT, "a chroot or a security module is in the way"),
], ids=["directory", "mount"])
def test_chroot(tmp_path, script, reason):
    report = doctor.run(under=doctor.after(script.format(stage=tmp_path), "--mount"))
    is_below(report, "user namespace")
    is_blocked(report, *INSIDE)
    assert report["user namespace"]["detail"] == f"none can be made: Operation not permitted ({reason})"
    assert "outside of the chroot" in report.verdict


@pytest.mark.parametrize("limit", [0, 1])
@pytest.mark.parametrize("command", [["run", "-c", "1"], ["repl"], ["serve", "--listen", "127.0.0.1:0"]], ids=lambda c: c[0])
def test_commands_say_what_to_do(command, limit, tmp_path):
    """Not "No space left on device", which is what the kernel says."""
    state = ["--state", str(tmp_path / "state")] if command[0] == "serve" else []
    words = doctor.after(f"echo {limit} >/proc/sys/user/max_user_namespaces")
    done = subprocess.run([*map(str, words), retort.PROGRAM, *command, *state], input="1\n",
                          capture_output=True, text=True, timeout=retort.SECONDS)
    assert done.returncode == 3 and "No space left" not in done.stderr, done
    says = "user.max_user_namespaces is 0" if limit == 0 else r"user.max_user_namespaces( is 1|, 1, is used up)"
    assert re.search(rf"none can be made \({says}\)\. Help: As root: sysctl -w user\.max_user_namespaces=15000", done.stderr)


# --- as text ---

def test_text_says_what_to_do():
    words = doctor.after("echo 0 >/proc/sys/user/max_user_namespaces")
    done = subprocess.run([*map(str, words), retort.PROGRAM, "doctor"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=retort.SECONDS)
    assert done.returncode == 1
    assert "Help: As root: sysctl -w" in done.stdout
    verdict = " ".join(done.stdout[done.stdout.index("\nverdict: "):].split())
    assert verdict.endswith("missing: user namespace. Help: As root: sysctl -w "
                            "user.max_user_namespaces=15000")
