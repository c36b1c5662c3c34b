"""Stored bytes that the disk has changed: nobody gets them, whoever asks and however; the same bytes
uploaded again heal them everywhere."""

import base64
import hashlib
import os

import pytest

from support.mcp import Legacy
from support.server import Server

SMALL = b"a few bytes"
LARGE = os.urandom(200_000)  # remembered as good for a while
AZURE = "/azure/pools/default/files/{}/content?api-version=2025-10-02-preview&identifier={}"


@pytest.fixture(scope="module")
def server():
    with Server("--max-sessions", "20") as one:
        yield one


@pytest.fixture
def client(server):
    with server.client() as one:
        yield one


def blob_of(server, content):
    name = hashlib.sha256(content).hexdigest()
    return server.state / "blobs" / name[:2] / name[2:]


def damage(server, content):
    """One bit in the middle, as a disk does it: the file looks the same from outside."""
    blob = blob_of(server, content)
    before = blob.stat()
    with open(blob, "r+b") as f:
        f.seek(len(content) // 2)
        byte = f.read(1)[0]
        f.seek(len(content) // 2)
        f.write(bytes([byte ^ 4]))
    os.utime(blob, ns=(before.st_atime_ns, before.st_mtime_ns))


def refused(answer, content):
    assert answer.status == 500 and answer.json["error"]["type"] == "damaged", answer
    message = answer.json["error"]["message"]
    name = hashlib.sha256(content).hexdigest()
    assert "upload the file again" in message and f"blobs/{name[:2]}/{name[2:]}" in message


def fresh(content):
    return content + os.urandom(8)


@pytest.mark.parametrize("base", [SMALL, LARGE], ids=["small", "large"])
def test_every_way_to_read_a_file(server, client, base):
    content = fresh(base)
    upload = client.form("/v1/files", ("file", "f.bin", content)).expect(201).json
    session = client.session()
    session.put("f.bin", content)
    azure = AZURE.format("f.bin", "damaged-" + os.urandom(4).hex())
    client.form(azure.replace("/f.bin/content", ""), ("file", "f.bin", content)).expect(200)
    ways = {f"/v1/files/{upload['id']}/content": content, session.file("f.bin"): content, azure: content}
    for path, expected in ways.items():
        assert client.get(path).expect(200).body == expected

    damage(server, content)
    for path in ways:
        answer = client.get(path)
        if path == azure:
            assert answer.status == 500 and "damaged" in answer.text and "FileDamaged" in answer.text, answer
        else:
            refused(answer, content)
            refused(client.get(path, headers={"Range": "bytes=0-0"}), content)
    with pytest.raises(Exception):  # an archive that ends too soon is none
        client.get(session.path + "/workspace?format=zip").expect(200)
    client.close()
    given = client.post(session.path + "/execute", {"code": "1", "files": [{"id": upload["id"], "path": "g"}]})
    refused(given, content)
    with Legacy(server) as mcp:
        result = mcp.call("read_file", session_id=session.id, path="f.bin")
        assert result["isError"] and "damaged" in str(result), result

    client.form("/v1/files", ("file", "again", content)).expect(201)
    for path, expected in ways.items():
        assert client.get(path).expect(200).body == expected


def test_a_session_that_wakes_up_says_what_is_missing():
    with Server() as server, server.client() as client:
        session = client.session()
        session.run("open('good', 'w').write('good'); open('bad', 'w').write('these are bad soon')")
        server.stop()
        damage(server, b"these are bad soon")
        server.start()
        client.close()
        done = session.run("import os; sorted(os.listdir())")
        assert done["result"] == "['good']"
        [note] = [e["text"] for e in done["events"] if e["type"] == "status" and "put back" in e["text"]]
        assert "bad: " in note and "damaged" in note and "upload" in note
        # It is not taken for deleted: with its bytes back it is there again.
        client.form("/v1/files", ("file", "again", b"these are bad soon")).expect(201)
        assert client.get(session.file("bad")).expect(200).body == b"these are bad soon"


def test_a_record_whose_output_is_damaged_says_so(server, client):
    text = base64.b64encode(os.urandom(60_000)).decode()
    done = client.session().run(f"print({text!r})")
    [blob] = [p for p in (server.state / "blobs").glob("??/*") if text.encode() in p.read_bytes()]
    whole = blob.read_bytes()
    damage(server, whole)
    [event] = client.get("/v1/executions/" + done["id"]).expect(200).json["events"]
    assert event["type"] == "status" and "damaged" in event["text"]
