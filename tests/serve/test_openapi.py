"""The document at /v1/openapi.json: valid, complete, and true."""

import json
import re
import subprocess
from pathlib import Path

import jsonschema
import pytest

from support import retort
from support.server import form

pytestmark = pytest.mark.once

VALIDATOR = "@seriousme/openapi-schema-validator"
METHODS = ("get", "put", "post", "delete", "patch")


@pytest.fixture(scope="module")
def document(server):
    with server.client() as c:
        return c.get("/v1/openapi.json").expect(200).json


def operations(document):
    return {(method, path): op for path, item in document["paths"].items()
            for method, op in item.items() if method in METHODS}


@pytest.fixture(scope="module")
def validator():
    """The validator of the specification's own schema, which `./dev test` gets from the registry."""
    place = retort.REPO / "build" / "npm"
    assert (place / "node_modules" / VALIDATOR).is_dir(), "run ./dev test first"
    return place


CHECK = """
import { createRequire } from "module";
import { pathToFileURL } from "url";
const require = createRequire(process.argv[2] + "/node_modules/x");
const { Validator } = await import(pathToFileURL(require.resolve("@seriousme/openapi-schema-validator")));
const checker = new Validator();
const found = await checker.validate(JSON.parse(await new Response(process.stdin).text()));
console.log(JSON.stringify({ valid: found.valid, version: checker.version, errors: found.errors ?? null }));
"""


def validate(place, document):
    script = Path(place) / "validate.mjs"
    if not script.exists() or script.read_text() != CHECK:
        script.write_text(CHECK)
    done = subprocess.run(["node", script, place], input=json.dumps(document), text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_valid(document, validator):
    found = validate(validator, document)
    assert found["valid"], json.dumps(found["errors"], indent=1)[:3000]
    assert found["version"] == "3.1"


def test_the_validator_would_notice(document, validator):
    broken = json.loads(json.dumps(document))
    next(iter(operations(broken).values()))["responses"] = 7
    assert not validate(validator, broken)["valid"]


def test_schemas_are_schemas(document):
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    text = json.dumps(document)
    for name in re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', text):
        assert name in document["components"]["schemas"], name


def test_operations_are_told_apart_and_explained(document):
    found = operations(document)
    ids = [op["operationId"] for op in found.values()]
    assert len(set(ids)) == len(ids)
    for (method, path), op in found.items():
        assert op["summary"] and op["tags"], (method, path)
        named = set(re.findall(r"{([a-z_]+)}", path))
        told = {p["name"] for p in op.get("parameters", []) if p["in"] == "path"}
        assert named == told, (method, path)


WANTED = """
POST /v1/sessions | GET /v1/sessions | GET /v1/sessions/{session} | POST /v1/sessions/{session}/extend
POST /v1/sessions/{session}/interrupt | POST /v1/sessions/{session}/restart | DELETE /v1/sessions/{session}
POST /v1/sessions/{session}/execute | POST /v1/execute | GET /v1/executions | GET /v1/executions/{execution}
GET /v1/executions/{execution}/output | POST /v1/executions/{execution}/interrupt
GET /v1/sessions/{session}/files | PUT /v1/sessions/{session}/files/{path} | POST /v1/sessions/{session}/files
GET /v1/sessions/{session}/files/{path} | DELETE /v1/sessions/{session}/files/{path}
GET /v1/sessions/{session}/workspace | POST /v1/files | GET /v1/files | GET /v1/files/{file}
GET /v1/files/{file}/content | DELETE /v1/files/{file} | GET /v1/pools | GET /v1/pools/{pool}
GET /v1/approvals | GET /v1/approvals/{approval} | POST /v1/approvals/{approval}
POST /v1/keys | GET /v1/keys | DELETE /v1/keys/{key} | GET /v1/nodes | GET /v1/openapi.json
GET /health | GET /ready | GET /metrics
"""


def test_nothing_is_missing(document):
    told = {f"{method.upper()} {path}" for method, path in operations(document)}
    wanted = set(re.split(r"\s*[|\n]\s*", WANTED.strip()))
    assert wanted <= told, wanted - told


class Walker:
    """Asks what the document describes and holds each answer against it."""

    def __init__(self, client, document):
        self.client, self.document = client, document
        self.operations, self.asked, self.wrong = operations(document), set(), []

    def ask(self, method, path, json_body=None, fill=None, query="", **more):
        """path as in the document; fill: values for its parameters."""
        url = path
        for name, value in (fill or {}).items():
            url = url.replace("{%s}" % name, value)
        operation = self.operations[method.lower(), path]
        self.asked.add((method.lower(), path))
        if json_body is not None:
            self.check(operation["requestBody"]["content"]["application/json"]["schema"], json_body)
        answer = self.client.request(method, url + query, json_body, **more)
        self.hold(f"{method} {path} {answer.status}", operation["responses"], answer)
        return answer

    def hold(self, what, told, answer):
        """Whether an answer is as it was told; a success must be told by its number."""
        status = str(answer.status)
        told = told.get(status) if answer.status < 400 else told.get(status, told.get("default"))
        kind = answer.headers.get("content-type", "").split(";")[0]
        content = {k.split(";")[0]: v for k, v in (told or {}).get("content", {}).items()}
        if told is None:
            self.wrong.append(f"{what} is not documented")
        elif answer.body and not {kind, "*/*"} & set(content):
            self.wrong.append(f"{what} is {kind}, not {list(content)}")
        elif kind == "application/json" and kind in content:
            try:
                self.check(content[kind]["schema"], answer.json)
            except jsonschema.ValidationError as error:
                self.wrong.append(f"{what}: {error.json_path}: {error.message[:200]}")

    def check(self, schema, value):
        whole = {**schema, "components": self.document["components"]}
        jsonschema.Draft202012Validator(whole).validate(value)


BODIES = [
    ({"env": {"A_1": "x"}}, True), ({"env": {"a-b": "x"}}, False), ({"env": {"1a": "x"}}, False), ({"env": {"a" * 129: ""}}, False),
    ({"stream": False}, True), ({"stream": "yes"}, False), ({"stream": 1}, False),
    ({"files": [{"path": "a", "content": "x"}]}, True), ({"files": [{"path": "a", "content_base64": "eA=="}]}, True),
    ({"files": [{"path": "a"}]}, False), ({"files": [{"content": "x"}]}, False),
    ({"files": [{"path": "a", "content": "x", "content_base64": "eA=="}]}, False),
]


@pytest.mark.parametrize(("more", "fits"), BODIES, ids=lambda v: json.dumps(v)[:40])
def test_the_document_refuses_what_the_route_refuses(server, document, more, fits):
    body = {"code": "1", **more}
    with server.client() as c:
        w = Walker(c, document)
        schema = w.operations["post", "/v1/execute"]["requestBody"]["content"]["application/json"]["schema"]
        assert jsonschema.Draft202012Validator({**schema, "components": document["components"]}).is_valid(body) == fits
        assert c.post("/v1/execute", body).status == (200 if fits else 400)


def test_an_upload_without_a_body_is_an_empty_file(server, document):
    route = document["paths"]["/v1/sessions/{session}/files/{path}"]["put"]
    assert route["requestBody"]["required"] is False
    with server.client() as c, c.session() as session:
        assert c.request("PUT", session.file("empty")).expect(201).json["size"] == 0


def test_it_is_true(server, document):
    """Every operation once, each answer against its schema; errors, too."""
    with server.client() as c:
        w = Walker(c, document)
        for path in ("/health", "/ready", "/metrics", "/v1/openapi.json", "/v1/status", "/v1/pools"):
            assert w.ask("GET", path).status == 200
        w.ask("GET", "/v1/pools/{pool}", fill={"pool": "default"}).expect(200)
        w.ask("GET", "/v1/pools/{pool}", fill={"pool": "none"}).refused(404)

        s = w.ask("POST", "/v1/sessions", {"name": "n", "metadata": {"a": 1}, "env": {"A": "b"}}).expect(201).json
        w.ask("POST", "/v1/sessions", {"name": "n"}).expect(200)
        w.ask("GET", "/v1/sessions", query="?limit=1").expect(200)
        here = {"session": s["id"]}
        base = "/v1/sessions/{session}"
        w.ask("GET", base, fill=here).expect(200)
        w.ask("GET", base, fill={"session": "none"}).refused(404)
        w.ask("PATCH", base, {"name": "m"}, fill=here).expect(200)
        w.ask("PATCH", base, {"name": "m"}, fill={"session": "none"}).refused(404)
        w.ask("POST", base + "/extend", {"idle_timeout": 60}, fill=here).expect(200)
        w.ask("POST", base + "/interrupt", fill=here).expect(200)
        code = "print(1); import sys; print(2, file=sys.stderr); open('f.txt', 'w').write('x'); 1 / 0"
        done = w.ask("POST", base + "/execute", {"code": code, "timeout": 5, "files": [
            {"path": "a", "content": "x"}]}, fill=here).expect(200).json
        w.ask("POST", base + "/execute", {"code": "1", "background": True}, fill=here).expect(202)
        for form_ in ("sse", "ndjson"):
            w.ask("POST", base + "/execute", {"code": "1", "stream": form_}, fill=here).expect(200)
        w.ask("POST", base + "/restart", fill=here).expect(200)
        w.ask("POST", "/v1/execute", {"code": "1", "language": "shell"}).expect(200)

        w.ask("GET", "/v1/executions").expect(200)
        w.ask("GET", "/v1/executions", query="?format=jsonl").expect(200)
        that = {"execution": done["id"]}
        w.ask("GET", "/v1/executions/{execution}", fill=that).expect(200)
        w.ask("GET", "/v1/executions/{execution}/output", fill=that).expect(200)
        w.ask("GET", "/v1/executions/{execution}/output", fill=that, headers={"Range": "bytes=0-0"}).expect(206)
        w.ask("POST", "/v1/executions/{execution}/interrupt", fill=that).expect(200)

        one = {**here, "path": "f.txt"}
        w.ask("PUT", base + "/files/{path}", fill=one, body=b"put").expect(201)
        body, kind = form(("file", "b", b"x"))
        w.ask("POST", base + "/files", fill=here, body=body, headers={"Content-Type": kind}).expect(201)
        w.ask("GET", base + "/files", fill=here).expect(200)
        w.ask("GET", base + "/files/{path}", fill=one).expect(200)
        w.ask("GET", base + "/files/{path}", fill=one, headers={"Range": "bytes=9-"}).refused(416)
        w.ask("PATCH", base + "/files/{path}", {"path": "g.txt"}, fill=one).expect(200)
        w.ask("PATCH", base + "/files/{path}", {"path": "g.txt"}, fill=one).refused(404)
        one["path"] = "g.txt"
        w.ask("DELETE", base + "/files/{path}", fill=one).expect(204)
        w.ask("DELETE", base + "/files/{path}", fill=one).refused(404)
        w.ask("GET", base + "/workspace", fill=here).expect(200)
        w.ask("GET", base + "/workspace", fill=here, query="?format=zip").expect(200)
        w.ask("GET", base + "/workspace", fill=here, query="?format=rar").refused(400)

        made = w.ask("POST", "/v1/files", body=body, headers={"Content-Type": kind}).expect(201).json
        w.ask("POST", "/v1/files", {"url": "data:,x"}).expect(201)
        file = {"file": made["id"]}
        w.ask("GET", "/v1/files").expect(200)
        w.ask("GET", "/v1/files/{file}", fill=file).expect(200)
        w.ask("GET", "/v1/files/{file}/content", fill=file).expect(200)
        w.ask("DELETE", "/v1/files/{file}", fill=file).expect(204)
        w.ask("DELETE", base, fill=here).expect(204)

        w.ask("GET", "/v1/events", query="?format=xml").refused(400)  # a good one has no end: test_events.py
        w.ask("GET", "/v1/approvals", query="?state=pending").expect(200)
        for method, body in (("GET", None), ("POST", {"decision": "approve", "reason": "x"})):
            w.ask(method, "/v1/approvals/{approval}", body, fill={"approval": "none"}).refused(404)

        key = w.ask("POST", "/v1/keys", {"tenant": "ops", "admin": True}).expect(201).json
        w.ask("GET", "/v1/keys").refused(401)
        c.headers["x-api-key"] = key["secret"]
        w.ask("GET", "/v1/keys").expect(200)
        assert w.ask("GET", "/v1/nodes").expect(200).json["data"] == []
        w.ask("DELETE", "/v1/keys/{key}", fill={"key": key["id"]}).expect(204)
        assert set(w.operations) - w.asked == set()
        assert not w.wrong, "\n".join(w.wrong)
