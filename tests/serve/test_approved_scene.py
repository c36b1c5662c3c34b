"""An approver agrees to what is shown, and only that runs: one who asks for approval and then changes
what surrounds the code gets nothing for it."""

import json

import pytest

from support.mcp import Legacy
from support.server import Server

pytestmark = pytest.mark.once

FLAGS = ["--approval", "always_ask", "--approval-by", "approver"]
EVIL = b"print('EVIL')\n"


@pytest.fixture(scope="module")
def house():
    with Server(*FLAGS) as server, server.client() as first:
        made = first.post("/v1/keys", {"tenant": "acme", "admin": True}).expect(201).json
        with server.client(made["secret"]) as boss:
            server.boss = boss
            server.asker_key = boss.post("/v1/keys", {"tenant": "acme"}).expect(201).json["secret"]
            yield server


@pytest.fixture
def asker(house):
    with house.client(house.asker_key) as one:
        yield one


def pending(house):
    return house.boss.get("/v1/approvals?state=pending").expect(200).json["data"][0]


def approve(house):
    shown = pending(house)
    house.boss.post("/v1/approvals/" + shown["id"], {"decision": "approve"}).expect(200)
    return shown


def ask(asker, session, code, **more):
    return asker.post(f"/v1/sessions/{session}/execute", {"code": code, **more})


@pytest.fixture
def session(asker):
    made = asker.post("/v1/sessions", {}).expect(201).json["id"]
    yield made
    asker.delete("/v1/sessions/" + made)


def test_the_files_of_the_session_are_shown(house, asker, session):
    asker.put(f"/v1/sessions/{session}/files/pandas.py", EVIL).expect(201)
    ask(asker, session, "import pandas").expect(403)
    text = pending(house)["text"]
    assert text.startswith("import pandas\n") and "pandas.py (14 " in text and "sha256 " in text


def test_what_was_agreed_to_runs(house, asker, session):
    asker.put(f"/v1/sessions/{session}/files/x.py", b"print('GOOD')").expect(201)
    ask(asker, session, "exec(open('x.py').read())").expect(403)
    approve(house)
    assert ask(asker, session, "exec(open('x.py').read())").expect(200).json["stdout"] == "GOOD\n"


CHANGES = {
    "another content": lambda c, path: c.put(path + "/x.py", EVIL),
    "a new file": lambda c, path: c.put(path + "/sitecustomize.py", EVIL),
    "a hidden file": lambda c, path: c.put(path + "/.bashrc", EVIL),
    "a file less": lambda c, path: c.delete(path + "/x.py"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_between_the_question_and_the_yes(house, asker, session, change):
    path = f"/v1/sessions/{session}/files"
    asker.put(path + "/x.py", b"print('GOOD')").expect(201)
    ask(asker, session, "exec(open('x.py').read())").expect(403)
    first = approve(house)
    assert CHANGES[change](asker, path).status < 300
    ask(asker, session, "exec(open('x.py').read())").expect(403)
    assert pending(house)["id"] != first["id"]


def test_files_that_come_by_other_doors(house, asker):
    """A session by its name, which this door calls an identifier; a long name is as good as a short one."""
    azure = "/azure/pools/default/"
    query = "?identifier=" + "long-" * 20
    body = {"pythonCode": "exec(open('x.py').read())"}
    assert asker.post(azure + "python/execute" + query, body).status == 403
    approve(house)
    asker.form(azure + "files/upload" + query, ("file", "x.py", EVIL)).expect(200)
    answer = asker.post(azure + "python/execute" + query, body)
    assert answer.status == 403 and b"EVIL" not in answer.body, answer
    assert "x.py" in approve(house)["text"]
    other = "?identifier=" + "long-" * 20 + "x"  # a yes for one is none for another
    asker.form(azure + "files/upload" + other, ("file", "x.py", EVIL)).expect(200)
    assert asker.post(azure + "python/execute" + other, body).status == 403


def test_variables_of_the_session_are_shown(house, asker):
    made = asker.post("/v1/sessions", {"env": {"BASH_ENV": "/workspace/x.sh"}}).expect(201).json["id"]
    ask(asker, made, "true", language="shell").expect(403)
    text = pending(house)["text"]
    assert "BASH_ENV" in text and "/workspace/x.sh" in text and "session_env" in text


def test_no_file_changes_under_code_that_runs(house, asker, session):
    body = {"code": "import time\nprint('on', flush=True)\nwhile True: time.sleep(0.05)", "stream": True}
    asker.post(f"/v1/sessions/{session}/execute", body).expect(403)
    approve(house)
    with house.client(house.asker_key) as other, \
            other.stream(f"/v1/sessions/{session}/execute", body) as stream:
        stream.until_said("on")
        path = f"/v1/sessions/{session}/files/x.py"
        asker.put(path, EVIL).refused(409)
        asker.delete(path).refused(409)


def test_while_the_user_of_a_client_is_asked():
    """The yes comes last: what was shown is what there is."""
    with Server("--approval", "always_ask", "--approval-by", "client") as server, server.client() as client:
        made = client.post("/v1/sessions", {}).expect(201).json["id"]
        path = f"/v1/sessions/{made}/files/x.py"
        client.put(path, b"print('GOOD')").expect(201)

        def person(params):
            with server.client() as other:
                assert other.put(path, EVIL).status < 300
            return {"action": "accept", "content": {"approve": True}}

        with Legacy(server, capabilities={"elicitation": {}}, answers={"elicitation/create": person}) as mcp:
            text = json.dumps(mcp.call("run_code", code="exec(open('x.py').read())", session_id=made))
        assert "EVIL" not in text and "have changed since" in text, text
