import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from server import Server  # noqa: E402


@pytest.fixture(scope="module")
def server(request):
    """The server of a module; FLAGS in the module adds to its settings."""
    with Server(*getattr(request.module, "FLAGS", ())) as one:
        yield one


@pytest.fixture
def client(server):
    with server.client() as one:
        yield one


@pytest.fixture
def session(server):
    with server.client() as one, one.session() as made:
        yield made
