"""retort store copy: files alone, from a directory into S3 and back, with the rows left where they are."""

import hashlib
import os
import shutil
import subprocess

import pytest

from support import retort, s3
from support.server import Server, folder

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def store():
    with s3.S3() as one:
        yield one


@pytest.fixture
def place():
    """A state directory with files in it, which nothing names: that makes no difference to a copy."""
    made = folder()
    assert retort.call("keys", "create", "--tenant", "t", "--state", made / "state")[0] == 0
    for size in (0, 1, 70_000, 17 << 20, *range(100, 160)):
        data = os.urandom(size)
        name = hashlib.sha256(data).hexdigest()
        file = made / "state/blobs" / name[:2] / name[2:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    owner = (made / "state").stat()
    for at, folders, names in os.walk(made / "state"):
        for one in (*folders, *names):
            os.chown(os.path.join(at, one), owner.st_uid, owner.st_gid)
    yield made
    shutil.rmtree(made)


def blobs(path):
    return {f.parent.name + f.name: hashlib.sha256(f.read_bytes()).hexdigest()
            for f in (path / "blobs").glob("??/*") if len(f.name) == 62}


def command(server, source, target):
    return [retort.PROGRAM, "store", "copy", source, target, "--s3-endpoint", server.url]


def copy(server, source, target):
    done = subprocess.run(command(server, source, target), capture_output=True, text=True, timeout=retort.SECONDS,
                          env={**os.environ, **s3.ENV})
    return done.returncode, done.stdout, done.stderr


def test_there_and_back(store, place):
    url = f"s3://{s3.BUCKET}/there"
    code, said, err = copy(store, place / "state", url)
    assert code == 0 and "0 rows, 64 files" in said, err
    assert store.objects("there").keys() == blobs(place / "state").keys() and not store.uploads()
    assert not (store.bucket / "there/retort.copy").exists()
    code, _, err = copy(store, place / "state", url)
    assert code == 2 and "is not empty" in err
    shutil.rmtree(place / "state/blobs")
    assert copy(store, url, place / "state")[0] == 0
    kept = blobs(place / "state")
    assert kept.keys() == store.objects("there").keys() and all(name == hash for name, hash in kept.items())


@pytest.mark.parametrize("at", [2, 30, 90])
def test_a_kill_in_the_middle(store, place, at):
    """At its request number `at`; the next copy sends what was not there, and nothing else again."""
    prefix = f"killed-{at}"
    with s3.Between(store) as between:
        def fault(request):
            if len(between.seen) == at:
                process.kill()
                process.wait()
        between.fault(fault)
        process = subprocess.Popen(command(between, place / "state", f"s3://{s3.BUCKET}/{prefix}"),
                                   env={**os.environ, **s3.ENV}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        process.wait(retort.SECONDS)
        assert process.returncode == -9
        between.fault()
        sent = {r.path for r in between.seen[:-1] if r.method == "PUT" and "partNumber" not in r.path}
        between.seen.clear()
        code, said, err = copy(between, place / "state", f"s3://{s3.BUCKET}/{prefix}")
        assert code == 0 and "64 files" in said, err
        again = {r.path for r in between.seen if r.method == "PUT"}
        assert not sent & again - {f"/{s3.BUCKET}/{prefix}/retort.copy"}
    assert store.objects(prefix).keys() == blobs(place / "state").keys()


def test_a_flipped_byte_of_the_source(store, place):
    """Whoever moves hears of it by name, and the rest is there."""
    url = f"s3://{s3.BUCKET}/source"
    file = max((place / "state/blobs").glob("??/*"), key=lambda f: f.stat().st_size)
    data = bytearray(file.read_bytes())
    data[1234567] ^= 1
    file.write_bytes(data)
    code, _, err = copy(store, place / "state", url)
    name = file.parent.name + file.name
    assert code == 3 and f"damaged: file {name}" in err and "1 files" in err
    assert len(store.objects("source")) == 63 and name not in store.objects("source")
    data[1234567] ^= 1
    file.write_bytes(data)
    code, said, err = copy(store, place / "state", url)
    assert code == 0 and "64 files" in said, err


def test_a_flipped_byte_of_the_copy(store, place):
    """Found when all is read back, and mended."""
    url = f"s3://{s3.BUCKET}/copy"
    flipped = []

    def flip(status, headers, body):
        if len(body) < 60:
            return status, headers, body, len(body)
        flipped.append(1)
        return status, headers, body[:50] + bytes([body[50] ^ 1]) + body[51:], len(body)

    with s3.Between(store) as between:
        between.fault(lambda r: flip if r.method == "GET" and "/copy/" in r.path and "?" not in r.path
                      and "retort.copy" not in r.path and not flipped else None)
        code, _, err = copy(between, place / "state", url)
        assert flipped and code == 0, err
    assert {hashlib.sha256(f.read_bytes()).hexdigest() for f in store.objects("copy").values()} == \
        set(store.objects("copy"))


def test_s3_that_is_away(place):
    with s3.S3() as gone:
        gone.kill()
        code, _, err = copy(gone, place / "state", f"s3://{s3.BUCKET}/p")
        assert code == 3 and "does not answer" in err


def test_a_server_of_files_in_s3_knows_the_way_back(store, place):
    """Its directory has rows and no files; the copy brings those, and cache/ goes by hand, as it says."""
    with Server(*s3.flags(store, "back"), env=s3.ENV) as server:
        with server.client() as client:
            made = client.form("/v1/files", ("file", "a.bin", b"x" * 5000)).expect(201).json
        server.stop()
        code, _, err = copy(store, server.state, f"s3://{s3.BUCKET}/elsewhere")
        assert code == 2 and "are in S3: say where" in err
        assert copy(store, f"s3://{s3.BUCKET}/back", server.state)[0] == 0
        shutil.rmtree(server.state / "cache")
        server.flags = [f for f in server.flags if f not in s3.flags(store, "back")]
        server.start()
        with server.client() as client:
            assert client.get(f"/v1/files/{made['id']}/content").expect(200).body == b"x" * 5000
