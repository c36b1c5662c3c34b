import os
import subprocess

import pytest

from support.retort import driver
from support.web import Web


@pytest.fixture(scope="session")
def web():
    with Web() as server:
        yield server


@pytest.fixture
def fetch(tmp_path):
    def run(*urls, expect=0, env=None, **options):
        out = tmp_path / "out"
        command = [driver("fetch/fetch-driver"), "--out", out]
        for name, value in options.items():
            command += [f"--{name}", str(value)]
        done = subprocess.run([*command, *urls], capture_output=True, text=True, timeout=60,
                              env={**os.environ, **(env or {})})
        assert done.returncode == expect, done.stdout + done.stderr
        assert done.stderr == ""
        lines = done.stdout.splitlines()
        assert len(lines) == max(len(urls), 1)
        run.body = out.read_bytes() if out.exists() else b""
        return lines[0] if len(urls) <= 1 else lines

    return run
