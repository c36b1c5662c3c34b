import os
import subprocess
from pathlib import Path

import pytest
from server import Server

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("RETORT_BIN", ROOT / "build" / "retort")).parent


def program(name):
    """A driver, with sanitizers where that build is there."""
    asan = BUILD / "asan" / "tests" / name
    return asan if asan.exists() else BUILD / "tests" / name


@pytest.fixture(scope="session")
def web():
    with Server() as server:
        yield server


@pytest.fixture
def fetch(tmp_path):
    def run(*urls, expect=0, env=None, **options):
        out = tmp_path / "out"
        command = [program("fetch/fetch-driver"), "--out", out]
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
