"""Sessions of the Anthropic door: tools of the client that code calls as functions and awaits.

A call is shown to the server as a display of a type of its own; the cell then waits for a file
with the answer, which the server puts where RETORT_TOOLS says. Calls that are made together, as
by asyncio.gather(), are shown together, as the client answers all that it has seen at once. The
server sees to it that an answer comes: if not the client's, then that time is up.
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

_RAISES = {"timeout": TimeoutError}


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
        self._pause = _SOON

    def make(self, name, arguments):
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

    def _show(self):
        fresh, self._fresh = self._fresh, []
        data = json.dumps({"calls": fresh}).encode()
        link.ask(MSG_DISPLAY, [(TAG_MIME, _MIME), (TAG_DATA, data), (TAG_FLAGS, 0)])

    def _look(self):
        for ident in [i for i, future in self._waiting.items() if future.done()]:
            del self._waiting[ident]  # cancelled
        for ident in list(self._waiting):
            path = os.path.join(self._folder, ident)
            try:
                with open(path, encoding="utf-8") as file:
                    answer = json.load(file)
                os.unlink(path)
            except (OSError, ValueError):
                continue
            self._settle(self._waiting.pop(ident), answer)
            self._pause = _SOON
        if self._waiting:
            self._pause = min(self._pause * _SLOWER, _LATER)
            self._loop.call_later(self._pause, self._look)

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

    def after(self, shell, status):
        self._names = ()

    def _function(self, name):
        async def call(arguments=None, /, **named):
            if arguments is None:
                arguments = named
            if not isinstance(arguments, dict) or (named and arguments is not named):
                raise TypeError("%s() takes one dict" % name)
            loop = asyncio.get_running_loop()
            if self._calls is None or self._calls._loop is not loop:
                self._calls = _Calls(loop, self._folder)
            return await self._calls.make(name, json.loads(json.dumps(arguments)))

        call.__name__ = call.__qualname__ = _spelled(name)
        call.__doc__ = "Calls a tool of the client: one dict in, text out."
        return call
