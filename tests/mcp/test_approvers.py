"""Designated approvers: who may decide what clients ask for, through REST, and what comes of it."""

import jsonschema
import pytest

from support import retort
from support.mcp import Legacy, Modern, text_of
from support.server import Server
from test_approval import ELICITS, ID, Person, client_of, executions, value, yes

CONFIG = """
[pool default]
approval = always_ask
approval-by = either

[pool first]
approval = ask_first
approval-by = approver

[pool client]
approval = always_ask

[pool brief]
approval = always_ask
approval-by = approver
approval-wait = 1
"""


# A start with one pool is quicker.
ALWAYS = ["--approval", "always_ask", "--approval-by", "either"]


@pytest.fixture(scope="module")
def server():
    with Server(config=CONFIG) as one:
        yield one


@pytest.fixture(params=[Legacy, Modern], ids=["legacy", "modern"])
def era(request):
    return request.param


def plain(era, server, **more):
    """A client that cannot ask its user."""
    one = era(server, **more)
    return one.initialize() if era is Legacy else one


def waits(result):
    """The approval that a call waits for."""
    assert result["isError"], result
    text = text_of(result)
    assert "Nothing has been run yet" in text and "same arguments" in text, text
    return ID.search(text)[0]


def decide(server, id, decision="approve", key=None, status=200, **more):
    with server.client(key) as c:
        return c.post(f"/v1/approvals/{id}", {"decision": decision, **more}).expect(status).json


def get(server, id, key=None):
    with server.client(key) as c:
        return c.get(f"/v1/approvals/{id}").expect(200).json


def session_in(server, pool, key=None):
    with server.client(key) as c:
        return c.post("/v1/sessions", {"pool": pool}).expect(201).json["id"]


def test_approved_and_called_again(server, era):
    client, session = plain(era, server), session_in(server, "default")
    call = {"code": "6 * 7", "session_id": session}
    id = waits(client.call("run_code", **call))
    assert waits(client.call("run_code", **call)) == id  # it is found again, not asked for again
    assert executions(server, session) == []
    assert decide(server, id, reason="harmless")["state"] == "approved"
    assert "42" in value(client.call("run_code", **call))
    record = get(server, id)
    assert record["state"] == "used" and record["decided_how"] == "approver"
    assert record["reason"] == "harmless" and record["decided_at"]
    assert record["execution"] == executions(server, session)[0]["id"]
    assert waits(client.call("run_code", **call)) != id


def test_it_is_for_this_call_alone(server, era):
    client, session = plain(era, server), session_in(server, "default")
    call = {"code": "'this'", "session_id": session}
    id = waits(client.call("run_code", **call))
    decide(server, id)
    for other in ({**call, "code": "'that'"}, {**call, "env": {"A": "b"}},
                  {**call, "session_id": session_in(server, "default")}):
        assert waits(client.call("run_code", **other)) != id
    waits(client.call("run_shell", command="'this'", session_id=session))
    assert "this" in value(client.call("run_code", **call))


def test_declined(server, era):
    client, session = plain(era, server), session_in(server, "default")
    call = {"code": "'no'", "session_id": session}
    id = waits(client.call("run_code", **call))
    decide(server, id, "decline", reason="not today")
    result = client.call("run_code", **call)
    assert result["isError"] and "declined by an approver" in text_of(result)
    assert "not today" in text_of(result)
    assert waits(client.call("run_code", **call)) != id  # told once; then it may be asked again
    assert executions(server, session) == []


def test_a_conversation(server, era):
    """ask_first: what was approved lasts for the session."""
    client, session = plain(era, server), session_in(server, "first")
    id = waits(client.call("run_code", code="1", session_id=session))
    assert decide(server, id)["scope"] == "conversation"
    for n in range(3):
        # The first must be the call that was approved.
        value(client.call("run_code", code=str(n + 1), session_id=session))
    waits(client.call("run_shell", command="true", session_id=session))
    assert get(server, id)["state"] == "approved"


def test_only_an_approver(server, era):
    """A pool that asks approvers does not take the word of the client's user."""
    person = Person(yes())
    client = client_of(era, server, person)
    waits(client.call("run_code", code="1", session_id=session_in(server, "first")))
    assert person.asked == []


def test_the_other_decides_first_legacy(server):
    """A call that waits for its user goes on, or ends, when an approver has decided."""
    session = session_in(server, "client")
    for decision, found in (("approve", "'x' * 3"), ("decline", "declined by an approver")):
        client = client_of(Legacy, server, Person(yes()))
        exchange = client.begin("tools/call", {"name": "run_code", "arguments": {
            "code": "'x' * 3", "session_id": session}})
        question = exchange.until("elicitation/create")
        with server.client() as c:
            (pending,) = c.get("/v1/approvals?state=pending&limit=1").expect(200).json["data"]
        decide(server, pending["id"], decision)
        (last,) = [m for m in exchange if "result" in m]
        assert last["result"].get("isError", False) == (decision == "decline")
        assert ("xxx" if decision == "approve" else found) in text_of(last["result"])
        client.question(question)  # nobody waits for it
    assert len(executions(server, session)) == 1


@pytest.mark.parametrize("decision", ["approve", "decline"])
@pytest.mark.parametrize("answer", ["yes", "no", None])
def test_the_other_decides_first_modern(server, decision, answer):
    """Whatever the user says then: it runs when nobody has said no."""
    client, session = Modern(server, capabilities=ELICITS), session_in(server, "client")
    call = {"name": "run_code", "arguments": {"code": "'x' * 3", "session_id": session}}
    asked = client.request("tools/call", call)
    (id,) = asked["inputRequests"]
    decide(server, id, decision)
    client.answers = {"elicitation/create": Person(yes() if answer == "yes" else {"action": "decline"})}
    more = client.answered(asked) if answer else {}
    result = client.request("tools/call", {**call, **more})
    if decision == "approve" and answer != "no":
        assert "xxx" in value(result)
    else:
        assert result["isError"] and "declined" in text_of(result)
    assert len(executions(server, session)) == (decision == "approve" and answer != "no")


def test_decided_once(server):
    client = plain(Modern, server)
    id = waits(client.call("run_code", code="'once'"))
    decide(server, id, "decline")
    with server.client() as c:
        error = c.post(f"/v1/approvals/{id}", {"decision": "approve"}).refused(409)
        assert "declined" in error["message"]
        c.post(f"/v1/approvals/{id}", {"decision": "perhaps"}).refused(400, param="decision")
        c.post(f"/v1/approvals/{id}", {}).refused(400, param="decision")
        c.post(f"/v1/approvals/{id}", {"decision": "approve", "reason": "x" * 2049}).refused(400)
        for other in ("apr_" + "0" * 28, "x", "apr_"):
            c.post(f"/v1/approvals/{other}", {"decision": "approve"}).refused(404)
            c.get(f"/v1/approvals/{other}").refused(404)


def test_run_out_of_time(server):
    client, session = plain(Modern, server), session_in(server, "brief")
    call = {"code": "1", "session_id": session}
    late, unused = waits(client.call("run_code", **call)), None
    retort.wait_until(lambda: get(server, late)["state"] == "expired", "the end of its time")
    decide(server, late, status=409)
    unused = waits(client.call("run_code", **call))
    assert unused != late
    decide(server, unused)
    retort.wait_until(lambda: get(server, unused)["state"] == "expired", "the end of its time")
    assert waits(client.call("run_code", **call)) not in (late, unused)
    assert executions(server, session) == []


def test_lists(server):
    client = plain(Modern, server)
    made = [waits(client.call("run_code", code=f"'list {n}'")) for n in range(3)]
    decide(server, made[1], "decline")
    with server.client() as c:
        assert [a["id"] for a in c.get("/v1/approvals?limit=3").json["data"]] == made[::-1]
        page = c.get("/v1/approvals?state=pending&limit=1").expect(200).json
        assert page["data"][0]["id"] == made[2] and page["has_more"]
        page = c.get(f"/v1/approvals?state=pending&limit=1&after={page['last_id']}").expect(200).json
        assert page["data"][0]["id"] == made[0]
        assert c.get("/v1/approvals?state=declined&limit=1").json["data"][0]["id"] == made[1]
        c.get("/v1/approvals?state=lost").refused(400, param="state")
        one = c.get(f"/v1/approvals/{made[0]}").json
        schemas = c.get("/v1/openapi.json").json["components"]
        for found in (one, c.get(f"/v1/approvals/{made[1]}").json):
            jsonschema.validate(found, {"$ref": "#/components/schemas/approval", "components": schemas})
    assert one["tool"] == "run_code" and one["text"] == "'list 0'" and one["text_size"] == 8
    assert one["door"] == "mcp" and one["pool"] == "default" and one["key"] is None
    assert len(one["digest"]) == 64 and one["session"] is None and one["scope"] == "once"


def test_counted(server):
    client = plain(Modern, server)

    def counts():
        with server.client() as c:
            lines = c.get("/metrics").text.splitlines()
        return {line.split('"')[1]: int(line.split()[-1]) for line in lines
                if line.startswith("retort_approvals_total{")}

    before = counts()
    assert set(before) == {"pending", "approved", "declined", "expired", "used"}
    decide(server, waits(client.call("run_code", code="'counted'")))
    value(client.call("run_code", code="'counted'"))
    decide(server, waits(client.call("run_code", code="'again'")), "decline")
    after = counts()
    assert [after[s] - before[s] for s in ("pending", "approved", "declined", "used")] == [2, 1, 1, 1]


# --- the native interface ---


def test_rest_is_asked_too(server):
    session = session_in(server, "default")
    with server.client() as c:
        for path, more in (("/v1/execute", {}), (f"/v1/sessions/{session}/execute", {}),
                           (f"/v1/sessions/{session}/execute", {"stream": True}),
                           (f"/v1/sessions/{session}/execute", {"background": True})):
            body = {"code": "print(6 * 7)", **more}
            error = c.post(path, body).refused(403, type="approval_required")
            id = ID.search(error["message"])[0]
            assert ID.search(c.post(path, body).refused(403, type="approval_required")["message"])[0] == id
            decide(server, id)
            answer = c.post(path, body).expect(202 if "background" in more else 200)
            if not more:
                assert answer.json["stdout"] == "42\n"
            record = get(server, id)
            assert record["state"] == "used" and record["door"] == "rest" and record["tool"] == "run_code"
        error = c.post("/v1/execute", {"code": "1"}).refused(403, type="approval_required")
        decide(server, ID.search(error["message"])[0], "decline", reason="no")
        assert "no" in c.post("/v1/execute", {"code": "1"}).refused(403, type="approval_declined")["message"]
        c.post("/v1/execute", {"code": "1", "stream": "x"}).refused(400, param="stream")
        c.post("/v1/execute", {"code": "1", "pool": "client"}).refused(403, type="approval_required")


# --- a restart ---


def test_pending_survives_a_kill(era):
    with Server(*ALWAYS) as server:
        session = session_in(server, "default")
        call = {"code": "6 * 7", "session_id": session}
        id = waits(plain(era, server).call("run_code", **call))
        server.kill()
        server.start()
        assert get(server, id)["state"] == "pending"
        client = plain(era, server)
        assert waits(client.call("run_code", **call)) == id
        decide(server, id, reason="after the kill")
        server.kill()
        server.start()
        client = plain(era, server)
        assert "42" in value(client.call("run_code", **call))
        assert get(server, id)["state"] == "used"
        assert waits(client.call("run_code", **call)) != id


def test_a_question_survives_a_kill():
    """Modern: asked by one process, answered to the next; and used once, whoever is asked."""
    with Server(*ALWAYS) as server:
        client, session = Modern(server, capabilities=ELICITS), session_in(server, "default")
        call = {"name": "run_code", "arguments": {"code": "6 * 7", "session_id": session}}
        asked = client.request("tools/call", call)
        secret = server.state / "secret"
        assert secret.stat().st_mode & 0o777 == 0o600 and secret.stat().st_size == 32
        server.kill()
        server.start()
        client.answers = {"elicitation/create": Person(yes())}
        more = client.answered(asked)
        assert "42" in value(client.request("tools/call", {**call, **more}))
        server.kill()
        server.start()
        error = client.ask("tools/call", {**call, **more}).response["error"]
        assert error["code"] == -32602 and "used" in error["message"]
        assert len(executions(server, session)) == 1


def test_a_conversation_survives_a_kill():
    with Server("--approval", "ask_first", "--approval-by", "approver") as server:
        client, session = plain(Modern, server), session_in(server, "default")
        decide(server, waits(client.call("run_code", code="1", session_id=session)))
        value(client.call("run_code", code="1", session_id=session))
        server.kill()
        server.start()
        value(client.call("run_code", code="2", session_id=session))


# --- keys ---


@pytest.fixture(scope="module")
def keyed():
    """A server with keys: of two tenants, an approver of each, an admin."""
    with Server(*ALWAYS) as server:
        server.secrets = {
            "client": server.keys("create", "-q", "--tenant", "acme").strip(),
            "other": server.keys("create", "-q", "--tenant", "acme").strip(),
            "approver": server.keys("create", "-q", "--tenant", "acme", "--approver").strip(),
            "admin": server.keys("create", "-q", "--tenant", "acme", "--admin").strip(),
            "stranger": server.keys("create", "-q", "--tenant", "elsewhere", "--approver").strip(),
        }
        server.kill()
        server.start()
        yield server


def test_who_may_decide(keyed):
    key = keyed.secrets
    client = plain(Modern, keyed, key=key["client"])
    for who in ("approver", "admin"):
        id = waits(client.call("run_code", code=f"'for {who}'"))
        for wrong in ("client", "other"):
            with keyed.client(key[wrong]) as c:
                c.post(f"/v1/approvals/{id}", {"decision": "approve"}).refused(403)
        with keyed.client(key["stranger"]) as c:
            c.post(f"/v1/approvals/{id}", {"decision": "approve"}).refused(404)
            c.get(f"/v1/approvals/{id}").refused(404)
            assert c.get("/v1/approvals").json["data"] == []
        assert get(keyed, id, key["client"])["state"] == "pending"
        record = decide(keyed, id, key=key[who])
        with keyed.client(key["admin"]) as c:
            ids = {k["id"]: k for k in c.get("/v1/keys").json["data"]}
        assert ids[record["decided_by"]]["admin"] == (who == "admin")
        assert ids[record["decided_by"]]["approver"] == (who == "approver")
        assert not ids[record["key"]]["approver"]
        assert who in value(client.call("run_code", code=f"'for {who}'"))


def test_an_approver_may_decide_its_own(keyed):
    key = keyed.secrets["approver"]
    client = plain(Modern, keyed, key=key)
    decide(keyed, waits(client.call("run_code", code="'own'")), key=key)
    assert "own" in value(client.call("run_code", code="'own'"))


def test_it_is_the_askers(keyed):
    """Another key of the tenant does not find it, nor does another tenant."""
    key = keyed.secrets
    id = waits(plain(Modern, keyed, key=key["client"]).call("run_code", code="'mine'"))
    decide(keyed, id, key=key["approver"])
    for who in ("other", "stranger"):
        assert waits(plain(Modern, keyed, key=key[who]).call("run_code", code="'mine'")) != id
    assert "mine" in value(plain(Modern, keyed, key=key["client"]).call("run_code", code="'mine'"))


def test_keys_are_made_and_listed(keyed):
    key = keyed.secrets["admin"]
    with keyed.client(key) as c:
        made = c.post("/v1/keys", {"tenant": "acme", "approver": True}).expect(201).json
        assert made["approver"] and not made["admin"]
        assert not c.post("/v1/keys", {"tenant": "acme"}).expect(201).json["approver"]
    listed = keyed.keys("list")
    assert any(made["id"] in line and "approve" in line for line in listed.splitlines())
    id = waits(plain(Modern, keyed, key=keyed.secrets["client"]).call("run_code", code="'made'"))
    decide(keyed, id, key=made["secret"])


def test_no_more_than_so_many(keyed):
    """A hundred are pending at most, for a tenant; another's are its own."""
    client = plain(Modern, keyed, key=keyed.secrets["stranger"])
    for n in range(100):
        last = client.call("run_code", code=f"'{n}'")
        if "pending already" in text_of(last):
            break
        waits(last)
    last = client.call("run_code", code="'one more'")
    assert last["isError"] and "100 approvals of this tenant are pending" in text_of(last)
    waits(plain(Modern, keyed, key=keyed.secrets["client"]).call("run_code", code="'room'"))
    with keyed.client(keyed.secrets["stranger"]) as c:
        pending = c.get("/v1/approvals?state=pending&limit=200").json["data"]
        assert len(pending) == 100
        c.post(f"/v1/approvals/{pending[0]['id']}", {"decision": "decline"}).expect(200)
        assert ID.search(c.post("/v1/execute", {"code": "1"}).refused(
            403, type="approval_required")["message"])
        c.post("/v1/execute", {"code": "2"}).refused(429)
