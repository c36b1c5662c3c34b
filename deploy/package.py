#!/usr/bin/env python3
"""package.py PROGRAM OUT [URL]: a bundle that clients of MCP install, and its entry for the registry.

Makes OUT/retort-VERSION-linux-ARCH.mcpb, a zip with the program, the guest files beside it, the
shared libraries it was linked with (all but the C library's own), and a manifest; and
OUT/server.json, which names the bundle by its digest. URL is the folder it will be downloaded from.
The same files make the same bundle, byte for byte.
"""

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

ROOT = Path(__file__).resolve().parents[1]
SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
NAME = "dev.retort/retort"
TITLE = "retort code interpreter"
TEXT = "A sealed, warm Python and shell on this machine for data, plots and files."
# The C library belongs to the machine: one of another version does not fit its loader.
NOT_OURS = re.compile(r"(ld-linux|linux-vdso|lib(c|m|dl|rt|pthread|resolv|util|nsl|anl)\.so)")
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientCapabilities": {}}


def run(*words, **more):
    return subprocess.run([*map(str, words)], check=True, capture_output=True, text=True, **more).stdout


def tools(program):
    """What the program says of its tools."""
    question = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": MODERN}}
    answer = json.loads(run(program, "mcp", input=json.dumps(question) + "\n", timeout=30))
    return [{"name": t["name"], "description": t["description"].split("\n")[0]} for t in answer["result"]["tools"]]


def libraries(program):
    found = re.findall(r"^\s*(\S+)(?: => (\S+))?", run("ldd", program), re.M)
    return sorted({Path(path) for name, path in found if path and not NOT_OURS.match(name)})


def licences(files, place):
    """What Debian says of each package that a library is from."""
    # dpkg knows a file below /lib or /usr/lib, whichever the package was made with. It reads its whole
    # database each time, so it is asked once.
    names = {name for file in files for real in [str(file.resolve())]
             for name in (str(file), f"/usr{file}", real, real.removeprefix("/usr"))}
    owners = subprocess.run(["dpkg", "-S", *sorted(names)], capture_output=True, text=True).stdout
    for package in {line.split(":")[0] for line in owners.splitlines()}:
        text = Path("/usr/share/doc") / package / "copyright"
        if text.exists():
            shutil.copyfile(text, place / f"{package}.txt")


def lay_out(program, place):
    """The bundle's files, below place."""
    server = place / "server"
    (server / "lib").mkdir(parents=True)
    (place / "licenses").mkdir()
    shutil.copy(program, server / "retort")
    shutil.copytree(program.parent / "guest", server / "guest", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "LICENSE", place)
    shutil.copytree(ROOT / "skills", place / "skills")
    needed = libraries(program)
    for file in needed:
        shutil.copyfile(file, server / "lib" / file.name)
    licences(needed, place / "licenses")
    run("strip", server / "retort")
    # Not RUNPATH, which would not be used for what the libraries themselves need.
    run("patchelf", "--force-rpath", "--set-rpath", "$ORIGIN/lib", server / "retort")


def manifest(version, shown):
    return {
        "manifest_version": "0.3",
        "name": "retort",
        "display_name": TITLE,
        "version": version,
        "description": TEXT,
        "long_description": "Runs Python and shell code for a model in a sandbox of its own: variables and files "
                            "stay between calls, plots come back as images, the network is closed. Needs Linux "
                            "with user namespaces, and a Python with IPython; the packages of that Python are "
                            "what code can import.",
        "author": {"name": "retort"},
        "license": "Apache-2.0",
        "keywords": ["python", "code interpreter", "sandbox", "data", "plots"],
        "server": {
            "type": "binary",
            "entry_point": "server/retort",
            "mcp_config": {"command": "${__dirname}/server/retort",
                           "args": ["mcp", "--python", "${user_config.python}"], "env": {}},
        },
        "tools": shown,
        "prompts_generated": True,
        "compatibility": {"platforms": ["linux"]},
        "user_config": {"python": {
            "type": "string", "title": "Python", "required": False, "default": "/usr/bin/python3",
            "description": "The Python that runs the code, such as that of a virtual environment."}},
    }


def pack(place, out):
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as bundle:
        for file in sorted(p for p in place.rglob("*") if p.is_file()):
            entry = zipfile.ZipInfo(str(file.relative_to(place)))
            entry.compress_type = zipfile.ZIP_DEFLATED
            is_program = os.access(file, os.X_OK)
            entry.external_attr = (0o100755 if is_program else 0o100644) << 16
            bundle.writestr(entry, file.read_bytes())


def entry(version, url, bundle):
    digest = hashlib.sha256(bundle.read_bytes()).hexdigest()
    return {
        "$schema": SCHEMA, "name": NAME, "title": TITLE, "description": TEXT, "version": version,
        "packages": [{"registryType": "mcpb", "identifier": f"{url.rstrip('/')}/{bundle.name}", "version": version,
                      "fileSha256": digest, "transport": {"type": "stdio"}}],
    }


def write(path, value):
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def main(program, out, url=None):
    program, out = Path(program).resolve(), Path(out)
    version = run(program, "--version").split()[-1]
    bundle = out / f"retort-{version}-linux-{os.uname().machine}.mcpb"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        lay_out(program, Path(place))
        write(Path(place) / "manifest.json", manifest(version, tools(program)))
        pack(Path(place), bundle)
    write(out / "server.json", entry(version, url or f"https://retort.dev/mcp/{version}", bundle))
    print(f"{bundle}  {bundle.stat().st_size / 1e6:.1f} MB")
    print(out / "server.json")


if __name__ == "__main__":
    main(*sys.argv[1:])
