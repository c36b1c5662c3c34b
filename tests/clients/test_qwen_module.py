"""clients/qwen_agent_retort.py: code_interpreter of Qwen-Agent, run by retort, in the agents of the published package."""

import json

import pytest
from rows import python

from support import retort

AGENT = python("qwen-agent", "qwen-agent", "qwen_module.py")
CSV = "numbers of mine.csv"
SUM = f"import csv\nprint(sum(int(r['n']) for r in csv.DictReader(open({CSV!r}))))"
FENCE = "```"


def block(label, text):
    return f"{label}:\n\n{FENCE}\n{text}\n{FENCE}"


def check_registered(seen):
    assert seen is True


def check_state(seen):
    assert seen == [block("execute_result", "42"), block("stdout", "41\n"), block("execute_result", "41"),
                    block("error", "NameError: name 'x' is not defined\n")]


def check_files(seen):
    first, kept, missing = seen
    assert first == block("stdout", "6\n") and kept == block("stdout", "106\n")
    assert missing.startswith("Note: the file /nowhere/at all.csv is not there") and missing.endswith(block("execute_result", "2"))


def check_images(seen):
    assert seen == ["![fig-001", True, "89504e470d0a1a0a", "by the code"]


def check_timeouts(seen):
    stopped, *kept = seen
    assert stopped == block("error", "Timeout: Code execution exceeded the time limit.")
    assert kept == [block("execute_result", "7")] * 2


def check_unreachable(seen):
    assert seen.startswith("retort cannot be reached at http://127.0.0.1:9")


def check_assistant(seen):
    assert block("stdout", "6\n") in seen and seen[-1] == "The sum is 6."


def check_react(seen):
    assert "6" in seen[-1].partition("Observation:")[2] and seen[-1].endswith("The sum is 6.")


CHECKS = {name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")}


def walk(row, server, model, place):
    (place / CSV).write_text("n\n1\n2\n3\n")
    call = json.dumps({"name": "code_interpreter", "arguments": {"code": "print(1 + 2 + 3)"}})
    turns = {"Assistant": [f"<tool_call>\n{call}\n</tool_call>", "The sum is 6."],
             "ReActChat": [f"Thought: add\nAction: code_interpreter\nAction Input: {json.dumps({'code': SUM})}\n",
                           "Thought: done\nFinal Answer: The sum is 6."]}
    desks = {agent: model.desk(turns=[[{"text": text}] for text in texts], in_order=True) for agent, texts in turns.items()}
    return row.run({"url": f"http://127.0.0.1:{server.port}", "csv": str(place / CSV), "clients": str(retort.REPO / "clients"),
                    "models": {agent: desk.openai for agent, desk in desks.items()}}, place, RETORT_KEY=server.key)


@pytest.mark.parametrize("case", CHECKS)
@pytest.mark.parametrize("row", [AGENT], ids=lambda row: row.id)
def test_module(row, case, server, model, place, walked):
    CHECKS[case](walked(row, "module", lambda: walk(row, server, model, place))[case])
