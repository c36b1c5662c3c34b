"""Blobs in S3, with a real server that checks signatures."""

import collections
import hashlib
import json
import os
import shutil
import threading

import pytest

from support import retort, s3
from support.server import Server, refusal
from support.web import CERTIFICATE

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def store():
    with s3.S3() as one:
        yield one


@pytest.fixture
def between(store):
    """A proxy that passes everything on until the test tells it something else."""
    with s3.Between(store) as one:
        yield one


@pytest.fixture
def server(between):
    """Without copies: what is read comes from S3."""
    with Server(*s3.flags(between, cache="0"), env=s3.ENV) as one:
        yield one


@pytest.fixture
def client(server):
    with server.client() as one:
        yield one


def upload(client, data, name="a.bin"):
    return client.form("/v1/files", ("file", name, data)).expect(201).json


def content(client, file, **more):
    return client.get(f"/v1/files/{file['id']}/content", **more)


def wait_ready(server):
    with server.client() as c:
        retort.wait_until(lambda: c.get("/ready").status == 200, "a server that is ready again")


# --- what is kept ---


def test_an_upload_is_in_s3_when_it_is_answered(client, store, between):
    data = os.urandom(70_000)
    made = upload(client, data)
    assert store.objects()[made["sha256"]].read_bytes() == data
    assert content(client, made).expect(200).body == data
    assert content(client, made, headers={"Range": "bytes=10-19"}).expect(206).body == data[10:20]
    put = [r for r in between.seen if r.method == "PUT" and made["sha256"][2:] in r.path]
    assert len(put) == 1 and dict(put[0].headers)["x-amz-content-sha256"] == made["sha256"]


def test_an_empty_one(client):
    assert content(client, upload(client, b"")).expect(200).body == b""


def test_nothing_of_it_is_on_the_disk(server, client):
    upload(client, os.urandom(5000))
    assert not [f for folder in ("blobs", "cache") for f in (server.state / folder).rglob("*") if f.is_file()]


def test_a_large_one_goes_in_parts(client, store, between):
    data = os.urandom(1 << 20) * 40
    made = upload(client, data)
    assert made["sha256"] == hashlib.sha256(data).hexdigest()
    parts = [r for r in between.seen if "partNumber=" in r.path]
    assert [len(p.body) for p in parts] == [16 << 20, 16 << 20, 8 << 20]
    assert store.objects()[made["sha256"]].read_bytes() == data and not store.uploads()
    assert content(client, made).expect(200).body == data


def test_the_same_bytes_again_are_not_sent_again(client, between):
    data = os.urandom(1000)
    for _ in range(3):
        made = upload(client, data)
    assert len([r for r in between.seen if r.method == "PUT" and made["sha256"][2:] in r.path]) == 1
    assert content(client, made).expect(200).body == data


def test_files_of_a_session_outlive_node_and_disk(store, between):
    """The database alone goes on: a node that has never seen the files has them all."""
    with Server(*s3.flags(between), env=s3.ENV) as server:
        with server.client() as c:
            session = c.session()
            session.run("open('a.txt', 'w').write('from code'); open('/tmp/b', 'w').write('home')")
            session.put("c.bin", b"from outside")
            made = session.id
        server.stop()
        assert [f for f in (server.state / "cache").rglob("*") if f.is_file()]
        shutil.rmtree(server.state / "cache")
        server.start()
        with server.client() as c:
            code = "print(open('a.txt').read(), open('c.bin').read(), open('/tmp/b').read())"
            done = c.post(f"/v1/sessions/{made}/execute", {"code": code}).expect(200).json
            assert "from code from outside home" in done["stdout"], done


def test_a_file_is_moved_before_the_session_has_a_sandbox(client):
    with client.session() as session:
        session.put("a", b"moved")
        client.request("PATCH", session.file("a"), {"path": "b"}).expect(200)
        assert session.read("b") == b"moved" and set(session.files()) == {"b"}


# --- the cache ---


def test_the_cache_has_a_size(store, between):
    with Server(*s3.flags(between, cache="8M"), env=s3.ENV) as server, server.client() as c:
        files = [(upload(c, data), data) for data in (os.urandom(1 << 20) for _ in range(16))]

        def size():
            return sum(f.stat().st_size for f in (server.state / "cache").rglob("*") if f.is_file())

        retort.wait_until(lambda: 0 < size() <= 8 << 20, "a cache that has been trimmed")
        for made, data in files:
            assert content(c, made).expect(200).body == data
        between.fault(lambda r: 500 if r.method == "GET" else None)
        assert content(c, files[-1][0]).expect(200).body == files[-1][1]


def test_a_damaged_copy_is_fetched_again(store, between):
    with Server(*s3.flags(between), env=s3.ENV) as server, server.client() as c:
        made = upload(c, b"x" * 1000)
        copy = server.state / "cache" / made["sha256"][:2] / made["sha256"][2:]
        copy.write_bytes(b"y" * 1000)
        assert content(c, made).expect(200).body == b"x" * 1000
        assert copy.read_bytes() == b"x" * 1000


# --- what comes from S3 is not trusted ---


def test_a_damaged_object_is_not_handed_out_and_heals(client, store):
    data = os.urandom(50_000)
    made = upload(client, data)
    store.objects()[made["sha256"]].write_bytes(data[:-1] + b"!")
    answer = content(client, made)
    assert answer.status == 500 and answer.json["error"]["type"] == "damaged"
    again = upload(client, data)
    assert content(client, made).expect(200).body == data == content(client, again).expect(200).body


def test_bytes_that_change_on_the_way_up_are_refused(client, store, between):
    """S3 holds them against the hash that is signed. Nothing is acknowledged."""
    def change(request):
        if request.method == "PUT" and request.body == b"as it was":
            request.body = b"as it is!"

    between.fault(change)
    client.form("/v1/files", ("file", "a", b"as it was")).refused(503)
    assert hashlib.sha256(b"as it was").hexdigest() not in store.objects()


def test_an_object_that_is_gone(client, store):
    made = upload(client, b"somebody removes this")
    store.objects()[made["sha256"]].unlink()
    content(client, made).refused(404)


def test_wrong_bytes_on_the_way_are_fetched_again(client, between):
    data = os.urandom(100_000)
    made, times = upload(client, data), []

    def change(request):
        if request.method != "GET" or made["sha256"][2:] not in request.path or times:
            return None
        times.append(1)
        return lambda status, headers, body: (status, headers, b"?" + body[1:], len(body))

    between.fault(change)
    assert content(client, made).expect(200).body == data and times


def test_a_body_that_breaks_off_is_resumed(client, between):
    data = os.urandom(3 << 20)
    made, ranges = upload(client, data), []

    def cut(request):
        if request.method != "GET" or made["sha256"][2:] not in request.path:
            return None
        ranges.append(dict(request.headers).get("Range"))
        return lambda status, headers, body: (status, headers, body, min(len(body), 1 << 20))

    between.fault(cut)
    assert content(client, made).expect(200).body == data
    assert ranges[0] is None and len(ranges) >= 3 and all(r.startswith("bytes=") for r in ranges[1:])


# --- S3 that fails ---


@pytest.mark.parametrize("status", [500, 503])
def test_what_passes_is_tried_again(client, between, status):
    times = collections.Counter()

    def slow_down(request):
        times[request.method, request.path] += 1
        return status if times[request.method, request.path] < 3 else None

    between.fault(slow_down)
    made = upload(client, b"tried again %d" % status)
    assert content(client, made).expect(200).body == b"tried again %d" % status


def check_away(server, client, why):
    answer = client.form("/v1/files", ("file", "b", os.urandom(100)))
    answer.refused(503)
    assert int(answer.headers["retry-after"]) > 0 and why in answer.json["error"]["message"], answer
    ready = client.get("/ready").expect(503).json
    assert ready["status"] == "not_ready" and why in ready["why"]
    refused = client.post("/v1/execute", {"code": "1"})
    refused.refused(503)
    assert int(refused.headers["retry-after"]) > 0


@pytest.mark.parametrize("status, why", [(403, "403 AccessDenied"), (500, "500 InternalError"), (503, "503 SlowDown")])
def test_away_and_back(server, client, between, status, why):
    made = upload(client, b"before")
    between.fault(lambda request: status)
    check_away(server, client, why)
    assert content(client, made).status == 503
    between.fault()
    wait_ready(server)
    assert content(client, made).expect(200).body == b"before"
    upload(client, b"after")


def test_a_server_that_is_killed_during_an_upload(store):
    """The second part finds nobody. Nothing was acknowledged, and what was before is there."""
    with s3.S3() as own, s3.Between(own) as between, \
            Server(*s3.flags(between, cache="0"), env=s3.ENV) as server, server.client() as client:
        made = upload(client, b"acknowledged")

        def kill(request):
            if "partNumber=2" in request.path:
                own.kill()

        between.fault(kill)
        data = os.urandom(1 << 20) * 40
        client.form("/v1/files", ("file", "large", data)).refused(503)
        between.fault()
        check_away(server, client, "does not answer")
        own.start()
        wait_ready(server)
        assert content(client, made).expect(200).body == b"acknowledged"
        assert content(client, upload(client, data)).expect(200).body == data


def test_code_that_runs_while_s3_goes_away(server, client, between):
    """Its answer says that the files are not saved. They are with the next execution."""
    with client.session() as session:
        between.fault(lambda request: 500)
        done = session.run("open('a.txt', 'w').write('kept'); 1 + 1")
        assert done["result"] == "2" and "could not be saved yet" in json.dumps(done["events"]), done
        between.fault()
        wait_ready(server)
        session.run("2")
        made = session.id
        server.kill()
        server.start()
        with server.client() as c:
            again = c.post(f"/v1/sessions/{made}/execute", {"code": "print(open('a.txt').read())"}).expect(200)
            assert "kept" in again.json["stdout"]


def test_it_starts_while_s3_is_down():
    with s3.S3() as own:
        own.kill()
        server = Server(*s3.flags(own, cache="0"), env=s3.ENV)
        try:
            server.launch()
            with server.client() as c:
                retort.wait_until(lambda: not_ready(c), "a server that says what it waits for")
            own.start()
            server.wait_ready()
            with server.client() as c:
                assert content(c, upload(c, b"late")).expect(200).body == b"late"
            server.stop()
        finally:
            server.discard()


def not_ready(client):
    try:
        answer = client.get("/ready")
    except OSError:
        client.close()
        return False
    return answer.status == 503 and "does not answer" in str(answer.json.get("why"))


def test_others_work_while_one_waits(client, server, between):
    """A request that S3 does not answer holds up nobody else."""
    waits, go_on = threading.Event(), threading.Event()
    slow = hashlib.sha256(b"slow").hexdigest()[2:]

    def hold(request):
        if slow in request.path and request.method == "PUT":
            waits.set()
            go_on.wait()

    between.fault(hold)
    answers = []

    def send():
        with server.client() as c:
            answers.append(c.form("/v1/files", ("file", "slow", b"slow")).status)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        assert waits.wait(retort.SECONDS)
        assert content(client, upload(client, b"quick")).expect(200).body == b"quick"
        assert client.post("/v1/execute", {"code": "6*7"}).expect(200).json["status"] == "ok"
        assert not answers
    finally:
        go_on.set()
        thread.join()
    assert answers == [201]


# --- settings ---


def test_keys_that_are_wrong_are_said_at_the_start(store):
    status, err = refusal(*s3.flags(store))
    assert status and "AWS_ACCESS_KEY_ID" in err


@pytest.mark.parametrize("flags, why", [
    (["--blobs", "http://x/y"], "s3://BUCKET/PREFIX"),
    (["--blobs", "s3://Not_A_Bucket"], "not the name of a bucket"),
    (["--blobs", "s3://bucket/../x"], "prefix"),
    (["--blobs", "s3://bucket/a b"], "prefix"),
    (["--blobs", "s3://bucket", "--s3-endpoint", "ftp://x"], "endpoint"),
    (["--blobs", "s3://bucket", "--s3-endpoint", "http://key@x"], "endpoint"),
    (["--blobs", "s3://bucket", "--s3-region", "us east"], "region"),
    (["--s3-endpoint", "http://x"], "does nothing without blobs"),
])
def test_settings_that_cannot_be(flags, why):
    status, err = refusal(*flags)
    assert status and why in err, err


def start_fails(server):
    try:
        server.launch()
        assert server.process.wait(retort.SECONDS) != 0
        server.process = None
        return server.log()
    finally:
        server.discard()


def test_a_signature_that_is_wrong(store):
    log = start_fails(Server(*s3.flags(store), env={**s3.ENV, "AWS_SECRET_ACCESS_KEY": "wrong"}))
    assert "403 SignatureDoesNotMatch" in log and s3.SECRET not in log


def test_a_bucket_that_is_not_there(store):
    flags = [f.replace(s3.BUCKET, "no-such-bucket") for f in s3.flags(store)]
    assert "NoSuchBucket" in start_fails(Server(*flags, env=s3.ENV))


def test_key_file_and_region(store, tmp_path):
    file = tmp_path / "credentials"
    file.write_text(f"[other]\naws_access_key_id = x\n[default]\naws_access_key_id = {s3.KEY}\n"
                    f"aws_secret_access_key = {s3.SECRET}\n")
    with Server(*s3.flags(store), "--s3-key-file", file, "--s3-region", "us-east-1") as server, server.client() as c:
        assert content(c, upload(c, b"by file")).expect(200).body == b"by file"


def test_tls(tmp_path):
    with s3.S3(tls=CERTIFICATE) as own:
        log = start_fails_or_waits(Server(*s3.flags(own), env=s3.ENV))
        assert "does not answer" in log
        with Server(*s3.flags(own), "--s3-ca", CERTIFICATE, env=s3.ENV) as server, server.client() as c:
            assert content(c, upload(c, b"tls")).expect(200).body == b"tls"


def start_fails_or_waits(server):
    """Of one that does not trust the certificate: it serves, and is not ready."""
    try:
        server.launch()
        with server.client() as c:
            retort.wait_until(lambda: not_ready(c), "a server that says what it waits for")
        server.kill()
        return server.log()
    finally:
        server.discard()


def test_the_bucket_in_the_host(store, between):
    port = between.server.server_port
    server = Server("--blobs", f"s3://{s3.BUCKET}/p", "--s3-endpoint", f"http://localhost:{port}",
                    "--s3-style", "virtual-host", env=s3.ENV)
    between.fault(lambda request: 403)
    start_fails(server)
    asked = between.seen[0]
    assert asked.path == "/p/retort.probe" and dict(asked.headers)["Host"] == f"{s3.BUCKET}.localhost:{port}"


# --- from the disk to S3, and back ---


def fails(server):
    server.launch()
    assert server.process.wait(retort.SECONDS) != 0
    server.process = None
    return server.log()


def test_from_the_disk_and_back(store):
    """A server that looks in the wrong place says so. The layout is the same, so any tool can copy."""
    with Server(env=s3.ENV) as server:
        with server.client() as c:
            made = upload(c, b"on the disk")
        server.stop()
        plain, server.flags = server.flags, [*server.flags, *s3.flags(store, "moved")]
        assert "its files are on the disk" in fails(server)
        shutil.copytree(server.state / "blobs", store.bucket / "moved", ignore=shutil.ignore_patterns("tmp"))
        (server.state / "blobs").rename(server.state / "blobs.before")
        server.start()
        with server.client() as c:
            assert content(c, made).expect(200).body == b"on the disk"
            later = upload(c, b"in S3")
        server.stop()
        server.flags = plain
        assert "its files are in S3" in fails(server)
        shutil.rmtree(server.state / "cache")
        for file in (store.bucket / "moved").glob("??/*"):
            to = server.state / "blobs" / file.parent.name
            to.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, to)
        shutil.chown(server.state / "blobs", *owner(server.state))
        for path in (server.state / "blobs").rglob("*"):
            shutil.chown(path, *owner(server.state))
        server.start()
        with server.client() as c:
            assert content(c, made).expect(200).body == b"on the disk"
            assert content(c, later).expect(200).body == b"in S3"


def owner(path):
    return path.stat().st_uid, path.stat().st_gid


def test_a_session_token_is_signed(store, between):
    """The server of the tests knows no such tokens, and says so of this one: it has seen it."""
    start_fails(Server(*s3.flags(between), env={**s3.ENV, "AWS_SESSION_TOKEN": "a-token"}))
    head = {k.lower(): v for k, v in between.seen[0].headers}
    assert head["x-amz-security-token"] == "a-token"
    assert "x-amz-security-token" in head["authorization"].split("SignedHeaders=")[1].split(",")[0]
