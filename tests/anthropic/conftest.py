import sys
from pathlib import Path

import pytest

tests = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(tests), str(tests / "serve"), str(tests / "anthropic")]

from api import Api  # noqa: E402
from server import Server  # noqa: E402


@pytest.fixture(scope="session")
def server():
    """Without keys, and with scripts in place of a model."""
    with Server("--model-script", "-", "--file-size", "1M") as one:
        yield one


@pytest.fixture
def api(server):
    with Api(server) as one:
        yield one
