"""What goes out: JSON, errors, files and their ranges, streams, headers."""

import pytest


def test_json(server):
    answer = server.get("/tiny")
    assert (answer.status, answer.json) == (200, {"ok": True})
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


def test_every_answer_has_an_id_of_its_own(server):
    client = server.connect()
    ids = [client.get(path).read().headers["x-request-id"] for path in ("/tiny", "/nowhere")]
    assert len(set(ids)) == 2 and all(one.startswith("req_") for one in ids)


def test_an_answer_that_comes_later(server):
    client = server.connect()
    for _ in range(3):
        assert client.get("/later?ms=5").read().json == {"later": True}


def test_header_of_a_handler(server):
    answer = server.get("/headers", "User-Agent: me")
    assert answer.headers["x-made"] == "here"
    assert answer.json == {"agent": "me", "tenant": "default", "door": "test"}


@pytest.mark.parametrize("kind, status, type_", [
    ("caller", 400, "invalid_request"), ("missing", 404, "not_found"),
    ("conflict", 409, "conflict"), ("limit", 413, "too_large"), ("busy", 429, "busy"),
    ("denied", 403, "forbidden"), ("full", 507, "insufficient_storage")])
def test_errors(server, kind, status, type_):
    answer = server.get(f"/error/{kind}")
    assert answer.status == status
    assert answer.error == {"type": type_, "message": f"a secret \ufffd of {kind}", "param": "here",
                            "request_id": answer.headers["x-request-id"]}
    assert answer.headers.get("retry-after") == ("7" if kind == "busy" else None)


def test_our_own_failures_are_logged_not_told(serve):
    server = serve(v=1)
    answer = server.get("/error/host")
    assert answer.status == 500 and "secret" not in answer.body.decode()
    log = server.stop()
    assert "a secret" in log and answer.headers["x-request-id"] in log


def test_log_line(serve):
    server = serve(v=1)
    answer = server.get("/query?text=hidden")
    log = server.stop()
    line = [line for line in log.splitlines() if answer.headers["x-request-id"] in line]
    assert len(line) == 1 and " GET /query 200 " in line[0] and "hidden" not in line[0]


def test_head(server):
    client = server.connect()
    for path in ("/tiny", "/file", "/stream?count=1000000", "/later"):
        answer = client.get(path, method="HEAD").read(bodyless=True)
        assert answer.status == 200 and not client.data
    assert client.get("/tiny").read().json == {"ok": True}
    server.wait(kept=0)


# --- files ---

ABC = b"abcdefghijklmnopqrstuvwxyz"


def test_file(server):
    answer = server.get("/file")
    assert (answer.status, answer.body) == (200, ABC)
    assert answer.headers["etag"] == '"0123abcd"'
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["content-disposition"] == (
        'attachment; filename="na_me __.txt"; ' "filename*=UTF-8''na%22me%20%C3%A9.txt")
    assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("range_, status, body, content_range", [
    ("bytes=0-0", 206, ABC[:1], "bytes 0-0/26"),
    ("bytes=2-4", 206, ABC[2:5], "bytes 2-4/26"),
    ("bytes=20-", 206, ABC[20:], "bytes 20-25/26"),
    ("bytes=20-999", 206, ABC[20:], "bytes 20-25/26"),
    ("bytes=-3", 206, ABC[-3:], "bytes 23-25/26"),
    ("bytes=-999", 206, ABC, "bytes 0-25/26"),
    ("bytes=26-", 416, None, "bytes */26"),
    ("bytes=-0", 416, None, "bytes */26"),
    ("bytes=99-100", 416, None, "bytes */26"),
    ("bytes=5-2", 200, ABC, None),
    ("bytes=1-2,4-5", 200, ABC, None),
    ("bytes=", 200, ABC, None),
    ("bytes=-", 200, ABC, None),
    ("bytes=a-b", 200, ABC, None),
    ("bytes=99999999999999999999-", 416, None, "bytes */26"),
    ("lines=1-2", 200, ABC, None)])
def test_range(server, range_, status, body, content_range):
    answer = server.get("/file", f"Range: {range_}")
    assert (answer.status, answer.headers.get("content-range")) == (status, content_range)
    assert body is None or answer.body == body


def test_range_of_an_empty_file(server):
    assert server.get("/file?size=0").body == b""
    assert server.get("/file?size=0", "Range: bytes=0-").status == 416


@pytest.mark.parametrize("header, status", [
    ('If-None-Match: "0123abcd"', 304), ('If-None-Match: W/"0123abcd"', 304),
    ('If-None-Match: "other", "0123abcd"', 304), ("If-None-Match: *", 304),
    ('If-None-Match: "other"', 200), ("If-None-Match: 0123abcd", 200)])
def test_if_none_match(server, header, status):
    answer = server.get("/file", header)
    assert answer.status == status and answer.headers["etag"] == '"0123abcd"'


def test_if_range(server):
    assert server.get("/file", "Range: bytes=0-1", 'If-Range: "0123abcd"').status == 206
    assert server.get("/file", "Range: bytes=0-1", 'If-Range: "other"').status == 200
    assert server.get("/file?hash=0", "Range: bytes=0-1", 'If-Range: "other"').status == 200


def test_large_file(server):
    answer = server.get("/file?size=50000000")
    assert len(answer.body) == 50_000_000 and answer.body.startswith(ABC)


# --- streams ---


def test_stream(server):
    client = server.connect()
    answer = client.get("/stream?count=3&size=5").read()
    assert answer.body == b"xxxx\n" * 3
    assert client.get("/tiny").read().status == 200


def test_head_of_a_stream_comes_at_once(server):
    client = server.connect().get("/stream?count=1&ms=100000")
    assert "200 OK" in client.head()


def test_pieces_come_as_they_are_put(server):
    client = server.connect().get("/stream?count=3&ms=50&size=4")
    client.head()
    assert [client.chunk() for _ in range(4)] == [b"xxx\n"] * 3 + [b""]


def test_a_slow_reader_is_waited_for(server):
    client = server.connect().get("/flood?count=4000")
    client.head()
    before = server.memory()
    server.wait(kept=1)
    assert server.memory() - before < 30_000_000  # of 262 million that it will have sent
    size = 0
    while piece := client.chunk():
        size += len(piece)
    assert size == 4000 * 65536
    server.wait(kept=0)


def test_a_stream_that_breaks_off_does_not_look_whole(server):
    client = server.connect().get("/drop?late=1")
    assert not client.closed().endswith(b"0\r\n\r\n")


def test_dropped_without_an_answer(server):
    assert server.connect().get("/drop").closed() == b""


# --- clients that go away ---


def test_gone_while_it_waits(server):
    client = server.connect().get("/later?ms=3000&watch=1")
    server.wait(kept=1)
    client.close()
    server.wait(gone=1)
    server.wait(kept=0)


def test_gone_while_it_streams(server):
    client = server.connect().get("/stream?count=1000000&ms=5")
    client.head()
    client.close()
    server.wait(gone=1, kept=0)


def test_gone_while_a_stream_is_silent(server):
    client = server.connect().get("/stream?count=2&ms=100000")
    client.head()
    client.close()
    server.wait(gone=1, kept=0)


def test_gone_while_much_waits(server):
    client = server.connect().get("/flood?count=4000")
    client.head()
    server.wait(kept=1)
    client.close()
    server.wait(kept=0)


def test_one_that_closes_its_half_is_answered_at_once_or_gone(server):
    client = server.connect().get("/tiny")
    client.sock.shutdown(1)
    assert client.read().json == {"ok": True}
    assert client.closed() == b""  # and the connection is not kept for nobody
    server.wait(connections=1)
