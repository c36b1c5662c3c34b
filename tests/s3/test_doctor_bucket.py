"""doctor --blobs URL: what there is to know of a bucket before a server is pointed at it."""

import json
import os

import pytest

from support import retort, s3

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def store():
    with s3.S3() as one:
        yield one


@pytest.fixture
def between(store):
    with s3.Between(store) as one:
        yield one


def rows(server, bucket=s3.BUCKET, env=s3.ENV):
    """The rows on the bucket, by name. No cell is run: it takes seconds, and says nothing of a bucket."""
    code, out, _ = retort.call("doctor", "--json", "--python", "/nowhere", "--blobs", f"s3://{bucket}/p",
                               "--s3-endpoint", server.url, env={**os.environ, **env})
    assert code == 1  # without a Python
    return {row["name"]: row for row in json.loads(out)["rows"] if row["section"] == "Bucket"}


def bad(found):
    return {name for name, row in found.items() if row["state"] == "missing"}


def test_one_that_is_well(store):
    found = rows(store)
    assert not bad(found)
    assert list(found) == ["bucket", "bucket: TLS", "bucket: clock", "bucket: to write", "bucket: to read", "bucket: to list",
                           "bucket: uploads", "bucket: to remove"]
    assert "on this machine" in found["bucket: TLS"]["detail"] and not list(store.bucket.rglob("retort.doctor"))


@pytest.mark.parametrize("method, path, name", [
    ("PUT", "retort.doctor", "bucket: to write"), ("GET", "retort.doctor", "bucket: to read"), ("DELETE", "retort.doctor", "bucket: to remove"),
    ("GET", "uploads=", "bucket: uploads")])
def test_a_right_that_is_missing(between, method, path, name):
    between.fault(lambda r: 403 if r.method == method and path in r.path else None)
    found = rows(between)
    assert name in bad(found) and "403 AccessDenied" in found[name]["detail"] and "s3:" in found[name]["remedy"]


def test_a_wrong_key_bucket_or_address(store):
    assert bad(rows(store, env={**s3.ENV, "AWS_SECRET_ACCESS_KEY": "another"})) == {"bucket"}
    assert bad(rows(store, bucket="no-such-bucket")) == {"bucket"}
    assert "need a key" in rows(store, env={**s3.ENV, "AWS_ACCESS_KEY_ID": ""})["bucket"]["detail"]
    with s3.S3() as gone:
        gone.kill()
        found = rows(gone)
    assert list(found) == ["bucket"] and "does not answer" in found["bucket"]["detail"]


def test_a_clock_that_is_wrong(between):
    def yesterday(status, headers, body):
        return status, {**headers, "Date": "Mon, 01 Jun 2020 00:00:00 GMT"}, body, len(body)
    between.fault(lambda r: yesterday)
    found = rows(between)
    assert "bucket: clock" in bad(found) and "behind this machine's" in found["bucket: clock"]["detail"]
