"""Loops over real endpoints, which misbehave: what a model is sent, and what comes of its failures."""

import json
import time

import pytest

from agent import DRAW, Driver
from support.script import call, finish, plan, python, say

DONE = [plan("multiply"), python("print(6 * 7)"), finish("It is 42.")]


def roles(body):
    return [m["role"] for m in body["messages"]]


def texts(body):
    """Everything a request says, in one text."""
    return json.dumps(body["messages"])


def results(body):
    """What OpenAI's tool messages and Anthropic's tool results answer: {call id: text}."""
    found = {}
    for m in body["messages"]:
        if m["role"] == "tool":
            found[m["tool_call_id"]] = m["content"]
        for part in m["content"] if isinstance(m["content"], list) else []:
            if part.get("type") == "tool_result":
                inner = part["content"]
                found[part["tool_use_id"]] = inner if isinstance(inner, str) else inner[0]["text"]
    return found


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_l01_over_an_endpoint(served, api):
    driver, desk = served(*DONE, api=api)
    record = driver.start("What is 6 * 7?", context="Be brief.").end()
    assert record["status"] == "completed" and record["answer"] == "It is 42."
    planned, coded, finished = desk.bodies()
    assert not planned.get("tools") and "Be brief." in texts(planned) and "steps" in texts(planned)
    assert {t.get("name") or t["function"]["name"] for t in coded["tools"]} == {
        "run_python", "finish", "update_plan", "read_output"}
    assert "Be brief." in texts(coded) and "Step 1/1: multiply" in texts(coded)
    assert "STATUS: ok" in json.dumps(results(finished))
    system = planned.get("system") or planned["messages"][0]["content"]
    system = system if isinstance(system, str) else json.dumps(system)
    assert "Python 3." in system and "no network" in system and "ipython" in system


def test_l08_both_calls_are_answered(served):
    for api in ("openai", "anthropic"):
        driver, desk = served(plan(), [python("print('first')"), python("print('second')")],
                              finish("first"), api=api)
        record = driver.start("Print.").end()
        assert record["status"] == "completed"
        answers = list(results(desk.bodies()[-1]).values())
        assert len(answers) == 2 and "first" in answers[0] and "one call at a time" in answers[1]


def test_l10_busy_with_a_time_to_come_again(served):
    driver, desk = served(*DONE, faults=[{"fault": "429", "retry_after": 2}])
    begun = time.monotonic()
    record = driver.start("What is 6 * 7?").end()
    assert record["status"] == "completed" and time.monotonic() - begun >= 2
    assert len(desk.requests) == 4


def test_l10_a_model_that_stays_away(served):
    driver, desk = served(always={"fault": "status", "status": 500})
    record = driver.start("What is 6 * 7?", budget={"wall_ms": 3000, "model_ms": 1000}).end()
    assert record["status"] == "failed" and record["error"]["code"] == "ModelUnavailable"
    assert 2 <= len(desk.requests) <= 5 and "incomplete" in record["answer"]


def test_l11_tools_rejected(served):
    driver, desk = served(plan(), say("I multiply.\n```python\nprint(6 * 7)\n```"),
                          say("FINAL: It is 42."), faults=[{"fault": "no-tools"}])
    record = driver.start("What is 6 * 7?").end()
    assert record["status"] == "completed" and record["answer"] == "It is 42."
    last = desk.bodies()[-1]
    assert "tools" not in last and last["stop"] == ["Observation:"]
    assert "Observation:\\nSTATUS: ok" in texts(last)


def test_l12_the_model_sees_little_of_much(served):
    code = "print('\\n'.join(f'line {i}' for i in range(100000)))"
    driver, desk = served(plan("print", "read"), python(code),
                          call("read_output", run=1, offset=500000, limit=200), finish("done"))
    record = driver.start("Print much.").end()
    assert record["status"] == "completed"
    seen, page = results(desk.bodies()[-1]).values()
    assert len(seen) <= 8000 and "line 0\n" in seen and "line 99999" in seen and "omitted" in seen
    assert "read_output run=1" in seen
    assert page.startswith("chars 500000 to 500200 of ") and "line 464" in page


def test_l16_tools_are_off_in_the_last_request(served):
    driver, desk = served(plan("a"), *[python(f"print({i})") for i in range(4)],
                          say("Incomplete: 0 to 3."), api="anthropic")
    record = driver.start("Count.").end()
    assert record["status"] == "incomplete" and record["answer"] == "Incomplete: 0 to 3."
    last = desk.bodies()[-1]
    assert last["tool_choice"]["type"] == "none" and "as many rounds" in texts(last)


def test_l19_one_transcript_through_both(served):
    turns = [plan("a", "b"), python("1 / 0"), [say("Again."), python("print(42)")],
             python("print('end')"), finish("42")]
    seen = []
    for api in ("openai", "anthropic"):
        driver, desk = served(*turns, api=api)
        record = driver.start("Count.").end()
        assert record["status"] == "completed"
        seen.append((list(results(desk.bodies()[-1]).values()), record["plan"], record["answer"],
                     record["logs"].split("\n", 1)[1]))
    assert seen[0] == seen[1]


def test_history_keeps_three_rounds_whole(served):
    turns = [plan("a", "b", "c", "d", "e"), *[python(f"print('round {i} ' * 3)") for i in range(5)],
             finish("done")]
    driver, desk = served(*turns)
    record = driver.start("Count.").end()
    assert record["status"] == "completed"
    last = desk.bodies()[-1]
    assert len(results(last)) == 3 and "What was run before:" in texts(last)
    assert "round 1, step 1: ok" in texts(last) and roles(last).count("assistant") == 3


def test_too_long_is_sent_again_shorter(served):
    turns = [plan("a", "b"), *[python(f"print('{i} ' * 3000)") for i in range(2)], finish("done")]
    driver, desk = served(*turns, faults=["too-long"])
    record = driver.start("Count.").end()
    assert record["status"] == "completed" and len(desk.requests) == 5
    (seen,) = results(desk.bodies()[-1]).values()
    assert len(seen) <= 2100 and "omitted" in seen


def test_pictures_are_shown_to_models_that_see(served):
    turns = [plan(), python(DRAW + "display(figure)"), finish("Drawn.")]
    for images in (True, False):
        driver, desk = served(*turns, images=images)
        assert driver.start("Draw.").end()["status"] == "completed"
        assert ("data:image/png;base64," in texts(desk.bodies()[-1])) == images


def test_a_missing_module_names_what_is_near(served):
    driver, desk = served(plan(), python("import ipythom"), python("print(42)"), finish("42"))
    assert driver.start("Count.").end()["status"] == "completed"
    told = json.dumps(desk.bodies()[2]["messages"])
    assert "ipythom is not installed" in told and "near to it: ipython" in told


def test_three_failures_are_to_be_thought_about(served):
    driver, desk = served(plan("a", "b", "c"), *[python(f"x{i} = 1 / 0") for i in range(3)],
                          python("print(42)"), finish("42"))
    assert driver.start("Count.").end()["status"] == "completed"
    assert "Three runs in a row have failed" in texts(desk.bodies()[4])


def test_no_model_names_the_tools_that_take_code(tmp_path):
    driver = Driver(tmp_path / "store", script=None, ready=0)
    error = driver.ask(do="start", request="What is 6 * 7?")["error"]
    driver.close()
    assert error["text"].startswith("NoModelConfigured: ")
    for tool in ("execute_python", "code_interpreter", "run_code"):
        assert tool in error["text"]
