"""Errors: type, message, and the frames of the user's own code with their true lines."""

import sys

import pytest

from support import retort

pytestmark = pytest.mark.once

session = retort.Session()


def frames(answer):
    return [(f["file"], f["line"], f["function"], f["text"]) for f in answer.error["frames"]]


plain = session.cell("x = 1\n\n\nraise ValueError('on line four')")
define = session.cell("# a comment\n\ndef divide(a, b):\n    # why not\n    return a / b\n")
call = session.cell("\n\n1 + 1\ndivide(\n    1,\n    0)\n")
lines_after_magic = session.cell("%time 1\n!true\n\nraise KeyError('line four')")
cell_magic = session.cell("%%time\n\n1 / 0")
after_bash = session.cell("y = !echo 1\n\"\"\"a\nstring\"\"\"\n1 / 0")
multi_line = session.cell("(1 +\n 2 +\n None)")
nested = session.cell("def outer():\n    def inner():\n        return {}['k']\n    return inner()\nouter()")
lambda_frame = session.cell("f = lambda: 1 / 0\nf()")
comprehension = session.cell("[1 / n for n in (1, 0)]")
in_class = session.cell("class C:\n    def m(self):\n        raise TypeError('in a method')\nC().m()")


def test_type_message_and_line():
    assert plain.status == "raised"
    assert plain.error["name"] == "ValueError" and plain.error["message"] == "on line four"
    assert frames(plain) == [("<cell 1>", 4, "<module>", "raise ValueError('on line four')")]
    assert "ValueError: on line four" in plain.error["traceback"]


def test_function_of_an_earlier_cell():
    assert call.error["message"] == "division by zero"
    assert frames(call)[-1] == ("<cell 2>", 5, "divide", "return a / b")
    assert frames(call)[0][:3] == ("<cell 3>", 4, "<module>")
    assert len(frames(call)) == 2


def test_lines_beside_magics():
    assert frames(lines_after_magic) == [("<cell 4>", 4, "<module>", "raise KeyError('line four')")]
    assert frames(cell_magic)[-1] == ("<cell 5>", 3, "<module>", "1 / 0")
    assert frames(after_bash) == [("<cell 6>", 4, "<module>", "1 / 0")]


def test_deeper_frames():
    assert [f[:3] for f in frames(nested)] == [
        ("<cell 8>", 5, "<module>"), ("<cell 8>", 4, "outer"), ("<cell 8>", 3, "inner")]
    assert frames(multi_line)[0][:3] == ("<cell 7>", 1, "<module>")
    assert frames(lambda_frame)[-1][:3] == ("<cell 9>", 1, "<lambda>")
    # Python 3.12 and later have no frame for a comprehension.
    assert [f[1] for f in frames(comprehension)] == ([1] if sys.version_info >= (3, 12) else [1, 1])
    assert frames(in_class)[-1][:3] == ("<cell 11>", 3, "m")


write_module = session.cell("%%writefile helper.py\nimport json\n\n\n"
                            "def load(text):\n    return json.loads(text)\n")
in_module = session.cell("import helper\nhelper.load('{')")
write_package = session.shell("mkdir -p pack/sub && printf 'def go():\\n    raise OSError(2, \"gone\")\\n'"
                              " > pack/sub/mod.py")
in_package = session.cell("from pack.sub import mod\nmod.go()")
module_does_not_compile = session.cell("open('broken.py', 'w').write('x = (\\n')\nimport broken")
library_only = session.cell("import json\njson.loads('nope')")


def test_module_in_the_workspace():
    assert [f[:3] for f in frames(in_module)] == [
        ("<cell 13>", 2, "<module>"), ("/workspace/helper.py", 5, "load")]
    assert in_module.error["name"] == "JSONDecodeError"
    assert [f[:3] for f in frames(in_package)][-1] == ("/workspace/pack/sub/mod.py", 2, "go")
    assert in_package.error["message"] == "[Errno 2] gone"


def test_frames_of_libraries_are_not_the_users():
    assert all(f[0] == "<cell 16>" for f in frames(library_only))
    assert "more in libraries" in library_only.error["traceback"] \
        or "json" in library_only.error["traceback"]


def test_syntax_error_in_a_module():
    assert module_does_not_compile.error["name"] == "SyntaxError"
    assert frames(module_does_not_compile)[-1][:2] == ("/workspace/broken.py", 1)


syntax = session.cell("x = 1\n\nif x\n    pass\n")
indent = session.cell("def f():\nreturn 1\n")
unclosed = session.cell("print('never'\n")
bad_string = session.cell("x = 'open\n")
nothing_ran = session.cell("print('not even this')\nx = = 2\n")
not_python = session.cell("Dear interpreter, please add 1 and 1.")


def test_syntax_error():
    assert syntax.status == "raised"
    assert syntax.error["name"] == "SyntaxError"
    assert frames(syntax) == [("<cell 17>", 3, "<module>", "if x")]
    assert "expected ':'" in syntax.error["message"]
    assert "Traceback" not in syntax.error["traceback"]
    assert indent.error["name"] == "IndentationError" and frames(indent)[0][1] == 2
    assert unclosed.error["name"] == "SyntaxError" and frames(unclosed)[0][1] == 1
    assert bad_string.error["name"] == "SyntaxError"
    assert not_python.error["name"] == "SyntaxError"


def test_a_cell_that_does_not_compile_does_nothing():
    assert [e["type"] for e in nothing_ran.events] == ["error"]


chained = session.cell("try:\n    {}['a']\nexcept KeyError as e:\n    raise RuntimeError('second') from e")
context = session.cell("try:\n    {}['a']\nexcept KeyError:\n    1 / 0")
suppressed = session.cell("try:\n    {}['a']\nexcept KeyError:\n    raise ValueError('alone') from None")
group = session.cell("raise ExceptionGroup('both', [ValueError('one'), TypeError('two')])")
noted = session.cell("e = ValueError('plain'); e.add_note('and a note'); raise e")
awaiting = session.cell("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    1 / 0\nawait f()")
recursion = session.cell("def down(): return down()\ndown()")
silent = session.cell("raise ValueError")
multi_line_message = session.cell("raise ValueError('one\\ntwo\\nthree')")
huge_message = session.cell("raise ValueError('m' * 2_000_000)")
assertion = session.cell("assert 1 == 2, 'they differ'")
own_class = session.cell("class Mine(Exception):\n    pass\nraise Mine('own')")
interrupt_raised = session.cell("raise KeyboardInterrupt")
still_there = session.cell("x, divide(4, 2)")


def test_chained_exceptions():
    trace = chained.error["traceback"]
    assert trace.index("KeyError: 'a'") < trace.index("direct cause") < trace.index("second")
    assert chained.error["name"] == "RuntimeError" and frames(chained)[-1][1] == 4
    assert "During handling" in context.error["traceback"]
    assert context.error["name"] == "ZeroDivisionError" and frames(context)[-1][1] == 4
    assert "KeyError" not in suppressed.error["traceback"]


def test_groups_and_notes():
    assert group.error["name"] == "ExceptionGroup"
    assert "ValueError: one" in group.error["traceback"]
    assert "TypeError: two" in group.error["traceback"]
    assert "and a note" in noted.error["traceback"]


def test_error_in_awaited_code():
    assert awaiting.error["name"] == "ZeroDivisionError"
    assert [f[1] for f in frames(awaiting)] == [5, 4]


def test_recursion():
    assert recursion.error["name"] == "RecursionError"
    assert 2 <= len(frames(recursion)) <= 64
    assert len(recursion.error["traceback"]) < 64 * 1024


def test_messages():
    assert (silent.error["name"], silent.error["message"]) == ("ValueError", "")
    assert multi_line_message.error["message"] == "one\ntwo\nthree"
    assert huge_message.error["name"] == "ValueError"
    assert 1000 < len(huge_message.error["message"]) < 64 * 1024
    assert assertion.error["message"] == "they differ"
    assert own_class.error["name"] == "Mine"
    assert interrupt_raised.status == "raised"


def test_errors_cost_no_variables():
    assert still_there.result == "(1, 2.0)"
