"""The rows of these servers are in a PostgreSQL of the tests' own. Many modules are those of tests/serve."""

import pytest

from support import server as servers
from support.postgres import Postgres

pytest.register_assert_rewrite("serve")


@pytest.fixture(scope="session")
def postgres():
    with Postgres() as one:
        yield one


@pytest.fixture(scope="session", autouse=True)
def every_server(postgres):
    servers.new_database = postgres.database
    yield
    servers.new_database = None
