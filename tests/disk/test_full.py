"""A disk that takes nothing more: what cannot be kept is refused before it runs, with an error that says
what to do; what is there can be read; and when there is room again nobody has to ask or restart."""

import contextlib
import errno
import json
import os
import sqlite3

import pytest

from disk import Disk, make_image
from support import retort
from support.faults import Faults
from support.mcp import Legacy
from support.server import folder

FLAGS = ["--retention", "1h", "--log-level", "warn", "--max-sessions", "20"]
COUNT = "import pathlib; f = pathlib.Path('/tmp/ran'); f.write_text(f.read_text() + 'x' if f.exists() else 'x')"
TOLD = "print(len(open('/tmp/ran').read()))"


def fill_space(server):
    """Another program takes all that is left."""
    with open(server.state / "of-another-program", "wb", buffering=0) as f, contextlib.suppress(OSError):
        while True:
            f.write(bytes(1 << 16))


def fill_inodes(server):
    (server.state / "many").mkdir(exist_ok=True)
    with contextlib.suppress(OSError):
        for i in range(1_000_000):
            (server.state / "many" / str(i)).touch()


def fail_with(number):
    """What is written fails, and nothing shows beforehand: the first upload finds out."""
    def fail(server):
        server.faults.break_disk(server.state, number)
        with server.client() as client:
            assert client.form("/v1/files", ("file", "f", b"bytes")).status == 507
    return fail


def make_room(server):
    (server.state / "of-another-program").unlink(missing_ok=True)
    for path in (server.state / "many").glob("*"):
        path.unlink()
    server.faults.mend_disk()


KINDS = {"space": ("size=24m", fill_space, "deleted"),
         "inodes": ("size=64m,nr_inodes=400", fill_inodes, "deleted"),
         "quota": ("size=64m", fail_with(errno.EDQUOT), "quota"),
         "error": ("size=64m", fail_with(errno.EIO), "mended")}


@pytest.fixture(scope="module", params=KINDS)
def full(request):
    """A server with a session and its file, whose disk is full now."""
    options, fill, remedy = KINDS[request.param]
    faults = Faults(folder())
    with Disk(*FLAGS, options=options, env=faults.env) as server, server.client() as client:
        server.faults, server.remedy = faults, remedy
        server.fill = lambda: fill(server)
        server.session = client.session()
        server.session.run(COUNT)
        server.session.run("open('saved.txt', 'w').write('bytes')")
        server.upload = client.form("/v1/files", ("file", "f.txt", b"uploaded")).expect(201).json
        server.fill()
        retort.wait_until(lambda: client.get("/ready").status == 503, "it is not ready")
        yield server


@pytest.fixture
def client(full):
    with full.client() as one:
        yield one


def refused(answer, remedy="deleted"):
    error = answer.refused(507)
    assert "disk" in error["message"] and remedy in error["message"]
    return error


def test_ready_says_why(full, client):
    answer = client.get("/ready").expect(503).json
    assert "disk" in answer["why"]


def test_code_does_not_run(full, client):
    path = full.session.path
    for where, how in ((path, {}), (path, {"background": True}), ("/v1", {}), (path, {"stream": True})):
        refused(client.post(where + "/execute", {"code": COUNT, **how}), full.remedy)


def test_uploads_are_refused(full, client):
    refused(client.form("/v1/files", ("file", "f", bytes(1000))), full.remedy)
    refused(client.put(full.session.file("new.txt"), bytes(1000)), full.remedy)


def test_what_is_there_can_be_read(full, client):
    assert client.get(full.session.file("saved.txt")).expect(200).body == b"bytes"
    assert client.get(f"/v1/files/{full.upload['id']}/content").expect(200).body == b"uploaded"
    assert client.get("/v1/executions").expect(200).json["data"]
    assert client.get(full.session.path).expect(200)


def test_every_door_says_it_in_its_own_words(full, client):
    code = {"code": COUNT}
    answer = client.post("/azure/pools/default/executions?api-version=2025-10-02-preview&identifier=abcd",
                         {"properties": {"codeInputType": "inline", "executionType": "synchronous", **code},
                          **code})
    assert (answer.status, answer.json["error"]["code"]) == (507, "InsufficientStorage"), answer
    answer = client.form("/anthropic/v1/files", ("file", "f.txt", b"x")).expect(507)
    assert answer.json["type"] == "error" and answer.json["error"]["type"] == "api_error"
    answer = client.post("/qwen/code_interpreter", code)
    assert answer.status == 507 and "ToolServiceError" in answer.text and "disk" in answer.text, answer
    with Legacy(full) as mcp:
        result = mcp.call("run_code", **code)
        assert result["isError"] and "of the server" in json.dumps(result) and "disk" in json.dumps(result), result


def test_deleting_makes_room_at_once():
    """Blobs of deleted files go within seconds, not within the hour they are spared otherwise."""
    with Disk(*FLAGS, options="size=24m") as server, server.client() as client:
        ids = []
        while (answer := client.form("/v1/files", ("file", "f", os.urandom(2 << 20)))).status == 201:
            ids.append(answer.json["id"])
        refused(answer)
        assert ids
        for id in ids:
            client.delete("/v1/files/" + id).expect(204)
        retort.wait_until(lambda: client.form("/v1/files", ("file", "f", os.urandom(2 << 20))).status == 201,
                          "room for another upload", retort.SECONDS)


def test_when_there_is_room_again_it_goes_on_by_itself(full, client):
    make_room(full)
    try:
        retort.wait_until(lambda: client.get("/ready").status == 200, "it is ready", retort.SECONDS)
        assert full.session.run(TOLD)["stdout"] == "1\n", "what was refused has run"
        full.session.run("open('more.txt', 'w').write('more')")
        assert full.session.read("more.txt") == b"more"
    finally:
        full.fill()


def test_code_that_runs_while_it_fills_up_is_on_record(full, client):
    make_room(full)
    retort.wait_until(lambda: client.get("/ready").status == 200, "it is ready", retort.SECONDS)
    begun = full.session.background("import time\nwhile not __import__('os').path.exists('go'): time.sleep(0.05)\n"
                                    "print('it has ended')")
    full.session.put("go-soon", b"")
    full.fill()
    retort.wait_until(lambda: client.get("/ready").status == 503, "it is not ready")
    client.post(f"/v1/executions/{begun['id']}/interrupt")
    if full.remedy != "deleted":  # not even what was held back can be written: it comes when there is room
        retort.wait_until(lambda: f"{begun['id']} is not on record yet" in full.log(), "the disk to be tried")
        assert client.get("/v1/executions/" + begun["id"]).expect(200).json["status"] == "queued"
        make_room(full)
    record = full.session.wait(begun)
    assert record["status"] == "interrupted", record
    log = client.get("/v1/executions?format=jsonl").expect(200).text
    assert json.loads(log.splitlines()[-1])["status"]


def test_a_disk_that_turns_read_only():
    """As a file system does after an error of its disk."""
    place = folder()
    with Disk(*FLAGS, image=make_image(place / "disk")) as server, server.client() as client:
        session = client.session()
        session.run(COUNT + "\nopen('saved.txt', 'w').write('bytes')")
        server.wait_flushed()
        os.sync()
        server.remount("abort")
        assert client.form("/v1/files", ("file", "f", b"bytes")).status == 507
        retort.wait_until(lambda: client.get("/ready").status == 503, "it is not ready")
        assert "read-only" in client.get("/ready").json["why"]
        answer = client.post(session.path + "/execute", {"code": COUNT})
        assert answer.status == 507 and "read-only" in answer.json["error"]["message"], answer
        assert client.get(session.file("saved.txt")).expect(200).body == b"bytes"
        server.kill()  # it cannot put away what is live


@pytest.mark.parametrize("number", [errno.EIO, errno.EDQUOT, errno.ENOSPC], ids=errno.errorcode.get)
def test_what_ran_just_before_says_that_it_has_run(number):
    """A disk that breaks while code runs: its client hears that it has run, so that nobody runs it twice."""
    faults = Faults(folder())
    with Disk(*FLAGS, env=faults.env) as server, server.client() as client:
        session = client.session()
        server.wait_flushed()  # or that finds out first
        faults.break_disk(server.state, number)
        answer = client.post(session.path + "/execute", {"code": COUNT})
        assert answer.status == 507 and "has run" in answer.json["error"]["message"], answer
        assert client.get("/ready").status == 503
        faults.mend_disk()
        retort.wait_until(lambda: client.get("/ready").status == 200, "it is ready", retort.SECONDS)
        assert session.run(TOLD)["stdout"] == "1\n"


def is_saved(server, path):
    """By the rows alone: to ask the server would have it save what is not."""
    with contextlib.closing(sqlite3.connect(f"file:{server.state}/retort.db?mode=ro", uri=True)) as db:
        return db.execute("SELECT count(*) FROM space WHERE path = ?", (path.encode(),)).fetchone()[0] == 1


@pytest.mark.parametrize("number", [errno.EIO, errno.EDQUOT, errno.ENOSPC], ids=errno.errorcode.get)
def test_files_are_saved_by_themselves_once_that_is_possible(number):
    """Nobody asks for anything of that session again before the server is killed."""
    faults = Faults(folder())
    with Disk(*FLAGS, env=faults.env) as server, server.client() as client:
        session = client.session()
        faults.break_disk(server.state, number)
        client.post(session.path + "/execute", {"code": "open('late', 'w').write('kept')"}).expect(507)
        faults.mend_disk()
        retort.wait_until(lambda: is_saved(server, "late"), "the file is saved", retort.SECONDS)
        server.kill()
        server.start()
        client.close()
        assert session.read("late") == b"kept"


@pytest.mark.parametrize("number", [errno.EIO, errno.EDQUOT, errno.ENOSPC], ids=errno.errorcode.get)
def test_a_session_made_just_before_is_on_record_once_that_is_possible(number):
    """The client hears of it when it is in the log; the disk breaks before the database has it."""
    faults = Faults(folder())
    with Disk(*FLAGS, env=faults.env) as server, server.client() as client:
        with contextlib.closing(sqlite3.connect(server.state / "retort.db", isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")  # the server's own writes wait for this
            kept, deleted = (client.post("/v1/sessions", {}).expect(201).json["id"] for _ in range(2))
            faults.break_disk(server.state, number)
            db.execute("ROLLBACK")
        retort.wait_until(lambda: client.get("/ready").status == 503, "it is not ready", retort.SECONDS)
        faults.mend_disk()
        retort.wait_until(lambda: client.get("/ready").status == 200, "it is ready", retort.SECONDS)
        client.delete("/v1/sessions/" + deleted).expect(204)
        retort.wait_until(lambda: client.get("/v1/sessions").json["data"], "it is on record", retort.SECONDS)
        server.kill()
        server.start()
        client.close()
        assert [s["id"] for s in client.get("/v1/sessions").expect(200).json["data"]] == [kept]
