"""A power cut, tried: the disk under a busy server is copied at some moment, and a server is started on
the copy. What was acknowledged is there, as `durability` promises."""

import contextlib
import os
import random
import shutil
import sqlite3
import time

import pytest

from disk import Disk, cut, make_image
from support import retort
from support.server import folder
from support.workers import Cells, Files, Streams, Uploads, wait_for_more

FLAGS = ["--retention", "1h", "--log-level", "warn", "--max-sessions", "20"]


@pytest.fixture
def place():
    one = folder()
    yield one
    shutil.rmtree(one)


def acknowledged(workers):
    return {worker: list(worker.kept) for worker in workers}


def cut_and_look(server, place, workers, wait=lambda: None):
    """What was acknowledged before wait() and is still wanted is in a copy that is made after it."""
    before = acknowledged(workers)
    wait()
    looked = 0
    with (cut(server, place / "disk", place / "copy"), Disk(*FLAGS, image=place / "copy") as copy,
          copy.client() as client):
        after = acknowledged(workers)  # what a worker is about to delete is not in it
        for worker in workers:
            twin = type(worker)(copy, worker.number)
            twin.kept = [kept for kept in before[worker] if kept in after[worker]]
            looked += len(twin.kept)  # a quick worker may have deleted by now what it had before
            twin.check(client)
    assert looked, "there was nothing to look for"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("durability", ["power", "process"])
def test_what_was_acknowledged_outlives_a_power_cut(place, durability):
    image = make_image(place / "disk")
    with Disk(*FLAGS, "--durability", durability, image=image) as server:
        workers = [kind(server, i) for i, kind in enumerate((Cells, Streams, Uploads, Files))]
        for worker in workers:
            worker.start()
        for worker in workers:
            retort.wait_until(lambda: worker.wrong or len(worker.kept) >= 5, f"five of {worker}",
                              retort.SECONDS)
        for _ in range(3):
            wait_for_more(workers[random.randrange(len(workers))])
            time.sleep(random.uniform(0, 0.05))
        if durability == "power":
            cut_and_look(server, place, workers)
        else:
            cut_and_look(server, place, workers[2:])  # uploads wait for the disk in any case

            def flushed():
                """The first to end may have begun before."""
                so_far = server.flushes()
                retort.wait_until(lambda: server.flushes() >= so_far + 2, "two flushes", retort.SECONDS)

            cut_and_look(server, place, workers, flushed)
        for worker in workers:
            worker.ended.set()
        for worker in workers:
            worker.join(retort.SECONDS)
        assert not [w for worker in workers for w in worker.wrong]


def test_a_quiet_server_has_everything_on_the_disk(place):
    """The last thing that happens is written, too, without anything after it."""
    image = make_image(place / "disk")
    with Disk(*FLAGS, image=image) as server, server.client() as client:
        session = client.session()
        record = session.run("open('last.txt', 'w').write('written'); print('the last words')")
        server.wait_flushed()
        with (cut(server, image, place / "copy"), Disk(*FLAGS, image=place / "copy") as copy,
              copy.client() as other):
            found = other.get("/v1/executions/" + record["id"]).expect(200).json
            assert found["stdout"] == "the last words\n"
            assert other.get(session.file("last.txt")).expect(200).body == b"written"


def test_a_session_that_was_deleted_does_not_come_back(place):
    """Its beginning is in the log of records, and that reaches the disk, before the database takes it; of its
    end the disk has the rows."""
    image = make_image(place / "disk")
    with Disk(*FLAGS, image=image) as server, server.client() as client:
        with contextlib.closing(sqlite3.connect(server.state / "retort.db", isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")  # the server's own writes wait for this
            deleted, kept = client.session(), client.session()
            os.sync()
            db.execute("ROLLBACK")
        client.delete(deleted.path).expect(204)
        server.wait_flushed()
        with (cut(server, image, place / "copy"), Disk(*FLAGS, image=place / "copy") as copy,
              copy.client() as other):
            assert other.get(deleted.path).status == 404
            assert other.get(kept.path).status == 200
