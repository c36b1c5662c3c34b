"""Published clients, each in a folder of build/clients of its own, installed by the tool that its users have.

What is installed stands in a file beside the drivers, every version pinned: a requirements file, a
package-lock.json, go.sum, a POM, Cargo.lock. A folder is made once; its stamp has what it was made of.
"""

import hashlib
import os
import re
import shutil
import subprocess
import threading
from pathlib import Path

from support import retort

HERE = Path(__file__).parent
ROOM = retort.REPO / "build/clients"
SECONDS = 900  # for one installation, on a slow machine
GO = "1.25.8"  # where the machine's own is too old
# How the tools say that nobody answered.
SILENCE = re.compile(r"name resolution|not resolve|resolve host|no such host|dial tcp|NewConnectionError|Connection refused"
                     r"|Network is unreachable|timed out|ENOTFOUND|ECONNREFUSED|EAI_AGAIN|ETIMEDOUT|ENETUNREACH"
                     r"|UnknownHostException|Unknown host|Could not transfer artifact|Couldn't connect|spurious network")


class Unavailable(Exception):
    """A registry does not answer, or the machine lacks a tool."""


def call(log, *command, cwd=None, **env):
    """Runs a tool; what it says is added to the log."""
    with open(log, "a") as out:
        out.write(f"$ {' '.join(map(str, command))}\n")
        out.flush()
        try:
            done = subprocess.run([*map(str, command)], cwd=cwd, env={**os.environ, **env}, timeout=SECONDS,
                                  stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        except FileNotFoundError as e:
            raise Unavailable(f"there is no {command[0]} on this machine") from e
    if done.returncode != 0:
        said = Path(log).read_text()[-3000:]
        if SILENCE.search(said):
            raise Unavailable(f"its registry does not answer: {said.strip().splitlines()[-1]}")
        raise AssertionError(f"{command[0]} failed:\n{said}")


# --- one maker for each registry: the folder to fill, the log, the file of pinned versions ---

def uv():
    """pip's faster sibling: pip alone takes most of ten minutes for what is here."""
    return install("pip", HERE / "python/uv.txt") / "bin/uv"


def make_pip(folder, log, pins):
    call(log, "/usr/bin/python3", "-m", "venv", folder)
    call(log, folder / "bin/pip", "install", "--disable-pip-version-check", "--no-deps", "-r", pins)


def make_uv(folder, log, pins):
    program, cache = uv(), {"UV_CACHE_DIR": str(ROOM / "uv-cache")}
    call(log, program, "venv", "--clear", "--python", "/usr/bin/python3", folder, **cache)
    call(log, program, "pip", "install", "--python", folder, "--no-deps", "-r", pins, **cache)


def make_npm(folder, log, pins):
    for file in (pins, pins.with_name("package.json")):
        shutil.copy(file, folder)
    call(log, "npm", "ci", "--no-audit", "--no-fund", "--cache", ROOM / "npm-cache", cwd=folder)


def go(folder, log):
    """The program go. One older than 1.21 cannot read our go.mod, but fetches a newer one, which is a module as others are."""
    env = {"GOMODCACHE": str(ROOM / "go-modules"), "GOFLAGS": "-modcacherw -buildvcs=false", "CGO_ENABLED": "0"}
    try:
        said = subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout
    except FileNotFoundError as e:
        raise Unavailable("there is no go on this machine") from e
    old, arch = re.search(r"go1\.(\d+)\S* linux/(\w+)", said).groups()
    if int(old) >= 21:
        return "go", env
    module = f"golang.org/toolchain@v0.0.1-go{GO}.linux-{arch}"
    call(log, "go", "mod", "download", module, cwd=folder, **env)
    room = ROOM / "go-modules" / module
    for program in (*room.glob("bin/*"), *room.glob("pkg/tool/*/*")):
        program.chmod(0o755)  # a module has no programs
    return room / "bin/go", env


def make_go(folder, log, pins):
    program, env = go(folder, log)
    call(log, program, "build", "-o", folder, "./...", cwd=pins.parent, **env)


def make_maven(folder, log, pins):
    """Maven fetches what the POM names; the drivers are few enough for javac alone."""
    call(log, "mvn", "-B", "-q", "-f", pins, f"-Dmaven.repo.local={ROOM / 'maven-cache'}", f"-DoutputDirectory={folder / 'lib'}",
         "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies")
    call(log, "javac", "-nowarn", "-cp", f"{folder}/lib/*", "-d", folder / "classes", *sorted(pins.parent.glob("*.java")))


def make_cargo(folder, log, pins):
    call(log, "cargo", "build", "--locked", "--manifest-path", pins.with_name("Cargo.toml"), CARGO_TARGET_DIR=str(folder / "target"))
    shutil.move(folder / "target/debug/clients", folder)
    shutil.rmtree(folder / "target")


MAKERS = {"pip": make_pip, "PyPI": make_uv, "npm": make_npm, "Go modules": make_go, "Maven Central": make_maven,
          "crates.io": make_cargo}

# --- making each once ---

locks = {}
guard = threading.Lock()


def stamp_of(pins):
    """What a folder is made of: the pins, and the program beside them where one is compiled."""
    files = [pins] if pins.suffix == ".txt" else sorted(p for p in pins.parent.rglob("*") if p.is_file())
    return hashlib.sha256(b"".join(p.read_bytes() for p in files)).hexdigest()


def install(registry, pins):
    """The folder with what the file of pins names; made unless it is there."""
    folder = ROOM / (pins.stem if pins.suffix == ".txt" else f"{pins.parent.parent.name}-{pins.parent.name}")
    with guard:
        lock = locks.setdefault(folder, threading.Lock())
    with lock:
        stamp, wanted = folder / "made-of", stamp_of(pins)
        if not (stamp.is_file() and stamp.read_text() == wanted):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            log = folder.with_suffix(".log")
            log.unlink(missing_ok=True)
            MAKERS[registry](folder, log, pins)
            stamp.write_text(wanted)
    return folder
