"""The door of the console without a browser: what it sends, to whom, and how."""

import gzip
import re

import pytest

PAGE = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def test_a_browser_gets_the_page_and_a_program_gets_words(client):
    page = client.get("/", headers=PAGE).expect(200)
    assert page.headers["content-type"].startswith("text/html") and b'<div id="app">' in page.body
    for accept in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
        words = client.get("/", headers=accept).expect(200)
        assert words.headers["content-type"].startswith("text/plain") and b"/v1/openapi.json" in words.body


def test_compressed_for_those_who_take_it(client):
    plain = client.get("/", headers=PAGE).expect(200)
    packed = client.get("/", headers={**PAGE, "Accept-Encoding": "br, gzip"}).expect(200)
    assert "content-encoding" not in plain.headers and packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    refused = client.get("/", headers={**PAGE, "Accept-Encoding": "gzip;q=0"}).expect(200)
    assert refused.body == plain.body


@pytest.fixture
def parts(client):
    """Each file that the page is made of, as a browser gets it: of some only a script knows the name."""
    def get(path):
        got = client.get(path, headers={**PAGE, "Accept-Encoding": "gzip"}).expect(200)
        return got, gzip.decompress(got.body).decode()

    found = {"/": get("/"), "/console/frame.html": get("/console/frame.html")}
    for name in re.findall(r'="\./(console/[^"]+)"', found["/"][1]):
        found["/" + name] = get("/" + name)
    scripts = "".join(text for path, (_, text) in found.items() if path.endswith(".js"))
    for name in set(re.findall(r"[\w-]+worker-[\w-]+\.js", scripts)):
        found["/console/" + name] = get("/console/" + name)
    return found


def test_all_of_it_is_small_and_kept_by_browsers(parts):
    kinds = sorted(path.rsplit(".", 1)[1] for path in parts if "." in path)
    assert kinds == ["css", "html", "js", "js", "svg"], list(parts)
    assert sum(len(got.body) for got, _ in parts.values()) < 400_000
    for path, (got, _) in parts.items():
        kept = "no-cache" if path == "/" or path.endswith(".html") else "immutable"
        assert kept in got.headers["cache-control"], path


def test_every_part_has_a_policy(client, parts):
    """Also what is opened by itself: a drawing, a script, a worker, which has the policy that it comes with."""
    for path, (got, _) in parts.items():
        policy = got.headers["content-security-policy"].split("; ")
        own = "script-src 'unsafe-inline' 'unsafe-eval'" if path.endswith("frame.html") else "script-src 'self'"
        assert {"default-src 'none'", "base-uri 'none'", "form-action 'none'", own} <= set(policy), path
        assert ("sandbox allow-scripts" in policy) == path.endswith("frame.html")
        assert not any(part.startswith("connect-src") and part != "connect-src 'self'" for part in policy)
        assert got.headers["x-content-type-options"] == "nosniff", path
    for got in (client.get("/"), client.get("/console/no.js")):
        assert got.headers["x-content-type-options"] == "nosniff"


def test_the_page_is_asked_for_again(client):
    page = client.get("/", headers=PAGE).expect(200)
    assert page.headers["cache-control"] == "no-cache"
    again = client.get("/", headers={**PAGE, "If-None-Match": page.headers["etag"]})
    assert again.status == 304 and again.body == b""


@pytest.mark.parametrize("name", ["x.js", "../index.html", "frame.html/x", "%2e%2e/v1", "a" * 500])
def test_nothing_else_is_there(client, name):
    assert client.get("/console/" + name).status == 404


def test_no_key_is_needed_for_the_page_alone(server, client):
    client.post("/v1/keys", {"tenant": "local", "admin": True}).expect(201)
    client.get("/", headers=PAGE).expect(200)
    assert client.get("/v1/sessions").status == 401
    server.stop()
