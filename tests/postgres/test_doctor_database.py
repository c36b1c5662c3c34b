"""doctor --store URL: what there is to know of a database before a server is pointed at it."""

import json
import subprocess

import pytest

from support import retort
from support.postgres import Postgres
from support.server import folder

pytestmark = pytest.mark.once


def report(url, *flags):
    code, out, _ = retort.call("doctor", "--json", "--store", url, *flags)
    document = json.loads(out)
    return code, document["verdict"], {r["name"]: r for r in document["rows"] if r["section"] == "Database"}


def rows(url, *flags):
    """The rows on the database, by name. No cell is run: it takes seconds, and says nothing of a database."""
    return report(url, "--python", "/nowhere", *flags)[2]


def bad(found):
    return {name for name, row in found.items() if row["state"] != "ok"}


def test_a_new_one(postgres):
    found = rows(postgres.database())
    assert bad(found) == {"database: disk"}  # these tests run it without fsync
    assert list(found) == ["database", "database: TLS", "database: role", "database: disk", "database: encoding", "database: rights", "database: room",
                           "database: tables", "database: latency", "database: clock"]
    assert found["database"]["detail"].startswith("PostgreSQL 1") and "user postgres" in found["database"]["detail"]
    assert found["database: tables"]["detail"].startswith("none yet") and "on this machine" in found["database: TLS"]["detail"]
    assert " ms, the median" in found["database: latency"]["detail"]


def test_one_in_use(postgres):
    place = folder()
    url = postgres.database()
    subprocess.run([retort.PROGRAM, "keys", "list", "--state", place / "s", "--store", url], check=True,
                   stdout=subprocess.DEVNULL)
    assert rows(url)["database: tables"]["detail"].startswith("schema ")
    postgres.sql("UPDATE retort_schema SET version = 1000", url)
    assert "database: tables" in bad(found := rows(url)) and "newer version" in found["database: tables"]["detail"]
    postgres.sql("CREATE TABLE retort_copy (source TEXT)", url)
    assert "begun and not ended" in rows(url)["database: tables"]["detail"]
    postgres.sql("CREATE ROLE guest LOGIN", url)
    assert {"database: rights"} <= bad(found := rows(url.replace("user=postgres", "user=guest")))
    assert "OWNER TO" in found["database: rights"]["remedy"]


def test_one_that_is_away_or_a_standby():
    with Postgres() as one:
        url = one.database()
        one.stop()
        found = rows(url)
        assert bad(found) == {"database"} and "cannot be reached" in found["database"]["detail"]
        (one.data / "standby.signal").touch()
        one.start()
        assert "database: role" in bad(rows(url))


def test_a_url_that_is_wrong(tmp_path):
    assert "a password in it" in rows("postgresql://a:geheim@127.0.0.1/b")["database"]["detail"]
    assert "cannot read" in rows("postgresql:///b", "--store-password-file", tmp_path / "no")["database"]["detail"]


def test_the_verdict(postgres):
    code, verdict, _ = report(postgres.database())
    assert code == 0 and "fit to run" in verdict
    code, verdict, _ = report("postgresql:///b?host=/nowhere")
    assert code == 1 and "no server can keep its data there: Database: database" in verdict
