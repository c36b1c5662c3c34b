"""retort keys: made, listed, revoked; the secret is shown once and kept nowhere."""

import json
import os
import re
import shutil

import pytest

from support import retort
from support.server import folder
from terminal import is_root, keys, make_key, service_id

pytestmark = pytest.mark.once


@pytest.fixture
def state():
    path = folder()
    yield path / "state"
    shutil.rmtree(path, ignore_errors=True)


def refused(*args, state):
    status, out, err = retort.call("keys", *args, "--state", state)
    assert (status, out) == (2, b"") and err.count("\n") == 1, (status, out, err)
    return err


def test_life_of_a_key(state):
    text = keys("create", "--tenant", "acme", "--name", "the CI runner", state=state)
    secret, id = re.search(r"\brt_\w+", text)[0], re.search(r"\bkey_\w+", text)[0]
    assert text.count(secret) == 1
    other = make_key(state, "--admin", tenant="ops")
    assert re.fullmatch(r"rt_\w{40,}", other)

    found = json.loads(keys("list", "--json", state=state))
    assert [(k["tenant"], k["name"], k["admin"]) for k in found] == \
        [("acme", "the CI runner", False), ("ops", "", True)]
    assert found[0]["id"] == id and secret.startswith(found[0]["hint"]) and len(found[0]["hint"]) < 12
    assert all(k["revoked_at"] is None for k in found)

    assert keys("revoke", id, state=state) == f"{id} is revoked\n"
    found = json.loads(keys("list", "--json", state=state))
    assert found[0]["revoked_at"] and not found[1]["revoked_at"]

    table = keys("list", state=state).splitlines()
    assert len(table) == 3 and table[0].startswith("ID") and id in table[1]
    for file in state.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            assert secret.encode() not in data and other.encode() not in data


def test_a_state_that_is_not_there(state):
    """A slip in --state is told, and makes nothing."""
    for words in (["list"], ["list", "--json"], ["revoke", "key_1k0gtcg1j07d5g9c4y6hq4fm8ebw"]):
        assert f"there is no state directory {state}" in refused(*words, state=state)
    assert not state.exists()


def test_mistakes(state):
    assert "--tenant" in refused("create", state=state)
    assert "create, list or revoke" in refused(state=state)
    assert "frobnicate" in refused("frobnicate", state=state)
    assert "retort keys revoke ID" in refused("revoke", state=state)
    assert "not the id of a key" in refused("revoke", "sess_x", state=state)
    make_key(state)
    make_key(state.parent / "other")
    [other] = json.loads(keys("list", "--json", state=state.parent / "other"))
    assert "there is no key" in refused("revoke", other["id"], state=state)
    assert "control character" in refused("create", "--tenant", "a\nb", state=state)
    assert "63" in refused("create", "--tenant", "x" * 64, state=state)
    assert "leave --expires out" in refused("create", "--tenant", "a", "--expires", "0", state=state)
    assert keys("list", state=state).count("\n") == 2


def test_files_stay_the_servers(state):
    make_key(state)
    made = [state, *state.rglob("*")]
    assert {path.stat().st_uid for path in made} == {service_id()}
    assert state.stat().st_mode & 0o777 == 0o700
    if is_root():  # and those of another owner stay the other's
        for path in made:
            os.chown(path, 12345, 12345)
        make_key(state)
        assert {path.stat().st_uid for path in [state, *state.rglob("*")]} == {12345}


def test_state_of_the_file(tmp_path, state):
    (tmp_path / "x.ini").write_text(f"state = {state}\n")
    status, _, err = retort.call("keys", "create", "-q", "--tenant", "a", "--config", tmp_path / "x.ini")
    assert status == 0, err
    assert keys("list", state=state).count("\n") == 2
