"""A2.3: files in both dialects, rooted at /mnt/data."""

from urllib.parse import quote

import pytest

from azure import NEW, OLD, code_of

FLAGS = ["--file-size", "100K"]


def put(pool, name="a.txt", data=b"hello", **query):
    return pool.upload("files", ("file", name, data), version=NEW, **query).expect(200).json


def test_a2_3_old_upload_list_download(either):
    stored = either.upload("files/upload", ("file", "a.txt", b"hello"), version=OLD).expect(200).json
    properties = stored["value"][0]["properties"]
    assert (properties["filename"], properties["size"]) == ("a.txt", 5) and properties["lastModifiedTime"]
    listed = either.get("files", OLD).expect(200).json
    assert listed["$id"] == "1" and listed["value"] == stored["value"]
    assert either.get("files/content/a.txt", OLD).expect(200).body == b"hello"


def test_a2_3_old_stat_and_delete(pool):
    put(pool)
    assert pool.get("files/a.txt", OLD).json["properties"]["size"] == 5
    pool.delete("files/a.txt", OLD).expect(204)
    assert code_of(pool.get("files/a.txt", OLD).expect(404)) == "FileNotFound"


def test_a2_3_new_upload_list_download_stat_delete(either):
    stored = put(either)
    assert {k: stored[k] for k in ("name", "type", "contentType", "sizeInBytes", "directory")} == \
        {"name": "a.txt", "type": "file", "contentType": "text/plain", "sizeInBytes": 5, "directory": ""}
    assert stored["lastModifiedAt"].endswith("Z")
    assert either.get("files", NEW).expect(200).json == {"value": [stored], "nextLink": None}
    assert either.get("files/a.txt", NEW).json == stored
    assert either.get("files/a.txt/content", NEW).body == b"hello"
    assert either.delete("files/a.txt", NEW).expect(204).body == b""
    assert either.get("files", NEW).json["value"] == []


def test_a2_3_oldest_paths(pool):
    pool.upload("python/uploadFile", ("file", "a.txt", b"1")).expect(200)
    assert pool.get("python/files").json["value"][0]["properties"]["filename"] == "a.txt"
    assert pool.get("python/downloadFile", filename="a.txt").body == b"1"
    assert pool.upload("upload", ("file", "b.txt", b"2")).json["value"][0]["properties"]["size"] == 1


def test_a2_3_code_and_clients_see_the_same_files(pool):
    put(pool, "in.txt", b"from outside")
    result = pool.run("import os\nopen('/mnt/data/out.txt', 'w').write(open('/mnt/data/in.txt').read().upper())\n"
                      "os.chdir('/mnt/data'); sorted(os.listdir('.'))")
    assert result["result"] == "['in.txt', 'out.txt']"
    assert pool.get("files/content/out.txt", OLD).body == b"FROM OUTSIDE"
    assert pool.execution(shellCommand="cat /mnt/data/in.txt").json["result"]["stdout"] == "from outside"


@pytest.mark.parametrize("name", ["/mnt/data/x.csv", "x.csv"])
def test_a2_3_the_root_may_be_a_part_of_the_name(pool, name):
    stored = pool.upload("files/upload", ("file", name, b"1")).json["value"][0]["properties"]
    assert stored["filename"] == "x.csv"
    assert pool.get("files/content/" + quote(name, safe=""), OLD).body == b"1"
    assert pool.get("files/content/" + name, OLD).body == b"1"


@pytest.mark.parametrize("path", ["/mnt/data", "/mnt/data/", "/", ".", ""])
def test_a2_3_the_root_as_a_path(pool, path):
    assert put(pool, path=path)["directory"] == ""
    assert [f["name"] for f in pool.get("files", NEW, path=path).json["value"]] == ["a.txt"]


@pytest.mark.parametrize("path", ["sub/deep", "/mnt/data/sub/deep", "/sub/deep/"])
def test_a2_3_folders(pool, path):
    stored = put(pool, path=path)
    assert (stored["name"], stored["directory"]) == ("a.txt", "sub/deep")
    assert pool.get("files/a.txt/content", NEW, path=path).body == b"hello"
    assert pool.get("files/content/sub/deep/a.txt", OLD).body == b"hello"
    top = pool.get("files", NEW).json["value"]
    assert [(f["name"], f["type"]) for f in top] == [("sub", "directory")]
    assert [f["name"] for f in pool.get("files", NEW, path="sub").json["value"]] == ["deep"]
    deep = pool.get("files", NEW, recursive="true").json["value"]
    assert [(f["directory"], f["name"]) for f in deep] == [("sub/deep", "a.txt")]
    assert pool.get("files", OLD).json["value"][0]["properties"]["filename"] == "sub/deep/a.txt"
    pool.delete("files/a.txt", NEW, path=path).expect(204)


@pytest.mark.parametrize("name", ["with space.txt", "ünï.txt", "a@$&=;,#%^().txt", "content", "100%.txt"])
def test_a2_3_names(pool, name):
    assert put(pool, name)["name"] == name
    assert pool.get(f"files/{quote(name, safe='')}/content", NEW).body == b"hello"
    assert pool.get("files/" + quote(name, safe=""), NEW).json["name"] == name


@pytest.mark.parametrize("name", ["../up.txt", "/etc/passwd/../../x", "a/../../b"])
def test_a2_3_no_way_out(pool, name):
    assert code_of(pool.upload("files/upload", ("file", name, b"1")).expect(400)) == "FilePathInvalid"
    assert code_of(pool.get("files/content/" + quote(name, safe=""), OLD).expect(400)) == "FilePathInvalid"
    assert code_of(pool.upload("files", ("file", "x", b"1"), path="../..").expect(400)) == "FilePathInvalid"


def test_a2_3_several_files_at_once(pool):
    answer = pool.upload("files/upload", ("file", "a", b"1"), ("file", "b", b"22")).expect(200).json
    assert [(f["properties"]["filename"], f["properties"]["size"]) for f in answer["value"]] == [("a", 1), ("b", 2)]


def test_a2_3_a_form_without_a_file(pool):
    assert pool.upload("files", ("path", None, b"x")).expect(400).json["errors"]["file"]
    pool.post("files", {}).expect(400)


def test_a2_5_too_large_is_413(pool):
    answer = pool.upload("files/upload", ("file", "big", b"x" * 200_000)).expect(413)
    assert answer.json["error"]["code"] == "RequestEntityTooLarge"


def test_a2_3_a_missing_file(pool):
    pool.run("1")
    for path in ("files/nope/content", "files/content/nope", "files/nope"):
        assert code_of(pool.get(path, NEW).expect(404)) == "FileNotFound"
    assert code_of(pool.delete("files/nope", NEW).expect(404)) == "FileNotFound"
