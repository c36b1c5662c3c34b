"""The database itself: who may use it, what is in it, and how one gets there."""

import sqlite3
import subprocess

import pytest

from support import retort
from support.postgres import Postgres
from support.server import Server, folder, refusal

pytestmark = pytest.mark.once


@pytest.fixture
def place():
    made = folder()
    yield made
    subprocess.run(["rm", "-rf", made], check=True)


def keys(place, url, *words):
    return retort.call("keys", *(words or ("list",)), "--state", place / "state", "--store", url)


def test_many_open_an_empty_database_at_once(postgres, place):
    """One of them makes the schema, and the others find it."""
    url = postgres.database()
    (place / "state").mkdir()
    calls = [subprocess.Popen([retort.PROGRAM, "keys", "create", "--tenant", f"t{i}", "--state", place / "state",
                               "--store", url], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for i in range(6)]
    said = [c.communicate(timeout=retort.SECONDS) for c in calls]
    assert [c.returncode for c in calls] == [0] * 6, said
    assert postgres.sql("SELECT count(*) FROM keys", url) == "6"
    assert postgres.sql("SELECT count(*) FROM retort_schema", url) == "1"
    assert postgres.sql("SELECT count(*) FROM retort_writers", url) == "0"


def test_one_server_at_a_time(postgres):
    with Server() as first:
        second = Server()
        second.store = first.store
        try:
            done = subprocess.run(second.command(), capture_output=True, text=True, timeout=retort.SECONDS)
            assert done.returncode == 3, done
            assert "another retort serves from this database" in done.stderr
        finally:
            second.discard()
        first.check_alive()
        assert "no keys" not in first.keys("list")


def test_newer_is_refused(postgres, place):
    url = postgres.database()
    assert keys(place, url)[0] == 0
    postgres.sql("UPDATE retort_schema SET version = 1000", url)
    code, _, err = keys(place, url)
    assert code == 3 and "the database is of a newer version of retort (schema 1000;" in err


def test_the_version_is_that_of_sqlite(postgres, place):
    """Both engines take the same steps."""
    url = postgres.database()
    assert keys(place, url)[0] == 0
    assert retort.call("keys", "create", "--tenant", "a", "--state", place / "other")[0] == 0
    db = sqlite3.connect(place / "other/retort.db")
    version, = db.execute("PRAGMA user_version").fetchone()
    tables = {t: {c[1] for c in db.execute(f"PRAGMA table_info({t})")}
              for t, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    indices = {name for name, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")}
    db.close()
    assert postgres.sql("SELECT version FROM retort_schema", url) == str(version)
    for table, columns in tables.items():
        found = postgres.sql(f"SELECT column_name FROM information_schema.columns WHERE table_name = '{table}'", url)
        assert set(found.split()) == columns, table
    assert indices <= set(postgres.sql("SELECT indexname FROM pg_indexes WHERE schemaname = 'public'", url).split())
    # Numbers have 64 bits, and texts sort by their bytes.
    assert postgres.sql("SELECT DISTINCT data_type FROM information_schema.columns WHERE table_schema = 'public'"
                        " AND table_name NOT LIKE 'retort%' ORDER BY 1", url).split() == ["bigint", "bytea", "text"]
    assert postgres.sql("SELECT count(*) FROM information_schema.columns WHERE table_schema = 'public' AND"
                        " data_type = 'text' AND collation_name IS DISTINCT FROM 'C'", url) == "0"


@pytest.mark.parametrize("url", ["postgresql://retort:geheim@127.0.0.1/retort",
                                 "postgres://127.0.0.1/retort?password=geheim",
                                 "postgresql://127.0.0.1/retort?sslpassword=geheim"])
def test_a_password_in_the_url_is_refused(url):
    code, err = refusal("--store", url)
    assert code == 2 and "there is a password in it" in err and "--store-password-file" in err
    assert "geheim" not in err


@pytest.mark.parametrize("flags, said", [
    (["--store", "mysql://127.0.0.1/x"], "say a URL that begins with postgresql://"),
    (["--store", "postgresql://127.0.0.1/x?colour=red"], "colour"),
    (["--store-password-file", "/dev/null"], "store-password-file needs store"),
    (["--store", "postgresql://127.0.0.1:1/x", "--store-password-file", "/dev/null"], "is empty"),
    (["--store", "postgresql://127.0.0.1:1/x"], "the database cannot be reached"),
])
def test_what_cannot_be_used_is_refused(flags, said):
    code, err = refusal(*flags)
    assert code != 0 and said in err, err


def test_a_password_from_a_file(place, own_password):
    url = own_password
    secret = place / "password"
    secret.write_text("geheim und lang\n")
    code, _, err = keys(place, url)
    assert code != 0 and "the database cannot be reached" in err
    assert retort.call("keys", "list", "--state", place / "state", "--store", url, "--store-password-file",
                       secret)[0] == 0
    secret.write_text("another")
    code, _, err = retort.call("keys", "list", "--state", place / "state", "--store", url, "--store-password-file",
                               secret)
    assert code != 0 and "password authentication failed" in err and "another" not in err


@pytest.fixture
def own_password():
    with Postgres() as one:
        one.sql("CREATE ROLE guarded LOGIN SUPERUSER PASSWORD 'geheim und lang'")
        (one.data / "pg_hba.conf").write_text("local all postgres trust\nlocal all guarded scram-sha-256\n")
        one.sql("SELECT pg_reload_conf()")
        url = one.database()
        yield url.replace("user=postgres", "user=guarded")
