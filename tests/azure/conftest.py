import pytest

from azure import Pool


@pytest.fixture
def pool(server):
    """The default pool below /azure, with an identifier nobody has used."""
    with Pool(server) as one:
        yield one


@pytest.fixture(params=["short", "arm"])
def either(request, server):
    """The same pool by both prefixes."""
    prefix = {"short": "/azure/pools/default",
              "arm": "/subscriptions/0000-1/resourceGroups/my-group/sessionPools/default"}[request.param]
    with Pool(server, prefix) as one:
        yield one
