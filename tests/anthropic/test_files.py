"""Section 6: the Files API, shape by shape. Named after its rows."""

import os
import sqlite3
import time
from datetime import datetime
from urllib.parse import quote

import pytest

from api import Api, refused
from support import retort
from support.server import TIME, Server

MEMBERS = {"id", "type", "filename", "mime_type", "size_bytes", "created_at", "downloadable", "expires_at",
           "scope"}
SHAPE = {"data", "next_page", "has_more", "first_id", "last_id"}


def ids(page):
    return [f["id"] for f in page["data"]]


def test_6_1_metadata_serves_every_version(api):
    made = api.upload()
    assert set(made) == MEMBERS and made["id"].startswith("file_")
    assert [made[k] for k in ("type", "filename", "mime_type", "size_bytes", "downloadable", "expires_at", "scope")] \
        == ["file", "data.csv", "text/csv", 8, False, None, None]
    assert TIME.fullmatch(made["created_at"])
    assert api.get("/v1/files/" + made["id"]).expect(200).json == made


@pytest.mark.parametrize("sent, kept", [
    ("../../etc/passwd", "passwd"), ("/a/b/c.csv", "c.csv"), ("mein ü.txt", "mein ü.txt"), ("n" * 255, "n" * 255),
    ("", "unnamed"), ("folder/", "unnamed")])
def test_6_2_names_that_are_kept(api, sent, kept):
    assert api.upload(sent)["filename"] == kept


@pytest.mark.parametrize("sent", [*(f"a{c}b" for c in "<>:|?*\\"), "a\tb", "n" * 256, "..", b"\xff.txt"])
def test_6_2_names_that_are_refused(api, sent):
    refused(api.send(("file", sent, b"x")), 400)


def test_6_2_a_part_without_a_name(api):
    made = api.upload(None, b"some text")
    assert (made["filename"], made["size_bytes"]) == ("unnamed", 9)


def test_6_2_the_type_names_the_unnamed(api):
    body = (b'--B\r\nContent-Disposition: form-data; name="file"; filename=""\r\n'
            b"Content-Type: application/json; charset=utf-8\r\n\r\n{}\r\n--B--\r\n")
    made = api.post("/v1/files", bytes=body, headers={"Content-Type": 'multipart/form-data; boundary="B"'})
    assert (made.json["filename"], made.json["mime_type"]) == ("unnamed.json", "application/json")


def test_6_2_expiry(api):
    made = api.upload("e.txt", b"x", ("expires_in_seconds", None, b"3600"))
    left = datetime.fromisoformat(made["expires_at"]).timestamp() - time.time()
    assert 3500 < left <= 3600
    api.upload("e.txt", b"x", ("expires_in_seconds", None, b"7776000"))


@pytest.mark.parametrize("value", [b"3599", b"7776001", b"", b"0", b"-1", b"1e4", b"3600.5", b"9" * 40])
def test_6_2_expiries_that_cannot_be(api, value):
    assert "expires_in_seconds" in refused(api.send(("file", "a", b"x"), ("expires_in_seconds", None, value)), 400)


def test_6_2_what_else_the_form_has_is_left_alone(api):
    assert api.upload("a.txt", b"x", ("purpose", None, b"assistants"), ("other", "b.bin", b"y"))["filename"] == "a.txt"


def test_6_2_a_form_without_a_file(api):
    assert "file" in refused(api.send(("other", "a", b"x")), 400)
    refused(api.post("/v1/files", {"file": "x"}), 415)
    refused(api.post("/v1/files", bytes=b"--B", headers={"Content-Type": "multipart/form-data; boundary=B"}), 400)


def test_6_2_too_large(api):
    refused(api.send(("file", "big", bytes(1 << 20) + b"x")), 413)
    assert api.upload("fits", bytes((1 << 20) - 1000))["size_bytes"] == (1 << 20) - 1000


def test_6_2_too_large_and_not_told_before(server):
    """Without a length the refusal comes in the middle of the body."""
    piece = b"10000\r\n" + bytes(65536) + b"\r\n"
    head = (b"POST /anthropic/v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=B\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n")
    part = b'--B\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
    said = server.raw(head, b"%x\r\n%s\r\n" % (len(part), part), *[piece] * 40)
    assert said.startswith(b"HTTP/1.1 413 ") and b"\r\nrequest-id: req_" in said, said[:500]
    assert b'"type":"request_too_large"' in said


def test_6_3_pages_in_both_shapes(api):
    mine = [api.upload(f"p{i}.txt")["id"] for i in range(5)][::-1]
    page = api.list("?limit=2")
    assert set(page) == SHAPE and ids(page) == mine[:2] and page["has_more"] is True
    assert (page["first_id"], page["last_id"]) == (mine[0], mine[1])
    assert ids(api.list(f"?limit=2&page={page['next_page']}")) == mine[2:4]
    assert ids(api.list(f"?limit=2&after_id={page['last_id']}")) == mine[2:4]
    back = api.list(f"?limit=2&before_id={mine[4]}")
    assert ids(back) == mine[2:4] and back["has_more"] is True and back["next_page"] is None
    back = api.list(f"?limit=2&before_id={back['first_id']}")
    assert ids(back) == mine[:2] and back["has_more"] is False


def test_6_3_every_file_once(api):
    mine = {api.upload(f"{i}")["id"] for i in range(25)}
    assert len(api.list()["data"]) == 20
    for key, cursor in (("page", "next_page"), ("after_id", "last_id")):
        seen, query = [], "?limit=7"
        while query:
            page = api.list(query)
            seen += ids(page)
            assert bool(page["next_page"]) == page["has_more"]
            query = page["has_more"] and f"?limit=7&{key}={page[cursor]}"
        assert len(seen) == len(set(seen)) and mine <= set(seen)


def test_6_3_a_page_goes_on_after_what_was_deleted(api):
    mine = [api.upload(f"{i}")["id"] for i in range(4)][::-1]
    page = api.list("?limit=2")
    for one in ids(page):
        api.delete("/v1/files/" + one).expect(200)
    assert ids(api.list(f"?limit=2&page={page['next_page']}")) == mine[2:]
    assert ids(api.list(f"?limit=2&after_id={page['last_id']}")) == mine[2:]


def test_6_3_by_ids(api):
    a, b = api.upload("a")["id"], api.upload("b")["id"]
    wanted = [a, "file_01missing", b, a]
    for name in ("ids[]", quote("ids[]"), "ids"):
        page = api.list("?beta=true&" + "&".join(f"{name}={one}" for one in wanted))
        assert ids(page) == [b, a] and page["next_page"] is None and page["has_more"] is False
    hundred = "&".join(f"{quote('ids[]')}=file_{i:028d}" for i in range(99))
    assert ids(api.list(f"?{hundred}&ids[]={a}")) == [a]
    assert "100" in refused(api.get(f"/v1/files?{hundred}&ids[]={a}&ids[]={b}"), 400)
    for more in ("limit=2", "page=page_" + a, "after_id=" + a):
        refused(api.get(f"/v1/files?ids[]={a}&{more}"), 400)


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "limit=-1", "limit=1x", "page=file_1",
                                   "page=page_", "page=page_file_x", "after_id=x", "before_id=sess_1",
                                   "after_id=file_0123456789abcdefghjkmnpqrs%2f%2e",
                                   "after_id=file_{0}&before_id=file_{0}".format("0" * 28)])
def test_6_3_queries_that_cannot_be(api, query):
    refused(api.get("/v1/files?" + query), 400)


def test_6_3_what_else_is_in_a_query_is_left_alone(api):
    made = api.upload()
    assert ids(api.list("?beta=true&workspace_id=w&limit=1&order=desc")) == [made["id"]]
    assert api.list("?scope_id=session_1")["data"] == []
    assert ids(api.list("?limit=1000"))[0] == made["id"]


def test_6_4_uploads_cannot_be_downloaded(api):
    made = api.upload()
    refused(api.get(f"/v1/files/{made['id']}/content"), 400, "file_not_downloadable")


def test_6_4_delete(api):
    made = api.upload()
    path = "/v1/files/" + made["id"]
    assert api.delete(path).expect(200).json == {"id": made["id"], "type": "file_deleted"}
    for method, rest in (("GET", ""), ("GET", "/content"), ("DELETE", "")):
        assert refused(api.ask(method, path + rest), 404) == f"File `{made['id']}` not found."
    refused(api.get("/v1/files/file_01missing"), 404)
    refused(api.get("/v1/files/" + "x" * 300), 404)


def test_6_4_what_has_expired_is_told_apart(server, api):
    made = api.upload("old.txt", b"x", ("expires_in_seconds", None, b"3600"))
    with sqlite3.connect(server.state / "retort.db", timeout=10) as db:
        db.execute("UPDATE files SET expires_ms = 1 WHERE id = ?", [made["id"]])
    db.close()
    path = "/v1/files/" + made["id"]
    for rest in ("", "/content"):
        refused(api.get(path + rest), 404, "file_expired")
    assert made["id"] not in ids(api.list("?limit=1000")) and ids(api.list("?ids[]=" + made["id"])) == []
    answer = server.client().post("/v1/execute", {"code": "1", "files": [{"id": made["id"]}]})
    assert answer.status == 404 and "expired" in answer.text
    assert api.delete(path).expect(200).json["type"] == "file_deleted"
    refused(api.get(path), 404)


def test_6_files_are_those_of_the_other_doors(server, api):
    made = api.upload("table.csv", b"1,2\n")
    with server.client() as c:
        assert c.get("/v1/files/" + made["id"]).expect(200).json["name"] == "table.csv"
        assert c.get(f"/v1/files/{made['id']}/content").expect(200).body == b"1,2\n"
        ran = c.post("/v1/execute", {"code": "print(open('table.csv').read())",
                                     "files": [{"id": made["id"]}]}).expect(200).json
        assert ran["stdout"] == "1,2\n\n"


@pytest.fixture(scope="module")
def house():
    """With keys, two models, little room for each tenant, and uploads that can be downloaded."""
    models = "".join(f"[model {name}]\nurl = http://127.0.0.1:1/v1\n" for name in ("fast", "wise"))
    with Server("--tenant-files", "20k", "--anthropic-download-uploads", "--ready", "0", "--model-tenants", "two=wise",
                config=models) as server:
        keys = [server.keys("create", "--tenant", name, "--quiet").strip() for name in ("one", "two")]
        server.process.send_signal(1)
        with server.client() as c:
            retort.wait_until(lambda: c.get("/v1/files").status == 401, "the keys")
        with Api(server, keys[0]) as one, Api(server, keys[1]) as two:
            yield server, one, two


def test_6_4_uploads_can_be_downloaded_where_the_operator_says_so(house):
    _, one, _ = house
    data = os.urandom(300)
    made = one.upload('naïve (1).bin', data)
    assert made["downloadable"] is True and made["mime_type"] == "application/octet-stream"
    answer = one.get(f"/v1/files/{made['id']}/content", headers={"accept": "application/binary"}).expect(200)
    assert answer.body == data and answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == "attachment; filename*=utf-8''na%C3%AFve%20%281%29.bin"
    assert one.ask("HEAD", f"/v1/files/{made['id']}/content").expect(200).body == b""
    one.delete("/v1/files/" + made["id"]).expect(200)


def test_6_2_quota(house):
    _, one, two = house
    made = one.upload("a", bytes(15000))
    refused(one.send(("file", "b", bytes(6000))), 400, "storage_quota_exceeded")
    two.upload("b", bytes(6000))
    one.delete("/v1/files/" + made["id"]).expect(200)
    one.upload("b", bytes(6000))


def test_7_tenants_are_apart(house):
    _, one, two = house
    mine, theirs = one.upload("mine", b"1"), two.upload("theirs", b"2")
    assert theirs["id"] not in ids(one.list()) and mine["id"] in ids(one.list())
    assert ids(one.list(f"?ids[]={theirs['id']}&ids[]={mine['id']}")) == [mine["id"]]
    for method, rest in (("GET", ""), ("GET", "/content"), ("DELETE", "")):
        refused(one.ask(method, f"/v1/files/{theirs['id']}{rest}"), 404)
    # a cursor is a place in one's own list, whoever's it is
    assert theirs["id"] not in ids(one.list("?before_id=" + mine["id"]))
    two.get("/v1/files/" + theirs["id"]).expect(200)


def test_1_1_the_models_that_a_tenant_may_name(house):
    for api, names in zip(house[1:], (["fast", "wise"], ["wise", "fast"])):
        page = api.get("/v1/models").expect(200).json
        assert [m["id"] for m in page["data"]] == names
        assert (page["first_id"], page["last_id"], page["has_more"]) == (names[0], names[1], False)
        assert api.get("/v1/models/wise").expect(200).json["id"] == "wise"


@pytest.mark.parametrize("headers", [
    {"x-api-key": "KEY"}, {"Authorization": "Bearer KEY"}, {"x-api-key": "", "Authorization": "Bearer KEY"}])
@pytest.mark.parametrize("version", ["2023-06-01", "2026-10-21", None])
def test_1_2_a_key_in_either_header_and_any_version(house, headers, version):
    server, one, _ = house
    key = one.client.headers["Authorization"].split()[1]
    sent = {k: v.replace("KEY", key) for k, v in headers.items()}
    sent |= {"anthropic-version": version} if version else {}
    answer = server.client(**sent).get("/anthropic/v1/files?beta=true&limit=1").expect(200)
    assert answer.headers["request-id"].startswith("req_")


@pytest.mark.parametrize("headers", [{}, {"x-api-key": "bad"}, {"Authorization": "Bearer bad"}, {"x-api-key": ""}])
def test_5_2_without_a_key(house, headers):
    refused(house[0].client(**headers).get("/anthropic/v1/files"), 401)
