"""retort store copy: from a state directory into a database and a bucket, and back."""

import os
import shutil
import sqlite3
import subprocess

import pytest

from support import retort, s3
from support import server as servers
from support.server import Server, folder

pytestmark = pytest.mark.once

ROWS = 1500


@pytest.fixture(scope="module")
def bucket():
    with s3.S3() as one:
        yield one


@pytest.fixture(scope="module")
def origin():
    """A state directory that a server has filled. Many rows come by hand: a batch is 500 of them."""
    database, servers.new_database = servers.new_database, None
    try:
        with Server() as server:
            with server.client() as client:
                for data in (b"", b"some bytes\n", os.urandom(70_000)):
                    client.form("/v1/files", ("file", "a.bin", data)).expect(201)
                session = client.session()
                session.run("open('made é.txt', 'w').write('x' * 300); print(42)")
                session.put("in.csv", b"a,b\n1,2\n")
            server.stop()
            kept = folder() / "state"
            shutil.copytree(server.state, kept)
    finally:
        servers.new_database = database
    db = sqlite3.connect(kept / "retort.db")
    db.executemany("INSERT INTO items VALUES (?, 't', 'kind', '', '', '', ?, 1, 1, 0, ?, NULL)",
                   [(f"item {i:05}", i % 7, "é" * (i % 50)) for i in range(ROWS)])
    db.execute("INSERT INTO item_bytes VALUES ('was here once', 0)")
    db.commit()
    db.close()
    yield kept
    shutil.rmtree(kept.parent)


@pytest.fixture
def place(origin):
    """A copy of it, and room for more."""
    made = folder()
    shutil.copytree(origin, made / "state")
    for at, folders, names in os.walk(made):
        for name in (*folders, *names):
            os.chown(os.path.join(at, name), os.stat(origin).st_uid, os.stat(origin).st_gid)
    os.chown(made / "state", os.stat(origin).st_uid, os.stat(origin).st_gid)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def both(postgres, bucket):
    """A database and a bucket, as TO says it, and as a server is told."""
    class Both:
        database = postgres.database()
        prefix = f"p{len(list(bucket.bucket.iterdir()))}"
        url = f"{database},s3://{s3.BUCKET}/{prefix}"
        flags = ["--store", database, *s3.flags(bucket, prefix)]

        def objects(self):
            return bucket.objects(self.prefix)
    one = Both()
    (bucket.bucket / one.prefix).mkdir()
    return one


def command(bucket, source, target):
    flags = ["--s3-endpoint", bucket.url] if "s3://" in f"{source} {target}" else []
    return [retort.PROGRAM, "store", "copy", source, target, *flags]


def copy(bucket, source, target):
    done = subprocess.run(command(bucket, source, target), capture_output=True, text=True, timeout=retort.SECONDS,
                          env={**os.environ, **s3.ENV})
    return done.returncode, done.stdout, done.stderr


def dump(path):
    """Every row of every table, but what is of no interest: that somebody once had items."""
    db = sqlite3.connect(path / "retort.db")
    tables = [t for t, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]
    rows = {t: sorted(map(repr, db.execute(f"SELECT * FROM {t}"))) for t in tables}
    db.close()
    rows["item_bytes"] = [r for r in rows["item_bytes"] if "once" not in r]
    return rows


def blobs(path):
    return {f.parent.name + f.name: f.read_bytes() for f in (path / "blobs").glob("??/*") if len(f.name) == 62}


def test_there_and_back(postgres, bucket, both, place):
    code, said, err = copy(bucket, place / "state", both.url)
    assert code == 0, err
    assert both.objects().keys() == blobs(place / "state").keys() and len(both.objects()) >= 5
    assert f"{len(both.objects())} files" in said
    assert postgres.sql("SELECT to_regclass('retort_copy') IS NULL", both.database) == "t"
    code, said, err = copy(bucket, both.url, place / "back")
    assert code == 0, err
    assert dump(place / "back") == dump(place / "state") and len(dump(place / "back")["items"]) == ROWS
    assert blobs(place / "back") == blobs(place / "state")
    assert not (place / "back/blobs/retort.copy").exists()
    assert (place / "back").stat().st_mode & 0o777 == 0o700


def test_a_server_goes_on_with_it(bucket, both, place):
    assert copy(bucket, place / "state", both.url)[0] == 0
    with Server(*s3.flags(bucket, both.prefix), env=s3.ENV) as server:
        server.stop()
        server.store = ["--store", both.database]
        server.start()
        with server.client() as client:
            session, = client.all("/v1/sessions")
            listed = client.get(f"/v1/sessions/{session['id']}/files").expect(200).json["data"]
            assert {f["path"] for f in listed} == {"made é.txt", "in.csv"}
            assert client.get(f"/v1/sessions/{session['id']}/files/in.csv").expect(200).body == b"a,b\n1,2\n"
            assert sorted(f["size"] for f in client.all("/v1/files")) == [0, 11, 70_000]
            # While it runs nobody copies from there.
            code, _, err = copy(bucket, both.url, place / "back")
            assert code == 3 and "another retort serves from this database" in err


@pytest.mark.parametrize("rows", [1, 501, 1200])
def test_a_kill_in_the_middle(postgres, bucket, both, place, rows):
    """At a moment of the copy's own: when so many rows are there. The next copy goes on from there."""
    # The trigger stands still at the row until a lock is given up, so the copy is killed just there.
    assert subprocess.run([retort.PROGRAM, "keys", "list", "--state", place / "other", "--store", both.database],
                          stdout=subprocess.DEVNULL).returncode == 0
    postgres.sql("CREATE FUNCTION wait_here() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                 f" IF (SELECT count(*) FROM items) >= {rows} THEN PERFORM pg_sleep(600); END IF; RETURN new; END $$;"
                 "CREATE TRIGGER wait_here BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION wait_here()",
                 both.database)
    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
    process = subprocess.Popen(command(bucket, place / "state", both.url), env={**os.environ, **s3.ENV},
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    retort.wait_until(lambda: postgres.sql(sleeping) == "1", "the copy at that row")
    process.kill()
    process.communicate()
    postgres.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
    retort.wait_until(lambda: postgres.sql(sleeping) == "0", "the end of that")
    postgres.sql("DROP FUNCTION wait_here CASCADE", both.database)
    kept = int(postgres.sql("SELECT count(*) FROM items", both.database))
    assert kept == (rows - 1) // 500 * 500 or kept == rows // 500 * 500
    # No server takes it for whole, and no other copy goes there.
    code, _, err = retort.call("keys", "list", "--state", place / "other", "--store", both.database)
    assert code != 0 and "has begun and not ended" in err
    shutil.copytree(place / "state", place / "another")
    os.chown(place / "another", (place / "state").stat().st_uid, (place / "state").stat().st_gid)
    code, _, err = copy(bucket, place / "another", both.url)
    assert code == 2 and "a copy of another place has begun" in err, err
    code, _, err = copy(bucket, place / "state", both.url)
    assert code == 0, err
    assert copy(bucket, both.url, place / "back")[0] == 0
    assert dump(place / "back") == dump(place / "state")


def test_rows_alone(postgres, bucket, place):
    url = postgres.database()
    assert copy(bucket, place / "state", url)[0] == 0
    assert copy(bucket, url, place / "back")[0] == 0
    assert dump(place / "back") == dump(place / "state") and not blobs(place / "back")
    # The files have stayed where they were, and the rows come back beside them.
    (place / "state/retort.db").unlink()
    assert copy(bucket, url, place / "state")[0] == 0
    assert dump(place / "back") == dump(place / "state")


def test_what_changed_on_the_way_is_found(postgres, bucket, place):
    """A trigger in place of a damaged disk: one letter of one row."""
    url = postgres.database()
    subprocess.run([retort.PROGRAM, "keys", "list", "--state", place / "other", "--store", url], check=True,
                   stdout=subprocess.DEVNULL)
    postgres.sql("CREATE FUNCTION flip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
                 " new.body = overlay(new.body placing 'e' from 1 for 1); RETURN new; END $$;"
                 "CREATE TRIGGER flip BEFORE INSERT ON items FOR EACH ROW WHEN (new.id = 'item 01001')"
                 " EXECUTE FUNCTION flip()", url)
    code, _, err = copy(bucket, place / "state", url)
    assert code == 3 and "the copy of the table items is not what was copied" in err
    code, _, err = retort.call("keys", "list", "--state", place / "other", "--store", url)
    assert code != 0 and "has begun and not ended" in err


def test_only_into_what_is_empty(postgres, bucket, place):
    url = postgres.database()
    assert retort.call("keys", "create", "--tenant", "a", "--state", place / "other", "--store", url)[0] == 0
    code, _, err = copy(bucket, place / "state", url)
    assert code == 2 and "is not empty" in err
    assert postgres.sql("SELECT count(*) FROM keys", url) == "1"
    code, _, err = copy(bucket, url, place / "state")
    assert code == 2 and "is not empty" in err


def test_a_newer_one_is_refused(postgres, bucket, place):
    url = postgres.database()
    assert copy(bucket, place / "state", url)[0] == 0
    postgres.sql("UPDATE retort_schema SET version = 1000", url)
    code, _, err = copy(bucket, url, place / "back")
    assert code == 3 and "a newer version of retort (schema 1000;" in err


def test_an_empty_source_is_a_mistake(postgres, bucket, place):
    code, _, err = copy(bucket, postgres.database(), place / "back")
    assert code == 2 and "there is nothing in" in err


def test_a_running_server(bucket, postgres, place):
    database, servers.new_database = servers.new_database, None
    try:
        with Server() as server:
            code, _, err = copy(bucket, server.state, postgres.database())
            assert code == 2 and "another server uses" in err
    finally:
        servers.new_database = database


@pytest.mark.parametrize("words, said", [
    ([], "write it like this: retort store copy FROM TO"),
    (["copy", "a"], "write it like this"),
    (["move", "a", "b"], "write it like this"),
    (["copy", "/nowhere/a", "/nowhere/b"], "one of the two must be a state directory"),
    (["copy", "postgresql:///a", "postgresql:///b"], "a database with pg_dump"),
    (["copy", "/nowhere/a", "postgresql://a:geheim@127.0.0.1/b"], "there is a password in it"),
    (["copy", "/nowhere/a", "postgresql:///a,postgresql:///b"], "two of a kind"),
    (["copy", "/nowhere/a", "postgresql:///a"], "there is no directory /nowhere/a"),
    (["copy", "/nowhere/a", "postgresql:///a", "--s3-endpoint", "http://x"], "s3-endpoint does nothing without"),
    (["copy", "/nowhere/a", "s3://bucket/p", "--store-password-file", "/dev/null"], "needs a database"),
    (["copy", "/nowhere/a", "s3://B/p"], "is not the name of a bucket"),
    (["copy", "/nowhere/a", ""], "a place has a name"),
])
def test_what_cannot_be(words, said):
    code, _, err = retort.call("store", *words, env={**os.environ, **s3.ENV})
    assert code == 2 and said in err
