"""Fixtures of several suites. A suite's own conftest.py has those that only this suite knows."""

import threading

import pytest

from support.server import Server
from support.shelf import Shelf


@pytest.fixture(scope="module")
def server(request):
    """The server of a module; FLAGS, CONFIG and ENV in the module add to its settings, BINARY is another program."""
    of_module = {name: getattr(request.module, name, None) for name in ("FLAGS", "CONFIG", "ENV", "BINARY")}
    with Server(*of_module["FLAGS"] or (), config=of_module["CONFIG"] or "", env=of_module["ENV"],
                program=of_module["BINARY"]) as one:
        yield one


@pytest.fixture
def client(server):
    with server.client() as one:
        yield one


@pytest.fixture
def session(server):
    with server.client() as one, one.session() as made:
        yield made


@pytest.fixture(scope="session")
def shelf():
    with Shelf() as one:
        threading.Thread(target=one.serve_forever, daemon=True).start()
        yield one
        one.shutdown()
