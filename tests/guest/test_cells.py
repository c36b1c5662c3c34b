"""What IPython users expect of a cell."""

import pytest


def test_value_of_last_expression(kernel):
    cell = kernel.run("x = 20\nx + 1\nx + 2")
    assert cell.status == 0
    assert cell.events == [("result", {"text/plain": "22"})]


@pytest.mark.parametrize("code", ["x = 1", "1;", "1 ; # quiet", "None", "", "   \n  ", "# nothing",
                                  "def f():\n    return 5", "import os", "'a;b' ;"])
def test_nothing_to_say(kernel, code):
    cell = kernel.run(code)
    assert (cell.status, cell.events) == (0, [])


def test_semicolon_inside_does_not_quiet(kernel):
    assert kernel.run("a = 1; b = 2\n';'").value == "';'"


def test_state_stays(kernel):
    kernel.run("def double(n):\n    return 2 * n\nimport math")
    assert kernel.run("double(math.floor(21.5))").value == "42"


def test_history_of_values(kernel):
    kernel.run("6 * 7")
    kernel.run("'b'")
    assert kernel.run("_, __, _1, Out[2], In[1], _i2").value == \
        "('b', 42, 42, 'b', '6 * 7', \"'b'\")"


def test_numbers_follow_the_server(kernel):
    kernel.number = 6
    kernel.run("'seven'")
    assert kernel.run("_7, Out[7], In[7], In[3]").value == "('seven', 'seven', \"'seven'\", '')"
    kernel.number = 19
    assert kernel.run("1 / 0").error["frames"] == [["<cell 20>", 1, "<module>", "1 / 0"]]


def test_top_level_await(kernel):
    cell = kernel.run("import asyncio\n"
                      "async def f():\n    await asyncio.sleep(0.01)\n    return 3\n"
                      "x = await f()\nx + await f()")
    assert (cell.status, cell.value) == (0, "6")


def test_task_lives_over_cells(kernel):
    kernel.run("import asyncio\nloop = asyncio.get_event_loop()\n"
               "async def f():\n    await asyncio.sleep(0.01)\n    return 'done'\n"
               "task = loop.create_task(f())")
    assert kernel.run("await task").value == "'done'"
    assert kernel.run("asyncio.run(f())").value == "'done'"
    assert kernel.run("await f()").value == "'done'"


def test_async_for_and_with(kernel):
    cell = kernel.run("async def gen():\n    yield 1\n    yield 2\n"
                      "async for i in gen():\n    print(i)")
    assert cell.out == "1\n2\n"


def test_main_module(kernel):
    cell = kernel.run("import pickle, dataclasses, sys\n"
                      "@dataclasses.dataclass\nclass Point:\n    x: int\n"
                      "p = pickle.loads(pickle.dumps(Point(4)))\n"
                      "p, __name__, sys.modules['__main__'].Point is Point")
    assert cell.value == "(Point(x=4), '__main__', True)"


def test_multiprocessing(kernel):
    kernel.run("import multiprocessing\ndef square(n):\n    print('in', n)\n    return n * n")
    cell = kernel.run("with multiprocessing.Pool(2) as pool:\n"
                      "    r = pool.map(square, range(4))\nr")
    assert cell.value == "[0, 1, 4, 9]"
    assert sorted(cell.out.splitlines()) == ["in 0", "in 1", "in 2", "in 3"]


def test_children_can_be_ended(kernel):
    cell = kernel.run("import multiprocessing, time\n"
                      "p = multiprocessing.Process(target=time.sleep, args=(30,))\np.start()\n"
                      "p.terminate()\np.join()\np.exitcode")
    assert cell.value == "-15"


def test_process_pool(kernel):
    cell = kernel.run("from concurrent.futures import ProcessPoolExecutor\n"
                      "with ProcessPoolExecutor(2) as pool:\n"
                      "    r = list(pool.map(abs, [-1, -2]))\nr")
    assert cell.value == "[1, 2]"


def test_import_from_working_directory(kernel):
    kernel.run("open('mine.py', 'w').write('answer = 42\\n');")
    assert kernel.run("import mine\nmine.answer").value == "42"
    assert kernel.run("import os\nos.listdir()").value == "['mine.py']"


def test_get_ipython_and_argv(kernel):
    assert kernel.run("import sys\nget_ipython().execution_count, sys.argv").value == "(1, [''])"


# --- magics ---

def test_shell_lines(kernel):
    cell = kernel.run("name = 'you'\n!echo hello {name}; echo bad >&2; exit 3")
    assert (cell.out, cell.err) == ("hello you\n", "bad\n")
    assert kernel.run("_exit_code").value == "3"
    assert kernel.run("!kill -9 $$\n_exit_code").value == "-9"


def test_shell_output_as_value(kernel):
    cell = kernel.run("lines = !printf 'a\\nb\\n'\nlines, len(lines)")
    assert (cell.out, cell.value) == ("", "(['a', 'b'], 2)")


def test_shell_line_with_binary_output(kernel):
    assert kernel.run("!printf '\\377\\n'").out == "\ufffd\n"
    assert kernel.run("x = !printf '\\377'\nx").value == "['\ufffd']"


def test_shell_output_is_captured(kernel):
    cell = kernel.run("%%capture got\n!echo inner; echo err >&2\nprint('p')")
    assert (cell.status, cell.events) == (0, [])
    assert kernel.run("got.stdout, got.stderr").value == "('inner\\np\\n', 'err\\n')"


def test_automagic(kernel):
    assert kernel.run("pwd").value == repr(kernel.folder)
    kernel.run("open('a.txt', 'w').close()")
    assert "a.txt" in kernel.run("ls -l").out
    kernel.run("ls = 10\nl = 3")
    assert kernel.run("ls -l").value == "7"


def test_script_magics(kernel):
    cell = kernel.run("%%bash\necho one\necho two >&2\necho three")
    assert (cell.status, cell.out, cell.err) == (0, "one\nthree\n", "two\n")
    assert kernel.run("%%script /usr/bin/python3 -I\nprint(6 * 7)").out == "42\n"
    cell = kernel.run("%%sh\nexit 4")
    assert cell.status == 1
    assert cell.error["name"] == "CalledProcessError" and "exit status 4" in cell.error["text"]
    assert kernel.run("%%bash --out captured\necho kept").events == []
    assert kernel.run("captured").value == "'kept\\n'"
    assert "find program" in kernel.run("%%script no-such-program\n1").out


def test_timing_magics(kernel):
    cell = kernel.run("%timeit -n 2 -r 2 1 + 1")
    assert cell.status == 0 and "loop" in cell.out
    cell = kernel.run("%%time\nx = 5\nx + 1")
    assert "Wall time" in cell.out and cell.value == "6"
    assert "Wall time" in kernel.run("%time y = 3").out
    assert kernel.run("y").value == "3"


def test_capture(kernel):
    cell = kernel.run("%%capture out\nprint('a')\ndisplay(1)\n2")
    assert (cell.status, cell.events) == (0, [])
    assert kernel.run("out.stdout, len(out.outputs)").value == "('a\\n', 2)"


def test_redirect(kernel):
    cell = kernel.run("import contextlib, io\nf = io.StringIO()\n"
                      "with contextlib.redirect_stdout(f):\n    print('inside')\nf.getvalue()")
    assert (cell.out, cell.value) == ("", "'inside\\n'")


def test_run_and_writefile(kernel):
    kernel.run("%%writefile s.py\nz = 11\nprint('ran', __name__)")
    assert kernel.run("%run s.py").out == "ran __main__\n"
    assert kernel.run("z").value == "11"


def test_help(kernel):
    cell = kernel.run("len?")
    assert "Return the number of items" in cell.of("display")[0]["text/plain"]


def test_matplotlib_magic_is_harmless(kernel):
    assert kernel.run("%matplotlib inline\n1").value == "1"


def test_store_and_history_magics(kernel):
    kernel.run("kept = 5")
    assert kernel.run("%store kept").status == 0
    assert kernel.run("del kept\n%store -r kept\nkept").value == "5"
    assert "kept = 5" in kernel.run("%history").out


def test_reset(kernel):
    kernel.run("x = 1")
    kernel.run("%reset -f")
    assert kernel.run("x").error["name"] == "NameError"
    assert kernel.run("3").value == "3"
    assert kernel.run("_, Out[4]").value == "(3, 3)"


def test_pasted_prompts_and_indent(kernel):
    assert kernel.run(">>> a = 3\n>>> a + 1").value == "4"
    assert kernel.run("In [1]: 5 + 5").value == "10"
    assert kernel.run("    b = 3\n    b").value == "3"


def test_byte_order_mark(kernel):
    assert kernel.run("\ufeff5").value == "5"


def test_cell_with_crlf(kernel):
    assert kernel.run("a = 1\r\nif a:\r\n    b = 2\r\nb").value == "2"


def test_formatter_of_ones_own(kernel):
    kernel.run("get_ipython().display_formatter.formatters['text/html'].for_type("
               "int, lambda n: '<b>%d</b>' % n)")
    assert kernel.run("5").result == {"text/plain": "5", "text/html": "<b>5</b>"}


def test_hooks_see_plain_cells(kernel):
    kernel.run("seen = []\nip = get_ipython()\n"
               "ip.events.register('pre_run_cell', lambda info: seen.append(info.raw_cell))\n"
               "ip.events.register('post_run_cell', lambda r: seen.append(r.success))")
    kernel.run("1 + 1")
    kernel.run("1 / 0")
    assert kernel.run("seen[1:]").value == "['1 + 1', True, '1 / 0', False, 'seen[1:]']"


def test_settings(kernel):
    kernel.run("%config InteractiveShell.ast_node_interactivity = 'last'")
    assert kernel.run("get_ipython().ast_node_interactivity").value == "'last'"
    kernel.run("get_ipython().ast_node_interactivity = 'all'")
    assert [r["text/plain"] for r in kernel.run("1\n2").of("result")] == ["1", "2"]


def test_future_import_stays(kernel):
    kernel.run("from __future__ import annotations")
    assert kernel.run("def f(a: undefined): pass\nf.__annotations__").value == "{'a': 'undefined'}"


# --- leaving ---

@pytest.mark.parametrize("code", ["import sys\nsys.exit()", "raise SystemExit(0)", "exit()", "exit",
                                  "quit", "import sys; sys.exit(None)"])
def test_leaving_well(kernel, code):
    kernel.run("x = 5")
    cell = kernel.run(code + "\n")
    assert cell.status == 0 and not cell.of("error")
    assert kernel.run("x").value == "5"


def test_exit_ends_the_cell(kernel):
    cell = kernel.run("print('a')\nexit()\nprint('b')")
    assert cell.out == "a\n" and "stay" in cell.err


@pytest.mark.parametrize("code, text", [("import sys\nsys.exit(3)", "3"), ("exit(2)", "2"),
                                        ("raise SystemExit('no data')", "no data"),
                                        ("%time\nimport sys\nsys.exit(4)", "4")])
def test_leaving_badly(kernel, code, text):
    cell = kernel.run(code)
    assert cell.status == 1
    assert (cell.error["name"], cell.error["text"]) == ("SystemExit", text)
    assert "To exit" not in cell.err
    assert kernel.run("1").value == "1"


# --- nobody is there ---

@pytest.mark.parametrize("code", ["input('name? ')", "import getpass\ngetpass.getpass()"])
def test_questions_fail(kernel, code):
    cell = kernel.run(code)
    assert cell.status == 1
    assert cell.error["name"] == "EOFError"
    assert "nobody can answer" in cell.error["text"]
    assert cell.out == cell.err == ""


def test_stdin_is_at_its_end(kernel):
    cell = kernel.run("import sys, os\nsys.stdin.read(), sys.stdin.readline(), os.read(0, 1)")
    assert cell.value == "('', '', b'')"
    assert kernel.run("!cat").events == []


@pytest.mark.parametrize("code", ["breakpoint()", "import pdb\npdb.set_trace()\nprint(1)",
                                  "from IPython.core.debugger import set_trace\nset_trace()",
                                  "import pdb\ntry:\n    1 / 0\n"
                                  "except Exception:\n    pdb.post_mortem()",
                                  "try:\n    1 / 0\n"
                                  "except Exception:\n    get_ipython().showtraceback()\n"
                                  "get_ipython().run_line_magic('debug', '')"])
def test_debuggers_fail(kernel, code):
    cell = kernel.run(code)
    assert cell.status == 1
    assert "debugger is not available" in cell.of("error")[-1]["text"]
    assert kernel.run("1").value == "1"


def test_config_knows_the_names_of_a_notebook(kernel):
    for name in ("DisplayFormatter.active_types", "HistoryManager.enabled", "IPCompleter.greedy",
                 "InteractiveShell.ast_node_interactivity"):
        assert "\n    %s\n" % name.split(".")[0] in kernel.run("%config").out
        assert kernel.run("%config " + name).status == 0, name


def test_magics_of_a_notebook(kernel):
    kernel.run("%%writefile note.txt\nGrüße\n")
    for name in ("less", "more"):
        assert kernel.run("%%%s note.txt" % name).out == "Grüße\n"
        assert kernel.run("%%%s none.txt" % name).error["name"] == "UsageError"
    assert [kind for kind, _ in kernel.run("%clear").events] == ["clear"]
    for name, word in (("autosave 60", "notebook"), ("connect_info", "connection file")):
        cell = kernel.run("%" + name)
        assert cell.status == 0 and word in cell.err and cell.err.count("\n") == 1
    for name, word in (("edit", "%%writefile"), ("ed note.txt", "%%writefile"),
                       ("qtconsole", "window")):
        error = kernel.run("%" + name).error
        assert error["name"] == "UsageError" and word in error["text"]
    assert kernel.run("%man").error["name"] == "UsageError"
    kernel.run("%%bash\nmkdir bin\nprintf '#!/bin/sh\\n[ $1 = -C ] && cat $2 && echo page of \"$@\"' > bin/man\n"
               "chmod +x bin/man")
    kernel.run("import os; os.environ['PATH'] = os.path.abspath('bin') + ':' + os.environ['PATH']")
    assert "page of" in (said := kernel.run("%man own;page").out) and "own;page" in said
    assert kernel.run("%rehashx").status == 0
    assert kernel.run("%true").status == 0  # a program as a magic: what %rehashx is for


def test_custom_exception_handler(kernel):
    kernel.run("def told(shell, kind, value, trace, tb_offset=None):\n    print('told', value)\n"
               "get_ipython().set_custom_exc((ValueError,), told)")
    cell = kernel.run("raise ValueError('mine')")
    assert (cell.status, cell.out, cell.error["name"]) == (1, "told mine\n", "ValueError")
    cell = kernel.run("1 / 0")
    assert (cell.status, cell.out, cell.error["name"]) == (1, "", "ZeroDivisionError")
    assert kernel.run("6 * 7").value == "42"
    kernel.run("get_ipython().set_custom_exc((ValueError,), lambda shell, *error, tb_offset: "
               "shell.showtraceback(error))")
    assert kernel.run("raise ValueError('once')").error["text"] == "once"


def test_pandas_knows_a_notebook(science):
    assert science.run("import pandas.io.formats.console as console\n"
                       "console.in_ipython_frontend()").value == "True"


def test_names_that_a_notebook_has(kernel):
    """Code that looks at the shell finds the classes that ipykernel has."""
    cell = kernel.run("magics = %lsmagic\nowners = magics._jsonable()\n"
                      "owners['line']['autosave'], owners['cell']['script'], "
                      "type(get_ipython().history_manager).__name__")
    assert cell.value == "('KernelMagics', 'ScriptMagics', 'HistoryManager')"


def test_warnings_of_traitlets_stay_out_of_the_log_of_the_user(kernel):
    """ipywidgets logs there what it also prints, and a kernel's own logger hands nothing on."""
    kernel.run("import logging\nlogging.basicConfig(level=logging.INFO, format='%(message)s')")
    assert kernel.run("from traitlets.config import LoggingConfigurable\n"
                      "LoggingConfigurable().log.warning('twice')").events == []
    assert kernel.run("logging.warning('once')").events == [("stderr", "once\n")]


def test_recursion_as_deep_as_in_a_notebook(kernel):
    """A kernel of Jupyter has 3,000 frames, since jedi asks for them; a bare interpreter has 1,000."""
    assert kernel.run("def depth(n):\n    return n and 1 + depth(n - 1)\ndepth(2500)").value == "2500"
    assert kernel.run("import sys\nsys.getrecursionlimit()").value == "3000"
