import pytest

from support.mcp import Legacy, Modern


@pytest.fixture
def legacy(server):
    """A client of the legacy era that has been let in."""
    with Legacy(server) as one:
        yield one


@pytest.fixture
def modern(server):
    return Modern(server)


@pytest.fixture(params=["legacy", "modern"])
def either(request):
    """One test, a client of each era."""
    return request.getfixturevalue(request.param)
