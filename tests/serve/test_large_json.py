"""JSON that is small as text and large in memory: refused before it is parsed, in every door, and what
a large request took goes back to the system."""

import json

import pytest

from support import retort
from support.server import Server, together
from support.stdio import Local

pytestmark = pytest.mark.once

MANY = b"[" + b"{}," * 350_000 + b"{}]"  # 1 MB, 90 MB when parsed
WIDE = b'{"x": ' + MANY + b"}"
ROUTES = {
    "rest": ("/v1/execute", b'{"code": "1", "metadata": ' + WIDE + b"}", 413),
    "azure": ("/azure/pools/default/executions?api-version=2025-10-02-preview&identifier=abcd", WIDE, 400),
    "azure mcp": ("/azure/pools/default/mcp", MANY, 400),
    "anthropic": ("/anthropic/v1/messages", WIDE, 400),
    "anthropic tokens": ("/anthropic/v1/messages/count_tokens", WIDE, 400),
    "ubik": ("/ubik/api/v1/tools/code_execution/execute", WIDE, 422),
    "prisme": ("/prisme/execute_python", b'{"code": "return 1", "args": ' + WIDE + b"}", 413),
    "qwen batch": ("/qwen/python_executor/batch", b'{"code": ["1"], "files": ' + MANY + b"}", 413),
    "mcp": ("/mcp", b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": ' + WIDE + b"}", 400),
    "mcp qwen": ("/mcp/qwen", MANY, 400),
}


def memory(pid, what):
    return int(retort.field(pid, what)[0])  # kB


@pytest.mark.parametrize("door", ROUTES)
def test_too_many_values_are_refused_before_they_are_parsed(server, client, door):
    path, body, status = ROUTES[door]
    before = memory(server.pid, "VmHWM")
    answer = client.request("POST", path, body=body, headers={"Content-Type": "application/json"})
    assert answer.status == status and b"250000 values" in answer.body, answer
    assert memory(server.pid, "VmHWM") - before < 40 << 10


def test_json_as_people_write_it_has_the_same_limit(server, client):
    """qwen reads what is no JSON as code: it is an error of Python's then."""
    before = memory(server.pid, "VmHWM")
    client.request("POST", "/qwen/code_interpreter", body=b"{'code': 1, 'x': " + MANY + b"}",
                   headers={"Content-Type": "application/json"}).expect(200)
    assert memory(server.pid, "VmHWM") - before < 80 << 10


def test_as_many_as_may_be_are_taken(client):
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": [' + b"1," * 240_000 + b"1]}}"
    answer = client.request("POST", "/mcp/qwen", body=body, headers={"Content-Type": "application/json"})
    assert b"250000" not in answer.body, answer


def test_memory_of_large_requests_goes_back(server, client):
    body = b'{"code": "1", "metadata": {"x": [' + b"{}," * 120_000 + b"{}]}}"
    before = server.resident()
    for _ in range(3):
        client.request("POST", "/v1/execute", body=body, headers={"Content-Type": "application/json"})
    retort.wait_until(lambda: server.resident() - before < 16 << 10, "the memory is given back")


def test_memory_of_many_at_once_goes_back():
    """Each worker that reads one has a heap of its own, and a very large block that was freed must not be a
    reason to keep the ends of all of these heaps."""
    body = b'{"code": "1", "metadata": {"x": [' + b"{}," * 120_000 + b"{}]}}"
    kind = {"Content-Type": "application/json"}
    with Server() as server, server.client() as client:
        client.post("/v1/execute", {"code": "1"}).expect(200)
        before = server.resident()
        client.request("POST", "/v1/execute", body=b'{"code": "' + b"#" * (15 << 20) + b'"}', headers=kind)
        for _ in range(4):
            together(*[lambda: server.client().request("POST", "/v1/execute", body=body, headers=kind)] * 8)
        retort.wait_until(lambda: server.resident() - before < 24 << 10, "the memory is given back")


def test_over_a_pipe():
    with Local() as client:
        client.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": ' + WIDE + b"}\n")
        client.wait(client.errors, "a refusal")
        assert "250000 values" in json.dumps(client.errors())
