"""The event loop of the cells: one for all of them, as in a notebook.

While a cell without a top-level await runs, the loop counts as running: get_running_loop() finds
it, create_task() works, and so do libraries that look for it. Tasks take their first step
at the end of the cell and go on between cells. Other than in a notebook, asyncio.run() and
run_until_complete() work in such a cell: the loop steps aside for them.

The loop is made in the zygote, so it must not own a descriptor that kernels would share: poll()
needs none, and the pipe that wakes the loop is made at the first need.
"""

import asyncio
import contextlib
import functools
import selectors
from asyncio import events


class Loop(asyncio.SelectorEventLoop):
    def __init__(self):
        self._declared = False  # a plain cell runs: the loop counts as running
        super().__init__(selectors.PollSelector())

    # --- the pipe that wakes it ---

    def _make_self_pipe(self):
        self._ssock = self._csock = None

    def _open(self):
        if self._ssock is None and not self.is_closed():
            super()._make_self_pipe()

    def _close_self_pipe(self):
        if self._ssock is not None:
            super()._close_self_pipe()

    def create_future(self):
        self._open()
        return super().create_future()

    def create_task(self, coro, **options):
        self._open()
        return super().create_task(coro, **options)

    def add_signal_handler(self, sig, callback, *args):
        self._open()
        return super().add_signal_handler(sig, callback, *args)

    # --- running, or counting as running ---

    def declare(self):
        self._declared = True
        events._set_running_loop(self)

    def retract(self):
        self._declared = False
        events._set_running_loop(None)

    @contextlib.contextmanager
    def aside(self):
        """What runs in it finds no running loop, unless one really runs."""
        if not self._declared or events._get_running_loop() is not self:
            yield
            return
        self.retract()
        try:
            yield
        finally:
            self.declare()

    def is_running(self):
        return self._declared and events._get_running_loop() is self or super().is_running()

    def run_forever(self):
        self._open()
        with self.aside():
            super().run_forever()

    def run_until_complete(self, future):
        with self.aside():
            return super().run_until_complete(future)

    # --- tasks that go on ---

    def turn(self):
        """When a cell has ended: what is ready takes one step, as part of the cell."""
        if self._ready and not self.is_closed():
            self.call_soon(self.stop)
            self.run_forever()

    def has_work(self):
        return (not self.is_closed() and self._ssock is not None
                and bool(self._ready or self._scheduled or len(self._selector.get_map()) > 1
                         or asyncio.all_tasks(self)))

    def go_on(self, fd):
        """Between cells: what is ready takes a step, and tasks go on until there is something to read."""
        self.add_reader(fd, self.stop)
        try:
            self.run_forever()
        finally:
            self.remove_reader(fd)


Loop.__name__ = asyncio.SelectorEventLoop.__name__  # as it is written in a notebook


class Runner:
    """Runs a cell with a top-level await."""

    def __init__(self, run):
        self.run = run

    def __call__(self, coro):
        return self.run(coro)

    def __str__(self):  # as %autoawait prints it
        return "asyncio"


def _beside(function, current):
    @functools.wraps(function)
    def run(*args, **kwargs):
        with current().aside():
            return function(*args, **kwargs)
    return run


def install(current):
    """asyncio.run() and its kin step over the loop that only counts as running; current() is it."""
    asyncio.run = asyncio.runners.run = _beside(asyncio.run, current)
    if hasattr(asyncio, "Runner"):
        asyncio.Runner.run = _beside(asyncio.Runner.run, current)
