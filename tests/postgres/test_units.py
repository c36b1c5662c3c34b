"""The units of the store (tests/unit/store) on PostgreSQL; those of SQLite itself, its log and ids have no part in it."""

import os
import subprocess
from pathlib import Path

import pytest

from support import retort

NOT_HERE = {"store/id", "store/postgres_url", "store/record_log", "store/sqlite_schema"}


def units():
    sources = Path(retort.REPO / "tests/unit/store").glob("*.c")
    return sorted({f"store/{s.stem}" for s in sources} - NOT_HERE)


def test_the_list_is_right():
    assert NOT_HERE < {f"store/{s.stem}" for s in Path(retort.REPO / "tests/unit/store").glob("*.c")}
    assert len(units()) >= 10


@pytest.mark.parametrize("unit", units())
def test_unit(unit, postgres):
    done = subprocess.run([retort.BUILD / "tests/unit" / f"test-{unit.replace('/', '-')}"], capture_output=True,
                          text=True, timeout=240, env={**os.environ, "RETORT_TEST_STORE": postgres.url()})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASSED" in done.stdout + done.stderr
    assert postgres.sql("SELECT count(*) FROM pg_database WHERE datname LIKE 'unit%'") == "0"
