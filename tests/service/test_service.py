"""Plays each scene of scenes.c: the service's own API on real sandboxes and a real store."""

import random
import subprocess
import time

import pytest

from support.retort import BUILD, driver

SCENES = driver("service/service-scenes", shipped=True)
# Stories of queues, rows and approvals, which no wall has a part in.
ONCE = set("""
named_sessions one_shot cells_keep_their_order leaving_interrupts background_goes_on detached_goes_on
one_that_stays long_output_is_on_record files_expire files_in_pages files_have_a_quota busy_limits
tenants_apart left_before_it_was_up deleted_with_work_waiting many_wait_for_one closed_while_waking
disk_is_nearly_full record_has_room code_has_room any_text_is_on_record lane_holds lane_is_full
user_agrees user_cannot_be_asked_after_all approver_decides nobody_waits nobody_agrees_in_time
closed_while_asked draining lifetime_ends what_came_late_is_saved bytes_in_memory
deleted_files_stay_away files_given_with_code lost_while_placing blind_for_a_while saved_later
saving_fails_at_the_end_of_a_life a_file_cannot_be_opened_at_the_end_of_a_life
""".split())


def scenes():
    names = subprocess.run([SCENES, "--list"], check=True, capture_output=True, text=True).stdout.split()
    assert ONCE <= set(names), ONCE - set(names)
    return [pytest.param(name, marks=[pytest.mark.once] * (name in ONCE)) for name in names]


def play(scene, store, **more):
    done = subprocess.run([SCENES, scene, BUILD / "guest", store], capture_output=True, text=True,
                          timeout=110, **more)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("scene", scenes())
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
