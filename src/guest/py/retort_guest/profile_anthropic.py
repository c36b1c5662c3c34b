"""Sessions of the Anthropic door: tools of the client that code calls as functions and awaits.

A call is shown to the server as a display of a type of its own; the cell then waits for a file
with the answer, which the server puts where RETORT_TOOLS says. Calls that are made together, as
by asyncio.gather(), are shown together, as the client answers all that it has seen at once; of
very many the rest when these are answered. The server sees to it that an answer comes: if not the
client's, then that time is up, or that the arguments are none that can be sent.
"""

import asyncio
import json
import os

from .link import link
from .wire import MSG_DISPLAY, TAG_DATA, TAG_FLAGS, TAG_MIME

_MIME = b"application/vnd.retort.calls+json"
_SOON = 0.005   # between two looks for an answer, ...
_LATER = 0.1    # ... at the end
_SLOWER = 1.2
_SHOWN = 256        # calls that wait at a time, ...
_BYTES = 1 << 20    # ... and bytes of their arguments that are shown at a time

_RAISES = {"timeout": TimeoutError, "invalid": ValueError}


def _spelled(name):
    """As code can write it: a tool's name may have hyphens."""
    return name.replace("-", "_")


class _Calls:
    """Those of one event loop."""

    def __init__(self, loop, folder):
        self._loop = loop
        self._folder = folder
        self._fresh = []    # not shown yet
        self._waiting = {}  # futures by the name of their answer
        self._shown = set() # those names that the server knows
        self._pause = _SOON

    def make(self, name, arguments):
        if len(arguments) > _BYTES:
            raise ValueError("the arguments of %s() are %d bytes, and %d can be sent" % (name, len(arguments), _BYTES))
        ident = os.urandom(12).hex()
        future = self._loop.create_future()
        self._fresh.append({"id": ident, "name": name, "input": arguments})
        self._waiting[ident] = future
        if len(self._fresh) == 1:
            # After whatever else is ready to run, which may make calls of its own.
            self._loop.call_soon(self._loop.call_soon, self._show)
        if len(self._waiting) == 1:
            self._pause = _SOON
            self._loop.call_later(self._pause, self._look)
        return future

    def _take(self):
        """Those that can be shown now."""
        size, taken = 0, []
        self._fresh = [call for call in self._fresh if not self._waiting[call["id"]].done()]
        while self._fresh and len(self._shown) < _SHOWN and size + len(self._fresh[0]["input"]) <= _BYTES:
            taken.append(self._fresh.pop(0))
            size += len(taken[-1]["input"])
            self._shown.add(taken[-1]["id"])
        return taken

    def _show(self):
        calls = self._take()
        if calls:
            data = json.dumps({"calls": calls}).encode()
            link.ask(MSG_DISPLAY, [(TAG_MIME, _MIME), (TAG_DATA, data), (TAG_FLAGS, 0)])

    def _look(self):
        for ident in [i for i, future in self._waiting.items() if future.done()]:
            self._forget(ident)  # cancelled
        for ident in list(self._waiting):
            path = os.path.join(self._folder, ident)
            try:
                with open(path, encoding="utf-8") as file:
                    answer = json.load(file)
                os.unlink(path)
            except (OSError, ValueError):
                continue
            self._settle(self._forget(ident), answer)
            self._pause = _SOON
        if not self._shown:
            self._show()
        if self._waiting:
            self._pause = min(self._pause * _SLOWER, _LATER)
            self._loop.call_later(self._pause, self._look)

    def _forget(self, ident):
        self._shown.discard(ident)
        self._fresh = [call for call in self._fresh if call["id"] != ident]
        return self._waiting.pop(ident)

    @staticmethod
    def _settle(future, answer):
        kind = answer.get("error")
        if kind:
            future.set_exception(_RAISES.get(kind, RuntimeError)(answer["text"]))
        else:
            future.set_result(answer["text"])


class Profile:
    def __init__(self, imports):
        self._folder = ""
        self._names = ()
        self._mine = {}    # functions that stand in the user's namespace
        self._calls = None

    def offer(self, tools):
        """tools: the folder of the answers, and the names, separated by commas."""
        self._folder, *self._names = tools.split(",")

    def before(self, shell, code):
        for name, function in self._mine.items():
            if shell.user_ns.get(name) is function:
                del shell.user_ns[name]
        self._mine = {_spelled(name): self._function(name) for name in self._names}
        shell.user_ns.update(self._mine)
        self._calls = None  # what an earlier cell has left unanswered nobody will answer
        self._clear()

    def after(self, shell, status):
        self._names = ()
        self._clear()

    def _clear(self):
        """Removes answers that nobody has waited for."""
        try:
            for name in os.listdir(self._folder) if self._folder else ():
                os.unlink(os.path.join(self._folder, name))
        except OSError:
            pass

    def _function(self, name):
        async def call(arguments=None, /, **named):
            if arguments is None:
                arguments = named
            if not isinstance(arguments, dict) or (named and arguments is not named):
                raise TypeError("%s() takes one dict" % name)
            loop = asyncio.get_running_loop()
            if self._calls is None or self._calls._loop is not loop:
                self._calls = _Calls(loop, self._folder)
            return await self._calls.make(name, json.dumps(arguments))

        call.__name__ = call.__qualname__ = _spelled(name)
        call.__doc__ = "Calls a tool of the client: one dict in, text out."
        return call
