"""-f brings files in, --out takes them home."""

import hashlib
import os
import stat

import pytest

from support import retort


def test_input_is_there_and_no_news(tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n1,2\n")
    (tmp_path / "Grüße 🎉.txt").write_text("hello")
    (tmp_path / "-f").write_text("dash")
    large = os.urandom(5_000_000)
    (tmp_path / "large.bin").write_bytes(large)
    run = retort.run("-f", tmp_path / "data.csv", "-f", tmp_path / "Grüße 🎉.txt", "-f", tmp_path / "-f",
                     f"--file={tmp_path / 'large.bin'}",
                     "-c", "import hashlib, os\nsorted(os.listdir()), open('data.csv').read()",
                     "-c", "print(hashlib.sha256(open('large.bin', 'rb').read()).hexdigest())",
                     "-c", "open('data.csv', 'a').write('3,4\\n'); os.remove('large.bin')")
    assert run[0].result == repr((["-f", "Grüße 🎉.txt", "data.csv", "large.bin"], "a,b\n1,2\n"))
    assert run[0].files == {} and run[1].files == {}
    assert run[1].stdout.strip() == hashlib.sha256(large).hexdigest()
    assert run[2].files == {"data.csv": ("changed", 12, "text/csv"),
                            "large.bin": ("deleted", 0, "application/octet-stream")}
    assert (tmp_path / "data.csv").read_text() == "a,b\n1,2\n"
    assert (tmp_path / "large.bin").read_bytes() == large


def test_input_is_a_copy_of_the_users_own(tmp_path):
    (tmp_path / "secret.txt").write_text("x")
    (tmp_path / "secret.txt").chmod(0o600)
    (tmp_path / "link.txt").symlink_to("secret.txt")
    run = retort.run("-f", tmp_path / "secret.txt", "-f", tmp_path / "link.txt", "--shell",
                     "echo y >> secret.txt && cat secret.txt && stat -c '%U %F' link.txt")
    assert run[0].stdout == "xy\nuser regular file\n"


MAKE = """
import os
os.makedirs("charts/deep")
open("charts/deep/one.txt", "w").write("one")
open("charts/two.csv", "w").write("1,2")
open("Grüße.txt", "w").write("hi")
open("run.sh", "w").write("#!/bin/sh")
os.chmod("run.sh", 0o4777)
open("gone.txt", "w").write("brief");
"""


def test_artifacts_come_home(tmp_path):
    out = tmp_path / "new" / "out"
    (tmp_path / "in.csv").write_text("a")
    code, printed, err = retort.call("run", "-f", tmp_path / "in.csv", "--out", out, "-c", MAKE,
                                     "-c", "open('charts/two.csv', 'w').write('3,4,5')\n"
                                           "os.remove('gone.txt')", "-c", "print('done')")
    assert (code, printed) == (0, b"done\n"), err
    found = {str(p.relative_to(out)): p.read_text() for p in out.rglob("*") if p.is_file()}
    assert found == {"charts/deep/one.txt": "one", "charts/two.csv": "3,4,5", "Grüße.txt": "hi",
                     "run.sh": "#!/bin/sh", "gone.txt": "brief"}
    for path in out.rglob("*"):
        assert path.stat().st_uid == os.geteuid()
        assert not path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IWOTH)
    assert err.count("\n") == 1 and "kept: " in err and str(out) in err


def test_figures_come_home(tmp_path):
    code, _, err = retort.call("run", "--out", tmp_path, "-c",
                               "import matplotlib.pyplot as plt\n"
                               "for n in (1, 2):\n    plt.figure(); plt.plot([n, 1])\n",
                               "-c", "open('figure-1.png', 'w').write('own')")
    assert code == 0
    figures = sorted(p.name for p in tmp_path.iterdir())
    assert len([n for n in figures if n.startswith("figure-")]) >= 2
    assert (tmp_path / "figure-1.png").read_bytes() == b"own"
    assert "image/png" in err


def test_out_keeps_what_was_there(tmp_path):
    (tmp_path / "other.txt").write_text("mine")
    (tmp_path / "same.txt").write_text("old")
    assert retort.call("run", "--out", tmp_path, "-c", "open('same.txt', 'w').write('new');")[0] == 0
    assert (tmp_path / "other.txt").read_text() == "mine"
    assert (tmp_path / "same.txt").read_text() == "new"


def test_files_of_failed_executions_come_home(tmp_path):
    code, _, _ = retort.call("run", "--keep-going", "--timeout", "0.5", "--out", tmp_path,
                             "-c", "open('raised.txt', 'w').write('x'); 1 / 0",
                             "-c", "open('late.txt', 'w').write('x')\nwhile True: pass",
                             "-c", "open('dead.txt', 'w').write('x')\nimport os; os._exit(1)")
    assert code == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["dead.txt", "late.txt", "raised.txt"]


@pytest.mark.parametrize("place", ["out", "planted/out"])
def test_out_does_not_follow_planted_links(tmp_path, place):
    out = tmp_path / place
    target = tmp_path / "target"
    target.mkdir()
    out.mkdir(parents=True)
    (out / "sub").symlink_to(target)
    (out / "file.txt").symlink_to(target / "file.txt")
    retort.call("run", "--out", out, "-c", "import os\nos.mkdir('sub')\nopen('sub/x', 'w').write('x')\n"
                "open('file.txt', 'w').write('y');")
    assert list(target.iterdir()) == []
