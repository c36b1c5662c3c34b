"""Every hostile guest of this folder is a file, and every file is tried as root and as a user.

    /usr/bin/python3 -m pytest tests/escape                     all of them
    /usr/bin/python3 -m pytest tests/escape/ring_open.py        one
    /usr/bin/python3 -m pytest tests/escape/ring_open.py::root  one, as root

Run by an ordinary user, the suite has the one mode that user can have. RETORT_BIN names another
program than build/retort. The guests are started ahead of their turn, a few at a time, since most
of one's life is waiting; RETORT_ESCAPE_JOBS=1 has them one after the other. Those that need nothing
from the host share one server for each mode.
"""

import contextlib
import importlib.util
import os
import platform
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import outside

HERE = Path(__file__).resolve().parent
NOT_GUESTS = {"conftest.py", "guest.py", "outside.py"}
JOBS = int(os.environ.get("RETORT_ESCAPE_JOBS", (os.cpu_count() or 1) + 1))


def pytest_collect_file(file_path, parent):
    if file_path.parent == HERE and file_path.suffix == ".py" and file_path.name not in NOT_GUESTS:
        return GuestFile.from_parent(parent, path=file_path)
    return None


def load(path):
    spec = importlib.util.spec_from_file_location(f"escape_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class GuestFile(pytest.File):
    def collect(self):
        module = load(self.path)
        # Some attempts are machine code, or calls that only one machine has.
        if platform.machine() != getattr(module, "MACHINE", platform.machine()):
            return
        for mode in outside.modes():
            yield GuestItem.from_parent(self, name=mode, module=module)


class GuestItem(pytest.Item):
    def __init__(self, *, module, **kw):
        super().__init__(**kw)
        self.module = module

    def runtest(self):
        crew = self.session.__dict__.setdefault("escape_crew", None) or start_crew(self.session)
        crew.futures[self.nodeid].result()

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, outside.Failed):
            return f"{self.path.name} as {self.name}: {excinfo.value}"
        return super().repr_failure(excinfo, style=style)

    def reportinfo(self):
        return self.path, 0, f"{self.path.stem} as {self.name}"


class Crew:
    def __init__(self, items):
        self.pool = ThreadPoolExecutor(JOBS)
        self.houses, self.opening, self.stack = {}, threading.Lock(), contextlib.ExitStack()
        self.futures = {i.nodeid: self.pool.submit(self.examine, i.module, i.name) for i in items}

    def examine(self, module, mode):
        if hasattr(module, "check"):
            with outside.Box(mode, self.house) as box:
                module.check(box)
        else:
            self.house(mode).examine(module)

    def house(self, mode):
        with self.opening:
            if mode not in self.houses:
                self.houses[mode] = self.stack.enter_context(outside.House(mode))
            return self.houses[mode]

    def close(self):
        self.pool.shutdown(wait=True, cancel_futures=True)
        self.stack.close()


def start_crew(session):
    session.escape_crew = Crew([i for i in session.items if isinstance(i, GuestItem)])
    return session.escape_crew


def pytest_sessionfinish(session):
    if crew := session.__dict__.get("escape_crew"):
        crew.close()
