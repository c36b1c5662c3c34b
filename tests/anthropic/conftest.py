import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

tests = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(tests), str(tests / "serve"), str(tests / "anthropic")]

import retort  # noqa: E402
import silence  # noqa: E402
from api import Api  # noqa: E402
from server import Server  # noqa: E402
from talk import Talk  # noqa: E402


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
    with Server("--model-script", "-", "--anthropic-timeout", "2", "--anthropic-cell-timeout", "2",
                "--anthropic-answer-wait", "1.5", "--anthropic-turns", "8", "--artifact-size", "1M") as one:
        one.key = one.keys("create", "--tenant", "acme", "--quiet").strip()
        one.other_key = one.keys("create", "--tenant", "other", "--quiet").strip()
        with Talk(one) as nobody:  # keys are read every few seconds; until then nobody needs one
            retort.wait_until(lambda: nobody.get("/v1/files").status == 401, "the keys", 20)
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
