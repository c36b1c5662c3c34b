"""The links that doors give out begin with public-url, and with the Host of the request where that is not set or empty."""

import pytest
from support.mcp import Modern, text_of
from support.retort import wait_until
from support.script import finish, plan, python, script
from support.server import Server

SUB = "/subscriptions/0000-1"
PLOT = "plt.plot([1]); plt.show()"
STORY = script(plan(), python("print(6 * 7)"), finish("42"))
POOL = {"properties": {"containerType": "PythonLTS", "poolManagementType": "Dynamic",
                       "scaleConfiguration": {"maxConcurrentSessions": 1, "readySessionInstances": 0}}}


@pytest.fixture(scope="module", params=["https://code.example/retort/", "", None], ids=["set", "empty", "not-set"])
def house(request):
    """A server, and what its links begin with."""
    config = "[server]\n" if request.param is None else f"[server]\npublic-url = {request.param}\n"
    with Server("--model-script", "-", config=config) as server, server.client() as client:
        yield server, client, (request.param or f"http://localhost:{server.port}").rstrip("/")


def qwen(server, client):
    return client.post("/qwen/code_interpreter", {"code": PLOT}).expect(200).text.partition("](")[2]


def qwen_over_mcp(server, client):
    return text_of(Modern(server, path="/qwen/mcp").call("code_interpreter", code=PLOT)).partition("](")[2]


def pool(server, client):
    return client.get("/azure/pools/default").expect(200).json["properties"]["poolManagementEndpoint"]


def pool_over_mcp(server, client):
    return client.get("/azure/pools/default").expect(200).json["properties"]["mcpServerSettings"]["mcpServerEndpoint"]


def azure_execution(server, client):
    return client.post("/azure/pools/default/executions?identifier=links", {"code": "1"}).headers["operation-location"]


def azure_operation(server, client):
    path = f"{SUB}/resourceGroups/links/providers/Microsoft.App/sessionPools/links"
    made = client.request("PUT", path, POOL).expect(201)
    client.request("DELETE", path).expect(204)
    return made.headers["azure-asyncoperation"]


def ubik(server, client):
    order = {"user_id": "ann@example.com", "inputs": {"request": STORY}}
    return client.post("/ubik/api/v1/tools/code_execution/execute", order).expect(202).json["details_url"]


def anthropic_batch(server, client):
    """Its results_url, which is there when it has ended."""
    asked = {"model": "scripted", "max_tokens": 9, "messages": [{"role": "user", "content": script([{"text": "so"}])}]}
    path = "/anthropic/v1/messages/batches"
    batch = client.post(path, {"requests": [{"custom_id": "a", "params": asked}]}).expect(200).json["id"]
    wait_until(lambda: client.get(f"{path}/{batch}").json["results_url"], "the end of the batch")
    return client.get(f"{path}/{batch}").json["results_url"]


@pytest.mark.parametrize("link", [qwen, qwen_over_mcp, pool, pool_over_mcp, azure_execution, azure_operation, ubik, anthropic_batch],
                         ids=lambda f: f.__name__)
def test_links(house, link):
    server, client, begin = house
    given = link(server, client)
    assert given.startswith(begin + "/") and not given.startswith(begin + "//"), given
