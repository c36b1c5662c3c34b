"""Section 8: Anthropic's own SDK against the door, in four versions. One row each of e2e.mjs."""

import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support import retort

MODULES = Path(os.environ.get("RETORT_NPM", retort.REPO / "build/npm")) / "node_modules"
NODE = MODULES / ".bin/node"
E2E = Path(__file__).parent / "e2e.mjs"
VERSIONS = ["1.8.0", "0.137.0", "0.104.2", "0.71.2"]
TESTS = re.findall(r"async '(.*)'\(\)", E2E.read_text())


def walk(house, version):
    done = subprocess.run([NODE, E2E, MODULES / f"sdk-{version}", f"http://127.0.0.1:{house.port}/anthropic",
                           house.key, "scripted"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return {line["name"]: line["wrong"] for line in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(scope="module")
def walked(house):
    with ThreadPoolExecutor() as threads:
        return dict(zip(VERSIONS, threads.map(lambda version: walk(house, version), VERSIONS)))


def test_there_are_as_many_as_there_were():
    assert len(TESTS) == 19


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", TESTS)
def test_8(walked, version, name):
    assert walked[version][name] is None, walked[version][name]
