"""What deploy/ has for containers, as far as it can be checked without one."""

import importlib.util
import io
import json
import re
import subprocess
import sys
import tarfile

import pytest

from support import retort

pytestmark = pytest.mark.once

OCI = retort.REPO / "deploy/oci"


def test_the_profile_is_what_its_script_writes():
    made = subprocess.run([sys.executable, OCI / "seccomp.py"], check=True, capture_output=True, text=True).stdout
    assert (OCI / "seccomp.json").read_text() == made
    profile = json.loads(made)
    refused = [name for row in profile["syscalls"] for name in row["names"]]
    assert len(refused) == len(set(refused)) and {row["action"] for row in profile["syscalls"]} == {"SCMP_ACT_ERRNO"}
    assert not {"unshare", "clone", "clone3", "mount", "umount2", "pivot_root", "sethostname", "setns"} & set(refused)


def test_an_image_is_the_same_each_time(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("image", OCI / "image.py")
    image = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(image)
    monkeypatch.setattr(image, "packages", lambda tree: [["libc6", "2.36", "amd64", "glibc", ""]])
    tree = tmp_path / "tree"
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "usr/bin/retort").write_text("program")
    (tree / "usr/bin/link").symlink_to("retort")
    found = []
    for name in ("one", "two"):
        image.main(tree, tmp_path / name, "1.2", 10001)
        found.append({f.relative_to(tmp_path / name): f.read_bytes() for f in (tmp_path / name).rglob("*")
                      if f.is_file()})
    assert found[0] == found[1]
    index = json.loads((tmp_path / "one/index.json").read_text())

    def blob(descriptor):
        return (tmp_path / "one/blobs/sha256" / descriptor["digest"].removeprefix("sha256:")).read_bytes()

    manifest, listed = (json.loads(blob(m)) for m in index["manifests"])
    assert json.loads(blob(manifest["config"]))["config"]["User"] == "10001:10001"
    with tarfile.open(fileobj=io.BytesIO(blob(manifest["layers"][0]))) as tar:
        assert tar.getnames() == ["usr", "usr/bin", "usr/bin/link", "usr/bin/retort"]
    assert listed["subject"] == {k: index["manifests"][0][k] for k in ("mediaType", "digest", "size")}
    spdx = json.loads(blob(listed["layers"][0]))
    assert [p["name"] for p in spdx["packages"]] == ["retort", "libc6"]
    assert [f["fileName"] for f in spdx["files"]] == ["./usr/bin/retort"]


def test_the_flags_of_the_readme_are_explained():
    table = (retort.REPO / "docs/running.md").read_text().split("## In a container")[1]
    line = re.search(r"docker run (.*?) IMAGE", (retort.REPO / "README.md").read_text(), re.S)[1].replace("\\\n", " ")
    words = [w for w in line.split() if w not in ("--security-opt", "-p", "127.0.0.1:8000:8000", "-v", "--cap-drop")]
    assert len(words) == 6
    for word in words:
        assert word in table, word
