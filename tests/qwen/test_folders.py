"""The work dir, and where links to images lead: settings of the operator."""

import json
import re
import shutil
from contextlib import contextmanager

import pytest
from support.server import Server, folder

PNG = b"\x89PNG\r\n\x1a\n"
FLAGS = ["--memory", "1G", "--disk", "256M"]
SHOW = "plt.plot([1]); plt.show()"


@contextmanager
def serving(*flags, env=None):
    """(a folder that everybody may write, a client); {} in a setting is that folder."""
    place = folder()
    place.chmod(0o777)
    try:
        with Server(*FLAGS, *[f.replace("{}", str(place)) for f in flags],
                    env={k: v.replace("{}", str(place)) for k, v in (env or {}).items()}) as server, \
                server.client() as client:
            yield place, client
    finally:
        shutil.rmtree(place, ignore_errors=True)


def post(client, body):
    body = body if isinstance(body, str) else json.dumps(body)
    return client.post("/qwen/code_interpreter", body=body.encode(),
                       headers={"Content-Type": "text/plain"}).expect(200)


def run(client, body):
    return post(client, body).text


def link_in(text):
    return re.search(r"!\[fig-001\]\((.*)\)", text).group(1)


@pytest.fixture(scope="module")
def by_setting():
    """The folder in the work dir of those who need no key, and a client."""
    with serving("--qwen-work-dir", "{}",
                 env={"M6_CODE_INTERPRETER_WORK_DIR": "/nonexistent"}) as (place, client):
        (place / "local").mkdir()
        (place / "local").chmod(0o777)
        yield place / "local", client


def test_q19_work_dir_by_setting(by_setting):
    place, client = by_setting
    assert run(client, "open('a', 'w').write('made'); import os; os.makedirs('d'); "
                       "open('d/b', 'w').write('below');") == "Finished execution."
    assert (place / "a").read_text() == "made" and (place / "d" / "b").read_text() == "below"
    run(client, "os.unlink('a')")
    assert not (place / "a").exists()


def test_q19_work_dir_of_one_call(by_setting):
    place, client = by_setting
    run(client, {"code": "open('c', 'w').write('x');", "work_dir": "one/chat"})
    assert (place / "one" / "chat" / "c").read_text() == "x"
    text = run(client, {"code": "open('c2', 'w').write('x');", "work_dir": "../out"})
    assert "was not written" in text and not (place.parent / "out").exists()


def test_q19_links_in_the_work_dir_are_not_followed(by_setting):
    place, client = by_setting
    outside = folder()
    outside.chmod(0o777)
    (place / "trap").symlink_to(outside)
    text = run(client, "import os; os.makedirs('trap'); open('trap/x', 'w').write('x');")
    assert "was not written" in text and not (outside / "x").exists()
    shutil.rmtree(outside)


def test_q20_local_file_in(by_setting):
    place, client = by_setting
    (place / "data.csv").write_text("n\n5\n")
    (place / "link.csv").symlink_to("/etc/passwd")
    body = {"code": "print(open('data.csv').read())", "files": [str(place / "data.csv")]}
    assert "n\n5\n" in run(client, body)
    body["files"] = [f"file://{place}/data.csv", f"{place}/../../etc/passwd", f"{place}/link.csv"]
    text = run(client, body)
    assert text.count("is not there") == 2 and "n\n5\n" in text and "root:" not in text


def test_q18_work_dir_has_the_images(by_setting):
    place, client = by_setting
    link = link_in(run(client, SHOW))
    assert link.startswith(str(place) + "/")
    with open(link, "rb") as file:
        assert file.read().startswith(PNG)


def test_q18_q19_by_the_environment():
    with serving(env={"M6_CODE_INTERPRETER_WORK_DIR": "{}",
                      "M6_CODE_INTERPRETER_STATIC_URL": "https://cdn/x"}) as (place, client):
        run(client, "open('a', 'w').write('made')")
        assert (place / "local" / "a").read_text() == "made"
        link = link_in(run(client, SHOW))
        assert link.startswith("https://cdn/x/local/")
        assert (place / "local" / link.rpartition("/")[2]).read_bytes().startswith(PNG)


def test_q18_q19_q34_without_a_folder_and_after_the_end():
    with Server(*FLAGS, "--qwen-static-url", "https://chat.example/images") as server:
        with server.client() as client:
            answer = post(client, "open('a', 'w').write('x')\nimport subprocess\n"
                                  "subprocess.Popen(['sleep', '60']);\n" + SHOW)
            link = link_in(answer.text)
            session = client.get(f"/v1/sessions/{answer.headers['x-qwen-session']}/files").json
            assert [f["path"] for f in session["data"]] == ["a"]
            assert link.startswith("https://chat.example/images/")
        server.kill()
        server.check_clean()
        server.start()
        with server.client() as client:
            own = client.get("/qwen/static/" + link.rpartition("/")[2]).expect(200)
            assert own.body.startswith(PNG)
            text = run(client, "print(open('a').read())\nsubprocess")
            assert "Note: " in text and "x\n" in text and "NameError" in text


def test_tenants_have_folders_of_their_own():
    names = {"a": "acme", "b": "../acme", "c": "local"}
    place = folder()
    place.chmod(0o777)
    try:
        with Server(*FLAGS, "--qwen-work-dir", str(place)) as server:
            keys = {k: server.keys("create", "--tenant", v, "--quiet").strip() for k, v in names.items()}
            server.stop()
            server.start()
            clients = {k: server.client(v) for k, v in keys.items()}
            for k, c in clients.items():
                run(c, f"open('mine', 'w').write('{k}');")
            assert {p.relative_to(place).as_posix(): p.read_text() for p in place.rglob("mine")} == {
                "acme/mine": "a", "%2E%2E%2Facme/mine": "b", "local/mine": "c"}
            for given in (f"{place}/acme/mine", "../acme/mine", f"{place}/local/../acme/mine", f"{place}/acme"):
                assert "is not there" in run(clients["c"], {"code": "print(1)", "files": [given]}), given
            assert "a\n" in run(clients["a"], {"code": "print(open('mine').read())", "files": [f"{place}/acme/mine"]})
            run(clients["c"], "import os; os.unlink('mine');")
            assert (place / "acme" / "mine").read_text() == "a" and not (place / "local" / "mine").exists()
            text = run(clients["c"], {"code": "open('mine', 'w').write('c');", "work_dir": "../acme"})
            assert "was not written" in text and (place / "acme" / "mine").read_text() == "a"
            for c in clients.values():
                c.close()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def test_q19_work_dir_by_the_default_workspace():
    """Of Qwen-Agent's own variables the one that names the folder wins; both are made where they are not there."""
    with serving(env={"QWEN_AGENT_DEFAULT_WORKSPACE": "{}/space"}) as (place, client):
        run(client, "open('a', 'w').write('made');")
        assert (place / "space/tools/code_interpreter/local/a").read_text() == "made"
    with serving(env={"QWEN_AGENT_DEFAULT_WORKSPACE": "{}/space", "M6_CODE_INTERPRETER_WORK_DIR": "{}/own"}) as (place, client):
        run(client, "open('a', 'w').write('made');")
        assert (place / "own/local/a").read_text() == "made" and not (place / "space").exists()


def test_q20_large_local_file(by_setting):
    place, client = by_setting
    with open(place / "large.bin", "wb") as file:
        file.truncate(70 << 20)
    body = {"code": "import os; print(os.path.getsize('large.bin'))", "files": ["large.bin"], "instance": "large"}
    assert f"{70 << 20}" in run(client, body)
