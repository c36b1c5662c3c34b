"""A person agrees before code runs: asked through the client, in both eras."""

import json
import re

import pytest

from support import retort
from support.mcp import Legacy, Modern, RpcError, text_of
from support.server import Server, refusal, together

CONFIG = """
[pool first]
approval = ask_first

[pool second]
approval = ask_first

[pool always]
approval = always_ask

[pool shell]
approval = always_ask
approval-when = language=shell, code~"os.system(" | socket

[pool free]

[pool quick]
approval = always_ask
approval-timeout = 1
"""
ELICITS = {"elicitation": {}}
ID = re.compile(r"apr_[a-z0-9]{28}")


@pytest.fixture(scope="module")
def server():
    with Server(config=CONFIG) as one:
        yield one


def yes(**more):
    return {"action": "accept", "content": {"approve": True, **more}}


NO = [{"action": "decline"}, {"action": "cancel"}, {"action": "accept", "content": {"approve": False}},
      {"action": "accept", "content": {}}, {"action": "accept", "content": {"approve": "true"}}]


class Person:
    """Whom a client asks; what they were asked stays in `asked`."""

    def __init__(self, *answers):
        self.asked, self.answers = [], list(answers)

    def __call__(self, params):
        self.asked.append(params)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture(params=[Legacy, Modern], ids=["legacy", "modern"])
def era(request):
    return request.param


def client_of(era, server, person, **more):
    one = era(server, capabilities=ELICITS, answers={"elicitation/create": person}, **more)
    return one.initialize() if era is Legacy else one


def session_in(server, pool):
    with server.client() as c:
        return c.post("/v1/sessions", {"pool": pool}).expect(201).json["id"]


def approvals(server, **query):
    with server.client() as c:
        return c.all("/v1/approvals" + "".join(f"?{k}={v}" for k, v in query.items()))


def executions(server, session):
    with server.client() as c:
        return c.get(f"/v1/executions?session={session}").expect(200).json["data"]


def value(result):
    assert not result.get("isError"), result
    return text_of(result)


# --- policies ---


@pytest.mark.parametrize("pool, prompts", [("free", 0), ("first", 1), ("always", 3)])
def test_how_often_it_asks(server, era, pool, prompts):
    person = Person(yes())
    client, session = client_of(era, server, person), session_in(server, pool)
    for n in range(3):
        assert str(n + 40) in value(client.call("run_code", code=f"{n} + 40", session_id=session))
    assert len(person.asked) == prompts


def test_asking_first_is_by_session_and_tool(server, era):
    person = Person(yes())
    client = client_of(era, server, person)
    one, other = session_in(server, "first"), session_in(server, "first")
    client.call("run_code", code="1", session_id=one)
    client.call("run_code", code="2", session_id=one)
    assert len(person.asked) == 1
    client.call("run_shell", command="true", session_id=one)
    assert len(person.asked) == 2
    # A conversation of the legacy era is one; in the modern one a session is.
    client.call("run_code", code="3", session_id=other)
    assert len(person.asked) == (2 if era is Legacy else 3)


def test_what_was_agreed_to_in_one_pool_is_for_that_pool(server, era):
    """Also in one conversation: the other has a policy of its own, and maybe other limits and another network."""
    person = Person(yes(remember="conversation"))
    client = client_of(era, server, person)
    for n, pool in enumerate(("first", "second", "always"), 1):
        value(client.call("run_code", code="1", session_id=session_in(server, pool)))
        assert len(person.asked) == n, pool


def test_once_is_once(server, era):
    person = Person(yes(remember="once"))
    client, session = client_of(era, server, person), session_in(server, "first")
    client.call("run_code", code="1", session_id=session)
    client.call("run_code", code="2", session_id=session)
    assert len(person.asked) == 2


def test_without_a_session(server):
    """The first pool asks first: once for a conversation, each time where there is none."""
    for era, prompts in ((Legacy, 1), (Modern, 2)):
        person = Person(yes())
        client = client_of(era, server, person)
        for n in range(2):
            assert str(n + 60) in value(client.call("run_code", code=f"{n} + 60"))
        assert len(person.asked) == prompts, era


def test_conditions(server, era):
    person = Person(yes())
    client, session = client_of(era, server, person), session_in(server, "shell")
    value(client.call("run_code", code="import os", session_id=session))
    assert person.asked == []
    value(client.call("run_code", code="import os; os.system('true')", session_id=session))
    value(client.call("run_shell", command="true", session_id=session))
    value(client.call("run_code", code="true", language="shell", session_id=session))
    assert len(person.asked) == 3


# --- the question ---


def test_the_question(server, era):
    person = Person(yes())
    client, session = client_of(era, server, person), session_in(server, "always")
    code = "1 # é\n" + "x" * 3000
    client.call("run_code", code="#" + code, session_id=session, env={"A": "b"})
    asked = person.asked[0]
    assert session in asked["message"] and "#" + code in asked["message"]
    assert '"env":{"A":"b"}' in asked["message"]
    assert asked["requestedSchema"]["required"] == ["approve"]
    assert set(asked["requestedSchema"]["properties"]) == {"approve"}
    client.call("run_code", code="2", session_id=session_in(server, "first"))
    assert set(person.asked[-1]["requestedSchema"]["properties"]) <= {"approve", "remember"}


@pytest.mark.parametrize("no", NO, ids=json.dumps)
def test_no(server, era, no):
    person = Person(no)
    client, session = client_of(era, server, person), session_in(server, "always")
    result = client.call("run_code", code="open('made', 'w')", session_id=session)
    assert result["isError"] and "declined by the user" in text_of(result)
    assert executions(server, session) == []
    record = approvals(server)[0]
    assert record["state"] == "declined" and record["decided_how"] == "client"
    assert len(person.asked) == 1


def test_nothing_runs_before_the_answer(server, era):
    session, seen = session_in(server, "always"), []

    def person(params):
        seen.append((executions(server, session), approvals(server, state="pending")))
        return yes()

    client = client_of(era, server, person)
    value(client.call("run_code", code="print('ran')", session_id=session))
    before, pending = seen[0]
    assert before == [] and pending[0]["text"].startswith("print('ran')")
    ran = executions(server, session)
    assert len(ran) == 1
    record = approvals(server)[0]
    assert record["state"] == "used" and record["execution"] == ran[0]["id"]
    with server.client() as c:
        lines = c.get("/v1/executions?format=jsonl").expect(200).text.splitlines()
        audit = {line["id"]: line for line in map(json.loads, lines)}
    assert audit[ran[0]["id"]]["approval"] == record["id"]


def test_an_answer_that_is_none(server, era):
    client = client_of(era, server, Person({"action": "perhaps"}))
    with pytest.raises(RpcError) as error:
        client.call("run_code", code="1", session_id=session_in(server, "always"))
    assert error.value.code == -32602 and "action" in error.value.message


def test_many_at_a_time(server, era):
    """The same call twice has two questions, and each answer is for its own."""
    session = session_in(server, "always")
    codes = ["'a'", "'b'", "'same'", "'same'"]
    people = [Person(yes()) for _ in codes]
    clients = [client_of(era, server, p) for p in people]
    results = together(*(lambda c=c, code=code: c.call("run_code", code=code, session_id=session)
                         for c, code in zip(clients, codes)))
    for result, code in zip(results, codes):
        assert code in value(result)
    assert [len(p.asked) for p in people] == [1, 1, 1, 1]


# --- clients that cannot be asked ---


def test_a_client_that_cannot_ask(server, era):
    session = session_in(server, "always")
    client = era(server)
    client = client.initialize() if era is Legacy else client
    before = len(approvals(server))
    result = client.call("run_code", code="1", session_id=session)
    assert result["isError"] and "cannot ask its user" in text_of(result)
    assert executions(server, session) == [] and len(approvals(server)) == before


def test_a_client_with_links_only(server, era):
    client = era(server, capabilities={"elicitation": {"url": {}}})
    client = client.initialize() if era is Legacy else client
    result = client.call("run_code", code="1", session_id=session_in(server, "always"))
    assert result["isError"] and "cannot ask its user" in text_of(result)


# --- time ---


def test_nobody_answers(server):
    """Legacy: the call ends by itself."""
    client = client_of(Legacy, server, Person(yes()))
    session = session_in(server, "quick")
    exchange = client.begin("tools/call", {"name": "run_code",
                                           "arguments": {"code": "1", "session_id": session}})
    question = exchange.until("elicitation/create")
    (last,) = [m for m in exchange if "result" in m]
    assert last["result"]["isError"] and "in time" in text_of(last["result"])
    client.question(question)  # too late, and told to nobody
    assert executions(server, session) == []
    assert approvals(server)[0]["state"] == "expired"


def test_too_late(server):
    """Modern: the answer comes when nobody waits for it any more."""
    client, session = Modern(server, capabilities=ELICITS), session_in(server, "quick")
    call = {"name": "run_code", "arguments": {"code": "1", "session_id": session}}
    asked = client.request("tools/call", call)
    client.answers = {"elicitation/create": Person(yes())}
    retort.wait_until(lambda: approvals(server)[0]["state"] == "expired", "the end of its time")
    result = client.request("tools/call", {**call, **client.answered(asked)})
    assert result["isError"] and "in time" in text_of(result)
    assert executions(server, session) == []


# --- the state that a modern client carries ---


@pytest.fixture
def asked(server):
    """A modern call that has come back with the question, and what it is repeated with."""
    client = Modern(server, capabilities=ELICITS, answers={"elicitation/create": Person(yes())})
    session = session_in(server, "always")
    call = {"name": "run_code", "arguments": {"code": "6 * 7", "session_id": session}}
    client.answers, people = {}, client.answers
    question = client.request("tools/call", call)
    client.answers = people
    assert question["resultType"] == "input_required"
    (key,) = question["inputRequests"]
    assert ID.fullmatch(key)
    return client, session, call, client.answered(question)


def refused(client, params):
    reply = client.ask("tools/call", params)
    error = reply.response["error"]
    assert error["code"] == -32602, error
    return error["message"]


def test_replay(server, asked):
    client, session, call, more = asked
    assert "42" in value(client.request("tools/call", {**call, **more}))
    assert "used" in refused(client, {**call, **more})
    assert len(executions(server, session)) == 1


def test_tampered(server, asked):
    client, session, call, more = asked
    state = more["requestState"]
    for broken in (state[:-4], state + "AAAA", ("B" if state[0] == "A" else "A") + state[1:], "", state.swapcase()):
        refused(client, {**call, **more, "requestState": broken})
    assert executions(server, session) == []
    assert approvals(server)[0]["state"] == "pending"


def test_other_arguments(server, asked):
    client, session, call, more = asked
    for change in ({"code": "6 * 8"}, {"env": {"A": "b"}}, {"session_id": session_in(server, "always")}):
        refused(client, {**call, "arguments": {**call["arguments"], **change}, **more})
    assert executions(server, session) == []


def test_an_answer_nobody_asked_for(server, asked):
    """Without the state, an answer counts for nothing, and the question is asked."""
    client, session, call, more = asked
    client.answers = {}
    del more["requestState"]
    assert client.request("tools/call", {**call, **more})["resultType"] == "input_required"
    assert executions(server, session) == []


# --- ends ---


def test_cancelled(server):
    """Legacy: a call that is given up while it asks runs nothing, whatever is answered later."""
    client = client_of(Legacy, server, Person(yes()))
    session = session_in(server, "always")
    exchange = client.begin("tools/call", {"name": "run_code",
                                           "arguments": {"code": "1", "session_id": session}}, id=77)
    question = exchange.until("elicitation/create")
    client.cancel(77)
    assert [m for m in exchange if "id" in m] == []
    client.question(question)
    assert executions(server, session) == []
    assert approvals(server)[0]["state"] == "pending"  # until its time is over


# --- settings ---


@pytest.mark.parametrize("rule, says", [
    ("code", "missing"), ("=x", "name"), ("code~", "value"), ("code~a,", "name"), ('code~"a', "quotation"),
    ("code~a|", "value"), ('code~"a"b', "comma"), ("code*a", "missing"), (",", "name"),
    (", ".join(["a=b"] * 65), "more than 64"),
])
def test_rules_that_cannot_be_read(rule, says):
    code, err = refusal("--approval", "always_ask", "--approval-when", rule)
    assert code == 2 and "approval-when" in err and says in err, err


def test_rules_for_nobody():
    code, err = refusal("--approval-when", "code~x")
    assert code == 2 and "approval = auto" in err, err
