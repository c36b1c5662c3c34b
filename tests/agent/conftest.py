import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "model"))

from agent import Driver  # noqa: E402
from server import ModelServer  # noqa: E402


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """One that asks nobody, for all tests that end their loops themselves."""
    d = Driver(tmp_path_factory.mktemp("agent") / "store")
    yield d
    d.close()


@pytest.fixture(scope="session")
def gated(tmp_path_factory):
    """One whose pool wants every run allowed, by the user or by an approver."""
    d = Driver(tmp_path_factory.mktemp("gated") / "store", approval="always", by="either")
    yield d
    d.close()


@pytest.fixture(scope="session")
def server():
    with ModelServer() as s:
        yield s


@pytest.fixture
def served(server, tmp_path):
    """served(turns, api=..., faults=...): a driver whose model is a desk of the server."""
    drivers = []

    def make(*turns, api="openai", faults=(), always=None, model=(), **settings):
        desk = server.desk(turns=[t if isinstance(t, list) else [t] for t in turns], faults=faults,
                           always=always, in_order=True)
        d = Driver(tmp_path / f"store{len(drivers)}", script=None, ready=1,
                   model=dict(model, api=api, url=getattr(desk, api)), **settings)
        drivers.append(d)
        return d, desk

    yield make
    for d in drivers:
        d.close()
