"""The console in a browser: each test of the .mjs files beside this one.

A file has a server of its own, all share one browser; tests report a line of JSON each.
"""

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from support import retort

HERE = Path(__file__).parent
NPM = retort.REPO / "build" / "npm"
FILES = sorted(p for p in HERE.glob("*.mjs") if p.name not in ("all.mjs", "support.mjs", "screenshots.mjs"))
NAME = re.compile(r'^test\("([^"]+)"', re.M)
def names():
    return [pytest.param(path, name, id=f"{path.stem}: {name}") for path in FILES for name in NAME.findall(path.read_text())]


class Reports:
    """What comes of each test, as the browser gets to it: a test has its own time, however long the others take."""

    def __init__(self, files, log):
        self.found, self.log = {}, log
        self.node = subprocess.Popen(["node", HERE / "all.mjs", *files], stdout=subprocess.PIPE, stderr=log, text=True,
                                     env={**os.environ, "RETORT_BIN": retort.PROGRAM, "RETORT_NPM": str(NPM), "RETORT_REPO": str(retort.REPO)})

    def read_to(self, name):
        while name not in self.found and (line := self.node.stdout.readline()):
            if line.startswith("{"):
                row = json.loads(line)
                self.found[row["name"]] = row["error"]
        return name in self.found

    def said(self):
        self.log.seek(0)
        return self.log.read()[-3000:]


@pytest.fixture(scope="module")
def reports(request):
    """Of the files that the selected tests are in."""
    assert (NPM / "node_modules" / "playwright-core").is_dir(), "run ./dev test first"
    wanted = {item.callspec.params["path"] for item in request.session.items if hasattr(item, "callspec") and "path" in item.callspec.params}
    with tempfile.TemporaryFile("w+") as log:
        made = Reports(sorted(wanted), log)
        yield made
        made.node.stdout.close()
        made.node.terminate()
        made.node.wait()


def test_names_are_unique():
    every = [name for path in FILES for name in NAME.findall(path.read_text())]
    assert sorted(every) == sorted(set(every))


@pytest.mark.parametrize(("path", "name"), names())
def test_in_a_browser(reports, path, name):
    assert reports.read_to(name), f"it was not run:\n{reports.said()}"
    assert not reports.found[name], reports.found[name]
