"""Loops outlive the process: it is killed in every state, and what was begun is not begun again."""

import json
import threading

from agent import HELD, Driver
from support.script import finish, plan, python, script

AWAY = 9  # a kind of error: it is shutting down
COUNTING = "with open('count', 'a') as f: f.write('x')\nprint(len(open('count').read()))"


def restart(old, store, first=(), **settings):
    """Whoever watched, watches again before what was under way is taken up."""
    old.kill()
    watches = [{"do": "watch", "id": name, "after": 0} for name in list(old.loops)]
    return Driver(store, first=[*watches, *first], **settings)


def test_l14_killed_while_it_waits_for_an_answer(tmp_path):
    settings = {"approval": "always", "by": "either", "ready": 1}
    driver = Driver(tmp_path / "store", **settings)
    loop = driver.start(script(plan(), python(COUNTING), finish("1 was counted")), can_answer=True)
    loop.event(type="question")
    driver = restart(driver, tmp_path / "store", **settings)
    again = driver.loop(loop.id)
    again.event(type="question")
    assert driver.get(again)["record"]["status"] == "waiting_for_input"
    driver.ask(do="provide", id=loop.id, text="yes")
    record = again.end()
    assert record["status"] == "completed" and "STDOUT:\n1\n" in record["logs"]
    assert [e["code"] for e in driver.executions(record)] == [COUNTING]
    assert [e["seq"] for e in again.events] == list(range(1, len(again.events) + 1))
    driver.close()


def test_l14_answered_before_it_is_taken_up(tmp_path):
    settings = {"approval": "always", "by": "either", "ready": 1}
    driver = Driver(tmp_path / "store", **settings)
    turns = script(plan(), python(COUNTING), finish("1 was counted"))
    loops = [driver.start(turns, can_answer=True) for _ in range(2)]
    for loop in loops:
        loop.event(type="question")
    driver = restart(driver, tmp_path / "store", **settings,
                     first=[{"do": "provide", "id": loops[0].id, "text": "yes"},
                            {"do": "cancel", "id": loops[1].id}])
    answers = [driver.answers.get(timeout=60) for _ in loops]
    assert not any("error" in a for a in answers), answers
    assert driver.loop(loops[0].id).end()["status"] == "completed"
    assert driver.loop(loops[1].id).end()["status"] == "cancelled"
    driver.close()


def test_l14_decided_while_nobody_was_there(tmp_path):
    settings = {"approval": "always", "by": "either", "ready": 1}
    driver = Driver(tmp_path / "store", **settings)
    loop = driver.start(script(plan(), python(COUNTING), finish("1 was counted")), can_answer=True)
    question = loop.event(type="question")
    driver = restart(driver, tmp_path / "store", **settings)
    driver.ask(do="decide", approval=question["approval"], approve=True)
    record = driver.loop(loop.id).end()
    assert record["status"] == "completed" and len(driver.executions(record)) == 1, record
    driver.close()


def test_l14_killed_while_a_model_is_asked(tmp_path, server):
    turns = [[plan()], [python(COUNTING)], [{"sleep_ms": 3000}, finish("1 was counted")],
             [finish("1 was counted")]]
    desk = server.desk(turns=turns, in_order=True)
    settings = {"script": None, "ready": 1, "models": [{"label": "a", "api": "openai", "url": desk.openai}]}
    driver = Driver(tmp_path / "store", **settings)
    loop = driver.start("Count.")
    loop.event(type="phase", phase="observe")
    while len(desk.requests) < 3:
        threading.Event().wait(0.01)
    driver = restart(driver, tmp_path / "store", **settings)
    record = driver.loop(loop.id).end()
    assert record["status"] == "completed" and record["total_rounds"] == 1
    assert [e["code"] for e in driver.executions(record)] == [COUNTING]
    driver.close()


def test_l14_killed_while_code_runs(tmp_path):
    code = COUNTING + "\nimport time\nprint('begun', flush=True)\ntime.sleep(60)"
    driver = Driver(tmp_path / "store", ready=1)
    loop = driver.start(script(plan("a", "b"), python(code), python("print('next')"),
                               finish("It was lost: next.")))
    loop.event(type="console")
    sandbox = driver.get(loop)["record"]["sandbox_id"]
    while not driver.ask(do="executions", session=sandbox)["executions"]:
        threading.Event().wait(0.01)
    driver = restart(driver, tmp_path / "store", ready=1)
    record = driver.loop(loop.id).end()
    assert record["status"] == "completed" and record["total_rounds"] == 2
    assert [e["code"] for e in driver.executions(record)] == [code, "print('next')"]
    assert "session lost" in record["logs"]
    driver.close()


def test_a_clean_end_is_a_pause(tmp_path):
    driver = Driver(tmp_path / "store", ready=1)
    over = driver.start(script(plan(), python("print(1)"), finish("done")))
    ended = over.end()
    loop = driver.start(script(plan("a", "b"), python("import time\nprint('begun', flush=True)\ntime.sleep(60)"),
                               python("print('next')"), finish("It failed once: next.")))
    loop.event(type="console")
    driver.close()
    assert loop.end() == {"error": "the server is shutting down"}
    driver = Driver(tmp_path / "store", ready=1)
    driver.tell(do="watch", id=loop.id, after=0)
    record = driver.loop(loop.id).end()
    assert record["status"] == "completed" and record["total_rounds"] == 2
    assert driver.get(over)["record"] == ended and len(driver.executions(ended)) == 1
    driver.close()


def test_l14_a_server_that_drains_puts_its_loops_off(tmp_path):
    settings = {"approval": "always", "by": "either", "ready": 1}
    driver = Driver(tmp_path / "store", **settings)
    waits = driver.start(script(plan(), python(COUNTING), finish("1 was counted")), can_answer=True)
    runs = driver.start(script(plan("a", "b"), python(HELD + "print('through')"),
                               python(COUNTING), finish("1 was counted")), can_answer=True)
    for loop in (waits, runs):
        loop.event(type="question")
    driver.ask(do="provide", id=runs.id, text="yes")
    runs.event(type="console")
    driver.ask(do="drain")
    assert driver.ask(do="start", request="x")["error"]["kind"] == AWAY
    driver.release(runs)
    for loop in (waits, runs):
        assert loop.end() == {"error": "the server is shutting down"}
    assert "through" in driver.get(runs)["record"]["logs"]
    driver.close()
    driver = Driver(tmp_path / "store", **settings)
    for name in (waits.id, runs.id):
        driver.tell(do="watch", id=name, after=0)
        loop = driver.loop(name)
        loop.wait(lambda: any(COUNTING in e.get("prompt", "") for e in loop.events))
        driver.ask(do="provide", id=name, text="yes")
        record = loop.end()
        assert record["status"] == "completed" and "STDOUT:\n1\n" in record["logs"]
        assert [e["code"] for e in driver.executions(record)].count(COUNTING) == 1
    driver.close()


def test_as_many_at_once_as_one_tenant_may_have(tmp_path):
    driver = Driver(tmp_path / "store", ready=1, tenant_loops=2)
    loops = [driver.start(script(plan(), python(HELD + "print(1)"), finish("done"))) for _ in range(2)]
    assert driver.ask(do="start", request="x")["error"]["kind"] == 5
    assert "error" not in driver.ask(do="start", request=json.dumps({"turns": []}), tenant="other")
    for loop in loops:
        loop.event(type="console")
        driver.release(loop)
        assert loop.end()["status"] == "completed"
    driver.play(plan(), python("print(1)"), finish("done"))
    driver.close()
