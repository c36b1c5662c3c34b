from concurrent.futures import ThreadPoolExecutor

import pytest

import silence
from api import Api
from support import retort
from support.server import Server
from talk import Talk


@pytest.fixture(scope="session")
def server():
    """Without keys, and with scripts in place of a model."""
    with Server("--model-script", "-", "--file-size", "1M") as one:
        yield one


@pytest.fixture
def api(server):
    with Api(server) as one:
        yield one


@pytest.fixture(scope="session")
def house():
    """With keys of two tenants, and little patience."""
    with Server("--model-script", "-", "--anthropic-timeout", "3", "--anthropic-cell-timeout", "3",
                "--anthropic-answer-wait", "3", "--anthropic-turns", "8", "--artifact-size", "1M") as one:
        one.key = one.keys("create", "--tenant", "acme", "--quiet").strip()
        one.other_key = one.keys("create", "--tenant", "other", "--quiet").strip()
        with Talk(one) as nobody:  # keys are read every few seconds; until then nobody needs one
            retort.wait_until(lambda: nobody.get("/v1/files").status == 401, "the keys")
        with Talk(one, one.other_key) as last:  # they may have been read between the two
            retort.wait_until(lambda: last.get("/v1/files").status == 200, "the other key")
        yield one


@pytest.fixture(scope="session")
def silent(house, server):
    with ThreadPoolExecutor() as threads:
        yield silence.begin(threads, house, server)


@pytest.fixture(scope="session", autouse=True)
def early(request):
    """What takes long begins first, if a test wants it."""
    if any("silent" in item.fixturenames for item in request.session.items):
        request.getfixturevalue("silent")


@pytest.fixture
def talk(house):
    with Talk(house, house.key) as one:
        yield one


@pytest.fixture
def stranger(house):
    """Of another tenant."""
    with Talk(house, house.other_key) as one:
        yield one
