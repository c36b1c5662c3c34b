import sys
from pathlib import Path

import pytest

tests = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(tests), str(tests / "serve"), str(tests / "azure")]

from azure import Pool  # noqa: E402
from server import Server  # noqa: E402


@pytest.fixture(scope="module")
def server(request):
    """The server of a module; FLAGS and CONFIG in the module add to its settings."""
    flags, config = getattr(request.module, "FLAGS", ()), getattr(request.module, "CONFIG", "")
    with Server(*flags, config=config) as one:
        yield one


@pytest.fixture
def pool(server):
    """The default pool below /azure, with an identifier nobody has used."""
    with Pool(server) as one:
        yield one


@pytest.fixture(params=["short", "arm"])
def either(request, server):
    """The same pool by both prefixes."""
    prefix = {"short": "/azure/pools/default",
              "arm": "/subscriptions/0000-1/resourceGroups/my-group/sessionPools/default"}[request.param]
    with Pool(server, prefix) as one:
        yield one
