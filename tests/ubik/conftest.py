import sys
import threading
from pathlib import Path

import pytest

tests = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(tests), str(tests / "serve"), str(tests / "mcp"), str(tests / "model")]

# By its path: tests/model has a server.py, too.
sys.modules.pop("server", None)

from account import Account  # noqa: E402
from shelf import Shelf  # noqa: E402


@pytest.fixture(scope="session")
def house():
    """A server with a key, whose model plays the script that a request is."""
    with Account.house() as one:
        yield one


@pytest.fixture
def ubik(house):
    """The account itself: its key, and no end user."""
    with house.account() as one:
        yield one


@pytest.fixture(scope="session")
def shelf():
    with Shelf() as one:
        threading.Thread(target=one.serve_forever, daemon=True).start()
        yield one
        one.shutdown()
