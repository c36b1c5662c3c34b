"""Files of a workspace: in, out, by range, as one archive; names of every kind."""

import hashlib
import io
import os
import pathlib
import tarfile
import time
import zipfile

import pytest

from support import retort
from support.server import TIME, quote

MEMBERS = {"path", "size", "mime", "modified_at", "sha256", "url"}
NAMES = [b"plain.txt", b"with space.txt", b"new\nline", "ü\u2028\U0001f600.csv".encode(), b"\xff\xfe.bin",
         b"n" * 255, b"a/b/c/deep.txt", b"%2e%2e%2fx", b"-rf", b"q?u#e&r=y+;:@", b"'\"\\", b"...", b"a.tar.gz",
         b"\x01\x7f", b"/".join([b"d" * 100] * 9)]


def digest(data):
    return hashlib.sha256(data).hexdigest()


def test_put_and_get(session, client):
    data = os.urandom(100_000)
    made = session.put("dir/data.bin", data)
    assert set(made) == MEMBERS
    assert (made["path"], made["size"], made["sha256"]) == ("dir/data.bin", len(data), digest(data))
    assert TIME.fullmatch(made["modified_at"])
    answer = client.get(made["url"]).expect(200)
    assert answer.body == data
    assert digest(data) in answer.headers["etag"]
    assert "data.bin" in answer.headers["content-disposition"]
    assert session.run("import hashlib; hashlib.sha256(open('dir/data.bin','rb').read()).hexdigest()")[
        "result"] == repr(digest(data))


def test_put_replaces(session):
    session.put("f", b"one")
    session.put("f", b"two!")
    assert session.read("f") == b"two!" and len(session.files()) == 1
    assert session.run("open('f').read()")["result"] == "'two!'"


def test_empty_file(session):
    assert session.put("empty", b"")["size"] == 0
    assert session.read("empty") == b""
    assert session.run("open('empty').read()")["result"] == "''"


def test_uploads_are_no_news(session):
    session.put("mine.txt", b"x")
    assert session.run("1")["files"] == []


def test_mime_types(session):
    want = {"a.csv": "text/csv", "a.png": "image/png", "a.json": "application/json",
            "a.unknown-thing": "application/octet-stream"}
    for path, mime in want.items():
        assert session.put(path, b"x")["mime"] == mime
        assert session.client.get(session.file(path)).headers["content-type"].split(";")[0] == mime


def test_a_file_is_no_page_of_ours(session, client):
    """What code makes must not run as a page of the server's origin."""
    session.put("evil.html", b"<script>alert(1)</script>")
    headers = client.get(session.file("evil.html")).expect(200).headers
    assert headers["content-disposition"].startswith("attachment")
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("name", NAMES, ids=[ascii(n)[:24] for n in NAMES])
def test_names_of_uploads(session, client, name):
    client.put(session.file(name), name).expect(201)
    assert client.get(session.file(name)).expect(200).body == name
    assert session.run(f"open({name!r}, 'rb').read()")["result"] == repr(name)
    urls = [f["url"] for f in session.files().values()]
    assert len(urls) == 1 and client.get(urls[0]).expect(200).body == name
    client.delete(urls[0]).expect(204)
    assert session.files() == {}


@pytest.mark.parametrize("name", NAMES, ids=[ascii(n)[:24] for n in NAMES])
def test_names_of_files_made(session, client, name):
    done = session.run("import os\n" f"n = {name!r}\nos.makedirs(os.path.dirname(n) or b'.', exist_ok=True)\n"
                       "open(n, 'wb').write(n);")
    assert done["status"] == "ok" and len(done["files"]) == 1, done
    urls = [f["url"] for f in session.files().values()]
    assert len(urls) == 1 and client.get(urls[0]).expect(200).body == name


def test_a_name_too_long(session, client):
    client.put(session.file("n" * 256), b"x").refused(400)


def test_private_files_of_the_code(session, client):
    session.run("import os\nopen('p', 'w').write('private'); os.chmod('p', 0o600)\n"
                "os.makedirs('d/e'); open('d/e/f', 'w').write('deep'); os.chmod('d', 0o700)\n"
                "open('none', 'w').write('none'); os.chmod('none', 0);")
    assert session.read("p") == b"private"
    assert session.read("d/e/f") == b"deep"
    assert session.run("open('p').read(), oct(os.stat('p').st_mode & 0o777)")["result"] == \
        "('private', '0o600')"


def test_what_is_no_file_is_not_there(session, client):
    session.run("import os, socket\nos.mkfifo('fifo'); os.symlink('/etc/passwd', 'link')\n"
                "os.symlink('real', 'inner'); open('real', 'w').write('x')\n"
                "s = socket.socket(socket.AF_UNIX); s.bind('sock'); os.mkdir('dir');")
    assert set(session.files()) == {"real"}
    for name in ("fifo", "link", "inner", "sock", "dir"):
        client.get(session.file(name)).refused(404)


def test_a_file_in_the_place_of_a_folder(session, client):
    session.put("a", b"file")
    client.put(session.file("a/b"), b"x").refused(409)
    session.put("d/x", b"1")
    client.put(session.file("d"), b"x").refused(409)
    assert session.read("a") == b"file" and session.read("d/x") == b"1"


# --- ranges and caches ---

def test_ranges(session, client):
    session.put("f", b"0123456789")
    url = session.file("f")
    for asked, part, shown in (("bytes=0-3", b"0123", "0-3"), ("bytes=7-", b"789", "7-9"),
                               ("bytes=-2", b"89", "8-9"), ("bytes=5-500", b"56789", "5-9")):
        answer = client.get(url, headers={"Range": asked}).expect(206)
        assert answer.body == part and answer.headers["content-range"] == f"bytes {shown}/10"
    answer = client.get(url, headers={"Range": "bytes=10-"})
    answer.refused(416)
    assert answer.headers["content-range"] == "bytes */10"
    assert client.get(url).headers["accept-ranges"] == "bytes"


def test_not_modified(session, client):
    session.put("f", b"one")
    etag = client.get(session.file("f")).headers["etag"]
    for value in (etag, "*", f'"x", {etag}', "W/" + etag):
        answer = client.get(session.file("f"), headers={"If-None-Match": value}).expect(304)
        assert answer.body == b"" and answer.headers["etag"] == etag
    session.put("f", b"two")
    assert client.get(session.file("f"), headers={"If-None-Match": etag}).expect(200).body == b"two"


def test_head(session, client):
    session.put("f", b"0123456789")
    answer = client.request("HEAD", session.file("f")).expect(200)
    assert answer.body == b"" and answer.headers["content-length"] == "10"
    assert client.get("/health").status == 200


# --- forms ---

def test_form(session, client):
    listed = client.form(session.path + "/files", ("file", "a.txt", b"one"),
                         ("other", "sub/b.bin", b"\0\r\n--x")).expect(201).json["data"]
    assert [(f["path"], f["size"]) for f in listed] == [("a.txt", 3), ("sub/b.bin", 6)]
    assert session.read("sub/b.bin") == b"\0\r\n--x"
    assert session.run("open('a.txt').read()")["result"] == "'one'"


def test_form_into_a_folder(session, client):
    client.form(session.path + "/files", ("path", None, b"in/here"), ("file", "a", b"1"),
                ("file", "ü b", b"2")).expect(201)
    assert set(session.files()) == {"in/here/a", "in/here/ü b"}


@pytest.mark.parametrize("parts, status", [
    ([("file", "../up", b"x")], 400), ([("file", "/etc/x", b"x")], 400),
    ([("file", "ok", b"x"), ("file", "a/../../b", b"x")], 400), ([("path", None, b"only")], 400),
    ([("path", None, b"../.."), ("file", "a", b"x")], 400), ([("file", "", b"x")], 400),
    ([("colour", None, b"red"), ("file", "a", b"x")], 400)])
def test_forms_that_cannot_be(session, client, parts, status):
    client.form(session.path + "/files", *parts).refused(status)
    assert session.files() == {}


def test_form_of_something_else(session, client):
    url = session.path + "/files"
    client.post(url, {"a": 1}).refused(415)
    client.request("POST", url, body=b"x", headers={"Content-Type": "multipart/form-data"}).refused(400)
    for body in (b"", b"--b", b"--b\r\n", b"--b\r\n\r\nx", b"--b\r\nContent-Disposition: form-data; "
                 b"name=\"f\"; filename=\"a\"\r\n\r\nno end", b"--b--"):
        answer = client.request("POST", url, body=body,
                                headers={"Content-Type": "multipart/form-data; boundary=b"})
        answer.refused(400)
    assert session.files() == {}


# --- delete ---

def test_delete(session, client):
    session.put("a/b", b"x")
    client.delete(session.file("a/b")).expect(204)
    client.delete(session.file("a/b")).refused(404)
    client.get(session.file("a/b")).refused(404)
    assert session.run("import os; os.path.exists('a/b')")["result"] == "False"
    assert session.run("1")["files"] == []


# --- archives ---

def test_archives(session, client):
    content = {b"a.txt": b"one", b"d/\xc3\xbc\n.bin": os.urandom(70_000), b"empty": b"",
               b"n" * 200: b"long", b"/".join([b"p" * 90] * 5): b"longer"}
    for name, data in content.items():
        client.put(session.file(name), data).expect(201)
    answer = client.get(session.path + "/workspace").expect(200)
    assert answer.headers["content-type"] == "application/x-tar"
    with tarfile.open(fileobj=io.BytesIO(answer.body), encoding="utf-8", errors="surrogateescape") as tar:
        found = {os.fsencode(m.name): tar.extractfile(m).read() for m in tar if m.isfile()}
    assert found == content
    answer = client.get(session.path + "/workspace?format=zip").expect(200)
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.body)) as z:
        assert z.testzip() is None
        assert {n.encode(): z.read(n) for n in z.namelist()} == content
    client.get(session.path + "/workspace?format=rar").refused(400, "format")


def test_no_backslash_in_an_archive(session, client):
    """Windows takes one for a slash, and "..\\" would lead out of the folder."""
    session.run(r"open('..\\..\\evil', 'w').write('1'); open('C:\\x', 'w').write('2')")
    answer = client.get(session.path + "/workspace?format=zip").expect(200)
    with zipfile.ZipFile(io.BytesIO(answer.body)) as z:
        assert sorted(z.namelist()) == ["..%5C..%5Cevil", "C:%5Cx"]
        assert z.read("..%5C..%5Cevil") == b"1"
    answer = client.get(session.path + "/workspace?format=tar").expect(200)
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as t:
        assert sorted(t.getnames()) == ["..%5C..%5Cevil", "C:%5Cx"]


def test_archive_of_nothing(session, client):
    with tarfile.open(fileobj=io.BytesIO(client.get(session.path + "/workspace").expect(200).body)) as tar:
        assert tar.getnames() == []
    body = client.get(session.path + "/workspace?format=zip").expect(200).body
    assert zipfile.ZipFile(io.BytesIO(body)).namelist() == []


def test_archive_of_names_that_are_no_utf8(session, client):
    client.put(session.file(b"\xff\xfe"), b"x").expect(201)
    body = client.get(session.path + "/workspace").expect(200).body
    with tarfile.open(fileobj=io.BytesIO(body), errors="surrogateescape") as tar:
        assert [os.fsencode(n) for n in tar.getnames()] == [b"\xff\xfe"]
    assert zipfile.ZipFile(io.BytesIO(client.get(session.path + "/workspace?format=zip").body)).testzip() is None


# --- paths that lead out ---

OUT = ["../x", "..", "a/../../x", "/etc/passwd", "//etc/passwd", "%2e%2e/x", "%2e%2e%2fx", "..%2fx",
       ".%2e/x", "%2fetc%2fpasswd", "a%00b", "a%0", "a%zz", "./../x", "/workspace/../x",
       "/mnt/data/../x", "a/", "", "."]


@pytest.mark.parametrize("path", OUT)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_paths_that_lead_out(session, client, method, path):
    answer = client.request(method, f"{session.path}/files/{path}",
                            body=b"x" if method == "PUT" else None)
    answer.refused(400 if path else 404)
    assert b"root:" not in answer.body
    assert session.files() == {}


@pytest.mark.parametrize("path", ["%252e%252e%252fx", "..%252fx", "%25%32%65%25%32%65/x"])
def test_escapes_are_decoded_once(session, client, path):
    made = client.put(f"{session.path}/files/{path}", b"x").expect(201).json
    assert list(session.files()) == [made["path"]] and ".." not in made["path"].split("/")
    assert session.run("import os; os.path.exists('../x')")["result"] == "False"


def test_prefixes_of_a_workspace(session, client):
    for path in ("/workspace/a", "%2Fworkspace%2Fb", "/mnt/data/c"):
        client.put(f"{session.path}/files/{path}", b"x").expect(201)
    assert set(session.files()) == {"a", "b", "c"}


def test_links_are_not_followed(session, client):
    session.run("import os\nos.symlink('/etc', 'etc'); os.symlink('/', 'root'); os.symlink('..', 'up')\n"
                "os.symlink('/proc/self/root/etc/passwd', 'magic'); os.mkdir('d')\n"
                "os.symlink('/tmp/escaped', 'to'); os.symlink('d', 'inner');")
    for path in ("etc/passwd", "root/etc/passwd", "up/etc/passwd", "magic", "to", "inner/x"):
        for method in ("GET", "DELETE"):
            answer = client.request(method, f"{session.path}/files/{path}")
            answer.refused(404)
            assert b"root:" not in answer.body
    client.put(f"{session.path}/files/etc/evil", b"x").refused(409)
    client.put(f"{session.path}/files/to", b"x").expect(201)  # replaces the link
    assert not os.path.exists("/tmp/escaped") and not os.path.exists("/etc/evil")


def test_a_path_too_deep(session, client):
    answer = client.put(session.file("/".join("d" * 200)), b"x")
    answer.refused(400, "path")


def test_the_disk_has_an_end(session, client):
    answer = client.put(session.file("big"), b"x" * 80_000_000)
    answer.refused(413)
    assert "big" not in session.files()
    assert session.run("import os; os.path.exists('big')")["result"] == "False"


def test_quote_is_ours():
    assert quote(b"\xff/\n") == "%FF/%0A"


def test_holes_take_no_room(server):
    """Files without data become blobs without data, and come back as they were."""
    def room():
        blobs = pathlib.Path(server.state) / "blobs"
        return sum(f.stat().st_blocks * 512 for f in blobs.rglob("*") if f.is_file())

    with server.client() as client, client.session() as made:
        before = room()
        made.run("for i in range(8):\n with open(f'hole{i}', 'wb') as f:\n"
                 "  f.truncate((6 << 20) + i); f.seek(3 << 20); f.write(b'data')")
        assert made.files()["hole7"]["size"] == (6 << 20) + 7
        assert room() - before < 1 << 20
        client.post(made.path + "/restart").expect(200)
        said = made.run("import os; s = os.stat('hole3'); f = open('hole3', 'rb'); f.seek(3 << 20);"
                        "print(s.st_size, f.read(6), s.st_blocks < 100)")
        assert said["stdout"] == "%d b'data\\x00\\x00' True\n" % ((6 << 20) + 3)


def test_what_holes_count(server):
    """Bytes of one execution beyond the disk's limit are not kept, data or not, and this is said."""
    with server.client() as client, client.session() as made:
        answer = made.run("for i in range(20):\n open(f'h{i}', 'wb').truncate(10 << 20)")
        kept = [f for f in made.files().values() if f["path"].startswith("h")]
        assert len(kept) == 6  # of 64 MiB
        assert any("is not kept" in e.get("text", "") for e in answer["events"])


@pytest.mark.parametrize("asleep", [False, True])
def test_move(client, asleep):
    with client.session() as s:
        s.shell("mkdir d; printf one > a.txt; chmod 755 a.txt; printf two > d/b.txt; touch -d 2020-02-02T00:00:00Z a.txt")
        if asleep:
            client.post(s.path + "/extend", {"idle_timeout": 1}).expect(200)
            until = time.monotonic() + retort.SECONDS
            while s.get()["state"] != "asleep":
                assert time.monotonic() < until
                time.sleep(0.05)

        def move(path, to):
            return client.request("PATCH", s.file(path), {"path": to})

        moved = move("a.txt", "new folder/ä.txt").expect(200).json
        assert (moved["path"], moved["size"]) == ("new folder/ä.txt", 3)
        assert moved["modified_at"].startswith("2020-02-02")
        assert set(s.files()) == {"new folder/ä.txt", "d/b.txt"}
        assert s.read("new folder/ä.txt") == b"one"
        assert move("a.txt", "x").status == 404
        assert move("d/b.txt", "d/b.txt").expect(200).json["path"] == "d/b.txt"
        assert move("d/b.txt", "../x").status == 400
        move("d/b.txt", "new folder/ä.txt").expect(200)  # takes the place of what is there
        assert list(s.files()) == ["new folder/ä.txt"] and s.read("new folder/ä.txt") == b"two"
        ran = s.run("import os; print(os.path.exists('a.txt'), open('new folder/ä.txt').read())")
        assert ran["stdout"] == "False two\n" and ran["files"] == [], ran
