"""Resources: files of workspaces and outputs of executions, by name."""

import base64
from contextlib import ExitStack
from urllib.parse import quote

import pytest
from support import retort
from support.mcp import Legacy, Modern, RpcError

pytestmark = pytest.mark.once

READ_MAX = 3 << 20
NOT_FOUND = {"legacy": -32002, "modern": -32602}


@pytest.fixture
def session(server):
    with server.client() as client, client.session() as made:
        yield made


@pytest.fixture
def era(either):
    return "legacy" if isinstance(either, Legacy) else "modern"


def uri_of(session, path):
    return f"retort://sessions/{session.id}/files/{quote(path)}"


def read(client, uri):
    result = client.request("resources/read", {"uri": uri})
    assert len(result["contents"]) == 1
    return result["contents"][0]


def refused(client, uri, code):
    with pytest.raises(RpcError) as e:
        read(client, uri)
    assert e.value.code == code, e.value
    return e.value


def every(client):
    """All pages of the list."""
    found, params = [], {}
    while True:
        page = client.request("resources/list", params)
        found += page["resources"]
        if "nextCursor" not in page:
            return found
        params = {"cursor": page["nextCursor"]}


# --- what there is ---


def test_capabilities(legacy, modern):
    for found in (legacy.info["capabilities"], modern.request("server/discover")["capabilities"]):
        assert found["resources"] == {"listChanged": True, "subscribe": True}


def test_list_has_the_latest_files_of_the_newest_sessions(server, either, session):
    session.put("data.csv", b"a,b\n1,2\n")
    session.put("ünter/ze ich#nung.txt", b"x")
    with server.client() as client, client.session(name="newer-" + session.id[-6:]) as newer:
        newer.put("new.txt", b"new")
        listed = every(either)
        uris = [r["uri"] for r in listed]
        assert len(set(uris)) == len(uris)
        assert uris.index(uri_of(newer, "new.txt")) < uris.index(uri_of(session, "data.csv"))
        row = listed[uris.index(uri_of(session, "data.csv"))]
        assert (row["name"], row["mimeType"], row["size"]) == ("data.csv", "text/csv", 8)
        assert session.id in row["description"]
        assert row["annotations"]["lastModified"].endswith("Z")
        row = listed[uris.index(uri_of(newer, "new.txt"))]
        assert newer.info["name"] in row["description"]
    assert read(either, uri_of(session, "ünter/ze ich#nung.txt"))["text"] == "x"


def test_list_tells_how_long_it_holds(legacy, modern):
    for method in ("resources/list", "resources/templates/list"):
        assert "ttlMs" not in legacy.request(method)
        found = modern.request(method)
        assert found["ttlMs"] >= 0 and found["cacheScope"] in ("public", "private")
    assert modern.request("resources/list")["cacheScope"] == "private"


def test_list_is_the_same_on_every_connection(server, session):
    session.put("one.txt", b"1")
    with Legacy(server) as first, Legacy(server) as second:
        assert every(first) == every(second) == every(Modern(server))


def test_list_comes_in_pages(server, either):
    with ExitStack() as stack:
        client = stack.enter_context(server.client())
        made = [stack.enter_context(client.session()) for _ in range(3)]
        for one in made:
            one.run("for i in range(60): open(f'{i:03}.txt', 'w').write('x')")
        first = either.request("resources/list")
        assert "nextCursor" in first
        found = [r["uri"] for r in every(either)]
        assert len(set(found)) == len(found)
        for one in made:
            assert sum(one.id in uri for uri in found) == 60


def test_a_page_goes_on_when_the_session_it_ended_with_is_gone(server, either):
    with server.client() as client, client.session() as old:
        old.put("old.txt", b"x")
        with client.session() as new:
            new.run("for i in range(120): open(f'{i:03}.txt', 'w').write('x')")
            cursor = either.request("resources/list")["nextCursor"]
        rest = either.request("resources/list", {"cursor": cursor})["resources"]
        assert uri_of(old, "old.txt") in [r["uri"] for r in rest]


@pytest.mark.parametrize("cursor", ["", "x", "c2Vzc18x", "!!!!", "A" * 500, 5, {}, base64.b64encode(
    b"sess_01h455vb4pex5vsknk084sn02q 1 1").decode(), base64.b64encode(b"\0\0\0").decode()])
def test_a_foreign_cursor_is_refused(either, cursor):
    with pytest.raises(RpcError) as e:
        either.request("resources/list", {"cursor": cursor})
    assert e.value.code == -32602
    assert "cursor" in e.value.message


def test_templates(either):
    found = {t["uriTemplate"]: t for t in either.request("resources/templates/list")["resourceTemplates"]}
    assert set(found) == {"retort://sessions/{session_id}/files/{+path}",
                          "retort://executions/{execution_id}/output",
                          "retort://executions/{execution_id}/images/{number}"}
    for template in found.values():
        assert template["description"] and template["name"]


# --- reading ---


def test_text(either, session):
    session.put("notes.md", "# Grüße\n".encode())
    found = read(either, uri_of(session, "notes.md"))
    assert found == {"uri": uri_of(session, "notes.md"), "mimeType": "text/markdown", "text": "# Grüße\n"}


def test_bytes(either, session):
    data = bytes(range(256)) * 10
    session.put("data.bin", data)
    session.put("plot.png", b"\x89PNG\r\n\x1a\n" + data)
    found = read(either, uri_of(session, "data.bin"))
    assert base64.b64decode(found["blob"]) == data
    assert "text" not in found
    assert read(either, uri_of(session, "plot.png"))["mimeType"] == "image/png"


@pytest.mark.parametrize(("name", "data", "is_text"), [
    ("empty.txt", b"", True),
    ("latin.txt", "Grüße".encode("latin-1"), False),
    ("nul.txt", b"a\0b", False),
    ("controls.txt", b"\x01\x02\x03\x04", False),
    ("colours.log", b"\x1b[31mred\x1b[0m and more text after it\n", True),
    ("unknown.weird", b"plain", True),
    ("picture.svg", b"<svg/>", True),
    ("looks-like-text.png", b"plain", False),
])
def test_text_is_what_can_be_read_as_text(modern, session, name, data, is_text):
    session.put(name, data)
    found = read(modern, uri_of(session, name))
    assert ("text" in found) == is_text
    assert (found["text"].encode() if is_text else base64.b64decode(found["blob"])) == data


def test_what_code_has_written_is_there_at_once(either, session):
    session.run("open('made.txt', 'w').write('by code')")
    assert read(either, uri_of(session, "made.txt"))["text"] == "by code"


def test_reading_holds_for_no_time(modern, session):
    session.put("a.txt", b"x")
    result = modern.request("resources/read", {"uri": uri_of(session, "a.txt")})
    assert (result["ttlMs"], result["cacheScope"], result["resultType"]) == (0, "private", "complete")


def test_a_large_file_is_read_in_parts(either, session):
    data = ("zeile äöü €\n" * 400_000).encode()
    session.put("large.txt", data)
    uri = uri_of(session, "large.txt")
    error = refused(either, uri, -32602)
    assert "offset" in error.message and "limit" in error.message
    assert f"/v1/sessions/{session.id}/files/large.txt" in error.message
    assert error.data == {"uri": uri, "size": len(data)}

    offset, text = 0, ""
    while offset is not None:
        part = read(either, f"{uri}?offset={offset}&limit=1000001")
        meta = part["_meta"]
        assert (meta["dev.retort/offset"], meta["dev.retort/size"]) == (offset, len(data))
        text += part["text"]
        offset = meta.get("dev.retort/next_offset")
    assert text.encode() == data


def test_a_part_is_no_larger_than_one_answer_may_be(modern, session):
    session.run("open('big.bin', 'wb').write(b'\\xff' * (8 << 20))")
    part = read(modern, uri_of(session, "big.bin") + "?offset=1")
    assert len(base64.b64decode(part["blob"])) == READ_MAX
    assert part["_meta"]["dev.retort/next_offset"] == READ_MAX + 1


def test_a_part_from_within_a_character_begins_with_the_next_one(modern, session):
    session.put("a.txt", "ää€b".encode())
    part = read(modern, uri_of(session, "a.txt") + "?offset=1&limit=5")
    assert (part["text"], part["_meta"]["dev.retort/offset"]) == ("ä", 2)
    assert part["_meta"]["dev.retort/next_offset"] == 4
    assert read(modern, uri_of(session, "a.txt") + "?offset=8")["text"] == ""


@pytest.mark.parametrize("query", ["offset=-1", "offset=x", "offset=", "limit=0", "limit=1e3", "length=5",
                                   "offset=9999999999999999", "offset=1&offset", "&", "offset=99"])
def test_a_part_that_is_none(either, session, query):
    session.put("a.txt", b"text")
    error = refused(either, uri_of(session, "a.txt") + "?" + query, -32602)
    assert error.data["uri"].endswith(query)


# --- what is not there, or not for everybody ---


def test_missing(either, era, session):
    gone = session.id[:-1] + ("0" if session.id[-1] != "0" else "1")
    for uri in (uri_of(session, "none.txt"), f"retort://sessions/{gone}/files/a.txt",
                "retort://sessions/nonsense/files/a.txt", f"retort://sessions/{session.id}/files",
                f"retort://sessions/{session.id}", "retort://sessions/", "retort://executions/x/output",
                "retort://executions/" + session.id.replace("sess_", "exec_") + "/output",
                "retort://", "other://x", "skill://other/SKILL.md", "ui://retort/none.html", "x"):
        error = refused(either, uri, NOT_FOUND[era])
        assert error.data == {"uri": uri}


@pytest.mark.parametrize("path", ["../secret", "a/../../b", "%2e%2e/secret", "..%2f..%2fetc/passwd", "%00",
                                  "a%00b", "%", "%4", "%zz", "x" * 1100, "", "/", "."])
def test_a_path_that_leads_out_is_refused(either, session, path):
    session.put("a.txt", b"text")
    error = refused(either, f"retort://sessions/{session.id}/files/{path}", -32602)
    assert error.data["uri"].endswith(path)


def test_a_path_is_decoded_once(either, era, session):
    session.put("100%25.txt", b"once")
    assert read(either, uri_of(session, "100%25.txt"))["text"] == "once"
    refused(either, f"retort://sessions/{session.id}/files/100%25.txt", NOT_FOUND[era])


@pytest.mark.parametrize("params", [{}, {"uri": None}, {"uri": 5}, {"uri": ""}, {"uri": ["x"]}])
def test_no_uri(legacy, params):
    with pytest.raises(RpcError) as e:
        legacy.request("resources/read", params)
    assert e.value.code == -32602


# --- outputs ---


def test_output_of_an_execution(either, session):
    done = session.run("import sys\nprint('out')\nprint('err', file=sys.stderr)\n1 / 0")
    found = read(either, f"retort://executions/{done['id']}/output")
    assert found["mimeType"] == "text/plain"
    assert found["text"].startswith("out\nerr\n") and "ZeroDivisionError" in found["text"]


def test_output_has_values_too(modern, session):
    done = session.run("print('a', end='')\n6 * 7")
    assert read(modern, f"retort://executions/{done['id']}/output")["text"] == "a\n42\n"


def test_output_while_it_runs(modern, session):
    running = session.background("import time\nprint('begun', flush=True)\ntime.sleep(60)")
    uri = f"retort://executions/{running['id']}/output"
    retort.wait_until(lambda: "begun" in read(modern, uri)["text"], "the first line")
    session.client.post(f"/v1/executions/{running['id']}/interrupt").expect(200)


def test_long_output_is_read_in_parts(modern, session):
    done = session.run("for i in range(400_000): print('line', i)", timeout=30)
    uri = f"retort://executions/{done['id']}/output"
    error = refused(modern, uri, -32602)
    assert f"/v1/executions/{done['id']}/output" in error.message
    end = error.data["size"]
    assert read(modern, f"{uri}?offset={end - 12}")["text"] == "line 399999\n"


def test_many_large_reads_at_a_time(legacy, session):
    session.run("open('big.txt', 'w').write('x' * (2 << 20))")
    uri = uri_of(session, "big.txt")
    exchanges = [legacy.begin("resources/read", {"uri": uri}) for _ in range(24)]
    for exchange in exchanges:
        assert len(exchange.reply().result["contents"][0]["text"]) == 2 << 20
