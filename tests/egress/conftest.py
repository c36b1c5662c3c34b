import sys
from pathlib import Path

import pytest
from driver import Proxy

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fetch"))

from server import Server  # noqa: E402


@pytest.fixture
def proxy():
    made = []

    def start(hosts, **options):
        made.append(Proxy(hosts, **options))
        return made[-1]

    yield start
    for one in made:
        one.close()


@pytest.fixture(scope="session")
def web():
    with Server() as server:
        yield server
