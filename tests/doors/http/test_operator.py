"""/health, /ready, /metrics, and the document that describes all routes."""

import re


def test_health(server):
    answer = server.get("/health")
    assert answer.status == 200 and answer.json["status"] == "ok" and answer.json["version"]


def test_ready(server):
    assert server.get("/ready").json == {"status": "ready", "why": None}
    server.connect().get("/drop?count=1").closed()
    answer = server.get("/ready")
    assert answer.status == 503
    assert answer.json == {"status": "not_ready", "why": "something was dropped"}


def parse(text):
    """Prometheus' text format, strictly: a sample belongs to the family named right before it."""
    families, samples = {}, {}
    name = kind = None
    for line in text.splitlines():
        if match := re.fullmatch(r"# HELP (\S+) (\S.*)", line):
            name = match[1]
            assert name not in families and re.fullmatch(r"[a-z][a-z0-9_]*", name)
        elif match := re.fullmatch(r"# TYPE (\S+) (counter|gauge|histogram)", line):
            assert match[1] == name
            kind = families[name] = match[2]
            assert (kind == "counter") == name.endswith("_total")
        else:
            match = re.fullmatch(r'(\w+)(\{\w+="(?:[^"\\\n]|\\.)*"\})? ([-+0-9.e]+)', line)
            assert match, line
            suffix = match[1].removeprefix(name)
            assert suffix in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))
            key = match[1] + (match[2] or "")
            assert key not in samples
            samples[key] = float(match[3])
    return families, samples


def test_metrics(server):
    for path in ("/tiny", "/nowhere", "/nowhere"):
        server.get(path)
    answer = server.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families, samples = parse(answer.body.decode())
    assert samples['retort_sessions{state="idle"}'] == 2
    assert samples["retort_pool_hits_total"] == 3
    assert samples['retort_http_answers_total{class="4xx"}'] == 2
    assert samples['retort_http_answers_total{class="2xx"}'] == 1
    assert samples['retort_pool_parked{pool="da\\"ta"}'] == 4
    assert samples["process_resident_memory_bytes"] > 1_000_000
    assert samples["process_open_fds"] > 3
    assert {"retort_executions_total", "retort_limits_hit_total", "retort_refused_total",
            "retort_cell_seconds", "retort_build_info"} <= set(families)


def test_histogram(server):
    samples = parse(server.get("/metrics").body.decode())[1]
    name = "retort_session_create_seconds"
    buckets = [value for key, value in samples.items() if key.startswith(name + "_bucket")]
    assert buckets[:2] == [1, 3] and buckets == sorted(buckets)
    assert buckets[-1] == samples[name + "_count"] == 3
    assert samples[name + "_sum"] == 0.0015


def test_document(server):
    doc = server.get("/openapi.json").json
    assert doc["openapi"].startswith("3.1") and "/openapi.json" not in doc["paths"]
    item = doc["paths"]["/items/{id}"]
    assert set(item) == {"get", "put", "delete"}
    rest = doc["paths"]["/items/{id}/files/{rest}"]["get"]["parameters"]
    assert [one["name"] for one in rest] == ["id", "rest"]
    body = doc["paths"]["/echo"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["additionalProperties"] is False and "required" not in body
    assert body["properties"]["count"] == {"type": "integer", "minimum": 1, "maximum": 5,
                                           "description": "A count."}
    assert body["properties"]["files"]["items"] == {"$ref": "#/components/schemas/file"}
    schemas = doc["components"]["schemas"]
    assert schemas["file"]["required"] == ["path"]
    assert schemas["ready"]["properties"]["why"]["type"] == ["string", "null"]
    assert doc["paths"]["/health"]["get"]["security"] == []


def test_every_reference_is_there(server):
    text = server.get("/openapi.json").body.decode()
    schemas = server.get("/openapi.json").json["components"]["schemas"]
    refs = set(re.findall(r'"#/components/schemas/([^"]+)"', text))
    assert refs and refs <= set(schemas)
    ids = re.findall(r'"operationId":"([^"]+)"', text)
    assert len(ids) == len(set(ids)) > 10
