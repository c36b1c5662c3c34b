"""Plays each scene of scenes.c: the engine's own API on real sandboxes."""

import subprocess

import pytest

from support.retort import BUILD, driver

SCENES = driver("engine/engine-scenes", shipped=True)
# Long ones, in which it does not matter who started the engine.
ONCE = {"neighbour_of_a_flood", "resting_changes_nothing"}


def scenes():
    names = subprocess.run([SCENES, "--list"], check=True, capture_output=True, text=True).stdout.split()
    assert ONCE <= set(names), ONCE - set(names)
    return [pytest.param(name, marks=[pytest.mark.once] * (name in ONCE)) for name in names]


@pytest.mark.parametrize("scene", scenes())
def test_scene(scene):
    done = subprocess.run([SCENES, scene, BUILD / "guest"], capture_output=True, text=True,
                          timeout=110)
    assert done.returncode == 0, done.stderr
