"""Stores that earlier versions have left: stores/*.sql has one of every schema that has landed.

Each is opened by this program, keeps its rows, and ends up with the schema a new store has. So a step
of the schema that was changed, moved or left out shows here.
"""

import hashlib
import os
import re
import shutil
import sqlite3
from pathlib import Path

import pytest

from support import retort
from support.server import Server, folder

pytestmark = pytest.mark.once

STORES = sorted((Path(__file__).parent / "stores").glob("*.sql"))
KEY = "rt_a-secret-of-long-ago"
BYTES = b"bytes of long ago"
NUMBER = "0000000000000000000000000001"


def lay_out(store, state):
    """The state directory that a server with this schema has left."""
    digest = hashlib.sha256(BYTES).hexdigest()
    blob = state / "blobs" / digest[:2] / digest[2:]
    blob.parent.mkdir(parents=True)
    blob.write_bytes(BYTES)
    with sqlite3.connect(state / "retort.db") as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(store.read_text())
    db.close()


def dump(path):
    """Its version, its schema and its rows."""
    db = sqlite3.connect(path)
    try:
        version, = db.execute("PRAGMA user_version").fetchone()
        made = {name: re.sub(r"\s+|(?<=\()\s|\s(?=\))", " ", sql).replace("( ", "(")
                for name, sql in db.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")}
        tables = [name for name, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        columns = {t: [c[1] for c in db.execute(f"PRAGMA table_info({t})")] for t in tables}
        rows = {t: [dict(zip(columns[t], row)) for row in db.execute(f"SELECT * FROM {t}")] for t in tables}
        return version, made, rows
    finally:
        db.close()


def opened(state):
    code, out, err = retort.call("keys", "list", "--state", state)
    assert code == 0, err
    return out.decode()


@pytest.fixture(scope="module")
def new():
    """What a new store has."""
    place = folder()
    code, _, err = retort.call("keys", "create", "--tenant", "a", "--state", place / "state")
    assert code == 0, err
    yield dump(place / "state" / "retort.db")
    shutil.rmtree(place)


@pytest.mark.parametrize("store", STORES, ids=lambda s: s.stem)
def test_it_is_opened_and_keeps_its_rows(store, new):
    place = folder()
    try:
        lay_out(store, place / "state")
        _, _, before = dump(place / "state" / "retort.db")
        assert "a revoked key" in opened(place / "state")
        version, made, after = dump(place / "state" / "retort.db")
        assert (version, made) == new[:2]
        for table, rows in before.items():
            assert [{k: row[k] for k in old} for old, row in zip(rows, after[table], strict=True)] == rows
    finally:
        shutil.rmtree(place)


def test_there_is_one_of_every_schema(new):
    versions = {int(re.match(r"\d+", s.stem)[0]) for s in STORES}
    assert versions == set(range(1, new[0] + 1)), "a new schema gets a file in tests/serve/stores"


@pytest.mark.parametrize("store", ["1", "4-items"])
def test_a_server_goes_on_with_it(store):
    server = Server("--records", "0")
    lay_out(next(s for s in STORES if s.stem == store), server.state)
    if os.geteuid() == 0:
        server.files.chmod(0o755)
    with server, server.client(KEY) as client:
        assert client.get("/v1/executions/exec_" + NUMBER).expect(200).json["stdout"] == "hello\n"
        assert client.get(f"/v1/files/file_{NUMBER}/content").expect(200).body == BYTES
        session = "/v1/sessions/sess_" + NUMBER
        answer = client.post(session + "/execute", {"code": "print(open('saved.txt').read())"})
        assert answer.expect(200).json["stdout"] == BYTES.decode() + "\n"
        assert server.client("rt_of-nobody").get("/v1/sessions").status == 401
