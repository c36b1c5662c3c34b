"""The IPython shell that runs the cells.

Cells that are plain Python take a short road (_run_plain): the same steps as run_cell without
its second parsing, tokenizing and coroutine. All others (magics, shell lines, top-level await,
syntax errors) go through IPython itself.
"""

import ast
import asyncio
import atexit
import builtins
import codeop
import fnmatch
import inspect
import itertools
import keyword
import linecache
import os
import re
import sys
import types
import warnings

from IPython.core import history, interactiveshell, pylabtools
from IPython.core import magics as core_magics
from IPython.core.autocall import ExitAutocall, IPyAutocall
from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.inputtransformer2 import TransformerManager
from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult, InteractiveShell
from IPython.core.macro import Macro
from IPython.core.profiledir import ProfileDir
from IPython.utils.text import LSString, SList
from traitlets import Type, default, observe
from traitlets import log as traitlets_log
from traitlets.config import Config

from . import comms, errors, loop, magics, programs
from .display import DisplayFormatter, Hook, Publisher
from .link import link
from .wire import MSG_ERROR, STATUS_INTERRUPTED, STATUS_OK, STATUS_RAISED, TAG_TRACE

# Code that magics compile under a name of their own; it is the cell's.
_MAGIC_FILES = {"<timed exec>", "<timed eval>", "<magic-timeit>", "<magic-timeit-setup>",
                "<magic-timeit-stmt>", "<unknown>"}
_PYTHON_MAGICS = {"time", "timeit", "capture"}
_INFO_EXTRA = len(inspect.signature(ExecutionInfo).parameters) - 4  # grew over the versions
# Whether a cell's number is counted on before it runs, and a result belongs to the one before.
_COUNTS_FIRST = DisplayHook.prompt_count.fget(
    types.SimpleNamespace(shell=types.SimpleNamespace(execution_count=1))) == 0

NO_DEBUGGER = ("The debugger is not available here: nobody can answer it. "
               "Print what you want to see.")

# Lines that may be IPython's: %magic, !shell, ?help, help?, x = !shell, a pasted prompt.
_MAGIC_LINE = re.compile(
    r"^[ \t]*[%!?]|\?[ \t]*$|^[ \t]*[\w.,][\w., ]*=[ \t]*[!%]|^ ?(?:\[\w+\] )?In \[", re.M)
_BLANK_LINES = re.compile(r"(?:[ \t\f]*\r?\n)+")
_NAME = re.compile(r"[^\W\d]\w*")

# As deep as in a Jupyter kernel, where jedi asks for it: notebooks recurse that deep.
DEPTH = 3000


class Compiler(CachingCompiler):
    """Names the code of cell N "<cell N>" and keeps its text as it was written."""

    def __init__(self):
        super().__init__()
        # A cell is all there is, so "incomplete input" would only hide what is wrong with it.
        self.flags &= ~getattr(codeop, "PyCF_ALLOW_INCOMPLETE_INPUT", 0)
        self.begin("", 0)

    def begin(self, raw, number):
        self.raw = raw
        self.cell = "<cell %d>" % number

    def reset(self):
        for name in self._filename_map:
            linecache.cache.pop(name, None)
        self._filename_map.clear()

    def get_code_name(self, raw_code, transformed_code, number):
        # A magic that runs its body as a cell (%%capture) passes a part of this one, each line
        # in its place. Other code is what the user gave to run_cell().
        if raw_code is not self.raw:
            lines = itertools.zip_longest(raw_code.rstrip().split("\n"), self.raw.split("\n"),
                                          fillvalue="")
            if any(part != whole for part, whole in lines if part.strip()):
                return "<run_cell in %s" % self.cell[1:]
        return self.cell

    def cache(self, transformed_code, number=0, raw_code=None):
        text = raw_code or transformed_code
        name = self.get_code_name(text, transformed_code, number)
        if name == self.cell:
            text = self.raw
        lines = [line + "\n" for line in text.replace("\r\n", "\n").split("\n")]
        # Without an mtime linecache.checkcache() leaves the entry alone.
        linecache.cache[name] = (len(text), None, lines, name)
        self._filename_map[name] = number
        return name

    def ast_parse(self, source, filename="<unknown>", symbol="exec"):
        return super().ast_parse(source, self._name(filename), symbol)

    def __call__(self, source, filename, symbol, **options):
        return super().__call__(source, self._name(filename), symbol, **options)

    def _name(self, filename):
        return self.cell if filename in _MAGIC_FILES else filename


class Transformer(TransformerManager):
    """Keeps every line of a cell where it was, so that line numbers stay true."""

    def do_one_token_transform(self, lines):
        changed, new = super().do_one_token_transform(lines)
        lost = len(lines) - len(new)
        if changed and lost > 0:
            at = next((i for i, (a, b) in enumerate(zip(lines, new)) if a != b), len(new) - 1)
            new[at + 1:at + 1] = ["\n"] * lost
        return changed, new


class HistoryManager(history.HistoryManager):
    """In memory, numbered as the server numbers cells."""

    # Traits in the base class that nobody observes; assigning to one costs 6 us.
    _i00 = _i = _ii = _iii = ""

    def store_inputs(self, line_num, source, source_raw=None):
        for inputs in (self.input_hist_parsed, self.input_hist_raw):
            inputs.extend([""] * (line_num - len(inputs)))
        super().store_inputs(line_num, source, source_raw)
        self.db_input_cache.clear()

    def get_tail(self, n=10, raw=True, output=False, include_latest=False):
        """The last inputs; there is no database that would have those of other sessions."""
        inputs = self.input_hist_raw if raw else self.input_hist_parsed
        stop = len(inputs) if include_latest else len(inputs) - 1
        return [(self.session_number, number, inputs[number])
                for number in range(max(1, stop - n), stop)]


class Memory(dict):
    """Stands for the database in which %store and %bookmark keep things."""

    def __init__(self, root=None):
        super().__init__()

    def __delitem__(self, key):
        self.pop(key, None)  # %rehashx deletes what may not be there

    def keys(self, pattern=None):
        return fnmatch.filter(super().keys(), pattern) if pattern else super().keys()


class Profile(ProfileDir):
    """No profile: a directory that is named and never made."""

    @observe("location")
    def _location_changed(self, change):
        pass

    def check_dirs(self):
        pass


class Exit(ExitAutocall):
    """exit and quit end the cell, as sys.exit() does; there is nothing else to leave."""

    def __call__(self, code=None):
        print("The cell ends here. The interpreter and its variables stay.", file=sys.stderr)
        raise SystemExit(code)


class Shell(InteractiveShell):
    display_pub_class = Type(Publisher)
    displayhook_class = Type(Hook)
    compiler_class = Type(Compiler)

    # As in HistoryManager: plain attributes where the base class has traits.
    execution_count = 1
    last_execution_succeeded = True
    last_execution_result = None
    script = None  # a profile's: what makes cells into scripts and runs them

    def __init__(self, **kwargs):
        self._status = STATUS_OK
        self._pending = None  # the exception that ended the cell
        self._cancelled = False
        self._nested = 0      # depth of run_cell() in a cell's own code
        self.loop = loop.Loop()
        loop.install(self.event_loop)
        self.kernel = comms.Kernel()
        super().__init__(**kwargs)
        self.input_transformer_manager = Transformer()
        self._transforms = self._transform_lists()
        self.register_magics(magics.KernelMagics)
        self.extension_manager.load_extension("IPython.extensions.storemagic")
        self.loop_runner = loop.Runner(self.run_coroutine)
        atexit.unregister(self.atexit_operations)
        # IPython's advice after a SystemExit; nobody is at a prompt here.
        warnings.filterwarnings("ignore", "To exit: use", UserWarning)
        # What ipywidgets and others log here belongs to a notebook's server, not to the user's own log.
        traitlets_log.get_logger().propagate = False
        sys.setrecursionlimit(DEPTH)
        link.calm.add(Shell.run.__code__)
        self._clean = dict(self.user_ns)

    # --- what IPython would take from a home directory or a terminal ---

    def init_ipython_dir(self, ipython_dir):
        pass

    def init_profile_dir(self, profile_dir):
        self.profile_dir = Profile(location=os.path.join(os.path.expanduser("~"), ".ipython"))

    def init_virtualenv(self):
        pass

    def init_display_formatter(self):
        self.display_formatter = DisplayFormatter(parent=self)
        self.configurables.append(self.display_formatter)

    def init_history(self):
        self.history_manager = HistoryManager(shell=self, parent=self)
        self.configurables.append(self.history_manager)

    @default("exiter")
    def _exiter_default(self):
        return Exit(self)

    def enable_gui(self, gui=None):
        pass

    def enable_matplotlib(self, gui=None):
        if gui not in (None, "inline", "agg"):
            pylabtools.find_gui_and_backend(gui)  # raises if there is no such name
            print("There is no window here: plots are shown inline.", file=sys.stderr)
        chosen = super().enable_matplotlib("inline")
        # IPython's runner of %run draws when the script has ended, and makes a figure for it if
        # the script has shown its own. Inline, all that is left is shown when the cell ends.
        self.magics_manager.registry["ExecutionMagics"].default_runner = self.safe_execfile
        return chosen

    # --- programs ---

    def system_piped(self, cmd):
        status = programs.run(self.var_expand(cmd, depth=1))
        # 128 + n is how a shell says that signal n ended its child.
        self.user_ns["_exit_code"] = 128 - status if status > 128 else status

    system = system_piped
    system_raw = system_piped

    def getoutput(self, cmd, split=True, depth=0):
        out = programs.output(self.var_expand(cmd, depth=depth + 1))
        return SList(out.splitlines()) if split else LSString(out)

    # --- errors ---

    def showtraceback(self, exc_tuple=None, filename=None, tb_offset=None, exception_only=False,
                      running_compiled_code=False):
        try:
            _, value, tb = self._get_exc_info(exc_tuple)
        except ValueError:
            print("No traceback available to show.", file=sys.stderr)
            return
        if self._cancelled and isinstance(value, asyncio.CancelledError):
            value = KeyboardInterrupt()
        if type(value) is SystemExit and value.code in (None, 0):
            return
        if running_compiled_code and not self._nested:
            self._pending = (value, tb)  # it ends the cell: figures drawn so far come first
        else:
            self._show(value, tb)

    def showsyntaxerror(self, filename=None, running_compiled_code=False):
        self.showtraceback(running_compiled_code=running_compiled_code)

    def debugger(self, force=False):
        if force:
            raise RuntimeError(NO_DEBUGGER)

    def _show(self, value, tb):
        running, link.running = link.running, False
        try:
            self._status = (STATUS_INTERRUPTED if issubclass(type(value), KeyboardInterrupt)
                            else STATUS_RAISED)
            fields = errors.fields(value, tb)
            if not link.tell(MSG_ERROR, fields):
                sys.stderr.write(dict(fields)[TAG_TRACE].decode("utf-8", "replace"))
        finally:
            link.running = running
        if running:
            link.check()

    # --- cells ---

    def run(self, raw, number):
        """Runs one cell and says how it ended: a STATUS_ value."""
        self._status = STATUS_OK
        self._pending = None
        self._cancelled = False
        self._nested = 0
        self.compile.begin(raw, number)
        self.execution_count = number
        try:
            link.running = True
            self._go(raw)
            link.running = False
        except BaseException as error:  # between two steps: in nobody's code
            link.running = False
            self._pending = (error, error.__traceback__)
        if self._pending:
            self._show(*self._pending)
            self._pending = None
        return self._status

    def _go(self, raw):
        link.check()
        if self.script:
            self._run_one(raw)
            return
        self.event_loop().declare()
        try:
            self._run_one(raw)
        finally:
            self.loop.retract()
        self.event_loop().turn()

    def _run_one(self, raw):
        codes = self._plain(raw)
        if codes is None:
            self._told(super().run_cell(raw, store_history=True).error_in_exec)
        else:
            self._run_plain(raw, codes)

    def _told(self, error):
        # What a handler of set_custom_exc() was told has ended the cell all the same.
        if (self.custom_exceptions and isinstance(error, self.custom_exceptions)
                and not self._pending and self._status == STATUS_OK):
            self._pending = (error, error.__traceback__)

    def run_cell(self, *args, **kwargs):
        self._nested += 1
        try:
            return super().run_cell(*args, **kwargs)
        finally:
            self._nested -= 1

    def _transform_lists(self):
        manager = self.input_transformer_manager
        return [list(manager.cleanup_transforms), list(manager.line_transforms),
                list(manager.token_transformers), list(self.input_transformers_post)]

    def _plain(self, raw):
        """The code objects of a cell without IPython syntax; None when IPython has to look."""
        if (not raw or raw.isspace() or _MAGIC_LINE.search(raw) or self.custom_exceptions
                or self.autocall or self.ast_node_interactivity != "last_expr"
                or self._transform_lists() != self._transforms):
            return None
        source = raw if raw.endswith("\n") else raw + "\n"
        name = self.compile.cache(source, self.execution_count, raw)
        try:
            tree = self.compile.ast_parse(source, name)
            if self.ast_transformers:
                tree = self.transform_ast(tree)
            body = tree.body
            if self.script:
                return self.script.codes(self, tree, name)
            shown = body and isinstance(body[-1], ast.Expr)
            if shown and len(body) == 1 and self._is_automagic(raw):
                return None
            codes = []
            if len(body) > bool(shown):
                tree.body = body[:-1] if shown else body
                codes.append(self.compile(tree, name, "exec"))
            if shown:
                codes.append(self.compile(ast.Interactive(body[-1:]), name, "single"))
            return codes
        except Exception:
            return None

    def _is_automagic(self, raw):
        # IPython reads `ls -l` or `exit` on a line of its own as a command, unless the first
        # word is something else already.
        word = _NAME.match(raw.lstrip())
        if not word or "\n" in raw.strip():
            return False
        word = word.group()
        if word in self.user_ns:
            return isinstance(self.user_ns[word], (IPyAutocall, Macro))
        return not hasattr(builtins, word) and not keyword.iskeyword(word)

    def _run_plain(self, raw, codes):
        info = ExecutionInfo(raw, True, False, True, *[None] * _INFO_EXTRA)
        result = ExecutionResult(info)
        result.execution_count = self.execution_count
        try:
            self.events.trigger("pre_execute")
            self.events.trigger("pre_run_cell", info)
            self.history_manager.store_inputs(self.execution_count, raw, raw)
            if self.logger.log_active:
                self.logger.log(raw, raw)
            self.execution_count += _COUNTS_FIRST
            with self.builtin_trap, self.display_trap:
                self.displayhook.exec_result = result
                try:
                    if self.script:
                        self.script.run(self, codes)
                        codes = ()
                    for code in codes:
                        exec(code, self.user_global_ns, self.user_ns)
                except BaseException as error:
                    result.error_in_exec = error
                    self.showtraceback(running_compiled_code=True)
                self.displayhook.exec_result = None
            self.last_execution_succeeded = result.success
            self.last_execution_result = result
            self.execution_count += not _COUNTS_FIRST
        finally:
            self.events.trigger("post_execute")
            self.events.trigger("post_run_cell", result)

    def transform_cell(self, raw_cell):
        cell = super().transform_cell(raw_cell)
        lead = None if raw_cell.isspace() else _BLANK_LINES.match(raw_cell)
        return "\n" * lead.group().count("\n") + cell if lead else cell

    def run_cell_magic(self, magic_name, line, cell):
        text = self.compile.raw
        if not text.endswith("\n"):
            text += "\n"
        if magic_name in _PYTHON_MAGICS and cell and text.endswith(cell):
            # The body starts some lines down in the cell.
            cell = "\n" * text.count("\n", 0, len(text) - len(cell)) + cell
        return super().run_cell_magic(magic_name, line, cell)

    def run_coroutine(self, coro):
        """Runs a cell with a top-level await. Interrupted, it must not go on with the next one."""
        with self.event_loop().aside():
            task = self.loop.create_task(coro)
            try:
                return self.loop.run_until_complete(task)
            except KeyboardInterrupt:
                self._cancelled = True
                task.cancel()
                return self.loop.run_until_complete(task)

    def event_loop(self):
        """The loop of all cells; a new one when a cell has closed it."""
        if self.loop.is_closed():
            self.loop = loop.Loop()
        return self.loop

    # --- before the first cell ---

    def arrive(self, folder):
        """In a new kernel: this is where the user works."""
        asyncio.set_event_loop(self.loop)
        errors.workspace = os.path.join(folder, "")
        self.starting_dir = folder
        self.history_manager.dir_hist[:] = [folder]

    def forget(self):
        """As if no cell had run: what warming up left behind goes."""
        self.user_ns.clear()
        self.user_ns.update(self._clean)
        manager = self.history_manager
        for inputs in (manager.input_hist_parsed, manager.input_hist_raw):
            inputs[:] = [""]
        manager._i = manager._ii = manager._iii = manager._i00 = ""
        manager.output_hist.clear()
        manager.output_hist_reprs.clear()
        hook = self.displayhook
        hook._ = hook.__ = hook.___ = ""
        self.compile.reset()
        self.compile.begin("", 0)
        self.execution_count = 1
        self.last_execution_result = None
        self.last_execution_succeeded = True
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):
            if hasattr(sys, name):
                delattr(sys, name)


Shell.__name__ = InteractiveShell.__name__  # by which %config and its users know it
# pandas looks for "zmq" in the written type to tell a notebook from a terminal. Not the name
# itself: who goes by that draws with widgets, which need somebody who answers.
Shell.__qualname__ = "ZMQInteractiveShell"


def make():
    """The one shell of this process."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.display_page = True  # obj? is output, not a pager
    if hasattr(interactiveshell, "PickleShareDB"):
        interactiveshell.PickleShareDB = Memory
    core_magics.ScriptMagics = programs.ScriptMagics
    return Shell.instance(config=config)
