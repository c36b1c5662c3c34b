"""Plays each scene of scenes.c: the engine's own API on real sandboxes."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("RETORT_BIN", ROOT / "build" / "retort")).parent
SCENES = BUILD / "tests" / "engine" / "engine-scenes"


def names():
    return subprocess.run([SCENES, "--list"], check=True, capture_output=True,
                          text=True).stdout.split()


@pytest.mark.parametrize("scene", names())
def test_scene(scene):
    done = subprocess.run([SCENES, scene, BUILD / "guest"], capture_output=True, text=True,
                          timeout=110)
    assert done.returncode == 0, done.stderr
