"""Plays each scene of scenes.c: the engine's own API on real sandboxes."""

import subprocess

import pytest

from support.retort import BUILD, driver

SCENES = driver("engine/engine-scenes", shipped=True)


def names():
    return subprocess.run([SCENES, "--list"], check=True, capture_output=True,
                          text=True).stdout.split()


@pytest.mark.parametrize("scene", names())
def test_scene(scene):
    done = subprocess.run([SCENES, scene, BUILD / "guest"], capture_output=True, text=True,
                          timeout=110)
    assert done.returncode == 0, done.stderr
