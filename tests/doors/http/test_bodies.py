"""Bodies: JSON against its table, raw uploads, forms, and how they are framed."""

import json

import pytest

from support.microhttpd import STRICT


def echo(server, body, *headers):
    return server.post("/echo", body, *headers)


def bad(server, body, param=None, status=400):
    answer = echo(server, body)
    assert answer.status == status, answer.body
    assert answer.error["param"] == param
    return answer.error["message"]


# --- JSON ---


def test_json(server):
    body = {"text": "é", "count": 5, "wall": 0.5, "flag": False, "kind": "other",
            "env": {"a": "b"}, "any": [1, None], "free": {"x": 1}, "names": ["a", "b"],
            "files": [{"path": "a"}, {"path": "b", "more": {"path": "c"}}]}
    assert echo(server, json.dumps(body)).json == {"body": body}


def test_no_body_is_an_empty_object(server):
    client = server.connect()
    assert client.get("/echo", method="POST").read().json == {"body": {}}
    assert client.get("/must", method="POST").read().status == 400
    assert client.post("/echo", "").read().json == {"body": {}}


@pytest.mark.parametrize("text, where", [
    ("{", "line 1, column 1"), ('{"text":"a"', "line 1"), ('{"text":"a"}x', "line 1"),
    ('{\n "text": tru}', "line 2, column"), ("nope", "line 1"), ('{"a":1,}', "line 1"),
    ('{"text":"a","text":"b"}', "duplicate"), ("{'text':'a'}", "line 1"), ("\ufeff{}", "line 1"),
    ('{"text":"\\u0000"}', "line 1"), ('{"text":"\\ud800"}', "line 1"), ('{"text":"a\nb"}', "line"),
    ('{"count":123456789012345678901}', "line 1"), ('{"wall":1e999}', "line 1"),
    ('{"wall":NaN}', "line 1"), ("[]", "JSON object"), ('"a"', ""), ("null", ""), ("1", "")])
def test_malformed(server, text, where):
    assert where.lower() in bad(server, text).lower()


@pytest.mark.parametrize("raw", [b'{"text":"\xff"}', b'{"text":"\xc3"}', b'{"text":"\xed\xa0\x80"}',
                                 b'{"text":"a\0b"}', b"\0{}", b'{"\xff":1}', b"\xff\xfe{\0}\0"])
def test_not_utf8(server, raw):
    bad(server, raw)


@pytest.mark.parametrize("body, param", [
    ({"text": 1}, "text"), ({"text": None}, "text"), ({"text": ""}, "text"),
    ({"text": "12345678901"}, "text"), ({"count": "1"}, "count"), ({"count": 1.5}, "count"),
    ({"count": 0}, "count"), ({"count": 6}, "count"), ({"count": True}, "count"),
    ({"wall": 1.01}, "wall"), ({"wall": -1.01}, "wall"), ({"flag": 1}, "flag"),
    ({"flag": "true"}, "flag"), ({"kind": "One"}, "kind"), ({"kind": "one|other"}, "kind"),
    ({"env": []}, "env"), ({"env": {"a": 1}}, "env.a"), ({"env": {"a": "", "b": "", "c": ""}}, "env"),
    ({"free": []}, "free"), ({"names": ["a", 1]}, "names[1]"), ({"names": "a"}, "names"),
    ({"files": [{}]}, "files[0].path"), ({"files": [{"path": "a"}, 1]}, "files[1]"),
    ({"files": [{"path": "a", "other": 1}]}, "files[0].other"),
    ({"files": [{"path": "a", "more": {"path": "b", "more": {}}}]}, "files[0].more.more.path"),
    ({"files": [{"path": "a"}] * 4}, "files"), ({"unknown": 1}, "unknown"), ({"": 1}, None)])
def test_wrong_members(server, body, param):
    bad(server, json.dumps(body), param)


def test_missing_member(server):
    answer = server.post("/must", "{}")
    assert answer.status == 400 and answer.error["param"] == "code"


def test_long_names_are_cut(server):
    answer = echo(server, json.dumps({"x" * 3000: 1}))
    assert answer.status == 400 and len(answer.error["param"]) < 200


def nested(depth):
    return '{"any":' + "[" * depth + "]" * depth + "}"


def test_depth(server):
    assert echo(server, nested(63)).status == 200
    assert "deep" in bad(server, nested(64))
    assert "deep" in bad(server, '{"any":' + "[" * 2000)
    assert echo(server, json.dumps({"any": "[" * 1000})).status == 200


@pytest.mark.parametrize("type_, status", [
    ("application/json", 200), ("Application/JSON; charset=utf-8", 200), ("text/plain", 415),
    ("application/x-www-form-urlencoded", 415), ("multipart/form-data; boundary=x", 415),
    ("application/jsonx", 415), ("application/json2; a=b", 415)])
def test_content_type(server, type_, status):
    answer = echo(server, "{}", f"Content-Type: {type_}")
    assert answer.status == status


def test_content_encoding(server):
    assert echo(server, "{}", "Content-Encoding: gzip").status == 415
    assert echo(server, "{}", "Content-Encoding: identity").status == 200


# --- sizes and framing ---


def test_body_at_the_limit(server):
    body = b'{"text":"a"}' + b" " * (4096 - 12)
    assert echo(server, body).status == 200
    assert echo(server, body + b" ").status == 413


def chunks(*pieces):
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def chunked(server, path, data, *headers, method="POST"):
    client = server.connect().get(path, "Transfer-Encoding: chunked", *headers, method=method)
    return client.send(data)


def test_chunked(server):
    client = chunked(server, "/echo", chunks(b'{"te', b'xt":"a"', b"}"))
    assert client.read().json == {"body": {"text": "a"}}
    assert client.get("/tiny").read().status == 200
    extended = chunked(server, "/echo", b"2;ext=1\r\n{}\r\n0\r\nTrailer: x\r\n\r\n").read()
    assert extended.status == (400 if STRICT else 200)


def test_chunked_past_the_limit(server):
    client = chunked(server, "/echo", chunks(b" " * 3000, b" " * 3000, b" " * 100_000))
    answer = client.read()
    assert answer.status == 413 and answer.error["type"] == "too_large"
    assert client.closed() == b""


def test_chunked_without_end(server):
    client = chunked(server, "/echo", b"")
    with pytest.raises(OSError):
        while True:
            client.send(b"1000\r\n" + b" " * 4096 + b"\r\n")


@pytest.mark.parametrize("data", [b"zz\r\n{}\r\n", b"2\r\n{}x\r\n0\r\n\r\n", b"-2\r\n{}\r\n",
                                  b"2 \r\n{}\r\n0\r\n\r\n", b"\r\n", b"0x2\r\n{}\r\n0\r\n\r\n",
                                  b"f" * 17 + b"\r\n"])
def test_chunked_nonsense(server, data):
    answer = chunked(server, "/echo", data).closed()
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 413"))


def test_too_large_is_refused_before_it_is_sent(server):
    client = server.connect().get("/echo", "Content-Length: 10000000", method="POST")
    assert client.read().status == 413 and client.closed() == b""


def test_a_client_that_sends_first_still_hears_why(server):
    answer = server.post("/echo", b" " * 3_000_000)
    assert answer.status == 413


def test_expect(server):
    client = server.connect().get("/raw", "Content-Length: 5", "Expect: 100-continue", method="PUT")
    assert client.read().status == 100
    assert client.send("hello").read().status == 201
    client = server.connect().get("/nowhere", "Content-Length: 5", "Expect: 100-continue",
                                  method="PUT")
    assert client.read().status == 404


def test_a_body_nobody_asked_for(server):
    client = server.connect()
    assert client.post("/none", "x" * 65536).read().status == 200
    assert client.get("/tiny").read().status == 200
    assert client.post("/none", "x" * 65537).read().status == 413


# --- uploads ---


def test_raw(server):
    answer = server.post("/raw", b"\0" * 1000, "Content-Type: image/png", method="PUT")
    assert answer.status == 201
    assert answer.json["uploads"] == [{"field": "", "name": "", "mime": "image/png", "size": 1000,
                                       "file": True, "kept": 1000}]
    assert server.get("/raw", method="PUT").json["uploads"][0]["kept"] == 0


def test_large_raw(serve, tmp_path):
    out = tmp_path / "out"
    server = serve(f=out)
    body = bytes(range(256)) * 40_000
    assert server.post("/raw", body, method="PUT").json["uploads"][0]["kept"] == len(body)
    assert chunked(server, "/raw", chunks(body[:5_000_000], body[5_000_000:]), method="PUT").read(
        ).json["uploads"][0]["kept"] == len(body)
    server.stop()
    assert out.read_bytes() == body


def test_memory_stays_flat(server):
    client = server.connect()
    client.post("/raw", b"x" * 1_000_000, method="PUT").read()
    before = server.memory()
    piece = b"x" * 1_000_000
    client.get("/raw", f"Content-Length: {300 * len(piece)}", method="PUT")
    for _ in range(300):
        client.send(piece)
    assert client.read().json["uploads"][0]["kept"] == 300_000_000
    assert server.memory() - before < 20_000_000


def test_a_slow_disk_slows_the_client(serve):
    server = serve(s=5, h=300)
    answer = server.post("/raw", b"x" * 20_000_000, method="PUT")
    assert answer.json["uploads"][0]["kept"] == 20_000_000


def test_upload_past_the_limit(serve):
    server = serve(b=1_000_000)
    answer = server.post("/raw", b"x" * 5_000_000, method="PUT")
    assert answer.status == 413 and "1000000" in answer.error["message"]
    answer = server.post("/raw", b"x" * 1_000_001, method="PUT")
    assert answer.status == 413
    assert server.post("/raw", b"x" * 1_000_000, method="PUT").status == 201


def test_upload_that_breaks_off(serve):
    server = serve(s=20)
    for _ in range(3):
        client = server.connect().get("/raw", "Content-Length: 9000000", method="PUT")
        client.send(b"x" * 2_000_000)
        client.close()
    server.wait(connections=1)


# --- forms ---

FORM = "Content-Type: multipart/form-data; boundary=frontier"


def part(head, data):
    return b"--frontier\r\n" + head.encode() + b"\r\n\r\n" + data + b"\r\n"


def form(*parts):
    return b"".join(parts) + b"--frontier--\r\n"


def file_part(name, data, field="file", more=""):
    return part(f'Content-Disposition: form-data; name="{field}"; filename="{name}"{more}', data)


def test_form(server):
    body = form(file_part("a.csv", b"1,2\r\n3,4", more="\r\nContent-Type: text/csv"),
                part('content-disposition:form-data;name=path', b"sub/dir"),
                file_part("empty", b""))
    answer = server.post("/form", body, FORM)
    assert answer.status == 201
    assert answer.json["uploads"] == [
        {"field": "file", "name": "a.csv", "mime": "text/csv", "size": 8, "file": True, "kept": 8},
        {"field": "path", "name": "", "mime": "", "size": 7, "file": False, "text": "sub/dir"},
        {"field": "file", "name": "empty", "mime": "", "size": 0, "file": True, "kept": 0}]


def test_form_in_pieces(server):
    body = form(file_part("a", b"\r\n--frontie\r\n-\r\n--fronti\r" * 3), file_part("b", b"\r\n"))
    client = server.connect().get("/form", FORM, f"Content-Length: {len(body)}", method="POST")
    for byte in body:
        client.send(bytes([byte]))
    assert [one["kept"] for one in client.read().json["uploads"]] == [75, 2]


def test_form_with_much_data(serve, tmp_path):
    out = tmp_path / "out"
    server = serve(f=out)
    data = (b"\r\n--frontie" + b"\r" * 7 + b"\n") * 200_000
    answer = server.post("/form", form(part('Content-Disposition: form-data; name="a"', b"b"),
                                       file_part("f", data)), FORM)
    assert answer.json["uploads"][1]["kept"] == len(data)
    server.stop()
    assert out.read_bytes() == data


@pytest.mark.parametrize("head, name", [
    ('filename="a b.txt"', "a b.txt"), ('filename="a\\"b"', 'a"b'), ('filename="C:\\x\\y"', "C:\\x\\y"),
    ("filename=plain", "plain"), ("filename=\"\"", ""), ("filename*=UTF-8''%C3%A9%20x", "é x"),
    ("filename=\"old\"; filename*=UTF-8''new", "new"), ('filename="../../etc"', "../../etc"),
    ('FileName="x"', "x"), ('filename="é"', "é")])
def test_file_names(server, head, name):
    body = form(part(f'Content-Disposition: form-data; name="f"; {head}', b"data"))
    upload = server.post("/form", body, FORM).json["uploads"][0]
    assert (upload["name"], upload["file"]) == (name, True)


@pytest.mark.parametrize("body", [
    b"", b"--frontier", b"--frontier--garbage"[:10], b"nothing of the kind",
    file_part("a", b"no end"), file_part("a", b"x") + b"--frontierX\r\n\r\n",
    form(part("Content-Disposition: form-data", b"x")),
    form(part('Content-Disposition: form-data; name=""', b"x")),
    form(part('Content-Disposition: attachment; name="a"', b"x")),
    form(part('Content-Disposition: form-data; name="a', b"x")),
    form(part('Content-Disposition: form-data; name="a"; filename*=latin1\'\'x', b"x")),
    form(part('Content-Disposition: form-data; name="a"; filename*=UTF-8\'\'%00', b"x")),
    form(part('Content-Disposition: form-data; name="a" b', b"x")),
    form(part("X: y", b"x")), form(part("no colon", b"x")), form(b"--frontier\r\n\r\nx\r\n"),
    form(part('Content-Disposition: form-data; name="a"\r\nContent-Transfer-Encoding: base64', b"x")),
    form(part('Content-Disposition: form-data; name="a\x01"', b"x")),
    form(part("Content-Disposition: form-data; name=a\r\nX: " + "y" * 5000, b"x")),
    form(*[file_part("a", b"x")] * 101)], ids=lambda body: repr(body[:60]))
def test_malformed_forms(server, body):
    answer = server.post("/form", body, FORM)
    assert answer.status == 400 and answer.error["type"] == "invalid_request"


def test_form_limits(server):
    for outside in (b"x" * 70_000 + b"\r\n" + form(), form() + b"x" * 70_000):
        assert server.post("/form", outside, FORM).status == 400
    assert server.post("/form", b"x" * 60_000 + b"\r\n" + form(), FORM).status == 201
    assert server.post("/form", form(*[file_part("a", b"x")] * 100), FORM).status == 201
    text = 'Content-Disposition: form-data; name="a"'
    assert server.post("/form", form(part(text, b"x" * 65536)), FORM).status == 201
    assert server.post("/form", form(part(text, b"x" * 65537)), FORM).status == 413


@pytest.mark.parametrize("type_, status", [
    ("multipart/form-data", 400), ("multipart/form-data; boundary=", 400),
    ("multipart/form-data; boundary=" + "x" * 71, 400), ('multipart/form-data; boundary="a"b', 400),
    ('multipart/form-data; boundary="frontier"', 201), ("multipart/mixed; boundary=frontier", 415),
    ("MULTIPART/FORM-DATA; x=y; BOUNDARY=frontier", 201), ("application/json", 415)])
def test_form_types(server, type_, status):
    answer = server.post("/form", form(file_part("a", b"x")), f"Content-Type: {type_}")
    assert answer.status == status


def test_either(server):
    assert server.post("/either", '{"code":"x"}').json["body"] == {"code": "x"}
    assert len(server.post("/either", form(file_part("a", b"x")), FORM).json["uploads"]) == 1
    assert server.post("/either", "{}").error["param"] == "code"
    assert server.post("/either", "{}", "Content-Type: text/plain").status == 415
