"""Errors: what went wrong, where in the user's own code, in the fewest words."""

import pytest


def test_frames_over_cells(kernel):
    kernel.run("\n\ndef f(n):\n    return 1 / n\n")
    cell = kernel.run("x = 1\n\nf(0)")
    assert cell.status == 1
    assert (cell.error["name"], cell.error["text"]) == ("ZeroDivisionError", "division by zero")
    assert cell.error["frames"] == [["<cell 2>", 3, "<module>", "f(0)"],
                                    ["<cell 1>", 4, "f", "return 1 / n"]]
    lines = cell.error["trace"].splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1:3] == ['  File "<cell 2>", line 3, in <module>', "    f(0)"]
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert "IPython" not in cell.error["trace"] and "retort" not in cell.error["trace"]


def test_output_before_the_error(kernel):
    cell = kernel.run("print('before')\nraise KeyError('k')")
    assert [kind for kind, _ in cell.events] == ["stdout", "error"]
    assert cell.error["text"] == "'k'"


@pytest.mark.parametrize("code, line", [
    ("%time 1\n\n1 / 0", 3),
    ("\n\n  \n1 / 0", 4),
    ("\n\n!true\n1 / 0", 4),
    ("!echo a \\\n  b\n\n1 / 0", 4),
    ("x = !echo a \\\n  b\n1 / 0", 3),
    ("if True:\n    !echo a \\\n      b\n    1 / 0", 4),
    ("%%time\nx = 1\n1 / 0", 3),
    ("\n%%time\n\n1 / 0", 4),
    ("%%time\n1 / 0", 2),
    ("%%capture\nx = 1\n1 / 0", 3),
    ("%%capture\n%%time\nx = 1\n1 / 0", 4),
    ("%%timeit -n1 -r1\nx = 1\n1 / 0", 3),
    ("await __import__('asyncio').sleep(0)\n\n1 / 0", 3),
    ("    x = 1\n    1 / 0", 2),
])
def test_true_lines(kernel, code, line):
    cell = kernel.run(code)
    assert cell.status == 1
    frame = cell.error["frames"][-1]
    assert frame[:2] == ["<cell 1>", line], cell.error
    assert frame[3] == "1 / 0"


def test_function_from_a_magic_cell(kernel):
    kernel.run("%%time\ndef f():\n    1 / 0")
    assert kernel.run("f()").error["frames"][-1] == ["<cell 1>", 3, "f", "1 / 0"]


@pytest.mark.parametrize("code, line, text", [
    ("x = 1\ny = = 2", 2, "y = = 2"),
    ("\n\nfor", 3, "for"),
    ("%time 1\nx = (", 2, "x = ("),
    ("if 1:\nx", 2, "x"),
    ("def f(:\n  pass", 1, "def f(:"),
])
def test_syntax_errors(kernel, code, line, text):
    cell = kernel.run("print('never')\n" + code if "%" not in code else code)
    line += "%" not in code
    assert cell.status == 1
    assert not cell.of("stdout") or "%" in code
    assert cell.error["name"] == ("IndentationError" if code == "if 1:\nx" else "SyntaxError")
    assert cell.error["frames"] == [["<cell 1>", line, "<module>", text]]
    assert cell.error["trace"].startswith('  File "<cell 1>", line %d\n' % line)


def test_unclosed(kernel):
    assert kernel.run("x = (1,\ny = 2").error["text"].startswith("'(' was never closed")
    assert "unterminated triple-quoted" in kernel.run("x = '''abc").error["text"]


def test_return_outside(kernel):
    cell = kernel.run("a = 1\nreturn a")
    assert cell.error["name"] == "SyntaxError"
    assert cell.error["frames"] == [["<cell 1>", 2, "<module>", "return a"]]
    assert cell.error["trace"].startswith('  File "<cell 1>", line 2\n    return a\n')


def test_null_byte(kernel):
    cell = kernel.run("x = '\0'")
    assert cell.status == 1 and "null" in cell.error["text"]


def test_library_frames_are_few(kernel):
    cell = kernel.run("import json\njson.loads('{')")
    trace = cell.error["trace"]
    assert cell.error["frames"] == [["<cell 1>", 2, "<module>", "json.loads('{')"]]
    assert trace.count("/json/") <= 3
    assert "json.decoder.JSONDecodeError: Expecting" in trace


def test_many_library_frames(kernel):
    kernel.run("import sys, os\nos.makedirs('site-packages/lib')\n"
               "open('site-packages/lib/deep.py', 'w').write("
               "'def go(n, f):\\n    return go(n - 1, f) if n else f()\\n')\n"
               "sys.path.insert(0, 'site-packages/lib')\nimport deep")
    cell = kernel.run("def mine():\n    1 / 0\ndeep.go(9, mine)")
    trace = cell.error["trace"]
    assert [f[0] for f in cell.error["frames"]] == ["<cell 2>", "<cell 2>"]
    assert "  ... 7 more in libraries\n" in trace
    assert trace.count("deep.py") == 3
    assert trace.index("more in libraries") < trace.index("deep.py") < trace.index("in mine")


def test_users_files(kernel):
    kernel.run("open('mine.py', 'w').write('def f():\\n    raise ValueError(7)\\n');")
    cell = kernel.run("import mine\nmine.f()")
    assert cell.error["frames"] == [["<cell 2>", 2, "<module>", "mine.f()"],
                                    [kernel.folder + "/mine.py", 2, "f", "raise ValueError(7)"]]


def test_script_by_run(kernel):
    kernel.run("open('s.py', 'w').write('a = 1\\n1 / 0\\n');")
    cell = kernel.run("%run s.py\nprint('after')")
    assert cell.status == 1
    assert cell.error["frames"][-1] == [kernel.folder + "/s.py", 2, "<module>", "1 / 0"]
    assert [kind for kind, _ in cell.events] == ["error", "stdout"]


def test_chains(kernel):
    cell = kernel.run("try:\n    1 / 0\n"
                      "except ZeroDivisionError as e:\n    raise ValueError('v') from e")
    trace = cell.error["trace"]
    assert cell.error["name"] == "ValueError"
    assert "ZeroDivisionError: division by zero\n\nThe above exception was the direct" in trace
    assert trace.rstrip().endswith("ValueError: v")
    assert len(cell.error["frames"]) == 1
    cell = kernel.run("try:\n    {}['k']\nexcept KeyError:\n    open('/none')")
    assert "During handling" in cell.error["trace"]
    assert cell.error["errno"] == 2


def test_groups_and_notes(kernel):
    cell = kernel.run("e = ValueError('inner')\ne.add_note('look here')\n"
                      "raise ExceptionGroup('several', [e, KeyError('k')])")
    assert cell.error["name"] == "ExceptionGroup"
    assert "look here" in cell.error["trace"] and "KeyError: 'k'" in cell.error["trace"]


def test_recursion(kernel):
    cell = kernel.run("def f(n):\n    return f(n + 1)\nf(0)")
    assert cell.error["name"] == "RecursionError"
    assert len(cell.error["trace"]) < 4000
    assert len(cell.error["frames"]) == 64
    cell = kernel.run("def a(n):\n    return b(n)\ndef b(n):\n    return a(n)\na(0)")
    assert len(cell.error["trace"].encode()) <= 33 * 1024
    assert "bytes left out" in cell.error["trace"]
    assert kernel.run("1").value == "1"


def test_memory_error(kernel):
    cell = kernel.run("x = bytearray(1 << 60)")
    assert (cell.status, cell.error["name"]) == (1, "MemoryError")
    assert kernel.run("1").value == "1"


def test_long_messages(kernel):
    cell = kernel.run("raise ValueError('x' * 1_000_000)")
    assert len(cell.error["text"]) < 9000 and len(cell.error["trace"]) < 34000


@pytest.mark.parametrize("body", ["raise ValueError('broken')", "return 5"])
def test_message_that_fails(kernel, body):
    cell = kernel.run("class E(Exception):\n    def __str__(self):\n        %s\nraise E()" % body)
    assert (cell.status, cell.error["name"]) == (1, "E")
    assert "failed" in cell.error["trace"] or "unprintable" in cell.error["trace"]
    assert kernel.run("1").value == "1"


def test_hostile_exception(kernel):
    cell = kernel.run("class M(type):\n    def __getattribute__(self, name):\n"
                      "        raise RuntimeError(name)\n"
                      "class E(Exception, metaclass=M):\n    pass\nraise E('x')")
    assert cell.status == 1 and cell.of("error")
    assert kernel.run("1").value == "1"


def test_base_exceptions(kernel):
    assert kernel.run("raise BaseException('b')").error["name"] == "BaseException"
    assert kernel.run("raise GeneratorExit").error["name"] == "GeneratorExit"
    assert kernel.run("1").value == "1"


def test_del_that_raises(kernel):
    cell = kernel.run("class D:\n    def __del__(self):\n        1 / 0\nD()\nNone")
    assert cell.status == 0
    cell = kernel.run("d = D()\ndel d")
    assert cell.status == 0 and "Exception ignored" in cell.err and "<cell 1>" in cell.err


def test_warnings(kernel):
    cell = kernel.run("import warnings\n\nwarnings.warn('careful')")
    assert cell.err == "<cell 1>:3: UserWarning: careful\n  warnings.warn('careful')\n"
    assert kernel.run("x = 1\nx is 5;").err.startswith("<cell 2>:2: SyntaxWarning")


def test_usage_error(kernel):
    cell = kernel.run("%no_such_magic")
    assert (cell.status, cell.error["name"]) == (1, "UsageError")
    assert "no_such_magic" in cell.error["text"]


def test_source_of_a_function(kernel):
    kernel.run("x = 1\ndef f():\n    return 'source'\n")
    assert kernel.run("import inspect\nprint(inspect.getsource(f))").out == \
        "def f():\n    return 'source'\n\n"


def test_traceback_module_sees_cells(kernel):
    cell = kernel.run("import traceback\ntry:\n    1 / 0\n"
                      "except Exception:\n    traceback.print_exc()")
    assert '  File "<cell 1>", line 3, in <module>\n    1 / 0\n' in cell.err


def test_last_error_for_tools(kernel):
    kernel.run("1 / 0")
    assert kernel.run("import sys\nsys.last_type.__name__").value == "'ZeroDivisionError'"


def test_error_of_a_callback(kernel):
    kernel.run("def bad(*a):\n    raise ValueError('in a hook')\n"
               "get_ipython().events.register('post_run_cell', bad)")
    cell = kernel.run("print('x')")
    assert cell.status == 1 and cell.error["text"] == "in a hook"


def test_code_given_to_run_cell(kernel):
    cell = kernel.run("get_ipython().run_cell('x = 1\\n1 / 0')\nprint('on')")
    assert cell.status == 1
    assert [kind for kind, _ in cell.events] == ["error", "stdout"]
    assert 'File "<run_cell in cell 1>", line 2' in cell.error["trace"]
