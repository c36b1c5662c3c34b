"""Plays each scene of scenes.c: the service's own API on real sandboxes and a real store."""

import random
import subprocess
import time

import pytest

from support.retort import BUILD, driver

SCENES = driver("service/service-scenes", shipped=True)


def names():
    return subprocess.run([SCENES, "--list"], check=True, capture_output=True,
                          text=True).stdout.split()


def play(scene, store, **more):
    done = subprocess.run([SCENES, scene, BUILD / "guest", store], capture_output=True, text=True,
                          timeout=110, **more)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("scene", names())
def test_scene(scene, tmp_path):
    play(scene, tmp_path / "store")


def test_closing_saves_everything(tmp_path):
    play("closed_in_the_middle", tmp_path / "store")
    play("after_the_closing", tmp_path / "store")


def test_expired_sessions_are_deleted(tmp_path):
    old = play("left_behind", tmp_path / "store").stdout
    play("expired_sessions_go", tmp_path / "store", input=old)


def test_kill_loses_nothing_acknowledged(tmp_path):
    """The process is killed while it works; all that it was told had been done is there."""
    server = subprocess.Popen([SCENES, "until_killed", BUILD / "guest", tmp_path / "store"],
                              stdout=subprocess.PIPE, text=True)
    told = [server.stdout.readline()]
    assert told[0], "it ended before it was killed"
    time.sleep(random.uniform(0, 1))
    server.kill()
    told += server.stdout.read().splitlines(keepends=True)
    server.wait()
    told = [line for line in told if line.endswith("\n")]
    play("after_the_kill", tmp_path / "store", input="".join(told))
