"""code_execution beside execute_python: a request in plain words, under the rules of scripts."""

import json

import pytest
from support.mcp import Legacy, Modern, text_of

FLAGS = ["--model-script", "-", "--prisme-timeout", "2"]
HONEST = "It could not be computed: every try divided by zero."


@pytest.fixture(params=[Legacy, Modern])
def either(request, server):
    client = request.param(server, path="/prisme/mcp")
    return client.initialize() if request.param is Legacy else client


@pytest.fixture
def modern(server):
    return Modern(server, path="/prisme/mcp")


def ask(client, *codes, last=None, steps=("compute it",), **more):
    """The outputs of a request whose model writes these codes, one after the other."""
    turns = [[{"text": json.dumps({"steps": steps})}], *([{"python": code}] for code in codes)]
    if last:
        turns.append([{"text": last}])
    return client.call("code_execution", request=json.dumps({"turns": turns}), **more)


def runs(outputs):
    return outputs["logs"].count("GENERATED CODE:\n")


def test_p23_always_wrong_is_three_runs_and_an_honest_text(either):
    wrong = [f"x{i} = {i} / 0" for i in range(3)]
    result = ask(either, *wrong, last=HONEST)
    outputs = result["structuredContent"]
    assert outputs["total_rounds"] == runs(outputs) == 3
    assert outputs["logs"].count("STATUS: Execution failed") == 3
    assert outputs["status"] == "incomplete" and outputs["answer"] == HONEST
    assert HONEST in text_of(result)


def test_p23_a_model_that_goes_on_is_not_run_again(modern):
    """What it says after the third is its last word, whatever it is: code in it does not run."""
    result = ask(modern, *[f"y{i} = {i} / 0" for i in range(8)])
    outputs = result["structuredContent"]
    assert outputs["total_rounds"] == runs(outputs) == 3 and outputs["status"] == "incomplete"
    assert "y3 = " not in outputs["logs"]


def test_p23_code_that_does_not_parse_is_a_try(modern):
    outputs = ask(modern, "x =", "x = = 1", "x = (", last=HONEST)["structuredContent"]
    assert runs(outputs) == 3 and outputs["status"] == "incomplete"


def test_p23_the_second_retry_may_succeed(modern):
    outputs = ask(modern, "1 / 0", "int('x')", "print(6 * 7)", last="FINAL: 42")["structuredContent"]
    assert runs(outputs) == 3 and outputs["status"] == "completed" and outputs["answer"] == "42"


def test_p23_each_step_has_its_own_retries(modern):
    wrong = [f"z{i} = {i} / 0" for i in range(5)]
    outputs = ask(modern, *wrong[:2], "print(1)", *wrong[2:], last=HONEST,
                  steps=["one", "two", "three"])["structuredContent"]
    assert runs(outputs) == 6 and outputs["status"] == "incomplete"


def test_p23_the_rules_of_scripts_hold(modern):
    outputs = ask(modern, "import os", "import time\ntime.sleep(30)", "return 6 * 7",
                  last="FINAL: 42")["structuredContent"]
    assert "not allowed by PYTHON_PACKAGES_WHITELIST_IMPORT" in outputs["logs"]
    assert "timeout 2s" in outputs["logs"]
    assert outputs["status"] == "completed" and "STDOUT:\n42\n" in outputs["logs"]


def test_it_is_shown_where_there_is_a_model(either):
    names = [tool["name"] for tool in either.request("tools/list")["tools"]]
    assert names == ["execute_python", "code_execution"]
