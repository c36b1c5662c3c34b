"""Published clients as their users have them, against a running server.

A test belongs to a row of the matrix by its mark, client(name, version, language, registry); most
have it from the parameter `row` (rows.py). The first test of a row installs its client; one that
cannot be had skips its tests with the reason, and fails them where CI=true. A run of the whole suite
that skipped nothing writes the matrix into docs/clients.md.
"""

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import install
import matrix
from servers import locked
from support.model_server import ModelServer

DEMANDED = os.environ.get("CI") == "true"
TEST_SECONDS = 1500  # the first test of a row waits for an installation, and that for others


def pytest_configure(config):
    config.addinivalue_line("markers", "client(name, version, language, registry): the row of docs/clients.md")


def row_of(item):
    return item.callspec.params.get("row") if hasattr(item, "callspec") else None


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.timeout(TEST_SECONDS))
        if row := row_of(item):
            item.add_marker(pytest.mark.client(row.client, row.version, row.language, row.registry))


@pytest.fixture(scope="session", autouse=True)
def installed(request):
    """{row: its installation, under way}, two at a time: by now all tests of this run are known."""
    rows = dict.fromkeys(filter(None, map(row_of, request.session.items)))
    with ThreadPoolExecutor(2) as threads:
        yield {row: threads.submit(install.install, row.registry, row.path) for row in rows}
        threads.shutdown(cancel_futures=True)


@pytest.fixture(autouse=True)
def available(request):
    """Waits for the installation of the test's client."""
    if row := row_of(request.node):
        wait(request.getfixturevalue("installed")[row].result)


def wait(installation):
    """What it returns; skips or fails the test where a client cannot be had."""
    try:
        return installation()
    except install.Unavailable as e:
        (pytest.fail if DEMANDED else pytest.skip)(str(e))


@pytest.fixture(scope="session")
def venv():
    """venv(requirements file): the folder of a virtual environment with what the file pins."""
    return lambda pins: wait(lambda: install.install("PyPI", Path(pins)))


@pytest.fixture(scope="session")
def server():
    with locked("--disk", "256M") as one:
        yield one


@pytest.fixture(scope="session")
def model():
    """The model of clients that bring their own."""
    with ModelServer() as one:
        yield one


@pytest.fixture
def place():
    """An empty folder that everybody may enter."""
    with tempfile.TemporaryDirectory(prefix="retort-clients-") as path:
        os.chmod(path, 0o755)
        yield Path(path)


@pytest.fixture(scope="session")
def walked():
    """walked(row, what, walk): what walk() returned or raised the first time, so that a client walks once for all its cases."""
    seen = {}

    def once(row, what, walk):
        if (row, what) not in seen:
            try:
                seen[row, what] = walk(), None
            except Exception as e:
                seen[row, what] = None, e
        result, error = seen[row, what]
        if error:
            raise error
        return result

    return once


# --- the matrix ---

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    for mark in item.iter_markers("client"):
        matrix.note(mark.args, item.nodeid, report)


def pytest_terminal_summary(terminalreporter, config):
    chosen = config.option.keyword or config.option.markexpr or config.getoption("lf", False)
    whole = not chosen and [Path(a).resolve() for a in config.args] == [Path(__file__).parent]
    terminalreporter.write_line(matrix.finish(whole))
