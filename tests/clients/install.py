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


MAKERS = {"pip": make_pip, "PyPI": make_uv}

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
