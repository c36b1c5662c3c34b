"""The door of the console without a browser: what it sends, to whom, and how."""

import gzip

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


def test_all_of_it_is_small_and_kept_by_browsers(client):
    page = client.get("/", headers={**PAGE, "Accept-Encoding": "gzip"}).expect(200)
    text, size = gzip.decompress(page.body).decode(), len(page.body)
    names = [part.split('"')[0] for part in text.split('="./')[1:]]
    assert any(n.endswith(".js") for n in names) and any(n.endswith(".css") for n in names), names
    for name in names:
        got = client.get("/" + name, headers={"Accept-Encoding": "gzip"}).expect(200)
        size += len(got.body)
        assert "immutable" in got.headers["cache-control"]
    assert size < 400_000, size


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
