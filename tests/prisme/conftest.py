import sys
import threading
from pathlib import Path

import pytest

tests = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(tests), str(tests / "serve"), str(tests / "mcp")]

from server import Server  # noqa: E402
from shelf import Shelf  # noqa: E402


@pytest.fixture(scope="module")
def server(request):
    """The server of a module; FLAGS and ENV in the module add to its settings."""
    with Server(*getattr(request.module, "FLAGS", ()),
                env=getattr(request.module, "ENV", None)) as one:
        yield one


@pytest.fixture
def client(server):
    with server.client() as one:
        yield one


@pytest.fixture(scope="module")
def shelf():
    with Shelf() as one:
        threading.Thread(target=one.serve_forever, daemon=True).start()
        yield one
        one.shutdown()
