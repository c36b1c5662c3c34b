"""Servers that share a PostgreSQL and a bucket of the tests' own."""

import pytest

from support import s3
from support.postgres import Postgres


@pytest.fixture(scope="session")
def postgres():
    with Postgres() as one:
        yield one


@pytest.fixture(scope="session")
def blobs():
    with s3.S3() as one:
        yield one
