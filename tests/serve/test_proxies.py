"""A server behind nginx and HAProxy, with the settings of deploy/proxy as they are."""

import os

import pytest

from support.balancer import Balancer, haproxy, nginx
from support.server import Client, Server, free_port

pytestmark = pytest.mark.once


@pytest.fixture(scope="module", params=[nginx, haproxy], ids=lambda f: f.__name__)
def proxied(request):
    with Server() as server, Balancer(request.param, [server.listen], f"127.0.0.1:{free_port()}") as front:
        front.wait_ready()
        yield front


@pytest.fixture
def client(proxied):
    with Client(proxied) as one:
        yield one


@pytest.mark.parametrize("accept", ["text/event-stream", "application/x-ndjson"])
def test_output_comes_as_it_is_printed(client, proxied, accept):
    """And where the proxy tells of a reader that goes, the code ends."""
    session = client.session()
    with Client(proxied, headers={"Accept": accept}) as reader:
        stream = reader.stream(session.path + "/execute", {"code": "print('one', flush=True)\nimport time\n"
                                                                  "time.sleep(600)"})
        stream.until_said("one")
        running = client.all(f"/v1/executions?session={session.id}")
        assert [e["status"] for e in running] == ["running"]
        stream.close()
    if proxied.tells:
        assert session.wait(running[0])["status"] != "ok"
    client.delete(session.path)


def test_a_large_body_both_ways(client):
    session, data = client.session(), os.urandom(5_000_000)
    session.put("big", data)
    assert session.read("big") == data
    client.delete(session.path)


def test_refusals_come_through(client):
    assert client.get("/v1/sessions/sess_none").status == 404
    assert client.post("/v1/execute", {"code": 1}).status == 400
