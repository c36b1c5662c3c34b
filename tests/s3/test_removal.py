"""What nobody names is removed from S3, and never what somebody names or is about to name."""

import hashlib
import os
import threading

import pytest

from support import retort, s3
from support.server import Server

pytestmark = pytest.mark.once

LONG_AGO = 24 * 3600  # older than what the sweep leaves alone
FLAGS = ["--retention", "1"]  # with that it sweeps every second


@pytest.fixture
def store():
    with s3.S3() as one:
        yield one


@pytest.fixture
def between(store):
    with s3.Between(store) as one:
        yield one


@pytest.fixture
def server(between):
    with Server(*FLAGS, *s3.flags(between, cache="0"), env=s3.ENV) as one:
        yield one


@pytest.fixture
def client(server):
    with server.client() as one:
        yield one


def upload(client, data):
    return client.form("/v1/files", ("file", "a.bin", data)).expect(201).json


def read(client, file):
    return client.get(f"/v1/files/{file['id']}/content").expect(200).body


def wait_for_sweeps(between, count=2):
    """From now on, so many from their beginning to their end."""
    def lists():
        return sum("list-type=2" in r.path for r in between.seen)

    until = lists() + count + 1
    retort.wait_until(lambda: lists() >= until, "sweeps")


def test_what_nobody_names_goes_when_it_is_old(client, store, between):
    kept, dropped, young = (upload(client, os.urandom(100)) for _ in range(3))
    for file in (dropped, young):
        client.delete(f"/v1/files/{file['id']}").expect(204)
    old = store.objects()
    for file in (kept, dropped):
        os.utime(old[file["sha256"]], (1, 1))
    retort.wait_until(lambda: dropped["sha256"] not in store.objects(), "the removal of an old blob")
    wait_for_sweeps(between)
    assert {kept["sha256"], young["sha256"]} <= set(store.objects())
    read(client, kept)


def test_other_objects_stay(client, store, between):
    """Of the same bucket, and below the same prefix: what has not the name of a blob is not ours."""
    made = upload(client, b"ours")
    client.delete(f"/v1/files/{made['id']}").expect(204)
    others = [store.bucket / "p/notes.txt", store.bucket / "p/ab/cd", store.bucket / "q/ab" / ("c" * 62),
              store.bucket / "p/ab" / ("C" * 62)]
    for file in others:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("not ours")
        os.utime(file, (1, 1))
    store.age(LONG_AGO)
    retort.wait_until(lambda: made["sha256"] not in store.objects(), "the removal of ours")
    wait_for_sweeps(between)
    assert all(f.exists() for f in others)


def hold_delete(between, data):
    """The DELETE of this blob waits. Returns (it waits, let it go)."""
    waits, go_on = threading.Event(), threading.Event()
    name = hashlib.sha256(data).hexdigest()[2:]

    def hold(request):
        if request.method == "DELETE" and name in request.path:
            waits.set()
            go_on.wait()

    between.fault(hold)
    return waits, go_on


def doomed(client, store, data):
    """A blob that the next sweep removes."""
    made = upload(client, data)
    client.delete(f"/v1/files/{made['id']}").expect(204)
    return made


def test_an_upload_while_the_same_bytes_are_removed(server, client, store, between):
    """A sweep has decided, and its DELETE is on its way. The upload waits until that is over, and puts anew."""
    data = b"removed and uploaded at once"
    waits, go_on = hold_delete(between, data)
    doomed(client, store, data)
    # Another node has not put these bytes lately; this one has, and would know better than to put them again.
    server.stop()
    store.age(LONG_AGO)
    server.start()
    assert waits.wait(retort.SECONDS)
    answers = []

    def send():
        with server.client() as c:
            answers.append(c.form("/v1/files", ("file", "a", data)))

    thread = threading.Thread(target=send)
    thread.start()
    go_on.set()
    thread.join()
    assert answers[0].status in (201, 503), answers
    if answers[0].status == 503:
        assert int(answers[0].headers["retry-after"]) > 0
    with server.client() as c:
        made = answers[0].json if answers[0].status == 201 else upload(c, data)
        wait_for_sweeps(between)
        assert read(c, made) == data and made["sha256"] in store.objects()


def test_an_upload_that_was_put_before_the_removal(server, client, store, between):
    """This node has put the bytes, and has noted that. Then they are announced, deleted and gone, before it names
    them: the note must not count any more."""
    data = b"put, removed, named"
    waits, go_on = hold_delete(between, data)
    doomed(client, store, data)
    store.age(LONG_AGO)
    assert waits.wait(retort.SECONDS)
    first = client.form("/v1/files", ("file", "a", data))  # it need not be put again, says the note
    first.refused(503)
    assert int(first.headers["retry-after"]) > 0
    go_on.set()
    retort.wait_until(lambda: not store.objects(), "the removal")
    made = upload(client, data)
    wait_for_sweeps(between)
    assert read(client, made) == data


def test_code_that_writes_what_is_being_removed(store, between):
    """The record of the execution is kept, and its file with the next one."""
    data = b"written while it is removed"
    with Server("--retention", "29", *s3.flags(between, cache="0"), env=s3.ENV) as server, server.client() as client:
        doomed(client, store, data)
        with client.session() as session:
            session.run("1")
            waits, go_on = hold_delete(between, data)
            store.age(LONG_AGO)
            assert waits.wait(retort.SECONDS)
            done = session.run(f"open('a', 'wb').write({data!r}); 6 * 7")
            assert done["result"] == "42" and done["status"] == "ok"
            assert client.get(f"/v1/executions/{done['id']}").expect(200).json["status"] == "ok"
            go_on.set()
            retort.wait_until(lambda: not store.objects(), "the removal")
            session.run("2")
            assert hashlib.sha256(data).hexdigest() in store.objects()
            assert session.read("a") == data


def test_a_delete_without_an_answer_is_not_repeated(client, store, between):
    """It may still be under way, and nobody may put these bytes before S3 refuses it for its age."""
    data = b"lost answer"
    name = hashlib.sha256(data).hexdigest()[2:]
    between.fault(lambda r: 500 if r.method == "DELETE" and name in r.path else None)
    doomed(client, store, data)
    store.age(LONG_AGO)
    retort.wait_until(lambda: any(r.method == "DELETE" for r in between.seen), "a DELETE")
    between.fault()
    wait_for_sweeps(between, 4)
    assert sum(r.method == "DELETE" and name in r.path for r in between.seen) == 1
    client.form("/v1/files", ("file", "a", data)).refused(503)


def test_a_delete_carries_the_time_of_its_listing(client, store, between):
    """So S3 refuses it when it comes late. The server that the tests have checks that, too."""
    data = b"late"
    doomed(client, store, data)

    def shift(request):
        if "list-type=2" in request.path:
            def later(status, headers, body):
                return status, {**headers, "Date": "Sun, 01 Nov 2026 00:00:00 GMT"}, body, len(body)
            return later

    for file in store.objects().values():
        os.utime(file, (1, 1))
    between.fault(shift)
    retort.wait_until(lambda: any(r.method == "DELETE" for r in between.seen), "a DELETE")
    delete = next(r for r in between.seen if r.method == "DELETE")
    assert dict(delete.headers)["x-amz-date"] == "20261101T000000Z"
    wait_for_sweeps(between)
    assert store.objects(), "a DELETE of long ago was taken"
