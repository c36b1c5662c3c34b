"""What one session writes keeps nobody else waiting: here it never reaches the disk, for as long as the
test likes."""

import shutil
import threading

import pytest

from disk import Disk, cut, make_image
from support import retort
from support.faults import Faults
from support.server import folder

FLAGS = ["--retention", "1h", "--log-level", "warn"]
MANY = """
for i in range(1000):
    with open(f"{i}.txt", "w") as f:
        f.write(str(i))
"""


@pytest.fixture
def place():
    one = folder()
    yield one
    shutil.rmtree(one)


@pytest.mark.timeout(300)
def test_many_files_reach_the_disk_before_they_count(place):
    """So there is never much that the disk has to do at once. The others go on meanwhile."""
    image, faults, records = make_image(place / "disk"), Faults(place), []
    with Disk(*FLAGS, image=image, env=faults.env) as server, server.client() as client:
        writer = server.client().session()
        thread = threading.Thread(target=lambda: records.append(writer.run(MANY)), daemon=True)
        faults.hold_syncs(server.state, but="/")
        try:
            thread.start()
            retort.wait_until(lambda: faults.held() > 0, "the files wait for the disk", retort.SECONDS)
            session = client.session()
            assert session.run("open('one', 'w').write('1'); print(2)")["stdout"] == "2\n"
            assert client.get(session.file("one")).expect(200).body == b"1"
            assert client.get(session.path + "/files").expect(200).json["data"]
            assert not records
        finally:
            faults.let_syncs_go()
        thread.join(retort.SECONDS)
        assert records[0]["status"] == "ok"
        assert client.get(writer.file("999.txt")).expect(200).body == b"999"


def make_log(server, client):
    """It is made for the first upload, and takes those that come later."""
    log, session = server.state / "retort.redo", client.session()
    assert not log.exists()

    def is_used():
        client.put(session.file("one"), b"1").expect(201)
        return log.exists() and log.read_bytes()[:8] != bytes(8)

    retort.wait_until(is_used, "the log takes uploads", retort.SECONDS)
    server.wait_flushed()
    return log


@pytest.mark.timeout(300)
def test_an_upload_waits_for_no_sync_of_anything_else(place):
    """What others write, and the database itself, may be on their way to the disk for as long as they
    like: an upload, with the session it goes to, is in the log that is synced by itself."""
    image, faults = make_image(place / "disk"), Faults(place)
    with Disk(*FLAGS, image=image, env=faults.env) as server, server.client() as client:
        faults.hold_syncs(server.state, but=make_log(server, client))
        try:
            session = client.session()
            client.put(session.file("sent.txt"), b"sent").expect(201)
            file = client.form("/v1/files", ("file", "f", b"kept")).expect(201).json["id"]
            assert server.metric("retort_store_unflushed") == 1
            with (cut(server, image, place / "copy"), Disk(*FLAGS, image=place / "copy") as copy,
                  copy.client() as other):
                assert other.get(session.file("sent.txt")).expect(200).body == b"sent"
                assert other.get(f"/v1/files/{file}/content").expect(200).body == b"kept"
        finally:
            faults.let_syncs_go()


@pytest.mark.timeout(300)
def test_what_needs_more_than_the_log_has_waits_for_that_alone(place):
    """Many files of a cell are not in the log; so what is uploaded to their session afterwards is not
    either, or a power cut could leave it without what came before. Others do not wait."""
    image, faults, sent = make_image(place / "disk"), Faults(place), []
    with Disk(*FLAGS, image=image, env=faults.env) as server, server.client() as client:
        log, other, writer = make_log(server, client), client.session(), client.session()
        faults.hold_syncs(server.state, but=log)
        try:
            writer.run("for i in range(20): open(f'{i}.txt', 'w').write(str(i))")

            def upload():
                with server.client() as one:
                    sent.append(one.put(writer.file("sent.txt"), b"sent"))

            thread = threading.Thread(target=upload, daemon=True)
            thread.start()
            for i in range(20):
                client.put(other.file(f"{i}.txt"), b"other").expect(201)
            assert not sent
            with (cut(server, image, place / "copy"), Disk(*FLAGS, image=place / "copy") as copy,
                  copy.client() as after):
                assert after.get(other.file("19.txt")).expect(200).body == b"other"
                assert after.get(writer.file("sent.txt")).status == 404
                assert "is not there" not in copy.log()
        finally:
            faults.let_syncs_go()
        thread.join(retort.SECONDS)
        sent[0].expect(201)
