"""A GET makes nothing and wakes nothing, whatever its route: a page of any site can have a browser send
one. The routes are those of the tables in the sources."""

import json
import re
from pathlib import Path

import pytest

from support import retort
from support.server import Server

pytestmark = pytest.mark.once

DOORS = Path(retort.REPO) / "src/doors"
FLAGS = ["--model-script", "-", "--idle-timeout", "1"]
TABLES = {  # what a row of a GET looks like, and what stands before its path
    "rest/routes.c": (r'\{HTTP_GET, "([^"]+)"', ""),
    "operator/operator.c": (r'\.method = HTTP_GET,\s*\.path = "([^"]+)"', ""),
    "console/door.c": (r'\.method = HTTP_GET,\s*\.path = "([^"]+)"', ""),
    "qwen/door.c": (r'\.method = HTTP_GET, \.path = "([^"]+)"', ""),
    "prisme/door.c": (r'\.method = HTTP_GET, \.path = "([^"]+)"', ""),
    "mcp/http.c": (r'\.method = HTTP_GET, \.path = "([^"]+)"', ""),
    "anthropic/door.c": (r'ROUTE\(GET,\s*"([^"]*)"', "/anthropic/v1/"),
    "ubik/door.c": (r'(?:GET|STREAM)\("([^"]+)"', "/ubik/api/v1"),
    "azure/routes.c": (r'\{HTTP_GET,\s*"([^"]*)"', "/azure/pools/default/"),
}
# Streams that last: their first byte will do.
LASTING = ("/stream", "/mcp", "/sse", "/v1/events")


def rows():
    for name, (row, prefix) in TABLES.items():
        found = re.findall(row, (DOORS / name).read_text())
        assert found, name
        for path in found:
            yield prefix + path


def test_every_table_is_here():
    told = {str(p.relative_to(DOORS)) for p in DOORS.rglob("*.c")
            if re.search(r"HTTP_GET\b|\bGET[(,]", p.read_text()) and p.parent.name != "http"}
    assert told == set(TABLES)


def state(client):
    counters = [line for line in client.get("/metrics").expect(200).text.splitlines()
                if re.match(r"retort_(sessions_created|sessions_resumed|executions)_total", line)]
    lists = [client.get(path).expect(200).json for path in
             ("/v1/sessions", "/v1/executions", "/v1/files", "/v1/approvals")]
    stable = json.dumps(lists)
    return counters, re.sub(r'"(last_used_at|expires_at|sleeps_at|state|queued)": ("[^"]*"|null|\d+)', "", stable)


def paths(session, name):
    for path in rows():
        path = re.sub(r"\{\w*\.\.\.\}|\*\*", "x.txt", path)
        for one in (session, name, "nobody"):
            yield re.sub(r"\{\w+\}", one, path) + ("?identifier=" + one if "/azure" in path else "")


def test_no_get_makes_or_wakes_anything():
    with Server(*FLAGS) as server, server.client() as client:
        made = client.post("/v1/sessions", {"name": "mine-1"}).expect(201).json
        client.put(f"/v1/sessions/{made['id']}/files/x.txt", b"x").expect(201)
        client.post("/azure/pools/default/python/execute?identifier=mine-1", {"pythonCode": "1"})
        path = "/v1/sessions/" + made["id"]
        retort.wait_until(lambda: client.get(path).json["state"] == "asleep", "sleep")
        before = state(client)
        asked = sorted(set(paths(made["id"], "mine-1")))
        assert len(asked) > 80
        for path in asked:
            for method in ("GET", "HEAD"):
                with server.client() as one:
                    response = one.begin(method, path)
                    if not path.split("?")[0].endswith(LASTING):
                        response.read()
                    assert response.status < 500, (path, response.status)
        assert state(client) == before


CROSS = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}


def test_an_image_of_another_site_is_refused_where_no_key_is_needed(client):
    client.get("/v1/sessions", headers=CROSS).refused(403)
    client.get("/v1/sessions", headers={**CROSS, "Sec-Fetch-Site": "same-origin"}).expect(200)
    client.get("/", headers={**CROSS, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"})


# What may be seen by anybody: it tells nothing and makes nothing.
OPEN = ("/health", "/ready", "/", "/console/", "/.well-known/", "/v1/openapi.json", "/ubik/api/v1/health",
        "/qwen/static/", "/metrics")


def test_an_image_of_another_site_gets_nothing_by_any_route(server, client):
    asked = sorted(set(paths("sess_x", "nobody")))
    assert len(asked) > 80
    for path in asked:
        answer = client.get(path, headers=CROSS)
        assert answer.status == 403 or path in OPEN or path.startswith(tuple(o for o in OPEN if o != "/")), (path, answer)


# --- whom a proxy lets in ---

FORWARDED = [{"X-Forwarded-For": "203.0.113.7"}, {"Forwarded": "for=203.0.113.7"}, {"Via": "1.1 proxy"},
             {"X-Real-IP": "203.0.113.7"}, {"X-Forwarded-Host": "retort.example"}, {"x-forwarded-proto": "https"}]


@pytest.mark.parametrize("headers", FORWARDED, ids=lambda h: list(h)[0])
def test_what_a_proxy_forwards_is_not_from_this_machine(client, headers):
    client.get("/metrics").expect(200)
    for path in ("/metrics", "/v1/sessions", "/v1/keys", "/azure/pools/default/session?identifier=abcd"):
        assert client.get(path, headers=headers).status == 401, path
    client.post("/v1/execute", {"code": "1"}, headers=headers).refused(401)
    client.get("/health", headers=headers).expect(200)


def test_a_host_that_the_operator_named_may_come_through_a_proxy():
    with Server("--hosts", "retort.example") as server, server.client() as client:
        headers = {"X-Forwarded-For": "203.0.113.7", "Host": "retort.example"}
        client.get("/v1/sessions", headers=headers).expect(200)
        client.get("/v1/sessions", headers={**headers, "Host": "localhost"}).refused(401)
        secret = client.post("/v1/keys", {"tenant": "ops", "admin": True}).expect(201).json["secret"]
        client.get("/v1/sessions", headers=headers).refused(401)
        client.get("/metrics").expect(200)
        client.get("/metrics", headers={**headers, "x-api-key": secret}).expect(200)
