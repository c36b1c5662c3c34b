"""Sessions of the Prisme door: a cell is a script that hands back a value, and imports a few modules.

The value is that of a `return` outside of any function, else the variable `result`, else the last
expression. It goes to the server as JSON.

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
from .display import PLAIN, bundle
from .link import link
from .wire import MSG_RESULT, STATUS_OK

MIME = "application/vnd.retort.value+json"
DEPTH = 32
PARAMETERS = ".parameters.json"

_MAIN = "__retort_main__"
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


# --- values ---

def _plain(value, depth=0):
    """What JSON can say of a value."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None  # neither NaN nor infinity is JSON
    if depth > DEPTH:
        return repr(value)
    if isinstance(value, dict):
        return {str(k): _plain(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(v, depth + 1) for v in value]
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    return _foreign(value, depth)


def _foreign(value, depth):
    kind = "%s.%s" % (type(value).__module__, type(value).__name__)
    if kind == "pandas.core.frame.DataFrame":
        return _plain(value.to_dict("records"), depth + 1)
    for name in ("tolist", "to_dict", "isoformat", "_asdict"):  # numpy, pandas, dates, tuples
        method = getattr(value, name, None)
        if callable(method) and not isinstance(value, type):
            return _plain(method(), depth + 1)
    return str(value)


# --- scripts ---

class _Returns(ast.NodeVisitor):
    """Whether there is a return outside of functions."""

    found = False

    def visit(self, node):
        if isinstance(node, ast.Return):
            self.found = True
        elif not isinstance(node, _NESTED):
            self.generic_visit(node)


def _named(shell, name, tree):
    return shell.compile(tree, name, "exec")


def _as_function(shell, name, body):
    """The body as code that returns. Its names are those of the module: nothing in it is local."""
    def wrap(names):
        first = body[0]
        head = [ast.Global(names=sorted(names))] if names else []
        function = ast.FunctionDef(
            name=_MAIN, body=head + body, decorator_list=[], returns=None, type_comment=None,
            args=ast.arguments(posonlyargs=[], args=[], vararg=None, kwonlyargs=[],
                               kw_defaults=[], kwarg=None, defaults=[]))
        if "type_params" in ast.FunctionDef._fields:
            function.type_params = []
        ast.copy_location(function, first)
        tree = ast.fix_missing_locations(ast.Module(body=[function], type_ignores=[]))
        module = _named(shell, name, tree)
        return next(c for c in module.co_consts if hasattr(c, "co_code"))

    draft = wrap(())
    code = wrap({*draft.co_varnames, *draft.co_cellvars})
    renamed = {"co_name": "<module>"}
    if hasattr(code, "co_qualname"):
        renamed["co_qualname"] = "<module>"
    return code.replace(**renamed)


class Profile:
    def __init__(self, imports):
        self._imports = frozenset(name for name in imports.split(",") if name)
        self._told = False
        if self._imports and "*" not in self._imports:
            self._import = builtins.__import__
            builtins.__import__ = self._guarded

    def before(self, shell, code):
        shell.script = self
        self._told = False
        self._take_parameters(shell.user_ns)

    def after(self, shell, status):
        # What IPython has run itself, such as a script with an await.
        if status == STATUS_OK and not self._told and shell.user_ns.get("result") is not None:
            self._tell(shell.user_ns["result"])

    # --- running: called by the shell in place of its own ---

    def codes(self, shell, tree, name):
        """The steps of a cell."""
        body = tree.body
        seen = _Returns()
        for node in body:
            seen.visit(node)
        if seen.found:
            return [_as_function(shell, name, body)]
        if not body or not isinstance(body[-1], ast.Expr):
            return [_named(shell, name, tree)]
        last = ast.Expression(body[-1].value)
        first = [_named(shell, name, ast.Module(body=body[:-1], type_ignores=[]))] \
            if len(body) > 1 else []
        return first + [shell.compile(last, name, "eval")]

    def run(self, shell, codes):
        value = None
        returned = len(codes) == 1 and codes[0].co_flags & 2 == 2  # CO_NEWLOCALS: a function's
        for code in codes:
            value = eval(code, shell.user_global_ns, shell.user_ns)
        if not returned and shell.user_ns.get("result") is not None:
            value = shell.user_ns["result"]
        if value is not None:
            self._tell(value)

    def _tell(self, value):
        self._told = True
        text = json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)
        link.tell(MSG_RESULT, bundle({MIME: text, PLAIN: str(value)}))

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
        if level == 0 and top not in self._imports and _asked_by_user() and not _is_own(top):
            raise ImportError("import of '%s' is not allowed by PYTHON_PACKAGES_WHITELIST_IMPORT"
                              % name, name=name)
        return self._import(name, globals, locals, fromlist, level)


def _asked_by_user():
    """Whether the nearest code with a file of its own is the user's. Libraries may import what
    they need."""
    frame = sys._getframe(2)
    while frame is not None:
        filename = frame.f_code.co_filename
        if errors.is_user(filename):
            return True
        if not filename.startswith("<"):
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
