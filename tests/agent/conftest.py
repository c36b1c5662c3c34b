import pytest

from agent import Driver
from support.model_server import ModelServer


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


class Seat:
    """A driver whose loops ask one desk of the server."""

    def __init__(self, driver, label):
        self.driver, self.label = driver, label

    def start(self, request, **more):
        return self.driver.start(request, model=self.label, **more)


@pytest.fixture(scope="session")
def seats(server, tmp_path_factory):
    """One driver with a model for each desk, so that no test waits for a driver of its own."""
    desks = {}
    models = []
    for api, images, count in (("openai", False, 24), ("anthropic", False, 8), ("openai", True, 1)):
        for i in range(count):
            desk, label = server.desk(in_order=True), f"{api}-{images}-{i}"
            desks.setdefault((api, images), []).append((label, desk))
            models.append({"label": label, "api": api, "url": getattr(desk, api), "images": images})
    d = Driver(tmp_path_factory.mktemp("served") / "store", script=None, models=models)
    yield d, desks
    d.close()


@pytest.fixture
def served(seats):
    """served(*turns, api=..., faults=..., images=...): a seat, and the desk it asks."""
    def make(*turns, api="openai", faults=(), always=None, images=False):
        label, desk = seats[1][api, images].pop()
        desk.turns = [t if isinstance(t, list) else [t] for t in turns]
        desk.faults, desk.always = list(faults), always
        return Seat(seats[0], label), desk
    return make
