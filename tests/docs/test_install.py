"""`./dev install`, `uninstall` and `deb`: what they put where, and what they leave."""

import os
import shutil
import subprocess

import pytest
from support import retort

SCRIPT = retort.REPO / "deploy" / "install.sh"


def script(word, **env):
    if not (retort.REPO / "build" / "guest").is_dir():
        pytest.skip("the program is built elsewhere")
    done = subprocess.run([SCRIPT, word], env={**os.environ, **env}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def files_below(place):
    return {str(f.relative_to(place)) for f in place.rglob("*") if f.is_file()}


def test_install_and_uninstall(tmp_path):
    said = script("install", DESTDIR=str(tmp_path))
    assert "retort doctor" in said and "uninstall" in said
    installed = files_below(tmp_path)
    assert {"usr/local/bin/retort", "etc/retort.ini", "etc/systemd/system/retort.service",
            "usr/local/lib/retort/guest/_retort.abi3.so",
            "usr/local/lib/retort/guest/retort_guest/zygote.py"} <= installed
    done = subprocess.run([tmp_path / "usr/local/bin/retort", "run", "-c", "6 * 7"],
                          capture_output=True, text=True)
    assert done.stdout == "42\n", done.stderr
    (tmp_path / "etc/retort.ini").write_text("; mine\n")
    script("install", DESTDIR=str(tmp_path))
    assert (tmp_path / "etc/retort.ini").read_text() == "; mine\n" and files_below(tmp_path) == installed
    script("uninstall", DESTDIR=str(tmp_path))
    assert files_below(tmp_path) == {"etc/retort.ini"}


def test_package(tmp_path):
    if not shutil.which("dpkg-deb"):
        pytest.skip("no dpkg-deb")
    file = script("deb").split()[1].removesuffix(".")
    listed = subprocess.run(["dpkg-deb", "--info", retort.REPO / file], capture_output=True, text=True)
    assert "python3-ipython" in listed.stdout and "libuv1" in listed.stdout, listed
    subprocess.run(["dpkg-deb", "--control", retort.REPO / file, tmp_path / "control"], check=True)
    for name in ("postinst", "prerm", "postrm"):  # ./dev fresh runs them
        assert os.access(tmp_path / "control" / name, os.X_OK)
        subprocess.run(["sh", "-n", tmp_path / "control" / name], check=True)
    subprocess.run(["dpkg-deb", "--extract", retort.REPO / file, tmp_path], check=True)
    assert "usr/lib/systemd/system/retort.service" in files_below(tmp_path)
    assert "ExecStart=/usr/bin/retort serve" in (
        tmp_path / "usr/lib/systemd/system/retort.service").read_text()
    done = subprocess.run([tmp_path / "usr/bin/retort", "run", "-c", "6 * 7"],
                          capture_output=True, text=True)
    assert done.stdout == "42\n", done.stderr
