"""Files: uploaded once, used in many sessions."""

import hashlib
import os

import pytest

from support.server import Server, TIME

FLAGS = ["--file-size", "8M"]
MEMBERS = {"id", "object", "name", "mime", "size", "sha256", "created_at", "expires_at"}


def test_upload(client):
    data = os.urandom(50_000)
    made = client.form("/v1/files", ("file", "data.csv", data)).expect(201).json
    assert set(made) == MEMBERS and made["id"].startswith("file_") and made["object"] == "file"
    assert (made["name"], made["size"]) == ("data.csv", len(data))
    assert made["sha256"] == hashlib.sha256(data).hexdigest()
    assert TIME.fullmatch(made["created_at"])
    assert client.get("/v1/files/" + made["id"]).expect(200).json == made
    answer = client.get(f"/v1/files/{made['id']}/content").expect(200)
    assert answer.body == data and "data.csv" in answer.headers["content-disposition"]
    part = client.get(f"/v1/files/{made['id']}/content", headers={"Range": "bytes=10-19"}).expect(206)
    assert part.body == data[10:20]
    client.delete("/v1/files/" + made["id"]).expect(204)
    for method, rest in (("GET", ""), ("GET", "/content"), ("DELETE", "")):
        client.request(method, f"/v1/files/{made['id']}{rest}").refused(404)


def test_name_of_ones_own(client):
    made = client.form("/v1/files", ("name", None, "mein ü.txt".encode()), ("file", "x", b"1")).expect(201)
    assert made.json["name"] == "mein ü.txt"


@pytest.mark.parametrize("sent, kept", [("C:\\dir\\a.txt", "a.txt"), ("../../etc/passwd", "passwd"),
                                        ("/etc/shadow", "shadow")])
def test_only_the_last_part_of_a_name(client, sent, kept):
    assert client.form("/v1/files", ("file", sent, b"x")).expect(201).json["name"] == kept


@pytest.mark.parametrize("parts", [
    [("other", "x", b"1")], [("name", None, b"x")], [("file", "a", b"1"), ("file", "b", b"2")],
    [("file", "a/", b"1")], [("file", "n" * 256, b"1")], [("file", "a", b"1"), ("more", None, b"x")]])
def test_forms_that_cannot_be(client, parts):
    client.form("/v1/files", *parts).refused(400)


def test_by_data_url(client):
    made = client.post("/v1/files", {"url": "data:text/csv,a%0A1", "name": "d.csv"}).expect(201).json
    assert (made["name"], made["size"], made["mime"]) == ("d.csv", 3, "text/csv")
    assert client.get(f"/v1/files/{made['id']}/content").expect(200).body == b"a\n1"


@pytest.mark.parametrize("body, param", [({}, "url"), ({"url": 1}, "url"), ({"url": "data:,x", "x": 1}, "x")])
def test_urls_said_wrongly(client, body, param):
    client.post("/v1/files", body).refused(400, param)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/a", "http://169.254.169.254/latest/meta-data",
                                 "http://[::1]/", "http://10.0.0.1/", "file:///etc/passwd",
                                 "http://localhost:22/"])
def test_urls_that_lead_inside(client, url):
    client.post("/v1/files", {"url": url}).refused(400)


def test_list(client):
    ids = [client.form("/v1/files", ("file", f"{i}", b"x")).expect(201).json["id"] for i in range(3)][::-1]
    page = client.get("/v1/files?limit=2").expect(200).json
    assert [f["id"] for f in page["data"]] == ids[:2] and page["has_more"] is True
    assert all(set(f) == MEMBERS for f in page["data"])
    rest = client.get("/v1/files?limit=1&after=" + page["last_id"]).expect(200).json
    assert [f["id"] for f in rest["data"]] == ids[2:]


def test_the_same_bytes_twice(client):
    one = client.form("/v1/files", ("file", "a", b"same")).expect(201).json
    two = client.form("/v1/files", ("file", "b", b"same")).expect(201).json
    assert one["id"] != two["id"] and one["sha256"] == two["sha256"]
    client.delete("/v1/files/" + one["id"]).expect(204)
    assert client.get(f"/v1/files/{two['id']}/content").expect(200).body == b"same"


def test_too_large(client, session):
    client.form("/v1/files", ("file", "big", b"x" * (8 * 2**20 + 1))).refused(413)
    client.put(session.file("big"), b"x" * (8 * 2**20 + 1)).refused(413)
    assert session.files() == {}
    made = client.form("/v1/files", ("file", "fits", b"x" * (8 * 2**20))).expect(201).json
    assert made["size"] == 8 * 2**20


def test_no_such_file(client):
    for id, status in (("file_aaaaaaaaaaaaaaaaaaaaaaaaaaaa", 404), ("x", 404), ("sess_x", 404),
                       ("file_" + "a" * 2000, 404), ("..%2f..%2fx", 400)):
        for method, rest in (("GET", ""), ("GET", "/content"), ("DELETE", "")):
            client.request(method, f"/v1/files/{id}{rest}").refused(status)


@pytest.mark.once
def test_memory_is_flat_while_large_files_come_and_go():
    """Half a gigabyte each way, as fast as it will go."""
    size, piece = 512 * 2**20, os.urandom(2**20)
    with Server("--file-size", "1G") as server, server.client() as c:
        c.form("/v1/files", ("file", "small", b"x")).expect(201)
        before = server.resident()
        kind = "multipart/form-data; boundary=b"
        head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="big"\r\n\r\n'
        tail = b"\r\n--b--\r\n"
        most = 0

        def pieces():
            nonlocal most
            yield head
            for i in range(size // len(piece)):
                yield piece
                if i % 16 == 0:
                    most = max(most, server.resident())
            yield tail

        made = c.request("POST", "/v1/files", body=pieces(), headers={
            "Content-Type": kind, "Content-Length": str(len(head) + size + len(tail))}).expect(201).json
        want = hashlib.sha256()
        for _ in range(size // len(piece)):
            want.update(piece)
        assert made["size"] == size and made["sha256"] == want.hexdigest()
        response = c.begin("GET", f"/v1/files/{made['id']}/content")
        got, seen = hashlib.sha256(), 0
        while data := response.read(2**20):
            got.update(data)
            seen += 1
            if seen % 16 == 0:
                most = max(most, server.resident())
        assert got.hexdigest() == want.hexdigest()
        assert most - before < 16 * 1024
