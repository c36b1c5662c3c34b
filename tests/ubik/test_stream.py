"""Executions as they go: events, replay, pieces, questions, ends."""

import threading
import time

import pytest
from account import Account, House, parse
from support.script import finish, plan, python, question, script, simple

CODES = "print('one'); import time; time.sleep(0.3); print('two')"



def test_u20_stream(ubik):
    order = ubik.order(simple(CODES, "both"))
    events = list(ubik.events(f"/tool-executions/{order['execution_id']}/stream"))
    names = [name for name, _, _ in events]
    assert names[-1] == "tool_end" and names.count("tool_end") == 1
    assert all(data["event_type"] == name for name, _, data in events)
    phases = [data["phase"] for name, _, data in events if name == "tool_update"]
    assert [p for p in phases if p in ("plan", "code", "run", "final")][:4] == [
        "plan", "code", "run", "code"] or set(phases) >= {"plan", "code", "run", "final"}
    assert set(phases) >= {"plan", "code", "run", "final"}
    console = [data["content"] for name, _, data in events if name == "tool_partial_update"]
    assert "".join(console).replace("\r", "") == "one\ntwo\n" and len(console) >= 2
    end = events[-1][2]
    assert end["outputs"]["answer"] == end["answer"] == "both"
    assert end["status"] == "completed" and end["execution_id"] == order["execution_id"]
    assert end["logs"] == end["outputs"]["logs"]
    numbers = [number for _, number, _ in events]
    assert numbers == sorted(set(numbers)), "each event has an id, and they grow"


def test_u20_console_comes_live(ubik):
    order = ubik.order(simple("print('early', flush=True); import time; time.sleep(20)"))
    stream = ubik.events(f"/tool-executions/{order['execution_id']}/stream")
    for name, _, data in stream:
        if name == "tool_partial_update":
            break
    assert data["content"] == "early\n"
    stream.close()
    ubik.close()
    ubik.post(f"/tool-executions/{order['execution_id']}/stop?hard=true").expect(200)


def test_u21_auth_by_query(house):
    with house.account() as ubik:
        path = f"/tool-executions/{ubik.order(simple('print(1)'))['execution_id']}/stream"
    with Account(house.server, None) as nobody:
        assert list(nobody.events(f"{path}?api_key={house.key}"))[-1][0] == "tool_end"
        assert list(nobody.events(f"{path}?token={house.key}"))[-1][0] == "tool_end"
        token = house.account().token("alice")
        assert nobody.get(f"{path}?token={token}").status == 404, "it is not hers"
        assert nobody.get(path).status == 401
        assert nobody.get(f"{path}?api_key=wrong").status == 401
        assert nobody.get(f"{path}?api_key={house.other}").status == 404
        assert nobody.get(f"/tools?api_key={house.key}").status == 401, "of a stream alone"


def test_u22_replay_on_reconnect(ubik):
    order = ubik.order(simple(CODES))
    ubik.wait(order["execution_id"])
    path = f"/tool-executions/{order['execution_id']}/stream"
    events = list(ubik.events(path))
    assert list(ubik.events(path)) == events
    for name, number, _ in events[:-1]:
        later = list(ubik.events(path, **{"Last-Event-ID": str(number)}))
        assert later == events[len([n for _, n, _ in events if n <= number]):], name


def test_u22_late_comers_hear_what_was_and_what_comes(ubik):
    order = ubik.order(simple("print('a', flush=True)\nimport time; time.sleep(1)\nprint('b')"))
    path = f"/tool-executions/{order['execution_id']}/stream"
    with Account(ubik.server, ubik.headers["X-API-KEY"]) as early:
        next(e for e in early.events(path) if e[0] == "tool_partial_update")
    console = "".join(d["content"] for n, _, d in ubik.events(path) if n == "tool_partial_update")
    assert console == "a\nb\n"


def test_u23_chunking(ubik):
    order = ubik.order(simple("for i in range(3000): print(i, 'déjà vu')"))
    ubik.wait(order["execution_id"])
    path = "/ubik/api/v1/tool-executions/" + order["execution_id"] + "/stream"
    raw = list(parse(ubik.begin("GET", path)))
    ubik.close()
    pieces = [(n, d) for name, n, d in raw if name == "tool_end_delta_sse"]
    assert "tool_end" not in [name for name, _, _ in raw] and len(pieces) > 2
    assert [d["chunk_index"] for _, d in pieces] == list(range(len(pieces)))
    assert {d["total_chunks"] for _, d in pieces} == {len(pieces)}
    assert {d["original_event_type"] for _, d in pieces} == {"tool_end"}
    assert len({d["chunk_id"] for _, d in pieces}) == 1
    assert [n is not None for n, _ in pieces] == [False] * (len(pieces) - 1) + [True]
    end = list(ubik.events(path))[-1]
    assert end[0] == "tool_end" and "0 déjà vu\n1 déjà vu\n" in end[2]["outputs"]["logs"]


ASKS = ["--model-script", "-", "--approval", "always_ask", "--approval-timeout", "3"]


@pytest.fixture(scope="module")
def asking():
    with House(*ASKS) as one:
        yield one


def test_u25_input_pause(asking):
    with asking.account() as ubik:
        order = ubik.order(simple("print(6 * 7)"))
        path = "/tool-executions/" + order["execution_id"]
        found = ubik.wait(order["execution_id"], "waiting_for_input", "failed", "completed")
        assert found["status"] == "waiting_for_input" and "print(6 * 7)" in found["question"]["prompt"]
        assert found["completed_at"] is None
        ubik.form(path + "/provide-input", ("input_data_json", None, b'{"approve": true}')).expect(202)
        found = ubik.wait(order["execution_id"])
        assert found["status"] == "completed" and ubik.printed(found["outputs"]) == "42"
        asked = [d for n, _, d in ubik.events(path + "/stream") if n == "tool_input_required"]
        assert asked[0]["input_types"] == ["text"] and asked[0]["state"] == "approval"
        late = ubik.form(path + "/provide-input", ("input_data_json", None, b'"yes"'))
        assert late.expect(400).json["detail"].startswith("The execution does not wait for input")


def test_u25_nobody_else_answers(asking):
    with asking.account("alice") as alice, asking.account("bob") as bob:
        order = alice.order(simple("print(6 * 7)"))
        path = "/tool-executions/" + order["execution_id"]
        alice.wait(order["execution_id"], "waiting_for_input")
        bob.form(path + "/provide-input", ("input_data_json", None, b'"yes"')).expect(404)
        alice.form(path + "/provide-input", ("other", None, b"yes")).expect(422)
        alice.form(path + "/provide-input", ("input_data_json", None, b'{"approve": false}')).expect(202)
        found = alice.wait(order["execution_id"])
        assert found["status"] == "completed" and "STATUS: Execution refused\n" in found["outputs"]["logs"]
        assert "\n42\n" not in found["outputs"]["logs"]


def test_u25_timeout_fails_it(asking):
    with asking.account() as ubik:
        order = ubik.order(simple("print(6 * 7)"))
        ubik.wait(order["execution_id"], "waiting_for_input")
        found = ubik.wait(order["execution_id"])
        assert found["status"] == "failed" and "STATUS: Execution failed\n" in found["outputs"]["logs"]
        assert "\n42\n" not in found["outputs"]["logs"]
        assert found["outputs"]["status"] != "completed"


@pytest.mark.parametrize("answer", [("input_data_json", None, b'{"text": "blue"}'),
                                    ("input_data_json", None, b'"blue"'), ("input", None, b"blue")])
def test_u25_a_question_of_the_model(ubik, answer):
    order = ubik.order(script(plan(), question("Which colour?"), python("print('painted')"),
                              finish("done")))
    path = "/tool-executions/" + order["execution_id"]
    found = ubik.wait(order["execution_id"], "waiting_for_input")
    assert found["question"]["prompt"] == "Which colour?"
    ubik.form(path + "/provide-input", answer).expect(202)
    assert ubik.wait(order["execution_id"])["status"] == "completed"
    asked = [d for n, _, d in ubik.events(path + "/stream") if n == "tool_input_required"]
    assert asked[0]["state"] == "question" and asked[0]["prompt"] == "Which colour?"


def test_u25_a_file_in_answer(ubik):
    order = ubik.order(script(plan(), question("Where is the table?"),
                              python("print(open('/home/uploaded_files/t.csv').read())"),
                              finish("done")))
    path = "/tool-executions/" + order["execution_id"]
    ubik.wait(order["execution_id"], "waiting_for_input")
    ubik.form(path + "/provide-input", ("file", "/tmp/t.csv", b"a,b")).expect(202)
    assert ubik.printed(ubik.wait(order["execution_id"])["outputs"]) == "a,b"


def test_u32_stop(ubik):
    order = ubik.order(script(plan("a", "b"), python("x = 7\nprint('begun', flush=True)\nimport os, time\n"
                                                     "while not os.path.exists('go'): time.sleep(.01)\nx = 42"),
                              python("x = 0"), finish("no")))
    path = "/tool-executions/" + order["execution_id"]
    for name, _, data in ubik.events(path + "/stream"):
        if name == "tool_partial_update":
            break
    ubik.close()
    ubik.post(path + "/stop").expect(200)
    with ubik.server.client(ubik.headers["X-API-KEY"]) as native:
        [runs] = [s["id"] for s in native.all("/v1/sessions") if s["state"] == "running"]
        native.put(f"/v1/sessions/{runs}/files/go", b"").expect(201)
    found = ubik.wait(order["execution_id"])
    assert found["error_code"] == "Cancelled" and found["outputs"]["status"] == "cancelled"
    assert found["outputs"]["total_rounds"] == 1, "what ran then has ended; nothing else has run"
    state = ubik.code("print(x)", sandbox_id=found["outputs"]["sandbox_id"])
    assert ubik.printed(state) == "42", "and its state is kept"
    ubik.post(path + "/stop").expect(409)


def test_u32_hard_cancel(ubik):
    order = ubik.order(simple("print('begun', flush=True)\nimport time; time.sleep(1000)"))
    path = "/tool-executions/" + order["execution_id"]
    for name, _, data in ubik.events(path + "/stream"):
        if name == "tool_partial_update":
            break
    ubik.close()
    ubik.post(path + "/stop?hard=true").expect(200)
    found = ubik.wait(order["execution_id"])
    assert found["outputs"]["status"] == "cancelled"
    assert list(ubik.events(path + "/stream"))[-1][0] == "tool_end"
    assert ubik.printed(ubik.code("print(1)", sandbox_id=found["outputs"]["sandbox_id"])) == "1"


def test_readers_come_and_go(ubik):
    """Streams that are left at once, before and while there is something to say."""
    order = ubik.order(simple("import time\nfor i in range(20): print(i, flush=True); time.sleep(.05)"))
    path = f"/ubik/api/v1/tool-executions/{order['execution_id']}/stream"

    def read(pause):
        with Account(ubik.server, ubik.headers["X-API-KEY"]) as one:
            one.begin("GET", path)
            time.sleep(pause)

    threads = [threading.Thread(target=read, args=(i / 40,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ubik.wait(order["execution_id"])["status"] == "completed"
    assert ubik.printed(ubik.code("print(1)")) == "1"
