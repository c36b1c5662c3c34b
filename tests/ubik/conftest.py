import pytest

from account import House


@pytest.fixture(scope="session")
def house():
    """A server with a key, whose model plays the script that a request is."""
    with House() as one:
        yield one


@pytest.fixture
def ubik(house):
    """The account itself: its key, and no end user."""
    with house.account() as one:
        yield one
