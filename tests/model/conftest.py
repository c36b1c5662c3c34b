import pytest
from driver import HELLO, TOOLS, drive
from support.model_server import ModelServer


@pytest.fixture(scope="session")
def server():
    with ModelServer() as own:
        yield own


@pytest.fixture(params=["openai", "anthropic"])
def api(request):
    return request.param


@pytest.fixture
def ask():
    """Asks a desk, or a URL; what is not given is as most tests want it."""

    def run(desk, api, ask=None, model=None, env=None, **more):
        url = desk if isinstance(desk, str) else getattr(desk, api)
        document = {
            "models": [{"label": "fast", "api": api, "url": url, "name": "big-1",
                        "key": "sk-secret-1234", "timeout_ms": 20000, **(model or {})}],
            "ask": {"messages": HELLO, "tools": TOOLS, **(ask or {})}, **more}
        return drive(document, env)

    return run
