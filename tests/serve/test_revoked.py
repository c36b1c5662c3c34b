"""A stream ends with the key that opened it, in every door."""

import contextlib
import http.client
import json

import pytest

from support.mcp import LEGACY, MODERN, VERSION_KEY, CAPABILITIES_KEY
from support.script import python, script
from support.server import Server

pytestmark = pytest.mark.once

FOREVER = "print('begun', flush=True)\nimport time\nwhile True: time.sleep(0.1)"
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def house():
    with Server("--model-script", "-", "--timeout", "3600") as server, server.client() as first:
        admin = first.post("/v1/keys", {"tenant": "ops", "admin": True}).expect(201).json["secret"]
        with server.client(admin) as client:
            server.admin = client
            yield server


def rest(format):
    def begin(client):
        return client.begin("POST", "/v1/execute", {"code": FOREVER, "stream": format})
    return begin


def ubik(client):
    path = "/ubik/api/v1/tools/code_execution/execute"
    made = client.post(path, {"inputs": {"request": script(python(FOREVER))}}).expect(202).json
    return client.begin("GET", f"/ubik/api/v1/tool-executions/{made['execution_id']}/stream")


def ubik_token(client):
    """A token is as good as the key that it was made with."""
    answer = client.post("/ubik/api/v1/auth/token", {"external_user_id": "ann"}).expect(200)
    client.headers["Authorization"] = "Bearer " + answer.json["access_token"]
    return ubik(client)


def ubik_agent(client):
    made = client.post("/ubik/api/v1/agent-sessions", {}).expect(201).json
    path = "/ubik/api/v1/agent-sessions/" + made["id"]
    client.post(path + "/messages", {"content": script(python(FOREVER))}).expect(202)
    return client.begin("GET", path + "/stream")


def anthropic(client):
    turn = {"tool": {"name": "code_execution", "input": {"code": FOREVER}}}
    body = {"model": "any", "max_tokens": 1000, "stream": True,
            "tools": [{"type": "code_execution_20250522", "name": "code_execution"}],
            "messages": [{"role": "user", "content": json.dumps({"turns": [[turn]]})}]}
    return client.begin("POST", "/anthropic/v1/messages", body,
                        headers={"anthropic-version": "2023-06-01",
                                 "anthropic-beta": "code-execution-2025-05-22"})


def rpc(method, params, id=1):
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def mcp_session(client):
    hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    answer = client.post("/mcp", rpc("initialize", hello), headers=ACCEPT).expect(200)
    return {**ACCEPT, "Mcp-Session-Id": answer.headers["mcp-session-id"], "Mcp-Protocol-Version": LEGACY}


def mcp_get(client):
    return client.begin("GET", "/mcp", headers=mcp_session(client))


def mcp_call(client):
    params = {"name": "run_code", "arguments": {"code": FOREVER}, "_meta": {"progressToken": 1}}
    return client.begin("POST", "/mcp", rpc("tools/call", params, 2), headers=mcp_session(client))


def mcp_modern(client):
    params = {"name": "run_code", "arguments": {"code": FOREVER},
              "_meta": {"progressToken": 1, VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}}
    return client.begin("POST", "/mcp", rpc("tools/call", params, 2),
                        headers={**ACCEPT, "Mcp-Protocol-Version": MODERN, "Mcp-Method": "tools/call",
                                 "Mcp-Name": "run_code"})


def events(client):
    return client.begin("GET", "/v1/events")


def mcp_listen(client):
    params = {"notifications": {"toolsListChanged": True}, "_meta": {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}}
    return client.begin("POST", "/mcp", rpc("subscriptions/listen", params, 2),
                        headers={**ACCEPT, "Mcp-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen"})


def mcp_old(path):
    return lambda client: client.begin("GET", path, headers={"Accept": "text/event-stream"})


STREAMS = {"rest sse": rest("sse"), "rest lines": rest("ndjson"), "rest events": events, "ubik": ubik,
           "ubik token": ubik_token, "ubik agent": ubik_agent, "anthropic": anthropic,
           "mcp get": mcp_get, "mcp call": mcp_call, "mcp modern": mcp_modern,
           "mcp listen": mcp_listen, "mcp old": mcp_old("/mcp/sse"), "mcp old, qwen": mcp_old("/qwen/mcp/sse")}


@pytest.mark.parametrize("way", STREAMS)
def test_a_stream_ends_with_its_key(house, way):
    key = house.admin.post("/v1/keys", {"tenant": "acme"}).expect(201).json
    with house.client(key["secret"]) as client:
        response = STREAMS[way](client)
        assert response.status == 200, response.read()
        assert "stream" in response.getheader("content-type") or "ndjson" in response.getheader("content-type")
        house.admin.delete("/v1/keys/" + key["id"]).expect(204)
        with contextlib.suppress(ConnectionError, http.client.IncompleteRead):
            while response.read1(65536):  # which times out where it goes on
                pass
        client.close()
        assert client.get("/v1/sessions").status == 401

