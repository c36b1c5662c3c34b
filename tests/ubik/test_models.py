"""Which model writes the code, what it is told, and what happens without one."""

import json

import pytest
from account import House
from support.model_server import ModelServer
from support.script import finish, plan, python


def story(name):
    return [[plan(name)], [python(f"print('{name}')")], [finish(name)]]


@pytest.fixture(scope="module")
def desks():
    with ModelServer() as server:
        yield {"first": server.desk(turns=story("first")), "second": server.desk(turns=story("second")),
               "down": server.desk(turns=[], always={"fault": "status", "status": 401})}


@pytest.fixture(scope="module")
def several(desks):
    config = "".join(f"[model {name}]\nurl = {desk.openai}\nname = m\n"
                     for name, desk in desks.items())
    with House("--model", "first", config=config) as one:
        yield one


def test_u19_context_is_honoured(several, desks):
    before = len(desks["first"].requests)
    with several.account() as ubik:
        ubik.run("What is the answer?", context="Use a mauve theme.")
    asked = [json.dumps(r["body"]["messages"]) for r in desks["first"].requests[before:]]
    assert len(asked) >= 3, "a plan, the code, the end"
    for text in asked:
        assert "Use a mauve theme." in text and "What is the answer?" in text


def test_u10_the_model_is_told_what_a_sandbox_has_lost():
    with ModelServer() as models:
        desk = models.desk(turns=story("told"))
        with House("--model-url", desk.openai) as house, house.account() as ubik:
            first = ubik.run("Print it.")
            assert "NOTE: " not in json.dumps(desk.requests)
            house.server.stop()
            house.server.start()
            ubik.close()
            ubik.run("Print it again.", sandbox_id=first["sandbox_id"])
            assert "NOTE: the sandbox was started anew: variables and processes are gone" in json.dumps(desk.requests)


def test_u24_model_down(several):
    with several.account() as ubik:
        order = ubik.order("anything", model="down")
        found = ubik.wait(order["execution_id"])
        assert found["status"] == "failed" and found["error"].startswith(found["error_code"] + ": ")
        assert found["error_code"].startswith("Model")
        events = list(ubik.events(f"/tool-executions/{order['execution_id']}/stream"))
        name, _, data = events[-1]
        assert name == "error" and data["code"] == found["error_code"] and data["message"]
        assert "tool_end" not in [name for name, _, _ in events]
        assert found["outputs"]["logs"].startswith("INFO: Started sandbox session: ")


def test_u24_no_model():
    with House("--ready", "1") as house, house.account() as bare:
        found = bare.fail("What is 6 * 7?")
        assert found["error_code"] == "NoModelConfigured" and "code" in found["error"]
        assert bare.get("/sandboxes").json["total"] == 0, "none was made in vain"
        assert bare.printed(bare.code("print(6 * 7)")) == "42", "which needs no model"


def test_u29_model_choice(several):
    with several.account() as ubik, several.account("alice") as alice, several.account("bob") as bob:
        assert ubik.run("go")["answer"] == "first"
        assert ubik.run("go", model="second")["answer"] == "second"
        alice.request("PUT", "/preferences", {"code_generation_model": "second"}).expect(200)
        assert alice.get("/preferences").json == {"code_generation_model": "second"}
        assert alice.run("go")["answer"] == "second"
        assert ubik.run("go")["answer"] == bob.run("go")["answer"] == "first", "hers alone"
        ubik.request("PUT", "/preferences", {"code_generation_model": "second"}).expect(200)
        assert bob.run("go")["answer"] == "second", "the account's, for one who has none"
        ubik.request("PUT", "/preferences", {"code_generation_model": ""}).expect(200)
        assert bob.run("go")["answer"] == "first"
        assert ubik.request("PUT", "/preferences", {}).status == 422
