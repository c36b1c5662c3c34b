"""What a cell is worth: last expressions, names, await, magics and shell lines."""

import pytest

from support import retort

pytestmark = pytest.mark.once

session = retort.Session()

last = session.cell("x = 6\nx * 7")
again = session.cell("x + 1")
nothing = session.cell("None")
assignment = session.cell("y = 5")
quiet = session.cell("x * 7;")
quiet_with_comment = session.cell("x * 7;  # enough said")
semicolon_in_text = session.cell("'a;'")
middle = session.cell("1\n2\n3")


def test_the_last_expression_is_the_result():
    assert last.result == "42"
    assert [e["type"] for e in last.events] == ["result"]
    assert last.status == "ok"
    assert middle.result == "3"


def test_variables_stay():
    assert again.result == "7"


def test_no_result():
    for answer in (nothing, assignment):
        assert answer.events == [] and answer.status == "ok"


def test_semicolon_suppresses():
    assert quiet.events == []
    assert quiet_with_comment.events == []
    assert semicolon_in_text.result == "'a;'"


names = retort.Session()

first = names.cell("6 * 7")
underscores = names.cell("_ + 1")
older = names.cell("(_, __)")
numbered = names.cell("(Out[1], _1, In[1], _i1)")
inputs = names.cell("In[2]")
quiet_is_not_out = names.cell("1000;")
out_keys = names.cell("sorted(Out)[:4]")


def test_names_of_results():
    assert underscores.result == "43"
    assert older.result == "(43, 42)"
    assert numbered.result == "(42, 42, '6 * 7', '6 * 7')"
    assert inputs.result == "'_ + 1'"
    assert out_keys.result == "[1, 2, 3, 4]"


magic = retort.Session()

awaited = magic.cell("import asyncio\nawait asyncio.sleep(0.01, 'slept')")
gathered = magic.cell("async def twice(n):\n    await asyncio.sleep(0)\n    return 2 * n\n"
                      "await asyncio.gather(*map(twice, range(3)))")
loop_kept = magic.cell("task = asyncio.get_event_loop().create_task(twice(21))\nawait task")
async_for = magic.cell("async def count():\n    for n in range(3):\n        yield n\n"
                       "[n async for n in count()]")
line = magic.cell("!echo out; echo err >&2")
assigned = magic.cell("listing = !printf 'a\\nb\\n'\nlisting")
expanded = magic.cell("word = 'seen'\n!echo {word} $word")
failing = magic.cell("!exit 3\n_exit_code")
bash = magic.cell("%%bash\nfor i in 1 2 3; do\n  echo line $i\ndone\n")
bash_fails = magic.cell("%%bash\necho before\nfalse\nexit 3\n")
timeit = magic.cell("%timeit -n 10 -r 2 sum(range(10))")
time_cell = magic.cell("%%time\nz = 11\nz")
time_kept = magic.cell("z")
writefile = magic.cell("%%writefile note.txt\nkept\n")
capture = magic.cell("%%capture held\nprint('not now')")
captured = magic.cell("held.stdout")
who = magic.cell("%pwd")
help_line = magic.cell("len?")
unknown = magic.cell("%nosuchmagic 1")
automagic = magic.cell("pwd")
shell_env = magic.cell("%env HOME")
inline = magic.cell("%matplotlib inline")


def test_await():
    assert awaited.result == "'slept'"
    assert gathered.result == "[0, 2, 4]"
    assert loop_kept.result == "42"
    assert async_for.result == "[0, 1, 2]"


def test_shell_line():
    assert (line.stdout, line.stderr, line.status) == ("out\n", "err\n", "ok")
    assert assigned.result == "['a', 'b']"
    assert expanded.stdout == "seen seen\n"
    assert failing.result == "3" and failing.status == "ok"


def test_bash_cell():
    assert (bash.stdout, bash.status) == ("line 1\nline 2\nline 3\n", "ok")
    assert bash_fails.stdout == "before\n"
    assert bash_fails.status == "raised"
    assert bash_fails.error["name"] == "CalledProcessError"


def test_timing_magics():
    assert "per loop" in timeit.stdout
    assert "Wall time" in time_cell.stdout
    assert time_cell.result == "11" and time_kept.result == "11"


def test_other_magics():
    assert writefile.files == {"note.txt": ("created", 5, "text/plain")}
    assert capture.stdout == "" and captured.result == "'not now\\n'"
    assert who.result == "'/workspace'" and automagic.result == "'/workspace'"
    assert shell_env.result == "'/tmp'"
    assert inline.status == "ok"
    assert help_line.status == "ok" and "number of items" in str(help_line.events)


def test_unknown_magic():
    assert unknown.status == "raised"
    assert "nosuchmagic" in str(unknown.events)


asking = retort.Session("--timeout", "20")

question = asking.cell("print('before')\nname = input('Name? ')")
password = asking.cell("import getpass\ngetpass.getpass()")
stdin = asking.cell("import sys\nsys.stdin.read()")
child_stdin = asking.cell("!cat; echo $?")
breakpoint_cell = asking.cell("breakpoint()")
exit_cell = asking.cell("kept = 1\nexit()")
sys_exit = asking.cell("import sys\nsys.exit(3)")
after_exit = asking.cell("kept")


@pytest.mark.parametrize("answer", [question, password], ids=["input", "getpass"])
def test_questions_fail_at_once(answer):
    assert answer.status == "raised"
    assert answer.error["name"] == "EOFError"
    assert "nobody" in answer.error["message"]


def test_what_came_before_a_question_is_kept():
    assert question.stdout == "before\n"


def test_stdin_is_empty():
    assert stdin.result == "''"
    assert child_stdin.stdout == "0\n"


def test_debugger_fails_at_once():
    assert breakpoint_cell.status == "raised"
    assert "debugger" in breakpoint_cell.error["message"]


def test_exit_ends_the_cell_and_not_the_interpreter():
    assert exit_cell.status == "ok"
    assert sys_exit.status == "raised" and sys_exit.error["name"] == "SystemExit"
    assert after_exit.result == "1"
