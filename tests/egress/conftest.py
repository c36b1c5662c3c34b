import pytest

from driver import Proxy
from support.web import Web


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
    with Web() as server:
        yield server
