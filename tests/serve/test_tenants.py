"""What is another tenant's does not exist: every route, tool and value that takes an id, against everything that
another tenant has.

The routes are those of the program (build/retort-routes). Each is asked twice with a stranger's key: once with an
id that is there, once with an id of the same shape that never was. The answers are the same, and nothing of the
owner's has changed. A parameter of a route that this file does not know fails the test.
"""

import json
import re

import pytest

from support import retort
from support.mcp import Legacy, Modern
from support.script import python, script
from support.server import Answer, Server, form

pytestmark = pytest.mark.once

CONFIG = "[pool default]\n[pool asks]\napproval = always_ask\napproval-by = approver\n"
FLAGS = ["--model-script", "-", "--timeout", "3600", "--idle-timeout", "3600"]
FOREVER = "import time\nwhile True: time.sleep(0.1)"
UBIK, ANTHROPIC = "/ubik/api/v1", "/anthropic/v1"
CLAUDE = {"anthropic-version": "2023-06-01", "anthropic-beta": "code-execution-2025-05-22,files-api-2025-04-14"}
ACCEPT = {"Accept": "application/json, text/event-stream"}

# Parameters of routes that name what all tenants share, or what each tenant names for itself.
SHARED = {"pool": "default", "tool": "code_execution", "model": "any", "s": "sub", "g": "group", "e": "env",
          "path...": "x.txt", "file...": "x.js", "agent": "some-agent", "version": "1759178010641129",
          "channel": "chan_1k0n4yex8svwpcspsa4s5h35w6v1"}
NAMED = {"workspace": "shop-1", "function": "fun-1", "d": "main-1", "name": "x.png"}
OPAQUE = {"session", "execution", "file", "approval", "key", "container", "batch", "document", "sandbox", "task", "id", "skill"}
# What a route needs beside the id, to get as far as looking it up. The first that fits.
BODIES = [
    (r"POST /v1/sessions/[^/]+/execute", {"code": "1"}),
    (r"PATCH /v1/sessions/[^/]+$", {"name": "taken"}),
    (r"PATCH /v1/sessions/[^/]+/files/", {"path": "moved.txt"}),
    (r"POST /v1/approvals/", {"decision": "approve"}),
    (r"POST .*/messages$", {"content": "hello"}),
    (r"POST .*/tasks/[^/]+/resolve", {"approved": True}),
    (r"POST .*/tools/[^/]+/execute", {"inputs": {"request": "hello"}}),
    (r"(POST|PUT|PATCH) ", {}),
]
FORMS = re.compile(r"POST (/v1/sessions/[^/]+/files$|/ubik/.*/(upload|provide-input)$|.*/skills/[^/]+/versions$)")


def fake(id):
    """Of the same shape and the same letters, and never there."""
    turned = id[:-6] + id[-6:][::-1]
    assert turned != id
    return turned


class House:
    """A server with an owner, who has one of everything, and a stranger of another tenant."""

    def __init__(self, server):
        self.server = server
        with server.client() as first:
            self.admin = server.client(first.post("/v1/keys", {"tenant": "ops", "admin": True}).json["secret"])
        made = self.admin.post("/v1/keys", {"tenant": "acme"}).expect(201).json
        self.owner, self.owner_key = server.client(made["secret"]), made["secret"]
        self.key = made["id"]
        other = self.admin.post("/v1/keys", {"tenant": "elsewhere", "approver": True}).expect(201).json
        self.stranger_key = other["secret"]
        self.ids = self.furnish()

    def stranger(self):
        return self.server.client(self.stranger_key)

    def furnish(self):
        o = self.owner
        session = o.post("/v1/sessions", {"name": "mine-1"}).expect(201).json["id"]
        o.put(f"/v1/sessions/{session}/files/x.txt", b"SECRET").expect(201)
        ran = o.post(f"/v1/sessions/{session}/execute", {"code": "print('SECRET')"}).expect(200).json["id"]
        runs = o.post("/v1/execute", {"code": FOREVER, "background": True}).expect(202).json
        file = o.form("/v1/files", ("file", "x.txt", b"SECRET")).expect(201).json["id"]
        o.post("/v1/execute", {"code": "'SECRET'", "pool": "asks"}).refused(403, type="approval_required")
        approval = o.get("/v1/approvals").expect(200).json["data"][0]["id"]
        o.post("/prisme/v2/functions/shop-1", {"functions": {"fun-1": {"code": "return 'SECRET'", "language": "python"}}})
        o.post("/azure/pools/default/python/execute?identifier=mine-1", {"pythonCode": "1"}).expect(200)
        azure = o.post("/azure/pools/default/executions?identifier=mine-1&api-version=2025-10-02-preview",
                       {"codeInputType": "Inline", "executionType": "Asynchronous", "code": "'SECRET'"})
        o.form("/qwen/files?instance=mine-1", ("file", "x.txt", b"SECRET")).expect(200)
        return {"session": session, "execution": ran, "running": runs["id"], "file": file, "approval": approval,
                "key": self.key, "operation": azure.headers["operation-id"], **self.furnish_ubik(),
                **self.furnish_anthropic(), **self.furnish_mcp(session)}

    def furnish_ubik(self):
        o = self.owner
        inputs = {"inputs": {"request": script(python(FOREVER))}}
        execution = o.post(UBIK + "/tools/code_execution/execute", inputs).expect(202).json["execution_id"]
        document = o.form(UBIK + "/documents", ("file", "x.txt", b"SECRET")).expect(200).json
        talk = o.post(UBIK + "/agent-sessions", {}).expect(201).json["id"]
        o.post(f"{UBIK}/agent-sessions/{talk}/messages", {"content": script(python("1"))}).expect(202)
        retort.wait_until(lambda: o.get(UBIK + "/sandboxes").json["items"], "a sandbox", retort.SECONDS)
        return {"ubik execution": execution, "document": document[0]["id"],
                "agent session": talk, "sandbox": o.get(UBIK + "/sandboxes").json["items"][0]["sandbox_id"]}

    def furnish_anthropic(self):
        o = self.owner
        turns = [[{"tool": {"name": "code_execution", "input": {"code": "print('SECRET')"}}}], [{"text": "done"}]]
        body = {"model": "any", "max_tokens": 100,
                "tools": [{"type": "code_execution_20250522", "name": "code_execution"}],
                "messages": [{"role": "user", "content": json.dumps({"turns": turns})}]}
        message = o.post(ANTHROPIC + "/messages", body, headers=CLAUDE).expect(200).json
        batch = o.post(ANTHROPIC + "/messages/batches", {"requests": [{"custom_id": "a", "params": body}]},
                       headers=CLAUDE).expect(200).json["id"]
        retort.wait_until(lambda: o.get(f"{ANTHROPIC}/messages/batches/{batch}", headers=CLAUDE)
                          .json["processing_status"] == "ended", "the batch", retort.SECONDS)
        sent, kind = form(("file", "x.txt", b"SECRET"))
        file = o.request("POST", ANTHROPIC + "/files", body=sent, headers={**CLAUDE, "Content-Type": kind})
        return {"container": message["container"]["id"], "batch": batch, "claude file": file.expect(200).json["id"]}

    def furnish_mcp(self, session):
        self.legacy = Legacy(self.server, key=self.owner_key).initialize()
        self.modern = Modern(self.server, key=self.owner_key,
                             capabilities={"extensions": {"io.modelcontextprotocol/tasks": {}}})
        task = self.modern.ask("tools/call", {"name": "run_code", "arguments": {"code": FOREVER}}).response["result"]
        return {"mcp session": self.legacy.session, "task": task["taskId"]}

    def state(self):
        """Everything the owner sees of what it has."""
        o, i = self.owner, self.ids
        paths = ["/v1/sessions", "/v1/executions", "/v1/files", "/v1/approvals?state=pending",
                 f"/v1/sessions/{i['session']}/files", f"/v1/sessions/{i['session']}/files/x.txt",
                 f"/v1/executions/{i['execution']}", f"/v1/executions/{i['running']}", "/prisme/v2/functions/shop-1",
                 "/azure/pools/default/files?identifier=mine-1", "/azure/pools/default/session?identifier=mine-1",
                 "/qwen/files/x.txt?instance=mine-1", f"{UBIK}/tool-executions/{i['ubik execution']}",
                 UBIK + "/documents", UBIK + "/agent-sessions", UBIK + "/sandboxes",
                 f"{UBIK}/agent-sessions/{i['agent session']}/messages", ANTHROPIC + "/files",
                 ANTHROPIC + "/containers", ANTHROPIC + "/messages/batches"]
        seen = {path: o.get(path, headers=CLAUDE if path.startswith(ANTHROPIC) else None).expect(200).text
                for path in paths}
        seen["keys"] = [k["id"] for k in self.admin.get("/v1/keys").json["data"] if k["tenant"] == "acme"]
        seen["mcp"] = len(self.legacy.tools())
        seen["task"] = self.modern.request("tasks/get", {"taskId": i["task"]})["status"]
        # What goes on by itself: code that runs, and sandboxes that go to sleep when others need the room.
        moves = r'"(\w*_ms|memory_bytes|lastUpdatedAt|execution_time\w*|progress|sleeps_at|state|expireAt)": ?[^,}]+'
        return {path: re.sub(moves, "", text) if isinstance(text, str) and path != "/v1/approvals?state=pending" else text
                for path, text in seen.items()}


@pytest.fixture(scope="module")
def house():
    with Server(*FLAGS, config=CONFIG, program=str(retort.BUILD / "retort-routes")) as server:
        made = House(server)
        # What has just been begun settles first: its record, its files, its sandboxes.
        last = [None]
        retort.wait_until(lambda: last[0] == (now := made.state()) or last.__setitem__(0, now), "rest", retort.SECONDS)
        yield made
        made.admin.delete("/v1/keys/" + made.key)


def routes(server):
    """Those that take a key. Azure's one route has a table of its own, which is printed, too."""
    for line in server.log(10**7).splitlines():
        if line.startswith("route "):
            _, door, method, path, state, _ = line.split()
            if state == "closed" and path not in ("/azure/{path...}", "/subscriptions/{path...}"):
                yield door, method, path


def plain(answer, id):
    """An answer without what differs between any two."""
    text = answer.body.decode("utf-8", "replace").replace(id, "ID")
    text = re.sub(r"[a-z]+_[a-z0-9]{28}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-z]{21}", "ANOTHER", text)
    text = re.sub(r'"etag":"\d+"', "", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(Z|\+00:00)", "TIME", text)
    headers = sorted(set(answer.headers) - {"date", "content-length", "connection", "x-request-id", "request-id"})
    return answer.status, headers, text


def send(client, method, path, headers=None, body=None):
    """A stream that opens has no end to wait for: its status is the answer."""
    kind = {}
    if body is None and FORMS.match(f"{method} {path}"):
        body, content = form(("input_data_json", None, b'{"approve": true}') if path.endswith("-input") else
                             ("file", "x.txt", b"STRANGER"))
        kind = {"Content-Type": content}
    elif body is None and method == "PUT" and "/files/" in path:
        body = b"STRANGER"
    elif body is None and method in ("POST", "PUT", "PATCH"):
        body = json.dumps(next(b for like, b in BODIES if re.match(like, f"{method} {path}"))).encode()
        kind = {"Content-Type": "application/json"}
    elif not isinstance(body, (bytes, type(None))):
        body, kind = json.dumps(body).encode(), {"Content-Type": "application/json"}
    response = client.begin(method, path, body=body, headers={**ACCEPT, **kind, **(headers or {})})
    named = {k.lower(): v for k, v in response.getheaders()}
    if "event-stream" in named.get("content-type", "") and "/mcp" not in path:
        client.close()
        return Answer(response.status, named, b"")
    answer = Answer(response.status, named, response.read())
    if response.will_close:
        client.close()
    return answer


def attacks(house):
    """method, path with {} for what is the owner's, and what that is."""
    everything = sorted(set(house.ids.values()))
    for door, method, path in routes(house.server):
        path = path.replace("/**", "/{id}")
        names = re.findall(r"\{([^}]+)\}", path)
        for name in names:
            assert name in SHARED or name in NAMED or name in OPAQUE, (path, name)
        query = {"azure": "?identifier=", "qwen": "?instance="}.get(door)
        for name in names + ["query"] * (query is not None):
            def filled(one):
                return "{}" if one == name else {**SHARED, **NAMED}.get(one) or house.ids["execution"]

            target = re.sub(r"\{([^}]+)\}", lambda found: filled(found[1]), path)
            target += query + ("{}" if name == "query" else "mine-1") if query else ""
            for id in everything if name in OPAQUE else [] if name in SHARED else [NAMED.get(name, "mine-1")]:
                yield method, target, id, name in OPAQUE


def test_no_route_tells_or_changes_what_is_another_tenants(house):
    before, count, wrong = house.state(), 0, []
    with house.stranger() as client:
        for method, path, id, opaque in attacks(house):
            headers = CLAUDE if path.startswith(ANTHROPIC) else None
            real = send(client, method, path.replace("{}", id), headers)
            never = send(client, method, path.replace("{}", fake(id)), headers)
            assert b"SECRET" not in real.body, (method, path, id)
            if plain(real, id) != plain(never, fake(id)):
                wrong.append((method, path, id, plain(real, id), plain(never, fake(id))))
            elif opaque and real.status not in (403, 404) and "OperationStatuses" not in path:
                wrong.append((method, path, id, plain(real, id)))
            count += 1
    assert not wrong, "\n".join(map(repr, wrong))
    assert count >= 1000
    assert house.state() == before


# --- ids that are no part of a path ---

def json_of(method, path, body=None, headers=None):
    return lambda house, client, id: send(client, method, path.replace("{}", id), headers, fill(body, id))


def fill(value, id):
    if isinstance(value, dict):
        return {k: fill(v, id) for k, v in value.items()}
    if isinstance(value, list):
        return [fill(v, id) for v in value]
    return value.replace("{}", id) if isinstance(value, str) else value


def message(**more):
    return {"model": "any", "max_tokens": 100, "tools": [{"type": "code_execution_20250522", "name": "code_execution"}],
            "messages": [{"role": "user", "content": json.dumps({"turns": [[{"text": "done"}]]})}], **more}


def with_upload(kind, source):
    return message(messages=[{"role": "user", "content": [
        {"type": "text", "text": json.dumps({"turns": [[{"text": "done"}]]})}, {"type": kind, **source}]}])


def ubik(**inputs):
    """What comes of it: whether a document is there is found out when the execution begins."""
    def run(house, client, id):
        body = {"inputs": {"request": "x", **fill(inputs, id)}}
        made = client.post(UBIK + "/tools/code_execution/execute", body)
        if made.status != 202:
            return made
        path = f"{UBIK}/tool-executions/{made.json['execution_id']}"
        retort.wait_until(lambda: client.get(path).json["status"] in ("completed", "failed"), "its end", retort.SECONDS)
        assert client.get(path).json["status"] == "failed"
        return Answer(202, {}, json.dumps(client.get(path).json["error"]).encode())
    return run


def tool(name, **arguments):
    """A call over MCP with the stranger's own session."""
    def run(house, client, id):
        with Legacy(house.server, key=house.stranger_key) as peer:
            reply = peer.ask("tools/call", {"name": name, "arguments": fill(arguments, id)})
        told = json.dumps(reply.response.get("result") or reply.response["error"])
        assert '"isError": true' in told or '"code"' in told, told
        return Answer(reply.status, {}, told.encode())
    return run


def modern(method, **params):
    def run(house, client, id):
        peer = Modern(house.server, key=house.stranger_key,
                      capabilities={"extensions": {"io.modelcontextprotocol/tasks": {}}})
        reply = peer.ask(method, fill(params, id))
        return Answer(reply.status, {}, json.dumps(reply.response["error"]).encode())
    return run


def in_session_of(verb, **message):
    """The owner's session of MCP, with the stranger's key."""
    def run(house, client, id):
        body = {"jsonrpc": "2.0", "id": 1, "params": {}, **message} if verb == "POST" else None
        return send(client, verb, "/mcp", {"Mcp-Session-Id": id, "MCP-Protocol-Version": "2025-11-25"}, body)
    return run


LISTS = ["/v1/sessions?after={}", "/v1/executions?after={}", "/v1/files?after={}", "/v1/approvals?after={}",
         "/v1/executions?session={}", ANTHROPIC + "/files?after_id={}", ANTHROPIC + "/files?before_id={}",
         ANTHROPIC + "/files?ids[]={}", ANTHROPIC + "/files?scope_id={}", ANTHROPIC + "/messages/batches?after_id={}",
         ANTHROPIC + "/messages/batches?before_id={}", ANTHROPIC + "/containers?after_id={}",
         UBIK + "/documents?session_id={}"]
VALUES = {
    "a file for code": json_of("POST", "/v1/execute", {"code": "1", "files": [{"id": "{}"}]}),
    "a container": json_of("POST", ANTHROPIC + "/messages", message(container="{}"), CLAUDE),
    "an upload": json_of("POST", ANTHROPIC + "/messages", with_upload("container_upload", {"file_id": "{}"}), CLAUDE),
    "a document": json_of("POST", ANTHROPIC + "/messages",
                          with_upload("document", {"source": {"type": "file", "file_id": "{}"}}), CLAUDE),
    "a sandbox": ubik(sandbox_id="{}"),
    "documents": ubik(document_ids=["{}"]),
    "an operation": json_of("GET", "/azure/pools/default/executions/{}?identifier=mine-1"),
    "old sse": json_of("POST", "/mcp/sse?session_id={}", {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
    "old sse, camel": json_of("POST", "/mcp/sse?sessionId={}", {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
    "mcp post": in_session_of("POST", method="tools/list"),
    "mcp call": in_session_of("POST", method="tools/call", params={"name": "list_sessions", "arguments": {}}),
    "mcp answer": in_session_of("POST", result={"action": "accept", "content": {"approve": True}}),
    "mcp get": in_session_of("GET"),
    "mcp delete": in_session_of("DELETE"),
    "run in a session": tool("run_code", code="1", session_id="{}"),
    "shell in a session": tool("run_shell", command="true", session_id="{}"),
    "get_execution": tool("get_execution", execution_id="{}"),
    "interrupt_execution": tool("interrupt_execution", execution_id="{}"),
    "restart_session": tool("restart_session", session_id="{}"),
    "close_session": tool("close_session", session_id="{}"),
    "list_files": tool("list_files", session_id="{}"),
    "read_file": tool("read_file", session_id="{}", path="x.txt"),
    "write_file": tool("write_file", session_id="{}", path="x.txt", content="STRANGER"),
    **{f"{verb} {uri}": modern(f"resources/{verb}", uri=uri)
       for verb in ("read", "subscribe") for uri in ("retort://sessions/{}/files/x.txt", "retort://executions/{}/output",
                                                     "retort://executions/{}/images/1")},
    **{verb: modern("tasks/" + verb, taskId="{}", inputResponses={}) for verb in ("get", "update", "cancel")},
    **{"list " + path: json_of("GET", path, headers=CLAUDE if path.startswith(ANTHROPIC) else None) for path in LISTS},
}


@pytest.mark.parametrize("value", VALUES)
def test_no_value_tells_or_changes_what_is_another_tenants(house, value):
    with house.stranger() as client:
        for id in sorted(set(house.ids.values())):
            real = VALUES[value](house, client, id)
            never = VALUES[value](house, client, fake(id))
            assert plain(real, id) == plain(never, fake(id)), id
            assert b"SECRET" not in real.body


def test_nothing_has_changed_by_all_that(house):
    """After the tests above: what each of them did shows here, whichever it was."""
    state = house.state()
    assert state["keys"] == [house.key] and state["task"] == "working"
    running = house.owner.get("/v1/executions/" + house.ids["running"]).json
    assert running["status"] == "running"
