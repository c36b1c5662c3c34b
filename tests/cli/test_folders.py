"""--folder: a folder of the user's disk in the session, and nothing else of it."""

import fcntl
import os

import pytest
from support import retort
from support.stdio import Local


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "reports"
    place.mkdir()
    for each in (place, tmp_path, *tmp_path.parents[:2]):
        each.chmod(0o755)
    place.chmod(0o777)  # root's sandboxes are other users
    (place / "towns.csv").write_text("Lyon\n")
    (tmp_path / "secret").write_text("not shown")
    return place


def test_what_code_writes_is_on_the_disk(folder):
    run = retort.run("--folder", folder, "-c", "open('/mnt/reports/towns.csv').read()",
                     "--shell", "mkdir /mnt/reports/made && echo new > /mnt/reports/made/file; ls /mnt/reports/..")
    assert run[0].result == "'Lyon\\n'" and run[1].status == "ok", run
    assert (folder / "made" / "file").read_text() == "new\n"
    assert set(run[1].stdout.split()) == {"data", "reports"}


def test_read_only(folder):
    run = retort.run("--folder", f"{folder}:ro", "-c", "open('/mnt/reports/towns.csv').read()",
                     "--shell", "echo x > /mnt/reports/towns.csv; rm /mnt/reports/towns.csv; touch /mnt/reports/n")
    assert run[0].result == "'Lyon\\n'"
    assert run[1].stderr.count("Read-only file system") == 3
    assert os.listdir(folder) == ["towns.csv"]


def test_a_lock_is_one_inside_and_outside(folder):
    code = ("import fcntl\nf = open('/mnt/reports/towns.csv')\n"
            "try: fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)\nexcept BlockingIOError: print('taken')\n"
            "else: print('free')")
    with open(folder / "towns.csv") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        assert retort.run("--folder", folder, "-c", code)[0].stdout == "taken\n"
        fcntl.flock(f, fcntl.LOCK_UN)
        assert retort.run("--folder", folder, "-c", code)[0].stdout == "free\n"


def test_links_lead_nowhere_else(folder):
    (folder / "link").symlink_to(folder.parent / "secret")
    (folder / "up").symlink_to("..")
    run = retort.run("--folder", folder, "--keep-going", "--shell", "cat /mnt/reports/link", "--shell", "ls /mnt/reports/up/")
    assert "No such file" in run[0].stderr and "secret" not in run[1].stdout


def test_two_of_one_name_and_the_name_of_the_workspace(tmp_path, folder):
    for name in ("a/reports", "b/data"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "here").write_text(name)
    run = retort.run("--folder", folder, "--folder", tmp_path / "a/reports", "--folder", tmp_path / "b/data",
                     "--shell", "cat /mnt/reports-2/here /mnt/data-2/here; ls -l /mnt/data")
    assert run[0].stdout.startswith("a/reportsb/data") and "/workspace" in run[0].stdout


def test_another_place_than_the_name_says_is_said(tmp_path, folder):
    """/mnt/data is the workspace, and data is what many people call their folder."""
    (tmp_path / "data").mkdir()
    code, _, said = retort.call("run", "--folder", tmp_path / "data", "--folder", folder, "-c", "1")
    assert code == 0 and f"{tmp_path}/data is at /mnt/data-2 in the session: /mnt/data is the workspace" in said, said
    assert "reports" not in said
    (tmp_path / "b/reports").mkdir(parents=True)
    said = retort.call("run", "--folder", folder, "--folder", tmp_path / "b/reports", "-c", "1")[2]
    assert f"b/reports is at /mnt/reports-2 in the session: /mnt/reports is {folder}" in said, said


@pytest.mark.parametrize("mode, given, cannot", [
    (0o755, "", "code cannot write to"), (0o700, "", "code cannot read"), (0o700, ":ro", "code cannot read"),
    (0o755, ":ro", None), (0o777, "", None)])
def test_permissions_that_are_in_the_way_are_said(folder, mode, given, cannot):
    """Where root starts it, code is another user. Where an ordinary user does, code is that user."""
    folder.chmod(mode)
    code, _, said = retort.call("run", "--folder", f"{folder}{given}", "-c", "1")
    assert code == 0 and (f"{cannot} {folder}: root started" in said) == bool(cannot and os.geteuid() == 0), said
    assert cannot or "code cannot" not in said


@pytest.mark.parametrize("path, word", [("missing", "No such file"), ("file", "not a folder"), ("/", "everything"),
                                         ("/proc", "belongs to the kernel"), ("/proc/self/task", "belongs to the kernel"),
                                         ("/sys", "belongs to the kernel"), ("/dev", "belongs to the kernel"),
                                         ("/proc/self/root", "everything")])
def test_refused(tmp_path, path, word):
    (tmp_path / "file").write_text("")
    code, _, said = retort.call("run", "--folder", path if path == "/" else tmp_path / path, "-c", "1")
    assert code == 2 and word in said and "--folder" in said, said


def test_mcp_tells_the_model_and_writes(folder):
    with Local("--folder", folder) as client:
        told = client.initialize()["instructions"]
        assert "/mnt/reports (what you write there stays on the disk)" in told
        client.call("run_code", code="open('/mnt/reports/out.txt', 'w').write('by a model')")
        assert (folder / "out.txt").read_text() == "by a model"
