"""Files by URL: what the server gets for a client, and what it does not."""

import base64
import contextlib
import http.client
import os
import threading

import pytest
from support import retort
from support.server import together
from world import METADATA, PRIVATE, PUBLIC, PUBLIC6, World, response

pytestmark = pytest.mark.once

MIB = 2**20
FLAGS = ["--fetch-size", "1M", "--fetch-timeout", "2", "--listen", "127.0.0.1:8000"]
REFUSED = "is private, and this server does not fetch from private addresses"


@pytest.fixture(scope="module")
def world():
    with World(*FLAGS) as one:
        yield one


@pytest.fixture
def client(world):
    with world.client() as one:
        yield one


@pytest.fixture
def session(world):
    with world.client() as one, one.session() as made:
        yield made


def kept(world):
    """Everything the state directory holds of files: blobs, and what is on its way to be one."""
    found = set()
    for folder, _, names in os.walk(world.state):
        found |= {os.path.join(folder, name) for name in names if "retort.db" not in name}
    return found


@contextlib.contextmanager
def nothing_stays(world, client):
    """Whatever happens in here leaves no file, no row and no blob."""
    files, before = client.all("/v1/files"), kept(world)
    yield
    assert client.all("/v1/files") == files
    assert kept(world) == before


def fetch(client, url, **more):
    return client.post("/v1/files", {"url": url, **more})


def content(client, made):
    return client.get(f"/v1/files/{made['id']}/content").expect(200).body


# --- what goes well ---


@pytest.mark.parametrize("where", ["http://files.example", "https://files.example", f"http://{PUBLIC}",
                                   f"http://[{PUBLIC6}]", "https://six.example", "HTTP://FILES.example:80",
                                   "http://both.example", "http://files.example:8080"])
def test_get(world, client, where):
    for site in world.sites:
        site.put("/data.csv?v=1", response(200, b"a,b\n1,2\n", content_type="text/csv; charset=utf-8"))
    made = fetch(client, where + "/data.csv?v=1").expect(201).json
    assert (made["name"], made["mime"], made["size"]) == ("data.csv", "text/csv", 8)
    assert content(client, made) == b"a,b\n1,2\n"


def test_what_is_sent(world, client):
    world.site.put("/sent", b"x")
    fetch(client, "http://files.example/sent").expect(201)
    head = world.site.heads[-1].decode().lower()
    assert head.startswith("get /sent http/1.1\r\nhost: files.example\r\nuser-agent: retort/")
    assert "authorization" not in head and "cookie" not in head and "accept-encoding" not in head


@pytest.mark.parametrize("url, name, mime, data", [
    ("data:,hello%20there", "download", "text/plain", b"hello there"),
    ("data:text/csv;base64," + base64.b64encode(b"a\n1").decode(), "download.csv", "text/csv", b"a\n1"),
    ("DATA:;charset=utf-8,x", "download", "text/plain", b"x"), ("data:,", "download", "text/plain", b"")])
def test_data(client, url, name, mime, data):
    made = fetch(client, url).expect(201).json
    assert (made["name"], made["mime"], made["size"]) == (name, mime, len(data))
    assert content(client, made) == data


@pytest.mark.parametrize("path, disposition, name", [
    ("/a/b/report.xlsx", None, "report.xlsx"),
    ("/a%20b%C3%BC.csv", None, "a bü.csv"),
    ("/x/..%2f..%2fetc%2fpasswd", None, "passwd"),
    ("/x/%2e%2e", None, "download"),
    ("/folder/", None, "download"),
    ("/", None, "download"),
    ("/a%00b%0Ac.csv", None, "abc.csv"),
    ("/..%5c..%5cwin.ini", None, "win.ini"),
    ("/get?file=other.csv", None, "get"),
    ("/get", 'attachment; filename="real name.csv"', "real name.csv"),
    ("/get", "attachment; filename=plain.csv; filename*=UTF-8''b%C3%A9.csv", "bé.csv"),
    ("/get", 'attachment; filename="../../etc/shadow"', "shadow"),
    ("/get", "attachment; filename*=UTF-8''..%2F..%2Fup.csv", "up.csv"),
    ("/get.bin", "inline", "get.bin"),
    ("/get.bin", 'attachment; filename=".."', "get.bin")])
def test_name(world, client, path, disposition, name):
    world.site.put(path, response(200, b"x", **({"content_disposition": disposition} if disposition else {})))
    assert fetch(client, "http://files.example" + path).expect(201).json["name"] == name
    assert fetch(client, "http://files.example" + path, name="mine.csv").expect(201).json["name"] == "mine.csv"


@pytest.mark.parametrize("said, mime", [("image/png", "image/png"), ("application/octet-stream", "text/csv"),
                                        (None, "text/csv"), ("nonsense", "text/csv")])
def test_type(world, client, said, mime):
    world.site.put("/typed.csv", response(200, b"x", content_type=said))
    assert fetch(client, "http://files.example/typed.csv").expect(201).json["mime"] == mime


def test_redirects(world, client):
    world.site.put("/1", response(302, b"not this", location="https://six.example/2"))
    world.tls_site.put("/2", response(308, location="three/last%20one.csv?x"))
    world.tls_site.put("/three/last%20one.csv?x", b"the file")
    made = fetch(client, "http://files.example/1").expect(201).json
    assert made["name"] == "last one.csv" and content(client, made) == b"the file"


def test_exactly_the_limit(world, client):
    world.site.put("/full", bytes(MIB))
    assert fetch(client, "http://files.example/full").expect(201).json["size"] == MIB


def test_many_at_once(world, client):
    """More than are fetched at a time."""
    world.site.put("/many", b"many")

    def one():
        with world.client() as own:
            return fetch(own, "http://files.example/many").expect(201).json["size"]

    assert together(*[one] * 40) == [4] * 40


# --- with an execution ---


def test_files_of_an_execution(world, client, session):
    world.site.put("/in/data.csv", b"a,b\n1,2\n")
    world.tls_site.put("/x", response(200, b"named", content_disposition='attachment; filename="b.txt"'))
    done = session.run("print(sorted((str(p), p.read_text()) for p in __import__('pathlib').Path().rglob('*.*')))",
                       files=[{"url": "http://files.example/in/data.csv"}, {"url": "https://files.example/x"},
                              {"url": "http://files.example/in/data.csv", "path": "deep/er/c.csv"},
                              {"url": "data:,d", "path": "d.txt"}])
    assert done["stdout"] == ("[('b.txt', 'named'), ('d.txt', 'd'), ('data.csv', 'a,b\\n1,2\\n'), "
                              "('deep/er/c.csv', 'a,b\\n1,2\\n')]\n")
    assert set(session.files()) == {"b.txt", "d.txt", "data.csv", "deep/er/c.csv"}
    assert session.read("deep/er/c.csv") == b"a,b\n1,2\n"


def test_files_of_a_shell_command_and_of_a_session_that_sleeps(world, client):
    world.site.put("/one.txt", b"one")
    once = client.post("/v1/execute", {"code": "cat one.txt", "language": "shell",
                                       "files": [{"url": "http://files.example/one.txt"}]}).expect(200).json
    assert once["stdout"] == "one"
    path = "/v1/sessions/" + once["session"]
    retort.wait_until(lambda: client.get(path).json["state"] == "asleep", "sleep")
    again = client.post(path + "/execute", {"code": "open('one.txt').read() + open('two.txt').read()", "files": [
        {"url": "http://files.example/one.txt", "path": "two.txt"}]}).expect(200).json
    assert again["result"] == "'oneone'"
    client.delete(path).expect(204)


@pytest.mark.parametrize("url, status, said", [
    (f"http://{PRIVATE}/leak", 400, f"the address of {PRIVATE} {REFUSED}"),
    ("http://files.example/none", 400, "http://files.example/none answered 404"),
    ("http://files.example/too-large", 413, "the file is larger than the 1.0 MB that may be fetched"),
    ("http://files.example/cut", 400, "files.example hung up before the end of the file"),
    ("data:;base64,?", 400, "the data URL is not valid base64")])
def test_an_execution_without_its_file(world, client, session, url, status, said):
    """It does not begin, and of its other files none is there."""
    put_bad_pages(world)
    session.run("open('kept.txt', 'w').write('kept')")
    files = [{"path": "a.txt", "content": "a"}, {"url": "http://files.example/good", "path": "b.txt"}, {"url": url}]
    with nothing_stays(world, client):
        assert session.ask("open('ran', 'w')", files=files).refused(status)["message"] == said
        with session.stream("open('ran', 'w')", files=files) as stream:
            assert [(o["type"], o["error"]["message"]) for o in stream if o["type"] != "execution"] == [("error", said)]
        assert session.run("import os; sorted(os.listdir())")["result"] == "['kept.txt']"
        assert set(session.files()) == {"kept.txt"}


def test_a_client_that_leaves_while_it_waits(world, client, session):
    """Nobody waits for the file any more, so it is not fetched any further."""
    begun, ended = threading.Event(), threading.Event()

    def wait_for_the_end(conn, head):
        conn.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf ")
        begun.set()
        with contextlib.suppress(OSError):
            conn.recv(1)
        ended.set()

    world.site.put("/left", wait_for_the_end)
    with nothing_stays(world, client):
        with session.stream("open('ran', 'w')", files=[{"url": "http://files.example/left"}]):
            assert begun.wait(30)
        assert ended.wait(30)
        assert session.run("import os; os.listdir()")["result"] == "[]"


# --- what is refused ---


def put_bad_pages(world):
    def cut(conn, head):
        conn.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf ")

    world.site.put("/good", b"good")
    world.site.put("/cut", cut)
    world.site.put("/too-large", bytes(MIB + 1))


@pytest.mark.parametrize("host", [
    PRIVATE, METADATA, "127.0.0.1", "127.0.0.2", "0.0.0.0", "localhost", "inside.example", "private.example",
    "metadata.example", "[::1]", "[::]", f"[::ffff:{METADATA}]", "[::ffff:7f00:1]", "[64:ff9b::10.1.2.3]",
    "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "①27.0.0.1", "localhost:8080", "127.0.0.1:8000"])
def test_addresses_that_lead_inside(world, client, session, host):
    """What listens there would answer."""
    with nothing_stays(world, client), world.unasked():
        for scheme in ("http", "https"):
            fetch(client, f"{scheme}://{host}/leak").refused(400)
            session.ask("1", files=[{"url": f"{scheme}://{host}/leak"}]).refused(400)


@pytest.mark.parametrize("host", [PRIVATE, METADATA, "127.0.0.1", "localhost", "private.example", "metadata.example"])
def test_the_message(world, client, host):
    assert fetch(client, f"http://{host}/").refused(400)["message"] == f"the address of {host} {REFUSED}"


@pytest.mark.parametrize("location", [f"http://{METADATA}/leak", "http://localhost/leak", "//private.example/leak",
                                      "http://127.0.0.1:8000/v1/pools", "file:///etc/passwd", "gopher://files.example/",
                                      "data:,leaked", "ftp://files.example/leak", f"https://{PRIVATE}/leak"])
def test_redirects_that_lead_inside(world, client, location):
    for site in world.sites:
        site.put("/leak", b"leaked")
    before = len(world.tls_site.heads), world.site.asked("/leak")
    world.site.put("/away", response(302, location=location))
    with nothing_stays(world, client):
        fetch(client, "http://files.example/away").refused(400)
    assert (len(world.tls_site.heads), world.site.asked("/leak")) == before


def test_redirects_without_end(world, client):
    world.site.put("/round", response(302, location="/round"))
    before = world.site.asked("/round")
    with nothing_stays(world, client):
        error = fetch(client, "http://files.example/round").refused(400)
    assert error["message"] == "more than 5 redirects, the last from http://files.example/round"
    assert world.site.asked("/round") == before + 6


def test_too_large(world, client):
    """Said beforehand, found out on the way, and without a length."""
    more = bytes(MIB + 1)
    world.site.put("/said", lambda conn, head: conn.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\nx"))
    world.site.put("/found", lambda conn, head: conn.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + more))
    world.site.put("/chunks", lambda conn, head: conn.sendall(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(more), more)))
    with nothing_stays(world, client):
        for path in ("said", "found", "chunks"):
            error = fetch(client, "http://files.example/" + path).refused(413)
            assert error["message"] == "the file is larger than the 1.0 MB that may be fetched"


def test_slow_urls_of_a_tenant_hold_up_nobody_else():
    """As many as it may have at a time, and more, wait; another tenant's file comes meanwhile."""
    over, begun = threading.Event(), threading.Semaphore(0)

    def stall(conn, head):
        begun.release()
        over.wait(60)

    with World("--fetch-timeout", "60") as world, world.client() as first:
        boss = first.post("/v1/keys", {"tenant": "ops", "admin": True}).expect(201).json["secret"]
        with world.client(boss) as admin:
            keys = [admin.post("/v1/keys", {"tenant": t}).expect(201).json["secret"] for t in ("slow", "quick")]
        world.site.put("/stall", stall)
        world.site.put("/quick", b"here")

        def one():
            with world.client(keys[0]) as slow, contextlib.suppress(OSError, http.client.HTTPException):
                fetch(slow, "http://files.example/stall")

        threads = [threading.Thread(target=one, daemon=True) for _ in range(20)]
        try:
            for thread in threads:
                thread.start()
            for _ in range(16):
                assert begun.acquire(timeout=retort.SECONDS)
            with world.client(keys[1]) as quick:
                assert fetch(quick, "http://files.example/quick").expect(201).json["size"] == 4
            assert not begun.acquire(blocking=False), "more than sixteen at a time"
        finally:
            over.set()
            for thread in threads:
                thread.join(retort.SECONDS)


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"])
def test_too_slow(world, client, first):
    over = threading.Event()

    def stall(conn, head):
        conn.sendall(first)
        over.wait(60)

    world.site.put("/stall", stall)
    with nothing_stays(world, client):
        error = fetch(client, "http://files.example/stall").refused(400)
    over.set()
    assert error["message"] == "files.example was too slow: a file must arrive within 2 s"


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
                                    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
                                    b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000 + b"\r\n",
                                    b"HTTP/1.1 206 Part\r\ncontent-length: 1\r\n\r\nx",
                                    b"HTTP/1.1 304 Same\r\n\r\n", b"HTTP/1.1 500 Bad\r\ncontent-length: 1\r\n\r\nx"],
                         ids=lambda answer: ascii(answer)[2:40])
def test_hosts_that_answer_badly(world, client, answer):
    world.site.put("/bad", lambda conn, head: conn.sendall(answer))
    with nothing_stays(world, client):
        fetch(client, "http://files.example/bad").refused(413 if len(answer) > 1000 else 400)


def test_errors_of_the_inside_are_not_shown(world, client):
    assert "SECRET" not in fetch(client, "http://files.example/none").refused(400)["message"]


def test_a_certificate_that_cannot_be_trusted(world, client):
    """Its authority is trusted, but it is not for this name."""
    world.tls_site.put("/vouched", b"x")
    with nothing_stays(world, client):
        error = fetch(client, "https://unnamed.example/vouched").refused(400)
    assert error["message"] == "unnamed.example has no certificate that can be trusted"
    assert world.tls_site.asked("/vouched") == 0


@pytest.mark.parametrize("url", [
    "ftp://files.example/x", "file:///etc/passwd", "gopher://files.example/", "//files.example/x", "nonsense",
    "http://", "http:///x", "http://u:p@files.example/good", "http://files.example:0/",
    "http://files.example:99999/", "http://nowhere.example/", "http://files.example:81/", "data:nonsense",
    "data:x y,z", "javascript:1", "http://files.example/\n", "http://a b/"])
def test_what_is_no_url(world, client, url):
    with nothing_stays(world, client):
        fetch(client, url).refused(400)


def test_a_url_that_is_too_long(world, client):
    with nothing_stays(world, client):
        fetch(client, "http://files.example/" + "x" * 9000).refused(413)


# --- settings ---


@pytest.mark.parametrize("flags, good, bad", [
    (["--fetch-private"], ["http://private.example/p", f"http://{METADATA}/p", "http://127.0.0.1:8080/p"], []),
    (["--fetch-allow", f"{PRIVATE}, inside.example:8080"],
     [f"http://{PRIVATE}/p", "http://private.example:8080/p", "http://inside.example:8080/p"],
     ["http://inside.example/p", "http://localhost:8080/p", f"http://{METADATA}/p", "http://127.0.0.1:8080/p"]),
    (["--fetch-allow", "10.0.0.0/8"], [f"http://{PRIVATE}:8080/p", "http://files.example/p"],
     [f"http://{METADATA}/p", "http://127.0.0.1/p"])])
def test_private_addresses_that_are_allowed(flags, good, bad):
    with World(*FLAGS, *flags) as world, world.client() as client, client.session() as session:
        for site in world.sites:
            site.put("/p", b"private")
        world.site.put("/to", response(302, location=good[0]))
        for url in [*good, "http://files.example/to"]:
            assert content(client, fetch(client, url).expect(201).json) == b"private"
        assert session.run("open('p').read()", files=[{"url": good[0]}])["result"] == "'private'"
        for url in bad:
            assert REFUSED in fetch(client, url).refused(400)["message"]


def test_a_server_that_ends_with_a_fetch_under_way():
    with World("--drain", "1", "--fetch-timeout", "60") as world:
        begun = threading.Event()

        def ask():
            with contextlib.suppress(OSError, http.client.HTTPException), world.client() as client:
                fetch(client, "http://files.example/stall")

        def stall(conn, head):
            begun.set()
            conn.recv(1)

        world.site.put("/stall", stall)
        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        assert begun.wait(30)
        world.stop()
        asking.join(30)
        assert not asking.is_alive()
        world.start()
        with world.client() as client:
            assert client.all("/v1/files") == []
