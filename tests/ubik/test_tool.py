"""code_execution: a request in plain words, its log, its sandbox, its files."""

import base64
import hashlib
import json
import re
import urllib.parse

import pytest
from account import ROOT
from support.script import finish, plan, python, script, simple

KEYS = {"sandbox_id", "plan", "logs", "total_rounds", "generated_files", "artifacts",
        "execution_id"}


PIXEL = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5E"
         "rkJggg==")


def path_of(url):
    return urllib.parse.urlsplit(url).path


def test_u01_alias_names(ubik):
    ids = {t["name"]: t["id"] for t in ubik.get("/tools").expect(200).json["items"]}
    for name in ("code_execution", "code_interpreter", ids["code_execution"]):
        found = ubik.order(simple("print(1)"), tool=name)
        assert found["tool_id"] == ids["code_execution"]
        ubik.wait(found["execution_id"])
    assert ubik.post("/tools/no_such/execute", {"inputs": {}}).expect(404).json == {
        "detail": "Tool not found"}


def test_u02_accepted_with_absolute_urls(ubik, house):
    found = ubik.order(simple("print(1)"))
    assert set(found) == {"execution_id", "status", "tool_id", "details_url", "stream_url"}
    assert found["status"] == "pending"
    for url in (found["details_url"], found["stream_url"]):
        assert url.startswith(f"http://localhost:{house.server.port}{ROOT}/tool-executions/")
    assert ubik.get(path_of(found["details_url"])).expect(200).json["id"] == found["execution_id"]
    assert [name for name, _, _ in ubik.events(path_of(found["stream_url"]))][-1] == "tool_end"


@pytest.mark.parametrize("inputs, loc, kind", [
    ({}, "inputs.request", "missing"),
    ({"request": 7}, "inputs.request", "value_error"),
    ({"request": "x", "document_ids": "a"}, "inputs.document_ids", "value_error"),
    ({"request": "x", "document_ids": [1]}, "inputs.document_ids.0", "value_error"),
    ({"request": "x", "timeout": -1}, "inputs.timeout", "value_error"),
    (None, "inputs", "missing"),
])
def test_u03_request_required(ubik, inputs, loc, kind):
    body = {} if inputs is None else {"inputs": inputs}
    [detail] = ubik.post("/tools/code_execution/execute", body).expect(422).json["detail"]
    assert ".".join(map(str, detail["loc"])) == "body." + loc
    assert detail["type"] == kind and detail["msg"]


def test_u03_body_that_is_none(ubik):
    for body in (b"", b"[]", b"{", b'{"inputs":{},"inputs":{}}', b"\xff"):
        [detail] = ubik.request("POST", "/tools/code_execution/execute", body=body).expect(
            422).json["detail"]
        assert detail["loc"][0] == "body"


def test_u04_polling_to_completed(ubik):
    found = ubik.wait(ubik.order(simple("print(17 * 23)", "It is 391."))["execution_id"])
    assert found["status"] == "completed" and found["error"] is None
    assert {"id", "tool_id", "user_id", "status", "inputs", "outputs", "error", "created_at",
            "started_at", "completed_at"} <= set(found)
    assert KEYS <= set(found["outputs"])
    assert found["outputs"]["execution_id"] == found["id"]
    assert found["outputs"]["answer"] == "It is 391."
    assert found["outputs"]["status"] == "completed"
    assert re.fullmatch("[a-z0-9]{21}", found["outputs"]["sandbox_id"])
    assert found["inputs"]["request"].startswith('{"turns"')
    assert found["created_at"] <= found["started_at"] <= found["completed_at"]


def test_u05_plan(ubik):
    found = ubik.run(simple("print(1)", "done", "load the data", "plot it"))
    assert found["plan"] == ["load the data", "plot it"]
    assert ubik.run(simple("print(2)"))["plan"] == ["compute it"]


def rounds_of(logs):
    return re.findall(r"^--- Round (\d+)/(\d+): (.+) ---$", logs, re.M)


def test_u06_log_grammar(ubik):
    found = ubik.run(script(plan("one", "two"), python("x = 20; print(x)"), python("print(x + 1)"),
                            finish("21")))
    logs = found["logs"]
    assert re.findall(r"^INFO: Started sandbox session: (.+)$", logs, re.M) == [found["sandbox_id"]]
    [steps] = re.findall(r"^INFO: Development plan: (\[.+\])$", logs, re.M)
    assert json.loads(steps) == ["one", "two"]
    assert re.match(r"INFO: Started .+\nINFO: Development plan: .+\n\n--- Round 1/", logs)
    bodies = re.split(r"^--- Round .+ ---\n", logs, flags=re.M)[1:]
    assert len(bodies) == 2
    for body in bodies:
        assert re.match(r"GENERATED CODE:\n.+\nSTDOUT:\n2\d\n\nSTATUS: Execution successful\n", body,
                        re.S), body


def test_u07_total_rounds(ubik):
    found = ubik.run(script(plan("one", "two", "three"), python("print(1)"), python("print(2)"),
                            finish("done")))
    rounds = rounds_of(found["logs"])
    assert found["total_rounds"] == len(rounds) == 2
    assert [int(i) for i, _, _ in rounds] == [1, 2]
    assert all(int(i) <= int(n) == 6 for i, n, _ in rounds)


def test_u07_max_rounds(ubik):
    found = ubik.run(script(plan(), *[python(f"print({i})") for i in range(9)]), max_rounds=2)
    assert found["total_rounds"] == 2 and found["status"] == "incomplete"


def test_u08_self_correction(ubik):
    found = ubik.run(script(plan("divide"), python("print(1 / 0)"), python("print(1 / 2)"),
                            finish("0.5")))
    logs = found["logs"]
    assert found["status"] == "completed" and found["total_rounds"] == 2
    assert [step for _, _, step in rounds_of(logs)] == ["divide", "divide"]
    assert re.findall(r"^STATUS: (.+)$", logs, re.M) == ["Execution failed", "Execution successful"]
    assert "ZeroDivisionError" in logs and "ERROR:" in logs


def test_u09_state_between_rounds(ubik):
    found = ubik.run(script(plan("a", "b"),
                            python("rows = [{'a': n} for n in (1, 2, 39)]\ndef total(): return sum(r['a'] for r in rows)"),
                            python("print(total())"), finish("42")))
    assert ubik.printed(found) == "42"


def test_u10_sandbox_resume(ubik):
    first = ubik.run(simple("secret = 6 * 7; print('kept')"))
    again = ubik.run(simple("print(secret)"), sandbox_id=first["sandbox_id"])
    assert again["sandbox_id"] == first["sandbox_id"]
    assert again["execution_id"] != first["execution_id"]
    assert ubik.printed(again) == "42"
    assert "kept" not in again["logs"]


def test_u11_no_id_is_isolation(ubik):
    first = ubik.run(simple("secret = 42; print(1)"))
    other = ubik.run(simple("print('secret' in globals())"))
    assert other["sandbox_id"] != first["sandbox_id"]
    assert ubik.printed(other) == "False"


@pytest.mark.parametrize("sandbox", ["igy4shlkrl6z9sx2uagxz", "nonsense", "../../etc", "é" * 10])
def test_u12_stale_id(ubik, sandbox):
    found = ubik.fail(simple("print(1)"), sandbox_id=sandbox)
    assert found["error_code"] == "SandboxNotFound"
    assert found["error"].startswith("SandboxNotFound: ")
    assert found["outputs"]["total_rounds"] == 0


def test_u12_foreign_id(ubik, house):
    mine = ubik.run(simple("secret = 42; print(1)"))["sandbox_id"]
    with house.account(key=house.other) as other:
        assert other.fail(simple("print(secret)"), sandbox_id=mine)["error_code"] == (
            "SandboxNotFound")
    with house.account("alice") as alice, house.account("bob") as bob:
        hers = alice.run(simple("secret = 42; print(1)"))["sandbox_id"]
        assert bob.fail(simple("print(secret)"), sandbox_id=hers)["error_code"] == (
            "SandboxNotFound")
        assert alice.printed(alice.run(simple("print(secret)"), sandbox_id=hers)) == "42"
        assert ubik.printed(ubik.run(simple("print(secret)"), sandbox_id=hers)) == "42"


def test_u13_document_ids(ubik):
    data = bytes(range(256)) * 300
    one = ubik.upload("data.bin", data)
    found = ubik.run(simple(
        "import hashlib\n"
        "for path in ('/home/uploaded_files/data.bin', 'data.bin'):\n"
        "    print(hashlib.sha256(open(path, 'rb').read()).hexdigest())"),
        document_ids=[one["id"]])
    assert ubik.printed(found).split() == [hashlib.sha256(data).hexdigest()] * 2


def test_u13_same_names_and_resume(ubik):
    ids = [ubik.upload("a.csv", data)["id"] for data in (b"x\n1\n", b"x\n2\n")]
    list_all = "import glob\nfor p in sorted(glob.glob('/home/uploaded_files/*')): print(p, open(p).read().split()[1])"
    found = ubik.run(simple(list_all), document_ids=ids)
    assert ubik.printed(found).split() == [
        "/home/uploaded_files/2_a.csv", "2", "/home/uploaded_files/a.csv", "1"]
    ubik.code("open('a.csv', 'w').write('mine')", sandbox_id=found["sandbox_id"])
    again = ubik.code("print(open('a.csv').read())", sandbox_id=found["sandbox_id"],
                      document_ids=ids)
    assert ubik.printed(again) == "mine", "what the code wrote is not written over"


def test_u13_long_names_of_many_bytes(ubik):
    name = "x" + 80 * "表" + ".csv"
    ids = [ubik.upload(name, data)["id"] for data in (b"x\n1\n", b"x\n2\n")]
    found = ubik.run(simple("import glob\nprint(len(glob.glob('/home/uploaded_files/*')))"),
                     document_ids=ids)
    assert ubik.printed(found) == "2"


def test_u14_the_folder_of_documents_is_always_there(ubik):
    found = ubik.run(simple("import os; print(os.listdir('/home/uploaded_files'))"))
    assert ubik.printed(found) == "[]" and found["generated_files"] == []


def test_u14_undelivered_documents_are_invisible(ubik):
    ubik.upload("hidden.csv", b"x\n")
    one = ubik.upload("shown.csv", b"x\n")
    found = ubik.run(simple("import os; print(os.listdir('/home/uploaded_files'))"),
                     document_ids=[one["id"]])
    assert ubik.printed(found) == "['shown.csv']"


@pytest.mark.parametrize("bad", ["00000000-0000-4000-8000-000000000000", "nonsense", ""])
def test_u15_bad_document_id(ubik, bad):
    found = ubik.fail(simple("print(1)"), document_ids=[bad])
    assert found["error_code"] == "DocumentNotFound" and "there is no document" in found["error"]
    assert found["outputs"]["total_rounds"] == 0 and found["outputs"]["logs"] == ""
    assert found["outputs"]["sandbox_id"] is None


def test_u16_artifacts_and_generated_files(ubik):
    one = ubik.upload("in.csv", b"x\n1\n")
    found = ubik.run(simple(
        "import base64, os\n"
        "os.makedirs('out', exist_ok=True)\n"
        "open('out/made ü.csv', 'w').write(open('in.csv').read().upper())\n"
        f"open('chart.png', 'wb').write(base64.b64decode('{PIXEL}'))\n"
        "print('ok')"), document_ids=[one["id"]])
    [picture], [table] = found["artifacts"], found["generated_files"]
    assert picture["type"] == "media_reference" and picture["asset_filename"] == "chart.png"
    assert picture["mime"] == "image/png" and picture["size"] == len(base64.b64decode(PIXEL))
    assert table["type"] == "file_reference" and table["asset_filename"] == "out/made ü.csv"
    assert table["mime"] == "text/csv"
    assert picture["execution_id"] == table["execution_id"] == found["execution_id"]
    assert ubik.get(path_of(picture["url"])).expect(200).body[:4] == b"\x89PNG"
    assert ubik.get(path_of(table["url"])).expect(200).body == b"X\n1\n"


def test_u17_asset_url(house):
    with house.account("alice") as alice, house.account("bob") as bob, house.account() as all_of_it:
        found = alice.code("open('a.csv', 'w').write('hers'); print(1)")
        [file] = found["generated_files"]
        url = path_of(file["url"])
        assert alice.get(url).expect(200).body == b"hers"
        assert all_of_it.get(url).expect(200).body == b"hers"
        assert bob.get(url).status == 404
        with house.account(key=house.other) as other:
            assert other.get(url).status == 404
        assert alice.get(url.replace("a.csv", "b.csv")).status == 404
        assert alice.get(url.replace("a.csv", "../a.csv")).status == 404
        # Later code writes over it, and the sandbox goes: the asset is what it was.
        alice.code("open('a.csv', 'w').write('changed'); print(1)", sandbox_id=found["sandbox_id"])
        alice.delete("/sandboxes/" + found["sandbox_id"]).expect(204)
        answer = alice.get(url).expect(200)
        assert answer.body == b"hers"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_u18_plot_capture_without_savefig(ubik):
    found = ubik.run(simple("import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()"))
    [picture] = found["artifacts"]
    assert picture["asset_filename"] == "plot_0.png"
    assert ubik.get(path_of(picture["url"])).expect(200).body[:4] == b"\x89PNG"


def test_u18_what_is_displayed_is_captured(ubik):
    show = f"import base64; display(Image(base64.b64decode('{PIXEL}')))"
    found = ubik.run(script(plan(), python("from IPython.display import Image\n" + show),
                            python(show), finish("done")))
    assert [a["asset_filename"] for a in found["artifacts"]] == ["plot_0.png", "plot_1.png"]
    assert found["generated_files"] == []
    for picture in found["artifacts"]:
        assert ubik.get(path_of(picture["url"])).expect(200).body == base64.b64decode(PIXEL)
