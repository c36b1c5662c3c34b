"""`./dev package`: the bundle runs from wherever it is unpacked, and says what it is."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest
from support import retort
from support.mcp import CAPABILITIES_KEY, MODERN, VERSION_KEY

ROOT = Path(__file__).resolve().parents[2]
MCPB = ROOT / "build" / "npm" / "node_modules" / ".bin" / "mcpb"
META = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}
DOMAIN = "https://example.org/mcp"


@pytest.fixture(scope="module")
def made():
    """The folder with what was made, and beside it an empty one with the bundle unpacked."""
    assert shutil.which("patchelf"), "patchelf is missing: ./dev test installs it"
    place = Path(tempfile.mkdtemp(prefix="retort-test-package-"))
    place.chmod(0o755)
    try:
        subprocess.run([sys.executable, ROOT / "deploy" / "package.py", retort.PROGRAM, place / "out", DOMAIN],
                       check=True, stdout=subprocess.DEVNULL)
        (place / "unpacked").mkdir()
        with zipfile.ZipFile(bundle_in(place)) as bundle:
            for entry in bundle.infolist():
                path = bundle.extract(entry, place / "unpacked")
                os.chmod(path, entry.external_attr >> 16)
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def bundle_in(place):
    (found,) = (place / "out").glob("*.mcpb")
    return found


@pytest.fixture
def manifest(made):
    return json.loads((made / "unpacked" / "manifest.json").read_text())


def command(manifest, folder):
    """As a client makes it of the manifest."""
    config = manifest["server"]["mcp_config"]
    values = {"${__dirname}": str(folder),
              **{f"${{user_config.{name}}}": field["default"] for name, field in manifest["user_config"].items()}}
    words = [config["command"], *config["args"]]
    for name, value in values.items():
        words = [word.replace(name, value) for word in words]
    assert not any("${" in word for word in words)
    return words


def talk(words, *requests):
    lines = "".join(json.dumps({"jsonrpc": "2.0", "id": i, "method": method, "params": {**params, "_meta": META}}) + "\n"
                    for i, (method, params) in enumerate(requests))
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/",
                               env={"PATH": "/usr/bin:/bin"})
    with process:
        process.stdin.write(lines)
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in requests]
        process.stdin.close()
        assert process.wait(retort.SECONDS) == 0
    return [a["result"] for a in sorted(answers, key=lambda a: a["id"])]


def test_it_runs_code_from_where_it_was_unpacked(made, manifest):
    words = command(manifest, made / "unpacked")
    called, listed = talk([*words, "--preload", ""],
                          ("tools/call", {"name": "run_code", "arguments": {"code": "print(6 * 7)"}}),
                          ("tools/list", {}))
    assert "42" in called["content"][0]["text"] and not called["isError"]
    assert [t["name"] for t in manifest["tools"]] == [t["name"] for t in listed["tools"]]


def test_it_brings_its_libraries(made):
    shown = subprocess.run(["ldd", made / "unpacked" / "server" / "retort"], capture_output=True, text=True).stdout
    outside = {Path(p).name for p in re.findall(r"=> (\S+)", shown) if not p.startswith(str(made))}
    assert "not found" not in shown
    assert outside <= {"libc.so.6", "libm.so.6", "libresolv.so.2", "libpthread.so.0", "libdl.so.2", "librt.so.1"}


@pytest.mark.once
def test_manifest(made, manifest):
    assert manifest["manifest_version"] == "0.3"
    assert manifest["version"] in bundle_in(made).name and os.uname().machine in bundle_in(made).name
    entry = made / "unpacked" / manifest["server"]["entry_point"]
    assert manifest["server"]["type"] == "binary" and os.access(entry, os.X_OK)
    assert manifest["compatibility"] == {"platforms": ["linux"]}
    if MCPB.exists():
        subprocess.run([MCPB, "validate", made / "unpacked" / "manifest.json"], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.once
def test_server_json(made, manifest):
    entry = json.loads((made / "out" / "server.json").read_text())
    (package,) = entry["packages"]
    assert entry["$schema"].endswith("/2025-12-11/server.schema.json")
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry["name"])
    assert entry["version"] == package["version"] == manifest["version"]
    assert len(entry["description"]) <= 100 and len(entry["title"]) <= 100
    assert package["registryType"] == "mcpb" and package["transport"] == {"type": "stdio"}
    assert package["identifier"] == f"{DOMAIN}/{bundle_in(made).name}"
    assert package["fileSha256"] == hashlib.sha256(bundle_in(made).read_bytes()).hexdigest()


@pytest.mark.once
def test_licences_of_what_it_brings(made):
    libraries = list((made / "unpacked" / "server" / "lib").iterdir())
    assert len(libraries) > 5
    found = {p.stem for p in (made / "unpacked" / "licenses").iterdir()}
    assert {"libjansson4", "libuv1", "zlib1g"} <= found
    assert (made / "unpacked" / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@pytest.mark.once
def test_the_same_files_make_the_same_bundle(made):
    again = made / "again"
    subprocess.run([sys.executable, ROOT / "deploy" / "package.py", retort.PROGRAM, again], check=True,
                   stdout=subprocess.DEVNULL)
    assert (again / bundle_in(made).name).read_bytes() == bundle_in(made).read_bytes()
