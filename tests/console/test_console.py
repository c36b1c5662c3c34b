"""The console in a browser: each test of the .mjs files beside this one.

A file has a server and a browser of its own, started once; its tests report a line of JSON each.
"""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from support import retort

HERE = Path(__file__).parent
NPM = retort.REPO / "build" / "npm"
FILES = sorted(p for p in HERE.glob("*.mjs") if p.name not in ("support.mjs", "screenshots.mjs"))
NAME = re.compile(r'^test\("([^"]+)"', re.M)
SECONDS = 280


def names():
    return [pytest.param(path, name, id=f"{path.stem}: {name}") for path in FILES for name in NAME.findall(path.read_text())]


@pytest.fixture(scope="module")
def reports():
    return {}


def run(path):
    assert (NPM / "node_modules" / "playwright-core").is_dir(), "run ./dev test first"
    done = subprocess.run(["node", path], capture_output=True, text=True, timeout=SECONDS,
                          env={**os.environ, "RETORT_BIN": retort.PROGRAM, "RETORT_NPM": str(NPM), "RETORT_REPO": str(retort.REPO)})
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {row["name"]: row["error"] for row in rows}, done.stderr


@pytest.mark.parametrize(("path", "name"), names())
def test_in_a_browser(reports, path, name):
    if path not in reports:
        reports[path] = run(path)
    found, said = reports[path]
    assert name in found, f"it was not run:\n{said[-3000:]}"
    assert not found[name], found[name]
