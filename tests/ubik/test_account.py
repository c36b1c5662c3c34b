"""Who may see what: keys, tokens, end users; documents, preferences, sessions, sandboxes."""

import base64
import io
import json
import re
import signal
import sqlite3
import time
import urllib.parse

import openpyxl
import pytest
from account import Account, House
from support.pdf import pdf
from support.retort import SECONDS, wait_until
from support.script import finish, plan, question, script, simple
from support.server import together


def wait_document(ubik, id, *states):
    until = time.monotonic() + SECONDS
    while True:
        found = ubik.get("/documents/" + id).expect(200).json
        if found["status"] in (states or ("completed", "failed")):
            return found
        assert time.monotonic() < until, found
        time.sleep(0.05)


# --- tools ---


def test_tools_are_listed_and_described(ubik):
    page = ubik.get("/tools?page=1&limit=2").expect(200).json
    assert page["total"] == 3 and page["has_more"] and len(page["items"]) == 2
    rest = ubik.get("/tools?page=2&limit=2").expect(200).json
    assert not rest["has_more"] and len(rest["items"]) == 1
    for item in page["items"] + rest["items"]:
        assert set(item) == {"id", "name", "description"}
        tool = ubik.get("/tools/" + item["name"]).expect(200).json
        assert tool == ubik.get("/tools/" + item["id"]).expect(200).json
        assert tool["input_schema"]["type"] == "object" and tool["input_schema"]["required"]
        assert tool["media_output_keys"] == ["artifacts"] and tool["example_responses"]
    ubik.get("/tools/nothing").expect(404)
    for query in ("page=0", "limit=0", "limit=101", "page=x", "page=-1", "limit="):
        [detail] = ubik.get("/tools?" + query).expect(422).json["detail"]
        assert detail["loc"] == ["query", query.split("=")[0]]


def test_health(ubik, house):
    assert ubik.get("/health").expect(200).json["status"] == "ok"
    with Account(house.server, None) as nobody:
        answer = nobody.get("/health").expect(401)
        assert isinstance(answer.json["detail"], str)


# --- U26 ---


def test_u26_upload_read_delete(ubik):
    text = "größe,wert\n1,2\n"
    one = ubik.upload("C:\\daten\\tabelle.csv", text.encode(), workspace_ids="a, b",
                      api_metadata='{"source": "test"}')
    assert one["name"] == one["file_name"] == "tabelle.csv" and one["status"] == "completed"
    assert one["api_metadata"] == {"source": "test"} and one["workspace_ids"] == ["a", "b"]
    found = ubik.get("/documents/" + one["id"]).expect(200).json
    assert found["markdown_content"] == text and found["file_type"] == "text/csv"
    assert {"id", "name", "file_type", "status", "created_at", "updated_at", "processing_pipeline",
            "error_message", "api_metadata", "file_name", "markdown_content"} <= set(found)
    assert ubik.delete("/documents/" + one["id"]).expect(204).body == b""
    ubik.get("/documents/" + one["id"]).expect(404)
    ubik.delete("/documents/" + one["id"]).expect(404)
    assert ubik.fail(simple("print(1)"), document_ids=[one["id"]])["error_code"] == (
        "DocumentNotFound")


def test_u26_what_is_no_text_is_not_shown_as_one(ubik):
    for name, data in (("a.csv", b"\xff\xfe\x00"), ("b.csv", b"a\0b"), ("c.png", b"\x89PNG")):
        one = ubik.upload(name, data)
        assert ubik.get("/documents/" + one["id"]).json["markdown_content"] is None
    long = ubik.upload("long.txt", "é".encode() * 300000)
    found = ubik.get("/documents/" + long["id"]).json
    assert found["markdown_truncated"] and 0 < len(found["markdown_content"]) <= 131072


def workbook():
    book = openpyxl.Workbook()
    book.active.title = "Häfen"
    for row in (["port", "tide|m"], ["Brest", 6.1], ["Zeebrugge", None], [None, None]):
        book.active.append(row)
    book.create_sheet("more").append([1, "two\nlines"])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def test_u26_the_text_of_a_workbook(ubik):
    one = ubik.upload("ports.xlsx", workbook())
    found = ubik.get("/documents/" + one["id"]).expect(200).json
    assert found["markdown_content"] == ("## Häfen\n\n| port | tide\\|m |\n| --- | --- |\n| Brest | 6.1 |\n| Zeebrugge |  |\n\n"
                                         "## more\n\n| 1 | two lines |\n| --- | --- |\n\n")
    assert found["markdown_truncated"] is False
    broken = ubik.upload("broken.xlsx", workbook()[:200])
    assert ubik.get("/documents/" + broken["id"]).json["markdown_content"].startswith("[There is no text of this file: ")
    nonsense = ubik.upload("odd.xls", b"no workbook")
    assert "neither a PDF nor an Excel workbook" in ubik.get("/documents/" + nonsense["id"]).json["markdown_content"]


def test_u26_the_text_of_a_pdf(ubik):
    one = ubik.upload("tides.pdf", pdf("Tides of 1904\nHigh water", "Zweite Seite: 3,70 €"))
    found = ubik.get("/documents/" + one["id"]).expect(200).json
    assert found["markdown_content"] == "Tides of 1904\nHigh water\n\nZweite Seite: 3,70 €\n\n", found
    broken = ubik.upload("broken.pdf", pdf("x")[:40])
    assert ubik.get("/documents/" + broken["id"]).json["markdown_content"].startswith("[There is no text of this file: ")


def test_u26_several_and_paging(house):
    with house.account("pager") as ubik:
        parts = [("files[]", f"{i}.txt", b"x") for i in range(5)]
        assert [d["name"] for d in ubik.form("/documents", *parts).expect(200).json] == [
            f"{i}.txt" for i in range(5)]
        with house.account() as account:
            before = account.get("/documents?limit=100").json["total"]
        page = ubik.get("/documents?page=2&limit=2").expect(200).json
        assert page["page"] == 2 and page["limit"] == 2 and len(page["items"]) == 2
        assert page["has_more"] and page["total"] >= 5
        assert ubik.get("/documents?page=1000&limit=2").json["items"] == []
        assert before >= 5


def made(user, what):
    """One more, as the list names it."""
    if what == "documents":
        return user.upload("a.txt", b"x")["id"]
    if what == "agent-sessions":
        return user.post("/agent-sessions", {}).expect(201).json["id"]
    order = user.order(tool="python_interpreter", code="1")
    done = user.wait(order["execution_id"])
    return done["outputs"]["sandbox_id"] if what == "sandboxes" else order["execution_id"]


@pytest.mark.parametrize("what, name", [("documents", "id"), ("agent-sessions", "id"), ("sandboxes", "sandbox_id"), ("tool-executions", "id")])
def test_u26_a_list_that_changes_is_read_by_its_rows(house, what, name):
    with house.account("reader-of-" + what) as user:
        others = user.get(f"/{what}").expect(200).json["total"]  # documents of the whole account
        new = {made(user, what) for _ in range(5)}
        ids = [i[name] for i in user.get(f"/{what}").expect(200).json["items"]][:5]
        assert set(ids) == new  # two of one millisecond are in either order
        first = user.get(f"/{what}?limit=2").expect(200).json
        assert [i[name] for i in first["items"]] == ids[:2] and first["has_more"] and first["total"] == others + 5
        made(user, what)  # comes in front
        if what != "tool-executions":
            user.delete(f"/{what}/{ids[1]}")  # the row that the next page goes on after
        second = user.get(f"/{what}?limit=2&after={first['next']}").expect(200).json
        assert [i[name] for i in second["items"]] == ids[2:4] and second["has_more"] and second["total"] == others + 3
        third = user.get(f"/{what}?limit=2&after={second['next']}").expect(200).json
        assert third["items"][0][name] == ids[4] and (others or (not third["has_more"] and "next" not in third))
        for bad in ("", "x", "-", "12", "12-", "-x", "0-x", "9" * 30 + "-x", "1-" + "x" * 60, f"{first['next']}&page=2"):
            user.get(f"/{what}?after={bad}").expect(422)


def test_u26_refusals(ubik):
    answer = ubik.form("/documents", ("workspace_ids", None, b"a")).expect(400)
    assert answer.json == {"detail": "Either 'files' or 'urls' must be provided."}
    bad = ubik.form("/documents", ("files", "a", b"x"), ("api_metadata", None, b"[1]")).expect(422)
    assert bad.json["detail"][0]["loc"] == ["body", "api_metadata"]
    ubik.form("/documents", *[("files", f"{i}", b"x") for i in range(33)]).expect(400)
    ubik.form("/documents", ("files", "", b"x")).expect(400)


def test_u26_an_account_has_so_many(house):
    def change(*sql):
        with sqlite3.connect(house.server.state / "retort.db", timeout=10) as db:
            db.execute(*sql)
        db.close()

    with house.account(key=house.other) as full:
        first = full.upload("a.txt", b"x")
        session = full.post("/agent-sessions", {}).expect(201).json["id"]
        for one in (first["id"], session):
            change("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)"
                   " INSERT INTO items (id, tenant, kind, owner, parent, hash, size, created_ms,"
                   " updated_ms, expires_ms, body) SELECT 'more-' || i, tenant, kind, owner, parent,"
                   " hash, size, created_ms, updated_ms, expires_ms, body FROM items, n WHERE id = ?", [one])
        for part in (("files", "b.txt", b"x"), ("urls", None, b"http://127.0.0.1:1/x")):
            assert "at most 10000" in full.form("/documents", part).expect(413).json["detail"]
        full.post("/agent-sessions", {}).expect(413)
        full.get("/agent-sessions/" + session).expect(200)
        full.delete("/documents/" + first["id"]).expect(204)
        full.upload("b.txt", b"x")
        change("DELETE FROM items WHERE id LIKE 'more-%'")


def test_u26_by_url(ubik, shelf):
    shelf.files["/sales.csv"] = b"a,b\n1,2\n"
    one, two = ubik.form("/documents", ("urls", None, f"{shelf.url('/sales.csv')}, "
                                        f"{shelf.url('/none.csv')}".encode())).expect(200).json
    assert one["status"] == two["status"] == "pending"
    found = wait_document(ubik, one["id"])
    assert found["status"] == "completed" and found["file_name"] == "sales.csv"
    assert found["markdown_content"] == "a,b\n1,2\n"
    lost = wait_document(ubik, two["id"])
    assert lost["status"] == "failed" and lost["error_message"]
    assert ubik.fail(simple("print(1)"), document_ids=[two["id"]])["error_code"] == (
        "DocumentNotReady")
    shelf.files["/none.csv"] = b"now\n"
    assert ubik.post(f"/documents/{two['id']}/reprocess").expect(200).json["status"] == "pending"
    assert wait_document(ubik, two["id"], "completed")["markdown_content"] == "now\n"
    assert ubik.printed(ubik.run(simple("print(open('sales.csv').read().split())"),
                                 document_ids=[one["id"]])) == "['a,b', '1,2']"


# --- U27, U28 ---


def test_u27_token_scope(house):
    with house.by_token("alice") as alice, house.by_token("bob") as bob:
        assert alice.get("/health").json["user"]["external_user_id"] == "alice"
        order = alice.order(simple("print(1)"))
        path = "/tool-executions/" + order["execution_id"]
        alice.wait(order["execution_id"])
        bob.get(path).expect(404)
        assert bob.request("GET", path + "/stream").status == 404
        bob.post(path + "/stop").expect(404)
        assert alice.request("GET", path, headers={"X-End-User-ID": "bob"}).status == 403
        assert alice.request("GET", path, headers={"X-End-User-ID": "alice"}).status == 200
        alice.post("/auth/token", {"external_user_id": "bob"}).expect(403)
        # Of this door alone: the token is no key.
        with Account(house.server, None) as one:
            one.headers = alice.headers
            assert super(Account, one).request("GET", "/v1/sessions").status == 401


def test_u27_tokens_are_checked(house, ubik):
    token = ubik.token("alice")
    claims = base64.urlsafe_b64decode(token.split(".")[1] + "==")
    assert b"alice" in claims and b"acme" not in claims  # the account's name is not the end user's to know
    with Account(house.server, None) as one:
        for bad in (token[:-2], token + "A", "a.b.c", token.replace(".", "..", 1)):
            one.headers["Authorization"] = "Bearer " + bad
            assert one.get("/health").status == 401, bad
    for minutes in (4, 1441, "x", 1.5):
        ubik.post("/auth/token", {"external_user_id": "a", "expires_in_minutes": minutes}).expect(422)
    [detail] = ubik.post("/auth/token", {}).expect(422).json["detail"]
    assert detail["loc"] == ["body", "external_user_id"] and detail["type"] == "missing"
    ubik.post("/auth/token", {"external_user_id": "a\nb"}).expect(422)


def wait_status(account, status):
    until = time.monotonic() + SECONDS
    account.server.process.send_signal(signal.SIGHUP)
    while account.get("/health").status != status:
        assert time.monotonic() < until
        time.sleep(0.05)


def test_u27_a_token_ends_with_its_key(house):
    said = house.server.keys("create", "--tenant", "brief")
    key, secret = re.search(r"key_\w+", said)[0], re.search(r"rt_\w+", said)[0]
    with house.account(key=secret) as account, Account(house.server, None) as alice:
        wait_status(account, 200)
        alice.headers["Authorization"] = "Bearer " + account.token("alice")
        alice.get("/health").expect(200)
        house.server.keys("revoke", key)
        wait_status(alice, 401)


def test_u28_tenancy_matrix(house):
    people = {name: house.account(name) for name in ("ann", "ben")}
    people[""] = house.account()
    made = {}
    for name, one in people.items():
        made[name] = (one.upload("a.txt", b"x")["id"],
                      one.order(tool="python_interpreter", code="print(1)")["execution_id"])
        one.wait(made[name][1])
    for name, one in people.items():
        for owner, (document, execution) in made.items():
            sees = name in ("", owner) or owner == ""
            assert one.get("/documents/" + document).status == (200 if sees else 404), (name, owner)
            owns = name in ("", owner)
            assert one.get("/tool-executions/" + execution).status == (200 if owns else 404)
        documents = {d["id"] for d in one.get("/documents?limit=100").json["items"]}
        executions = {x["id"] for x in one.get("/tool-executions?limit=100").json["items"]}
        for owner, (document, execution) in made.items():
            assert (document in documents) is (name in ("", owner) or owner == "")
            assert (execution in executions) is (name in ("", owner))
    common = made[""][0]
    people["ann"].delete("/documents/" + common).expect(403)
    people["ann"].delete("/documents/" + made["ben"][0]).expect(404)
    header = {"external_user_id": "ann"}
    assert people[""].request("GET", "/tool-executions/" + made["ben"][1],
                              headers=header).status == 404, "its other name"
    with house.account(key=house.other) as other:
        for document, execution in made.values():
            other.get("/documents/" + document).expect(404)
            other.get("/tool-executions/" + execution).expect(404)
    for one in people.values():
        one.close()


def test_u28_an_end_user_in_the_body(house, ubik):
    body = {"external_user_id": "ann", "inputs": {"code": "print(1)"}}
    made = ubik.post("/tools/python_interpreter/execute", body).expect(202).json["execution_id"]
    document = ubik.upload("a.txt", b"x", external_user_id="ann")["id"]
    talk = ubik.post("/agent-sessions", {"external_user_id": "ann"}).expect(201).json["id"]
    with house.account("ann") as ann, house.account("ben") as ben:
        for path in ("/tool-executions/" + made, "/documents/" + document, "/agent-sessions/" + talk):
            ann.get(path).expect(200)
            ben.get(path).expect(404)
        ben.post("/tools/python_interpreter/execute", body).expect(403)
        ben.post("/agent-sessions", {"external_user_id": "ann"}).expect(403)
        ann.post("/tools/python_interpreter/execute", body).expect(202)
    ubik.post("/tools/python_interpreter/execute", {**body, "external_user_id": "a\nb"}).expect(422)


def test_u28_an_id_has_a_shape(house):
    with house.account("x" * 129) as one:
        one.get("/documents").expect(422)


# --- U30 ---


def test_u30_skill_file(ubik):
    found = ubik.run(tool="read_execute_skill_file", skill_id="code-interpreter",
                     file_path="SKILL.md")
    assert found["status"] == "success" and found["action"] == "read"
    assert "name: code-interpreter" in found["content"]
    one = ubik.upload("t.csv", b"name,n\na,1\nb,3\n,\n")
    ran = ubik.run(tool="read_execute_skill_file", skill_id="code-interpreter",
                   file_path="scripts/profile_table.py", args=["t.csv"], document_ids=[one["id"]])
    assert {"status", "action", "stdout", "stderr", "artifacts", "generated_files"} <= set(ran)
    assert ran["status"] == "success" and ran["action"] == "executed" and ran["stderr"] == ""
    assert "t.csv: 3 rows" in ran["stdout"] and "1 to 3, mean 2" in ran["stdout"]
    bad = ubik.run(tool="read_execute_skill_file", skill_id="code-interpreter",
                   file_path="scripts/profile_table.py", args=["it's \"none\".csv"])
    assert bad["status"] == "error" and bad["action"] == "executed"
    other = ubik.run(tool="read_execute_skill_file", skill_id="code-interpreter",
                     file_path="scripts/profile_table.py", args=["😀é.csv"],
                     document_ids=[ubik.upload("😀é.csv", b"n\n1\n")["id"]])
    assert other["status"] == "success" and "😀é.csv: 1 row" in other["stdout"], other
    for skill, path in (("code-interpreter", "none.md"), ("..", "SKILL.md"), ("none", "SKILL.md")):
        lost = ubik.fail(tool="read_execute_skill_file", skill_id=skill, file_path=path)
        assert lost["error_code"] == "SkillFileNotFound"


# --- U31 ---

TAG = re.compile(r"<<([A-Z_]+)(?:/([a-z_]+):([a-z0-9_]+))?>>")


def test_u31_session_stream_and_tags(house):
    with house.account("alice") as alice, house.account("bob") as bob:
        talk = alice.post("/agent-sessions", {"name": "Sales"}).expect(201).json
        path = "/agent-sessions/" + talk["id"]
        document = alice.form(path + "/upload", ("file", "n.txt", b"42")).expect(200).json
        assert document["name"] == "n.txt"
        said = alice.post(path + "/messages", {"content": simple(
            "n = int(open('n.txt').read()); print('<<STEP_END>>')", "It is << 42.")}).expect(202).json
        events = list(alice.events(urllib.parse.urlsplit(said["stream_url"]).path + "?task_id="
                                   + said["task_id"]))
        names = [name for name, _, _ in events]
        assert names[:4] == ["connection_established", "agent_processing_started",
                             "response_stream_start", "agent_step_started"]
        assert names[-1] == "agent_processing_complete"
        assert {"tool_update", "tool_partial_update", "tool_end", "agent_step_progress",
                "agent_step_completed", "agent_progress", "response_chunk",
                "agent_response_update"} <= set(names)
        update = next(d for n, _, d in events if n == "tool_update")
        assert {"type", "tool_execution_id", "tool_name", "data", "timestamp"} <= set(update)
        quiet = [n for n, _, _ in alice.events(path + "/stream?include_chunks=false")]
        assert "tool_partial_update" not in quiet and "response_chunk" not in quiet

        user, assistant = alice.get(path + "/messages").expect(200).json["items"]
        assert (user["role"], assistant["role"]) == ("user", "assistant")
        tags = [m[0] for m in TAG.findall(assistant["content"])]
        assert tags == ["STEP_START", "SINGLE_STEP_FLAG", "TOOL_STEP_START",
                        "TOOL_STEP_INPUT_START", "TOOL_STEP_INPUT_END", "TOOL_STEP_RESULT_START",
                        "TOOL_STEP_RESULT_END", "TOOL_STEP_END", "STEP_END"]
        inside = re.search("<<TOOL_STEP_RESULT_START>>(.*)<<TOOL_STEP_RESULT_END>>",
                           assistant["content"], re.S)
        outputs = json.loads(inside[1])
        assert "<<STEP_END>>" in outputs["logs"], "said by the code, and no tag"
        assert assistant["content"].endswith("It is < < 42.")

        alice.post(path + "/messages", {"content": simple("print(n)", "again")}).expect(202)
        last = list(alice.events(path + "/stream"))[-3:]
        assert last[-1][0] == "agent_processing_complete"
        assert "42" in alice.get(path + "/messages").json["items"][3]["content"], "the same sandbox"

        for method, where in (("GET", ""), ("GET", "/messages"), ("GET", "/stream"),
                              ("POST", "/stop"), ("DELETE", "")):
            assert bob.request(method, path + where).status == 404, where
        assert bob.get("/agent-sessions").json["total"] == 0
        assert alice.get("/agent-sessions").json["items"][0]["message_count"] == 4
        alice.delete(path).expect(204)
        alice.get(path).expect(404)


def test_u31_errors_have_tags(ubik):
    talk = ubik.post("/agent-sessions").expect(201).json
    path = "/agent-sessions/" + talk["id"]
    ubik.post(path + "/messages", {"content": "x", "document_ids": ["none"]}).expect(202)
    events = list(ubik.events(path + "/stream"))
    assert events[-1][0] == "agent_processing_error" and events[-1][2]["error"]
    assistant = ubik.get(path + "/messages").json["items"][1]
    assert "<<ERROR_START>>" in assistant["content"] and "<<ERROR_JSON_START>>" in assistant["content"]


def test_u31_messages_at_once_are_all_kept(house, ubik):
    path = "/agent-sessions/" + ubik.post("/agent-sessions").expect(201).json["id"]

    def say(i):
        with house.account() as one:
            return one.post(path + "/messages", {"content": simple(f"print({i})")}).status

    statuses = together(*[lambda i=i: say(i) for i in range(6)])
    assert set(statuses) <= {202, 409} and 202 in statuses
    kept = ubik.get(path + "/messages").expect(200).json["items"]
    assert len(kept) == 2 * statuses.count(202)
    assert ubik.post(path + "/messages", {"content": simple("print(7)")}).status == 202
    total = len(kept) + 2
    pages = [ubik.get(f"{path}/messages?limit=2&page={n}").expect(200).json for n in range(1, total // 2 + 2)]
    assert [p["has_more"] for p in pages] == [True] * (total // 2 - 1) + [False, False]
    assert all(p["total"] == total and p["limit"] == 2 for p in pages)
    assert [m["id"] for p in pages for m in p["items"]][:len(kept)] == [m["id"] for m in kept]
    assert [len(p["items"]) for p in pages] == [2] * (total // 2) + [0]
    assert ubik.get(path + "/messages?limit=0").status == 422


def test_u31_stop(ubik):
    path = "/agent-sessions/" + ubik.post("/agent-sessions").expect(201).json["id"]
    ubik.post(path + "/stop").expect(409)
    ubik.post(path + "/messages", {"content": simple(
        "print(1, flush=True)\nimport time; time.sleep(60)")}).expect(202)
    for name, _, _ in ubik.events(path + "/stream"):
        if name == "tool_partial_update":
            break
    ubik.close()
    ubik.post(path + "/stop?hard=true").expect(200)
    names = [name for name, _, _ in ubik.events(path + "/stream")]
    assert "agent_stop_requested" in names


# --- beyond the original ---


def test_sandboxes_listed_extended_closed(house):
    with house.account("sally") as sally, house.account("bob") as bob:
        one = sally.code("print(1)")["sandbox_id"]
        page = sally.get("/sandboxes").expect(200).json
        assert [s["sandbox_id"] for s in page["items"]] == [one] and page["total"] == 1
        found = sally.get("/sandboxes/" + one).expect(200).json
        assert found["executions"] == 1 and found["files_until"] > found["variables_until"]
        assert sally.post(f"/sandboxes/{one}/extend").expect(200).json["variables_until"] >= (
            found["variables_until"])
        for method, where in (("GET", ""), ("POST", "/extend"), ("DELETE", "")):
            assert bob.request(method, f"/sandboxes/{one}{where}").status == 404
        sally.delete("/sandboxes/" + one).expect(204)
        assert sally.fail(tool="python_interpreter", code="print(1)", sandbox_id=one)[
            "error_code"] == "SandboxNotFound"


def test_given_code_and_its_time(ubik):
    found = ubik.code("while True: pass", timeout=1)
    assert found["total_rounds"] == 1 and "STATUS: Execution failed" in found["logs"]
    assert ubik.printed(ubik.code("print(1)", sandbox_id=found["sandbox_id"])) == "1"


def test_nothing_is_lost_in_a_restart():
    with House() as house, house.account("alice") as alice:
        document = alice.upload("a.txt", b"42")
        found = alice.code("open('b.csv', 'w').write('made'); print(1)", document_ids=[document["id"]])
        token = house.account().token("alice")
        house.server.stop()
        house.server.start()
        alice.close()
        assert alice.get("/tool-executions/" + found["execution_id"]).json["outputs"] == found
        assert alice.get("/documents/" + document["id"]).json["markdown_content"] == "42"
        [file] = found["generated_files"]
        assert alice.get(urllib.parse.urlsplit(file["url"]).path).body == b"made"
        assert alice.get("/health", headers={"Authorization": "Bearer " + token}).status == 200
        again = alice.code("import os; print(os.path.exists('b.csv'))",
                           sandbox_id=found["sandbox_id"])
        assert alice.printed(again) == "True"
        gone = "INFO: the sandbox was started anew: variables and processes are gone, files are kept"
        assert gone in again["logs"].splitlines() and gone not in found["logs"].splitlines()


def test_a_server_that_ends_in_the_middle():
    """What is under way, given code and all, does not keep it from ending well."""
    with House() as house, house.account() as ubik:
        orders = [ubik.order(simple("print(1, flush=True)\nimport time; time.sleep(30)")),
                  ubik.order(tool="python_interpreter", code="import time; time.sleep(30)"),
                  ubik.order(script(plan(), question("Which?"), finish("none")))]
        for order in orders:
            ubik.wait(order["execution_id"], "processing", "waiting_for_input")
        house.server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: "no new requests" in house.server.log(), "the first signal")
        house.server.process.send_signal(signal.SIGTERM)
        assert house.server.process.wait(SECONDS) == 130
        house.server.start()
        ubik.close()
        played, given, waits = [order["execution_id"] for order in orders]
        assert ubik.wait(played)["outputs"]["total_rounds"] == 1, "what ran is not run again"
        assert ubik.wait(given)["outputs"]["status"] != "completed", "nobody has its code any more"
        ubik.wait(waits, "waiting_for_input")
        ubik.form(f"/tool-executions/{waits}/provide-input", ("input", None, b"none")).expect(202)
        assert "question" not in ubik.wait(waits)


@pytest.mark.parametrize("path", ["/nothing", "/tool-executions/none", "/documents/none",
                                  "/tool-executions/toolu_" + "0" * 28, "/agent-sessions/none",
                                  "/sandboxes/none", "/assets/tools/x/y/z",
                                  "/assets/tools/code_execution/toolu_" + "0" * 28 + "/a"])
def test_what_is_not_there(ubik, path):
    assert ubik.get(path).status == 404


def test_preferences_have_a_number():
    """An account names its end users itself: each may have a preference, but there is an end to them."""
    with House("--ready", "0") as house:
        with house.account("alice") as alice:
            alice.request("PUT", "/preferences", {"code_generation_model": "x"}).expect(200)
        house.server.stop()
        db = sqlite3.connect(house.server.state / "retort.db")
        columns = [row[1] for row in db.execute("PRAGMA table_info(items)")]
        values = ", ".join("'user' || i" if c in ("id", "owner") else c for c in columns)
        db.execute(f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)"
                   f" INSERT INTO items ({', '.join(columns)}) SELECT {values} FROM items, n WHERE kind LIKE '%preference'")
        db.commit()
        db.close()
        house.server.start()
        with house.account("bob") as bob:
            assert "10000" in bob.request("PUT", "/preferences", {"code_generation_model": "x"}).expect(413).text
        with house.account("alice") as alice:  # what is there can be changed
            alice.request("PUT", "/preferences", {"code_generation_model": "y"}).expect(200)
            assert alice.get("/preferences").json == {"code_generation_model": "y"}
