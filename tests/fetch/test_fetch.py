"""Fetches from hostile and honest servers, as an operator who allows this one private address."""

import gzip
import socket
import threading

import pytest
from support.web import Web, response

PRIVATE = "is private, and this server does not fetch from private addresses"


# --- what goes well ---


def test_a_file(fetch, web):
    url = web.put("/dir/a%20b.csv?x=1", response(body=b"a,b\n", content_type="text/CSV; charset=x"))
    assert fetch(url, allow=web.here) == "ok 4 text/csv a b.csv"
    assert fetch.body == b"a,b\n"


def test_what_is_sent(fetch, web):
    fetch(web.put("/sent", response()), allow=web.here)
    head = web.heads[-1].decode().lower()
    assert head.startswith("get /sent http/1.1\r\n")
    for absent in ("accept-encoding", "cookie", "authorization", "referer"):
        assert absent not in head


def test_empty_body(fetch, web):
    assert fetch(web.put("/e", response()), allow=web.here) == "ok 0 application/octet-stream e"


def test_name_from_disposition(fetch, web):
    url = web.put("/x.bin", response(
        content_disposition="attachment; filename=\"../../plain\"; filename*=UTF-8''n%C3%A4me%2Fr.csv"))
    assert fetch(url, allow=web.here).split(" ", 3)[3] == "r.csv"


def test_name_is_decoded_before_it_is_cut(fetch, web):
    # In upper case, for newer versions of curl write it so, whatever they were given.
    url = web.put("/a/..%2F..%2Fetc%2Fpasswd", response())
    assert fetch(url, allow=web.here).endswith(" passwd")


def test_name_of_the_last_url(fetch, web):
    web.put("/final.csv", response(body=b"1"))
    url = web.put("/short", response(302, location="/final.csv"))
    assert fetch(url, allow=web.here).endswith(" final.csv")


def test_chunked(fetch, web):
    url = web.put("/c", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                        b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n")
    assert fetch(url, allow=web.here).startswith("ok 5 ")
    assert fetch.body == b"abcde"


def test_until_the_connection_ends(fetch, web):
    url = web.put("/u", response(body=b"x" * 1000, content_length=None))
    assert fetch(url, allow=web.here).startswith("ok 1000 ")


def test_many_at_once(fetch, web):
    urls = [web.put(f"/many{i}", response(body=b"x" * i)) for i in range(50)]
    lines = fetch(*urls, allow=web.here, parallel=4)
    assert sorted(int(line.split()[1]) for line in lines) == list(range(50))


def test_data_urls(fetch):
    assert fetch("data:text/csv;base64,YSxiCg==") == "ok 4 text/csv download.csv"
    assert fetch.body == b"a,b\n"
    assert fetch("DATA:,a%20b") == "ok 3 text/plain download"
    assert fetch("data:;base64,YQ") == "fail caller the data URL is not valid base64"
    assert fetch("data:,12345", bytes=4) == "fail limit the data URL holds more than 4 bytes"


# --- addresses ---


@pytest.mark.parametrize("host", [
    "127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "0.0.0.0", "[::1]",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]", "anything.test", "10.0.0.1", "169.254.169.254",
    "[fe80::1%25lo]", "[fd00:ec2::254]", "224.0.0.1", "255.255.255.255",
])
def test_private_addresses(fetch, web, host):
    before = len(web.heads)
    line = fetch(f"http://{host}:{web.port}/secret")
    assert line.startswith("fail caller") and line.endswith(PRIVATE), line
    assert len(web.heads) == before


@pytest.mark.parametrize("host", ["127.0.0.1.", "\uff11\uff12\uff17.0.0.1", "127%2e0.0.1", "[::1"])
def test_names_that_lead_nowhere(fetch, web, host):
    before = len(web.heads)
    assert fetch(f"http://{host}:{web.port}/secret").startswith("fail caller")
    assert len(web.heads) == before


def test_allowed_as(fetch, web):
    web.put("/ok", response())
    for allow in ("127.0.0.1", web.here, "127.0.0.0/8", f"a.test:{web.port}, *.b.test",
                  "::ffff:127.0.0.0/104"):
        host = "a.test" if "test" in allow else "127.0.0.1"
        assert fetch(f"http://{host}:{web.port}/ok", allow=allow).startswith("ok")
    assert fetch(f"http://c.b.test:{web.port}/ok", allow="*.b.test").startswith("ok")
    assert fetch(f"http://127.0.0.1:{web.port}/ok", private=1).startswith("ok")


def test_not_allowed_by(fetch, web):
    for allow in (f"127.0.0.1:{web.port + 1}", "127.0.0.2", "10.0.0.0/8", "b.test", "*.a.test",
                  f"a.test:{web.port + 1}"):
        assert fetch(f"http://a.test:{web.port}/ok", allow=allow).endswith(PRIVATE)


def test_a_wrong_allow_list(fetch):
    for word in ("10.0.0.1/8", "10.0.0.0/33", "a b.c/", "host:0", "host:99999", "*.*", "a..b"):
        line = fetch(allow=word, expect=1)
        assert line.startswith("refused '") and "is not a host" in line


def test_address_is_judged_at_each_address(fetch, web):
    """The first address of the name is private; the second is allowed and is the one dialled."""
    web.put("/both", response())
    assert fetch(f"http://both.test:{web.port}/both", allow="127.0.0.1").startswith("ok")


def test_redirect_to_a_private_address(fetch, web):
    with Web() as inner:
        inner.put("/metadata", response(body=b"SECRET"))
        for host in ("127.0.0.1", "localhost", "inner.test", "2130706433"):
            url = web.put("/leap", response(302, location=f"http://{host}:{inner.port}/metadata"))
            line = fetch(url, allow=web.here)
            assert line.startswith("fail caller the address of") and line.endswith(PRIVATE)
            assert fetch.body == b""
        assert inner.heads == []


def test_redirect_away_from_an_allowed_name(fetch, web):
    """The right to dial a private address is the name's, not the connection's."""
    web.put("/b", response(body=b"SECRET"))
    url = web.put("/a", response(302, location=f"http://other.test:{web.port}/b"))
    url = url.replace("127.0.0.1", "good.test")
    assert fetch(url, allow="good.test").endswith(PRIVATE)
    assert web.asked("/b") == 0


@pytest.mark.parametrize("location, text", [
    ("file:///etc/passwd", "only http, https and data URLs are fetched"),
    ("ftp://127.0.0.1/", "only http, https and data URLs are fetched"),
    ("gopher://127.0.0.1:11211/_x", "only http, https and data URLs are fetched"),
    ("data:,x", "only http, https and data URLs are fetched"),
    ("http://user:pass@127.0.0.1/", "user name or password"),
    ("http://", "not a URL"),
])
def test_redirect_to_what_is_not_fetched(fetch, web, location, text):
    line = fetch(web.put("/r", response(301, location=location)), allow=web.here)
    assert line.startswith("fail caller") and text in line


def test_redirects(fetch, web):
    for i in range(6):
        web.put(f"/hop{i}", response(307, body=b"not this", location=f"hop{i + 1}"))
    web.put("/hop6", response(body=b"this"))
    assert fetch(f"http://{web.here}/hop1", allow=web.here).startswith("ok 4 ")
    assert fetch.body == b"this"
    line = fetch(f"http://{web.here}/hop0", allow=web.here)
    assert line.startswith("fail caller more than 5 redirects")
    url = web.put("/loop", response(302, location="/loop"))
    asked = web.asked("/loop")
    assert fetch(url, allow=web.here, redirects=2).startswith("fail caller more than 2 redirects")
    assert web.asked("/loop") == asked + 3


def test_redirect_without_location(fetch, web):
    assert "without saying where to go" in fetch(web.put("/n", response(302)), allow=web.here)


def test_proxies_of_the_environment(fetch, web):
    with Web() as proxy:
        fetch(web.put("/direct", response()), allow=web.here,
              env={"http_proxy": f"http://{proxy.here}", "ALL_PROXY": f"http://{proxy.here}"})
        assert proxy.heads == []
    assert web.asked("/direct") == 1


@pytest.mark.parametrize("url, text", [
    ("http://user:pass@example.com/", "user name or password"),
    ("http://user@example.com/", "user name or password"),
    ("file:///etc/passwd", "only http, https and data"),
    ("scp://example.com/x", "only http, https and data"),
    ("/etc/passwd", "not a URL"),
    ("http://", "not a URL"),
    ("http://a b/", "not a URL"),
    ("http://example.com:99999/", "not a URL"),
    ("http://exa\nmple.com/", "not a URL"),
    ("", "not a URL"),
    ("http://none.test/", "none.test is a name without an address"),
])
def test_urls_that_are_refused(fetch, url, text):
    line = fetch(url)
    assert line.startswith("fail caller") and text in line


def test_a_long_url(fetch):
    assert fetch("http://example.com/" + "x" * 9000) == "fail limit the URL is longer than 8192 bytes"


# --- size ---


def endless(conn, _, head=b"HTTP/1.1 200 OK\r\n\r\n"):
    conn.sendall(head)
    while True:
        conn.sendall(b"x" * 65536)


def endless_chunks(conn, _):
    conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        conn.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")


TOO_LARGE = "fail limit the file is larger than the 1.0 MB that may be fetched"


@pytest.mark.parametrize("answer", [endless, endless_chunks])
def test_no_end(fetch, web, answer):
    assert fetch(web.put("/endless", answer), allow=web.here, bytes=1000000) == TOO_LARGE
    assert len(fetch.body) <= 1000000


def test_length_says_too_large(fetch, web):
    url = web.put("/big", response(body=b"x" * 10, content_length=1000001))
    assert fetch(url, allow=web.here, bytes=1000000) == TOO_LARGE
    assert fetch.body == b""


def test_exactly_the_limit(fetch, web):
    url = web.put("/edge", response(body=b"x" * 1000))
    assert fetch(url, allow=web.here, bytes=1000).startswith("ok 1000 ")
    assert fetch(url, allow=web.here, bytes=999).startswith("fail limit")


def test_length_lies(fetch, web):
    """Less is a failure; more than announced is not the file's."""
    short = web.put("/short-body", response(body=b"abc", content_length=10))
    assert fetch(short, allow=web.here) == "fail caller 127.0.0.1 hung up before the end of the file"
    long = web.put("/long-body", response(body=b"abcdef", content_length=3))
    assert fetch(long, allow=web.here).startswith("ok 3 ")
    assert fetch.body == b"abc"
    bad = web.put("/bad-length", response(body=b"abc", content_length="-1"))
    assert fetch(bad, allow=web.here).startswith("fail ")


def test_a_bomb_stays_folded(fetch, web):
    bomb = gzip.compress(bytes(50_000_000))
    url = web.put("/bomb", response(body=bomb, content_encoding="gzip"))
    assert fetch(url, allow=web.here, bytes=1000000).startswith(f"ok {len(bomb)} ")
    assert fetch.body == bomb


def test_size_of_what_is_not_the_file(fetch, web):
    """The body of a redirect or an error is neither kept nor waited for."""
    web.put("/there", response(body=b"y"))

    def redirect(conn, head):
        endless(conn, head, b"HTTP/1.1 302 Found\r\nLocation: /there\r\n\r\n")

    def error(conn, head):
        endless(conn, head, b"HTTP/1.1 500 Oops\r\n\r\n")

    assert fetch(web.put("/er", redirect), allow=web.here, bytes=1000).startswith("ok 1 ")
    url = web.put("/ee", error)
    assert fetch(url, allow=web.here, bytes=1000) == f"fail caller {url} answered 500"


# --- servers that misbehave ---


@pytest.mark.parametrize("status", [404, 403, 204, 206, 304, 500])
def test_statuses(fetch, web, status):
    url = web.put(f"/status{status}", response(status, body=b"SECRET"))
    assert fetch(url, allow=web.here) == f"fail caller {url} answered {status}"
    assert fetch.body == b""


def test_a_query_is_not_repeated(fetch, web):
    url = web.put("/signed?token=SECRET", response(403)).split("?")[0]
    assert fetch(f"{url}?token=SECRET", allow=web.here) == f"fail caller {url} answered 403"


def test_header_floods(fetch, web):
    def flood(conn, _):
        conn.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            conn.sendall(b"X-Filler: " + b"x" * 1000 + b"\r\n")

    def one_long(conn, _):
        conn.sendall(b"HTTP/1.1 200 OK\r\nX-Filler: ")
        while True:
            conn.sendall(b"x" * 1000)

    def interim(conn, _):
        while True:
            conn.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 100)

    for i, answer in enumerate((flood, one_long, interim)):
        line = fetch(web.put(f"/flood{i}", answer), allow=web.here)
        assert line.startswith("fail ") and ("header" in line or "grew larger" in line), line


@pytest.mark.parametrize("answer", [
    b"", b"hello", b"SSH-2.0-x\r\n", b"HTTP/0.9 200\r\n\r\n", b"HTTP/1.1 abc OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
])
def test_answers_that_are_none(fetch, web, answer):
    line = fetch(web.put("/none", answer), allow=web.here)
    assert line.startswith("fail caller") and "hello" not in line


def test_nobody_there(fetch):
    with Web() as gone:
        pass
    line = fetch(f"http://{gone.here}/", allow="127.0.0.1")
    assert line == "fail caller 127.0.0.1 could not be reached"


def test_tls_without_trust(fetch):
    with Web(tls=True) as web:
        line = fetch(f"https://{web.here}/", allow=web.here)
        assert line == "fail caller 127.0.0.1 has no certificate that can be trusted"
        assert web.heads == []


def test_tls_that_is_none(fetch):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def answer():
            conn, _ = listener.accept()
            with conn:
                conn.sendall(b"220 mail.example ESMTP\r\n")
                conn.recv(65536)

        threading.Thread(target=answer, daemon=True).start()
        line = fetch(f"https://127.0.0.1:{listener.getsockname()[1]}/", private=1)
        assert line == "fail caller 127.0.0.1 does not speak TLS that can be used"


# --- time, and ends that come early ---


@pytest.fixture
def never(web):
    """A URL that sends some bytes and then nothing until the test is over."""
    over = threading.Event()

    def answer(conn, _):
        conn.sendall(b"HTTP/1.1 200 OK\r\n\r\nfirst")
        over.wait(60)

    yield web.put("/never", answer)
    over.set()


def test_slow_server(fetch, web, never):
    line = fetch(never, allow=web.here, ms=300)
    assert line == "fail caller 127.0.0.1 was too slow: a file must arrive within 0.3 s"


def test_slow_drip_over_redirects(fetch, web):
    """The time is for all hops together."""
    def drip(conn, _):
        threading.Event().wait(0.2)
        conn.sendall(response(302, location="/drip"))

    line = fetch(web.put("/drip", drip), allow=web.here, ms=500, redirects=100)
    assert "was too slow" in line


def test_slow_name(fetch, web):
    """Giving up on a name does not wait for it, and others are served meanwhile."""
    quick = web.put("/quick", response())
    lines = fetch(f"http://slow.test:{web.port}/", quick, allow=web.here, ms=300)
    assert lines[0].startswith("ok 0") and "slow.test was too slow" in lines[1]


@pytest.mark.parametrize("how", ["cancel", "free"])
@pytest.mark.parametrize("when", ["start", "flow"])
def test_ended_early(fetch, web, never, how, when):
    lines = fetch(never, never, never, allow=web.here, parallel=2, **{how: when})
    assert lines == ["fail caller the fetch was cancelled"] * 3


def test_a_tenant_has_its_share(fetch, web, never):
    """As many slow URLs as one may have at a time, and more: another tenant's does not wait for them."""
    quick = web.put("/another", response())
    lines = fetch(never, never, never, quick, allow=web.here, parallel=2, tenants="aaab", cancel="done")
    assert lines[0].startswith("ok 0") and lines[1:] == ["fail caller the fetch was cancelled"] * 3


def test_sink_that_fails(fetch, web):
    url = web.put("/unkept", response(body=b"x"))
    assert fetch(url, allow=web.here, sink="fail") == "fail host the disk is full"
    assert fetch("data:,x", sink="fail") == "fail host the disk is full"
