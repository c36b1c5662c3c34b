"""Sessions of the Prisme door: a cell is a script that hands back a value, and imports a few modules.

The value is that of a `return` outside of any function, else the variable `result`, else the last
expression. It goes to the server as JSON (json_value.py), with notes on what is not as it was.

The list of modules is a policy and no wall: it tells a script that honestly asks for a module that
it may not have it. Whoever wants around it finds a way, to a place where the walls of the box are.
"""

import ast
import builtins
import importlib.machinery
import json
import keyword
import os
import sys

from . import errors
from .display import BUNDLE_MAX, PLAIN, bundle
from .json_value import Converter, ResultTooLarge, shown
from .link import link
from .wire import MSG_RESULT, STATUS_OK

MIME = "application/vnd.retort.value+json"
VALUE_MAX = BUNDLE_MAX - 1024 * 1024  # beside it there is a short text
TEXT_MAX = 64 * 1024
PARAMETERS = ".parameters.json"

_MAIN = "__retort_main__"
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


# --- scripts ---

class _Outside(ast.NodeVisitor):
    """Whether there is a return, and whether there is an await, outside of functions."""

    returns = awaits = False

    def visit(self, node):
        self.returns |= isinstance(node, ast.Return)
        self.awaits |= (isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith))
                        or isinstance(node, ast.comprehension) and node.is_async == 1)
        if not isinstance(node, _NESTED):
            self.generic_visit(node)


class _ModuleOnly(ast.NodeTransformer):
    """What only a module may hold, as a function may: `x: int = 1` of a name that is global, and
    `from x import *`."""

    def visit(self, node):
        return node if isinstance(node, _NESTED) else super().visit(node)

    def visit_AnnAssign(self, node):
        node.simple = 0  # as if the name were in parentheses: it is assigned, not declared
        return node

    def visit_ImportFrom(self, node):
        if node.names[0].name != "*":
            return node
        source = "from %s%s import *" % ("." * node.level, node.module or "")
        call = ast.parse("exec(%r, globals())" % source).body[0]
        for inner in ast.walk(call):
            ast.copy_location(inner, node)
        return call


def _named(shell, name, tree):
    return shell.compile(tree, name, "exec")


def _head(body):
    """How many statements have to come first in a module: its text, and what it takes from
    __future__."""
    n = 0
    for i, node in enumerate(body):
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            n = i + 1
        elif i > 0 or not isinstance(node, ast.Expr):
            break
    return n


def _as_function(shell, name, body, kind):
    """The body as code that returns, after what has to come first. Its names are those of the
    module: nothing in it is local. kind: of the function, which may be asynchronous."""
    count = _head(body)
    before = body[:count]
    body = [_ModuleOnly().visit(node) for node in body[count:]]

    def wrap(names):
        first = body[0]
        head = [ast.Global(names=sorted(names))] if names else []
        function = kind(
            name=_MAIN, body=head + body, decorator_list=[], returns=None, type_comment=None,
            args=ast.arguments(posonlyargs=[], args=[], vararg=None, kwonlyargs=[],
                               kw_defaults=[], kwarg=None, defaults=[]))
        if "type_params" in kind._fields:
            function.type_params = []
        ast.copy_location(function, first)
        tree = ast.fix_missing_locations(ast.Module(body=before + [function],
                                                     type_ignores=[]))
        module = _named(shell, name, tree)
        return next(c for c in module.co_consts if hasattr(c, "co_code"))

    draft = wrap(())
    code = wrap({*draft.co_varnames, *draft.co_cellvars})
    renamed = {"co_name": "<module>"}
    if hasattr(code, "co_qualname"):
        renamed["co_qualname"] = "<module>"
    first = [_named(shell, name, ast.Module(body=before, type_ignores=[]))] if before else []
    return first + [code.replace(**renamed)]


class Profile:
    def __init__(self, imports):
        self._imports = frozenset(name for name in imports.split(",") if name)
        self._told = self._returns = False
        if self._imports and "*" not in self._imports:
            self._import = builtins.__import__
            builtins.__import__ = self._guarded

    def before(self, shell, code):
        shell.script = self
        self._told = False
        self._take_parameters(shell.user_ns)

    def after(self, shell, status):
        # What IPython has run itself, such as a script with a magic.
        if status == STATUS_OK and not self._told and shell.user_ns.get("result") is not None:
            self._tell(shell.user_ns["result"])

    # --- running: called by the shell in place of its own ---

    def codes(self, shell, tree, name):
        """The steps of a cell."""
        body = tree.body
        seen = _Outside()
        for node in body:
            seen.visit(node)
        self._returns = seen.returns
        if seen.awaits and not seen.returns and isinstance(body[-1], ast.Expr):
            body[-1] = ast.copy_location(ast.Return(body[-1].value), body[-1])
        if seen.awaits:
            return _as_function(shell, name, body, ast.AsyncFunctionDef)
        if seen.returns:
            return _as_function(shell, name, body, ast.FunctionDef)
        if not body or not isinstance(body[-1], ast.Expr):
            return [_named(shell, name, tree)]
        last = ast.Expression(body[-1].value)
        first = [_named(shell, name, ast.Module(body=body[:-1], type_ignores=[]))] \
            if len(body) > 1 else []
        return first + [shell.compile(last, name, "eval")]

    def run(self, shell, codes):
        value = None
        for code in codes:
            value = eval(code, shell.user_global_ns, shell.user_ns)
            if code.co_flags & 0x80:  # CO_COROUTINE
                value = shell.run_coroutine(value)
        if not self._returns and shell.user_ns.get("result") is not None:
            value = shell.user_ns["result"]
        if value is not None:
            self._tell(value)

    def _tell(self, value):
        self._told = True
        made = Converter()
        told = {"value": made.convert(value)}
        if made.notes:
            told["notes"] = made.notes
        text = json.dumps(told, ensure_ascii=False, allow_nan=False)
        size = len(text.encode("utf-8"))
        if size > VALUE_MAX:
            raise ResultTooLarge("the result has %d bytes, and %d are the most: return a part or a "
                                 "summary of it, or write it to a file" % (size, VALUE_MAX))
        link.tell(MSG_RESULT, bundle({MIME: text, PLAIN: shown(value, str)[:TEXT_MAX]}))

    @staticmethod
    def _take_parameters(namespace):
        """What a function is called with: each is a variable of its own, too."""
        try:
            with open(PARAMETERS, encoding="utf-8") as file:
                parameters = json.load(file)
            os.unlink(PARAMETERS)
        except (OSError, ValueError):
            return
        namespace["parameters"] = parameters
        for name, value in parameters.items():
            if name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_"):
                namespace[name] = value

    # --- imports ---

    def _guarded(self, name, globals=None, locals=None, fromlist=(), level=0):
        top = name.partition(".")[0]
        if (level == 0 and top not in self._imports and top != "__future__"
                and _asked_by_user(fromlist) and not _is_own(top)):
            raise ImportError("import of '%s' is not allowed by PYTHON_PACKAGES_WHITELIST_IMPORT"
                              % name, name=name)
        return self._import(name, globals, locals, fromlist, level)


def _asked_by_user(fromlist):
    """Whether the nearest code with a file of its own is the user's. Libraries may import what
    they need, also those in C (strptime needs _strptime) and those frozen into Python (help needs
    pydoc). C leaves no frame; it asks with a list, where Python's own statement has a tuple."""
    frame = sys._getframe(2)
    if type(fromlist) is list and "__import__" not in frame.f_code.co_names:
        return False
    while frame is not None:
        filename = frame.f_code.co_filename
        if errors.is_user(filename):
            return True
        if not filename.startswith("<") or filename.startswith("<frozen "):
            return False
        frame = frame.f_back
    return True


def _is_own(top):
    """A module among the user's files: what it imports is looked at, too."""
    module = sys.modules.get(top)
    if module is not None:
        return errors.is_user(getattr(module, "__file__", None) or "")
    spec = importlib.machinery.PathFinder.find_spec(top, [os.getcwd()])
    return spec is not None and errors.is_user(spec.origin or "")
