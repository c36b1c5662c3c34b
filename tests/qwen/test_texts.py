"""What agents send when a model's reply is passed on as it is: the forms of their wrappers."""

import pytest
from test_code_interpreter import Instance, block

FENCE = "```"
CALL = '{"name": "code_interpreter", "arguments": {"code": "print(6 * 7)"}}'


@pytest.fixture
def q(client):
    return Instance(client)


REACT = ("Thought: I should compute it.\nAction: code_interpreter\nAction Input: "
         "%s\nObservation: ")


@pytest.mark.parametrize("text", [
    REACT % '{"code": "print(6 * 7)"}',
    REACT % f"{FENCE}py\nprint(6 * 7)\n{FENCE}",
    REACT % "print(6 * 7)",
    f"<tool_call>\n{CALL}\n</tool_call>",
    f"<think>I could call\n<tool_call>\n{{}}\n</tool_call></think>\n<tool_call>\n{CALL}\n</tool_call>",
    '<tool_call>\n{"name": "code_interpreter", "arguments": {"code": "print(\\"4" + "2\\")"}\n</tool_call>',
], ids=["react", "react-fenced", "react-plain", "tool-call", "thought", "unclosed"])
def test_q37_texts_of_wrappers(q, text):
    assert q(text) == block("stdout", "42\n")


def test_q38_code_tag(q):
    text = ('<tool_call>\n{"name": "code_interpreter", "arguments": {"code": ""}}\n<code>\n'
            'print(6 * 7)\n</code>\n</tool_call>')
    assert q(text) == block("stdout", "42\n")
    assert q("<code>\nprint(1)\n</code>") == block("stdout", "1\n")


@pytest.mark.parametrize("text, output", [
    ("<code>\ns = '</code>'\nprint(len(s))\n</code>", "7\n"),
    ("So:\n<code>\ns = \"it's </code>\" + '\\'</code>'\nprint(len(s))\n</code> and 'that' is it.", "20\n"),
    ("<code>\nprint(1)  # it's one</code>", "1\n"),
    ('<tool_call>\n{"name": "code_interpreter", "arguments": {"code": ""}}\n<code>\ns = "</code></tool_call>"\n'
     'print(len(s))\n</code>\n</tool_call>', "19\n"),
    ('<tool_call>{"name": "code_interpreter", "arguments": {"code": "print(len(\'</tool_call>\'))"}}</tool_call>', "12\n"),
], ids=["single", "both", "apostrophe", "call-and-tag", "arguments"])
def test_a_tag_in_a_string_of_one_line_ends_nothing(q, text, output):
    assert q(text) == block("stdout", output)
