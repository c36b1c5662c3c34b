import sys
from pathlib import Path

import pytest

tests = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(tests), str(tests / "serve"), str(tests / "mcp")]

from client import Legacy, Modern  # noqa: E402
from server import Server  # noqa: E402


@pytest.fixture(scope="module")
def server(request):
    """The server of a module; FLAGS in the module adds to its settings."""
    with Server(*getattr(request.module, "FLAGS", ())) as one:
        yield one


@pytest.fixture
def legacy(server):
    """A client of the legacy era that has been let in."""
    with Legacy(server) as one:
        yield one


@pytest.fixture
def modern(server):
    return Modern(server)


@pytest.fixture(params=["legacy", "modern"])
def either(request):
    """One test, a client of each era."""
    return request.getfixturevalue(request.param)
