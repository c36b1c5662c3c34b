"""`./dev`: what it installs and builds, with the tools that do so replaced by shell functions."""

import os
import shutil
import subprocess

from support import retort

# Functions go before programs in every PATH.
TOOLS = {
    "dpkg-query": 'echo "asks for ${@: -1}" >> "$TOLD"; echo installed',
    "npm": 'echo "npm $1 in ${PWD##*/}" >> "$TOLD"; mkdir -p node_modules',
    "meson": 'echo meson >> "$TOLD"',
    "ninja": 'echo "ninja ${@: -1}" >> "$TOLD"',
}


def dev(tmp_path, *words):
    """What the tools were told, one line each."""
    tree, told = tmp_path / "tree", tmp_path / "told"
    (tree / "web").mkdir(parents=True)
    shutil.copy(retort.REPO / "dev", tree)
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(retort.REPO / "web" / name, tree / "web")
    functions = {"BASH_FUNC_%s%%%%" % name: "() { %s; }" % body for name, body in TOOLS.items()}
    done = subprocess.run(["bash", tree / "dev", *words], capture_output=True, text=True,
                          env={**os.environ, **functions, "TOLD": str(told)})
    assert done.returncode == 0, done.stderr
    return told.read_text().splitlines()


def test_program_has_the_console(tmp_path):
    """`./dev run`, `install` and `deb` build this way, and the README has a browser open the page."""
    told = [line for line in dev(tmp_path, "program") if not line.startswith("asks")]
    assert told == ["npm install in web", "meson", "ninja program"]


def test_every_package_of_a_verb_is_asked_for(tmp_path):
    told = dev(tmp_path, "packages", "cells")
    listed = subprocess.run([retort.REPO / "dev", "packages", "cells", "list"], check=True,
                            capture_output=True, text=True).stdout.split()
    assert [line.removeprefix("asks for ") for line in told] == listed
    assert {"python3-tqdm", "python3-ipykernel"} <= set(listed)
