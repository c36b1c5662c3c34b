"""Skills: uploaded in versions, listed, deleted, mounted into containers, and told to the model."""

import io
import re
import stat
import zipfile
from pathlib import Path

import pytest

from api import refused
from support.model_server import ModelServer
from support.server import Server, form
from talk import Talk, body, results, tool

SKILLS = Path(__file__).resolve().parents[2] / "skills"
BETA = {"anthropic-beta": "code-execution-2025-08-25,skills-2025-10-02"}


def skill_md(name="harbour-tides", description="Tables of tides, and how to read them."):
    return f"---\nname: {name}\ndescription: {description}\n---\n\n# Tides\nRun scripts/tide.py.\n".encode()


SCRIPT = b"import sys\nprint('high water at', sys.argv[1])\n"


def send(talk, path, files, title=None, field="files[]", **headers):
    parts = [(field, name, data) for name, data in files]
    content, kind = form(*parts, *([("display_title", None, title.encode())] if title else []))
    return talk.post(path, bytes=content, headers={"Content-Type": kind, **headers})


def folder(name="harbour-tides", **more):
    return [(f"{name}/SKILL.md", skill_md(name, **more)), (f"{name}/scripts/tide.py", SCRIPT)]


def create(talk, name="harbour-tides", title=None):
    return send(talk, "/v1/skills", folder(name), title).expect(200).json


def used(talk, skill, command, version=None, **container):
    one = {"type": "custom", "skill_id": skill["id"], **({"version": version} if version else {})}
    message = talk.message(body([[{"bash": command}]], container={"skills": [one], **container}))
    return message, results(message)[0]


def test_the_life_of_a_skill(talk, stranger):
    made = create(talk, title="Tides of the harbour")
    assert made["id"].startswith("skill_") and made["type"] == "skill" and made["display_title"] == made["display_name"] == "Tides of the harbour"
    assert made["source"] == {"type": "custom"} and made["latest_version"] == made["latest_version_id"]
    old = talk.get(f"/v1/skills/{made['id']}?beta=true", headers=BETA).expect(200).json
    assert old == {**made, "source": "custom"}  # as clients of the beta have it
    assert talk.get("/v1/skills/" + made["id"]).expect(200).json == made
    version = talk.get(f"/v1/skills/{made['id']}/versions/{made['latest_version']}").expect(200).json
    assert version == {"id": made["latest_version"], "version": made["latest_version"], "type": "skill_version", "skill_id": made["id"],
                       "name": "harbour-tides", "directory": "harbour-tides", "description": "Tables of tides, and how to read them.",
                       "created_at": version["created_at"]}

    newer = send(talk, f"/v1/skills/{made['id']}/versions", folder(description="Better tables."), field="files").expect(200).json
    assert newer["description"] == "Better tables." and newer["id"] != version["id"]
    now = talk.get("/v1/skills/" + made["id"]).json
    assert now["latest_version"] == newer["id"] and now["display_title"] == made["display_title"] and now["created_at"] == made["created_at"]
    listed = talk.get(f"/v1/skills/{made['id']}/versions").expect(200).json
    assert [v["id"] for v in listed["data"]] == [newer["id"], version["id"]] and not listed["has_more"] and listed["next_page"] is None
    first = talk.get(f"/v1/skills/{made['id']}/versions?limit=1").json
    assert first["has_more"] and talk.get(f"/v1/skills/{made['id']}/versions?limit=1&page={first['next_page']}").json["data"][0]["id"] == version["id"]

    for path in (f"/v1/skills/{made['id']}", f"/v1/skills/{made['id']}/versions", f"/v1/skills/{made['id']}/versions/{newer['id']}"):
        refused(stranger.get(path), 404)
    refused(stranger.delete(f"/v1/skills/{made['id']}"), 404)
    refused(send(stranger, f"/v1/skills/{made['id']}/versions", folder()), 404)
    assert made["id"] not in [s["id"] for s in stranger.get("/v1/skills").json["data"]]
    assert made["id"] in [s["id"] for s in talk.get("/v1/skills?source=custom").json["data"]]
    assert made["id"] not in [s["id"] for s in talk.get("/v1/skills?source=anthropic").json["data"]]

    other = create(talk, "other-one")
    refused(talk.get(f"/v1/skills/{other['id']}/versions/{newer['id']}"), 404)  # of another skill
    refused(talk.delete(f"/v1/skills/{other['id']}/versions/{newer['id']}"), 404)
    assert talk.delete(f"/v1/skills/{made['id']}/versions/{newer['id']}").expect(200).json == {"id": newer["id"], "type": "skill_version_deleted"}
    assert talk.get("/v1/skills/" + made["id"]).json["latest_version"] == version["id"]
    assert talk.delete(f"/v1/skills/{made['id']}/versions/{version['id']}").status == 200
    assert talk.get("/v1/skills/" + made["id"]).json["latest_version"] is None
    refused(talk.ask_model(body([[{"text": "x"}]], container={"skills": [{"type": "custom", "skill_id": made["id"]}]})), 404)
    assert talk.delete(f"/v1/skills/{made['id']}").expect(200).json == {"id": made["id"], "type": "skill_deleted"}
    refused(talk.get("/v1/skills/" + made["id"]), 404)
    assert talk.delete(f"/v1/skills/{other['id']}").status == 200  # with its version
    refused(talk.get(f"/v1/skills/{other['id']}/versions/{other['latest_version']}"), 404)
    assert not [f for f in talk.list()["data"] if "SKILL" in f["filename"]]  # its files are no files of the Files API


def test_a_skill_is_in_the_container(talk):
    skill = create(talk)
    message, ran = used(talk, skill, "cat /skills/harbour-tides/SKILL.md && python3 /skills/harbour-tides/scripts/tide.py noon")
    assert ran["return_code"] == 0 and "# Tides" in ran["stdout"] and "high water at noon" in ran["stdout"], ran
    assert message["container"]["skills"] == [{"type": "custom", "skill_id": skill["id"], "version": skill["latest_version"]}]
    assert ran["content"] == []  # what was brought along is nothing that the code has made
    here = message["container"]["id"]
    _, ran = used(talk, skill, "ls /skills; stat -c %Y /skills/harbour-tides/SKILL.md", version="latest", id=here)
    before = ran["stdout"]
    _, again = used(talk, skill, "ls /skills; stat -c %Y /skills/harbour-tides/SKILL.md", id=here)
    assert again["stdout"] == before  # it was there, and was not brought again

    newer = send(talk, f"/v1/skills/{skill['id']}/versions", folder(description="v2")).expect(200).json
    _, ran = used(talk, skill, "head -3 /skills/harbour-tides/SKILL.md", version=skill["latest_version"])
    assert "how to read them" in ran["stdout"]
    _, ran = used(talk, skill, "head -3 /skills/harbour-tides/SKILL.md", version=newer["id"], id=here)
    assert "description: v2" in ran["stdout"]
    assert talk.delete(f"/v1/skills/{skill['id']}").status == 200
    assert talk.bash("cat /skills/harbour-tides/SKILL.md", container=here)["return_code"] == 0  # the container keeps its copy


OWN = "code-execution"


def test_a_version_is_downloaded_as_it_was_uploaded(talk, stranger):
    skill = create(talk)
    whole = [("harbour-tides/SKILL.md", skill_md()), ("harbour-tides/a/b/c.bin", bytes(range(256)) * 5000), ("harbour-tides/empty", b"")]
    newer = send(talk, f"/v1/skills/{skill['id']}/versions", whole).expect(200).json
    path = f"/v1/skills/{skill['id']}/versions/{newer['id']}/content"
    got = talk.get(path).expect(200)
    assert got.headers["content-type"] == "application/zip" and "harbour-tides.zip" in got.headers["content-disposition"]
    with zipfile.ZipFile(io.BytesIO(got.body)) as z:
        assert z.testzip() is None and sorted((i.filename, z.read(i)) for i in z.infolist()) == sorted(whole)
    again = send(talk, "/v1/skills", [("again.zip", got.body)]).expect(200).json  # it can be uploaded again
    assert talk.get(f"/v1/skills/{again['id']}/versions/{again['latest_version']}/content").body == got.body
    refused(stranger.get(path), 404)
    refused(talk.get(f"/v1/skills/{again['id']}/versions/{newer['id']}/content"), 404)
    refused(talk.get(f"/v1/skills/{again['id']}/versions/none/content"), 404)

    with zipfile.ZipFile(io.BytesIO(talk.get("/v1/skills/code-execution/versions/latest/content").expect(200).body)) as z:
        assert z.read("code-execution/SKILL.md") == (SKILLS / "code-execution/SKILL.md").read_bytes() and len(z.namelist()) == 2
    refused(talk.get("/v1/skills/code-execution/versions/9.9.9/content"), 404)
    for one in (skill, again):
        assert talk.delete("/v1/skills/" + one["id"]).status == 200


def test_the_skills_of_the_server(talk):
    own = talk.get(f"/v1/skills/{OWN}").expect(200).json
    version = own["latest_version"]
    assert own["id"] == OWN and own["source"] == {"type": "anthropic"} and version
    assert talk.get("/v1/skills?source=anthropic").json["data"] == [own]
    shown = talk.get(f"/v1/skills/{OWN}/versions/{version}").expect(200).json
    assert shown["name"] == OWN and shown["description"] and shown["skill_id"] == OWN
    assert talk.get(f"/v1/skills/{OWN}/versions").json["data"] == [shown]
    refused(talk.get(f"/v1/skills/{OWN}/versions/1.0"), 404)
    for answer in (talk.delete(f"/v1/skills/{OWN}"), talk.delete(f"/v1/skills/{OWN}/versions/{version}"),
                   send(talk, f"/v1/skills/{OWN}/versions", folder(OWN))):
        assert "part of the server" in refused(answer, 400)

    made = [create(talk, f"beside-{n}")["id"] for n in range(2)]
    ids, page = [], ""
    while page is not None:  # with each of them once, whichever page they are on
        listed = talk.get(f"/v1/skills?limit=1{page and '&page=' + page}").expect(200).json
        ids, page = ids + [s["id"] for s in listed["data"]], listed["next_page"]
    assert ids[-1] == OWN and len(ids) == len(set(ids)) and set(made) < set(ids)
    assert [s["id"] for s in talk.get("/v1/skills?limit=1000").json["data"]] == ids


@pytest.mark.parametrize("version", [None, "latest"])
def test_a_skill_of_the_server_is_in_the_container(talk, version):
    one = {"type": "anthropic", "skill_id": OWN, **({"version": version} if version else {})}
    command = f"cd /skills/{OWN}; printf 'a,b\n1,x\n3,y\n' > $OUTPUT_DIR/t.csv; " \
              "python3 scripts/profile_table.py $OUTPUT_DIR/t.csv; cat SKILL.md"
    message = talk.message(body([[{"bash": command}]], container={"skills": [one]}))
    printed = results(message)[0]["stdout"]
    assert "a: 2 values, 0 missing, 2 distinct, 1 to 3, mean 2" in printed
    assert printed.endswith((SKILLS / OWN / "SKILL.md").read_text())
    assert message["container"]["skills"] == [{"type": "anthropic", "skill_id": OWN,
                                               "version": talk.get(f"/v1/skills/{OWN}").json["latest_version"]}]


def test_a_skill_of_the_server_speaks_of_tools_that_there_are():
    text = (SKILLS / OWN / "SKILL.md").read_text()
    assert not {"run_code", "execute_python", "list_packages", "session_id"} & set(re.findall(r"\w+", text))


def test_skills_of_the_server_that_are_none(talk):
    def ask(**skill):
        return talk.ask_model(body([[{"text": "x"}]], container={"skills": [{"type": "anthropic", **skill}]}))

    said = refused(ask(skill_id="xlsx"), 400)
    assert "`xlsx`" in said and f"`{OWN}`" in said
    refused(ask(skill_id=OWN, version="1.0"), 404)
    refused(ask(skill_id="code-interpreter"), 400)  # of other tools


def test_what_is_no_skill_is_refused(talk):
    good = ("a/SKILL.md", skill_md("a"))
    for files, word in (
            ([], "no SKILL.md"), ([("a/readme.md", b"x")], "no SKILL.md"), ([("SKILL.md", skill_md("a"))], "FOLDER/path"),
            ([good, ("a.zip", b"PK\x03\x04")], "same folder"), ([good, ("a/x", b"x"), ("a/x/y", b"y")], "a file and a folder"), ([good, ("b/x", b"x")], "same folder"), ([good, ("a/../x", b"x")], "files"),
            ([good, ("a/SKILL.md", b"x")], "twice"), ([("a/SKILL.md", b"# no front matter\n")], "line ---"),
            ([("a/SKILL.md", b"")], "line ---"), ([("a/SKILL.md", b"---\nname: a\n---\n")], "no description"),
            ([("a/SKILL.md", b"---\ndescription: d\n---\n")], "no name"), ([("a/SKILL.md", b"---\nname: A b\ndescription: d\n---\n")], "small letters"),
            ([("a/SKILL.md", b"---\nname: " + b"a" * 65 + b"\ndescription: d\n---\n")], "small letters"),
            ([("a/SKILL.md", b"---\nname: a\ndescription: " + b"d" * 1025 + b"\n---\n")], "1024"),
            ([("a/SKILL.md", b"---\nname: a\ndescription: \xff\n---\n")], "text")):
        assert word in refused(send(talk, "/v1/skills", files), 400), files
    assert "one line" in refused(send(talk, "/v1/skills", [good], "two\nlines"), 400)
    made = send(talk, "/v1/skills", [good]).expect(200).json
    assert "are named a" in refused(send(talk, f"/v1/skills/{made['id']}/versions", [("b/SKILL.md", skill_md("b"))]), 400)
    for query in ("limit=0", "limit=x", "limit=1001", "page=x", "page=page_", "page=page_x", "page=page_20", "page=page_skill_"):
        refused(talk.get("/v1/skills?" + query), 400)
    assert talk.delete(f"/v1/skills/{made['id']}").status == 200


@pytest.mark.parametrize("matter, description", [
    ('name: yaml\ndescription: "with \\"quotes\\": and a # sign"', 'with "quotes": and a # sign'),
    ("description: 'it''s one'\nname: yaml", "it's one"),
    ("license: MIT\nname: yaml # as ever\ndescription: plain\n  goes on\nmetadata:\n  name: not this", "plain goes on"),
    ("name: yaml\ndescription: >\n  folded\n  text", "folded text"), ("name: yaml\ndescription: |-\n  two\n  lines", "two\nlines"),
    ("name: yaml\r\ndescription: carriage returns\r", "carriage returns"),
])
def test_front_matter_as_people_write_it(talk, matter, description):
    made = send(talk, "/v1/skills", [("y/SKILL.md", f"---\n{matter}\n---\nbody\nname: wrong\n".encode())]).expect(200).json
    version = talk.get(f"/v1/skills/{made['id']}/versions/{made['latest_version']}").json
    assert (version["name"], version["description"]) == ("yaml", description)
    assert talk.delete(f"/v1/skills/{made['id']}").status == 200


def test_skills_of_a_request_are_checked(talk):
    def ask(skills, **fields):
        return talk.ask_model(body([[{"text": "x"}]], container={"skills": skills}, **fields))

    said = refused(ask([{"type": "anthropic", "skill_id": "pptx", "version": "latest"}]), 400)
    assert "`pptx`" in said and "POST /v1/skills" in said
    for skills, word in (([{"type": "custom"}], "skill_id"), ([{"type": "odd", "skill_id": "x"}], "type"), ("x", "array"),
                         ([{"type": "custom", "skill_id": "x"}] * 2, "twice"), ([{"type": "custom", "skill_id": "x", "version": 7}], "version"),
                         ([{"type": "custom", "skill_id": f"s{n}"} for n in range(21)], "at most 20")):
        assert word in refused(ask(skills), 400), skills
    assert "code_execution" in refused(ask([{"type": "custom", "skill_id": "x"}], tools=[]), 400)
    refused(ask([{"type": "custom", "skill_id": "skill_nobody"}]), 404)
    assert ask([]).status == 200 and ask(None).status == 200


def test_the_model_is_told_of_skills():
    with ModelServer() as models:
        desk = models.desk(always={"fault": "say", "steps": [{"text": "seen"}]})
        config = f"[model one]\napi = anthropic\nurl = {desk.anthropic}\n"
        with Server("--ready", "0", "--preload", "", config=config) as server, Talk(server) as talk:
            skills = [create(talk, name) for name in ("first-one", "second-one")]
            talk.message({"model": "one", "max_tokens": 9, "system": "Be brief.", "tools": [tool()],
                          "messages": [{"role": "user", "content": "hi"}],
                          "container": {"skills": [{"type": "custom", "skill_id": s["id"]} for s in skills]}})
            told = desk.requests[-1]["body"]["system"]
    assert told.startswith("Be brief.\n\n") and told.count("SKILL.md first") == 1
    for name in ("first-one", "second-one"):
        assert f"- {name} (/skills/{name}/SKILL.md): Tables of tides, and how to read them." in told


@pytest.fixture(scope="module")
def narrow():
    """A tenant with 20 kB for all that it brings."""
    with Server("--model-script", "-", "--tenant-files", "20k", "--ready", "0", "--preload", "") as server, Talk(server) as talk:
        yield talk


def large(name, size):
    return [(f"{name}/SKILL.md", skill_md(name)), (f"{name}/data.bin", bytes([len(name)]) * size)]


def test_skills_and_files_have_one_quota(narrow):
    def full(answer):
        assert "20480 bytes" in refused(answer, 400, "storage_quota_exceeded")

    first = send(narrow, "/v1/skills", large("first-one", 15000)).expect(200).json
    full(send(narrow, "/v1/skills", large("second-one", 6000)))
    full(send(narrow, f"/v1/skills/{first['id']}/versions", large("first-one", 6000)))
    full(send(narrow, "/v1/skills", [("a.zip", zipped(large("second-one", 6000)))]))  # what it unpacks to counts
    content, kind = form(("file", "a", bytes(6000)))
    full(narrow.post("/v1/files", bytes=content, headers={"Content-Type": kind}))
    batch = {"requests": [{"custom_id": str(i), "params": {"model": "x", "messages": [], "system": "x" * 1000}} for i in range(6)]}
    full(narrow.post("/v1/messages/batches", batch))
    assert [s["id"] for s in narrow.get("/v1/skills?source=custom").expect(200).json["data"]] == [first["id"]]
    narrow.delete(f"/v1/skills/{first['id']}/versions/{first['latest_version']}").expect(200)
    narrow.delete("/v1/skills/" + first["id"]).expect(200)
    send(narrow, "/v1/skills", large("second-one", 6000)).expect(200)
    narrow.post("/v1/messages/batches", batch).expect(200)


def zipped(files, level=zipfile.ZIP_DEFLATED, **attributes):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", level) as z:
        for name, data in files:
            info = zipfile.ZipInfo(name)
            info.compress_type = level
            for key, value in attributes.get(name.strip("/").replace("/", "_"), {}).items():
                setattr(info, key, value)
            z.writestr(info, data)
    return held.getvalue()


@pytest.mark.parametrize("files", [
    folder(), [("SKILL.md", skill_md()), ("scripts/tide.py", SCRIPT)], [("harbour-tides/", b""), ("harbour-tides/scripts/", b""), *folder()],
    [*folder(), ("__MACOSX/harbour-tides/._SKILL.md", b"\0\x05\x16\x07"), ("__MACOSX/._harbour-tides", b"x")],
    [("any name/" + name.split("/", 1)[1], data) for name, data in folder()],
], ids=["a folder", "no folder", "with folders", "of a Mac", "another folder"])
@pytest.mark.parametrize("level", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED], ids=["deflated", "stored"])
def test_a_zip_is_unpacked(talk, files, level):
    skill = send(talk, "/v1/skills", [("Tides.ZIP", zipped(files, level))]).expect(200).json
    assert skill["display_title"] == "harbour-tides"
    _, ran = used(talk, skill, "cd /skills/harbour-tides && find . -type f | sort && python3 scripts/tide.py noon")
    assert ran["stdout"] == "./SKILL.md\n./scripts/tide.py\nhigh water at noon\n", ran
    newer = send(talk, f"/v1/skills/{skill['id']}/versions", [("b.zip", zipped(folder(description="From a zip.")))], field="files").expect(200).json
    assert newer["description"] == "From a zip."
    assert talk.delete(f"/v1/skills/{skill['id']}").status == 200


def test_zips_as_other_programs_write_them(talk):
    class Pipe(io.RawIOBase):  # cannot seek: sizes come after the bytes
        def __init__(self):
            self.held = b""

        def writable(self):
            return True

        def write(self, data):
            self.held += bytes(data)
            return len(data)

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as z:
        z.comment = b"PK\5\6 is here, too"
        for name, data in folder():
            z.writestr(name, data)
    of_windows = zipped([(name.replace("/", "\\"), data) for name, data in folder()])
    of_windows = of_windows.replace(b"PK\1\2\x14\x03", b"PK\1\2\x14\x00")  # made on a FAT
    for data in (pipe.held, of_windows):
        made = send(talk, "/v1/skills", [("a.zip", data)]).expect(200).json
        _, ran = used(talk, made, "cd /skills/harbour-tides && find . -type f | sort")
        assert ran["stdout"] == "./SKILL.md\n./scripts/tide.py\n"
        assert talk.delete(f"/v1/skills/{made['id']}").status == 200


def test_hostile_zips_are_refused(talk):
    good, whole = ("a/SKILL.md", skill_md("a")), zipped(folder())
    link = {"external_attr": (stat.S_IFLNK | 0o777) << 16, "create_system": 3}
    pipe = {"external_attr": (stat.S_IFIFO | 0o600) << 16, "create_system": 3}
    bomb, other = zipped([good, ("a/zeros", bytes(31 << 20))]), zipped([good, *((f"a/{n}", bytes(4 << 20)) for n in range(8))])
    lies = zipped([good, ("a/zeros", bytes(31 << 20))]).replace((31 << 20).to_bytes(4, "little"), (9).to_bytes(4, "little"))
    locked = bytearray(zipped([good]))
    for at in (6, locked.index(b"PK\1\2") + 8):
        locked[at] |= 1
    damaged = bytearray(zipped([good], zipfile.ZIP_STORED))
    damaged[damaged.index(b"Tables")] ^= 1
    for data, word in (
            (b"", "zip"), (b"PK\x03\x04", "zip"), (b"x" * 70000, "zip"), (whole[:-30], "zip"), (whole[30:], "zip"), (b"junk" + whole, "zip"),
            (zipped([]), "no SKILL.md"), (zipped([("a/readme.md", b"x")]), "no SKILL.md"), (zipped([("a/b/SKILL.md", skill_md("a"))]), "no SKILL.md"),
            (zipped([good, ("b/x", b"x")]), "no SKILL.md"), (zipped([good, ("x", b"x")]), "no SKILL.md"),
            (zipped([good, ("a/../../x", b"x")]), ".."), (zipped([good, ("../x", b"x")]), ".."), (zipped([good, ("/etc/x", b"x")]), "/etc/x"),
            (zipped([good, ("a/x/../", b"")]), ".."), (zipped([good, ("a/l", b"/etc/passwd")], a_l=link), "link"),
            (zipped([good, ("a/p", b"")], a_p=pipe), "link"), (bomb, "30 MiB"), (other, "30 MiB"), (lies, "a/zeros"),
            (zipped([good, *((f"a/{n}", b"x") for n in range(100))]), "100 files"), (zipped([good, ("a/x", b"1"), ("a/x", b"2")]), "twice"),
            (zipped([good, ("a/x", b"1"), ("a/x/y", b"2")]), "a file and a folder"), (bytes(locked), "encrypted"), (bytes(damaged), "damaged"),
            (zipped([good], zipfile.ZIP_LZMA), "compressed"), (zipped([("a/SKILL.md", b"no front matter")]), "line ---")):
        assert word in refused(send(talk, "/v1/skills", [("a.zip", data)]), 400), (word, data[:80])
    for n in range(len(whole)):  # whatever is cut, and whatever is changed, has an answer
        if n % 7 == 0:
            assert send(talk, "/v1/skills", [("a.zip", whole[:n])]).status == 400
            changed = bytearray(whole)
            changed[n] ^= 0xFF
            assert send(talk, "/v1/skills", [("a.zip", bytes(changed))]).status in (200, 400)
    for skill in talk.get("/v1/skills?limit=1000&source=custom").json["data"]:
        assert talk.delete(f"/v1/skills/{skill['id']}").status == 200


def test_pages_of_skills_go_on_where_they_were(talk):
    names = [f"page-{n}" for n in range(5)]
    made = [create(talk, name)["id"] for name in names]
    first = talk.get("/v1/skills?limit=2").json
    assert [s["id"] for s in first["data"]] == made[:2:-1] and first["has_more"]
    later = create(talk, "page-later")["id"]
    assert talk.delete(f"/v1/skills/{made[3]}").status == 200  # the last one of that page
    second = talk.get("/v1/skills?limit=2&page=" + first["next_page"]).json
    assert [s["id"] for s in second["data"]] == [made[2], made[1]] and second["has_more"]  # none twice, none left out
    third = talk.get("/v1/skills?limit=2&page=" + second["next_page"]).json
    assert third["data"][0]["id"] == made[0] and not third["has_more"] and third["next_page"] is None
    for skill in (*made[:3], made[4], later):
        assert talk.delete(f"/v1/skills/{skill}").status == 200
