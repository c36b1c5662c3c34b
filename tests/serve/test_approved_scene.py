"""An approver agrees to what is shown, and only that runs: one who asks for approval and then changes
what surrounds the code gets nothing for it."""

import base64
import json

import pytest

from support import retort
from support.mcp import Legacy
from support.server import Server, form

pytestmark = pytest.mark.once

FLAGS = ["--approval", "always_ask", "--approval-by", "approver", "--model-script", "-", "--anthropic-approval-wait",
         "1"]
EVIL = b"print('EVIL')\n"


@pytest.fixture(scope="module")
def house():
    with Server(*FLAGS) as server, server.client() as first:
        made = first.post("/v1/keys", {"tenant": "acme", "admin": True}).expect(201).json
        with server.client(made["secret"]) as boss:
            server.boss = boss
            server.uploads = {}
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


@pytest.mark.parametrize("hidden", ["\u202e", "\u2066", "\u200b", "\ufeff", "\u00ad", "\r", "\x1b[2K", "\x08", "\u2028",
                                    "\U000e0041"], ids=ascii)
def test_what_is_not_seen_is_written_out(house, asker, hidden):
    """Text that is read in another order than it runs, or not at all (Trojan Source, CVE-2021-42574)."""
    code = f"x = 'a{hidden}b'  # {hidden} fine\r\nprint('é')\t"
    asker.post("/v1/execute", {"code": code, "env": {"A": hidden}}).expect(403)
    shown = pending(house)
    assert hidden not in shown["text"].replace("\r\n", ""), ascii(shown["text"])
    assert f"{ord(hidden[0]):04x}" in shown["text"] and "\r\nprint('é')\t" in shown["text"]
    assert shown["text"][shown["text_size"]:].startswith("\n\nwith {")


@pytest.mark.parametrize("role", [{"approver": True}, {"admin": True}], ids=["approver", "admin"])
def test_nobody_agrees_to_what_they_asked_for(house, role):
    """The no is theirs to say, the yes another's."""
    made = house.boss.post("/v1/keys", {"tenant": "acme", **role}).expect(201).json
    with house.client(made["secret"]) as one:
        one.post("/v1/execute", {"code": "print('OWN')"}).expect(403)
        path = "/v1/approvals/" + pending(house)["id"]
        assert "another" in one.post(path, {"decision": "approve"}).refused(403)["message"]
        assert one.get(path).json["state"] == "pending"
        approve(house)
        assert one.post("/v1/execute", {"code": "print('OWN')"}).expect(200).json["stdout"] == "OWN\n"
        one.post("/v1/execute", {"code": "print('AGAIN')"}).expect(403)
        path = "/v1/approvals/" + pending(house)["id"]
        assert one.post(path, {"decision": "decline"}).expect(200).json["state"] == "declined"


# --- what comes with the code, through whichever door ---

RUNS = "exec(open('x.py').read())"


def by_rest(house, asker, source):
    return asker.post("/v1/execute", {"code": RUNS, "files": [{"path": "x.py", "content": source}]}).text


def by_rest_bytes(house, asker, source):
    coded = base64.b64encode(source.encode()).decode()
    return asker.post("/v1/execute", {"code": RUNS, "files": [{"path": "x.py", "content_base64": coded}]}).text


def by_qwen(house, asker, source):
    return asker.post("/qwen/code_interpreter", {"code": RUNS, "files": [{"name": "x.py", "content": source}]}).text


def by_qwen_url(house, asker, source):
    url = "data:text/x-python;base64," + base64.b64encode(source.encode()).decode()
    return asker.post("/qwen/code_interpreter", {"code": RUNS, "files": [{"name": "x.py", "url": url}]}).text


def by_prisme(house, asker, source):
    return asker.post("/prisme/execute_python", {"code": "exec(source)\nreturn 1", "parameters": {"source": source}}).text


def by_prisme_function(house, asker, source):
    functions = {"f": {"code": "exec(parameters['source'])\nreturn 1", "language": "python"}}
    asker.post("/prisme/v2/functions/shop", {"functions": functions}).expect(200)
    return asker.post("/prisme/v2/functions/shop/run/f", {"parameters": {"source": source}}).text


def by_anthropic(house, asker, source):
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "code-execution-2025-05-22,files-api-2025-04-14"}
    name = json.dumps(source)
    if name not in house.uploads:
        body, kind = form(("file", "x.py", source.encode()))
        house.uploads[name] = asker.request("POST", "/anthropic/v1/files", body=body, headers={
            **headers, "Content-Type": kind}).expect(200).json["id"]
    code = "import os\nexec(open(os.environ['INPUT_DIR'] + '/x.py').read())"
    turns = [[{"tool": {"name": "code_execution", "input": {"code": code}}}], [{"text": "done"}]]
    content = [{"type": "text", "text": json.dumps({"turns": turns})},
               {"type": "container_upload", "file_id": house.uploads[name]}]
    answer = asker.post("/anthropic/v1/messages", {
        "model": "any", "max_tokens": 1000, "messages": [{"role": "user", "content": content}],
        "tools": [{"type": "code_execution_20250522", "name": "code_execution"}]}, headers=headers)
    return json.dumps([b for b in answer.expect(200).json["content"] if b["type"].endswith("_result")])


def by_mcp(path, tool, name, **arguments):
    """The file is put beside the code through another door, into the session that the tool will find."""
    def run(house, asker, source):
        made = asker.post("/v1/sessions", {"name": name}).json["id"]
        asker.put(f"/v1/sessions/{made}/files/x.py", source.encode())
        with Legacy(house, key=house.asker_key, path=path) as client:
            return json.dumps(client.call(tool, **arguments))
    return run


COMES = {
    "rest": by_rest, "rest, bytes": by_rest_bytes, "qwen": by_qwen, "qwen, a URL": by_qwen_url, "prisme": by_prisme,
    "prisme function": by_prisme_function, "anthropic": by_anthropic,
    "mcp qwen": by_mcp("/mcp/qwen", "code_interpreter", "qwen/mine", code=RUNS, instance="mine"),
    "mcp azure": by_mcp("/mcp/azure", "runPythonCodeInRemoteEnvironment", "some-name", pythonCode=RUNS,
                        environmentId="some-name"),
    "mcp azure shell": by_mcp("/mcp/azure", "runShellCommandInRemoteEnvironment", "other-name",
                              execCommandAndArgs=["python3", "x.py"], environmentId="other-name"),
    "mcp azure pool": by_mcp("/azure/pools/default/mcp", "runPythonCodeInRemoteEnvironment", "pool-name",
                             pythonCode=RUNS, environmentId="pool-name"),
}


@pytest.mark.parametrize("door", COMES)
def test_what_comes_with_the_code_is_shown_and_is_what_runs(house, asker, door):
    def ask(letter):
        return COMES[door](house, asker, f"print('{letter}' * 5)  # {door}")

    before = {a["id"] for a in house.boss.get("/v1/approvals?limit=100").json["data"]}
    assert "GGGGG" not in ask("G")
    shown = approve(house)
    assert shown["id"] not in before
    assert "x.py" in shown["text"] or "print('G' * 5)" in shown["text"], shown["text"]
    told = ask("E")
    assert "EEEEE" not in told, "ran what nobody has seen: " + told
    assert pending(house)["id"] != shown["id"]
    approve(house)
    assert "EEEEE" in ask("E")


def test_an_end_user_reads_the_whole_code():
    """A question of Ubik's door shows what an approver would see: nothing of it is cut."""
    code = "a = 1\n" * 600 + "print('in the middle')\n" + "b = 2\n" * 600
    root = "/ubik/api/v1"
    with Server("--approval", "always_ask") as server, server.client() as client:
        made = client.post(root + "/tools/python_interpreter/execute", {"inputs": {"code": code}}).expect(202).json
        path = f"{root}/tool-executions/{made['execution_id']}"
        retort.wait_until(lambda: client.get(path).json["status"] == "waiting_for_input", "the question", retort.SECONDS)
        assert code.strip() in client.get(path).json["question"]["prompt"]
