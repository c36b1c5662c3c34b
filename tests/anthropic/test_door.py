"""Sections 1 and 5: routes, headers and errors; models, counted tokens, and containers."""

import pytest

from api import refused


def test_1_3_every_answer_has_its_id(api):
    for method, path, status in (("GET", "/v1/models", 200), ("GET", "/v1/nope", 404), ("PUT", "/v1/models", 405),
                                 ("OPTIONS", "/v1/models", 204), ("HEAD", "/v1/models", 200), ("GET", "", 404)):
        assert api.ask(method, path).status == status


def test_1_2_betas_and_versions_are_not_looked_at(api):
    for headers in ({"anthropic-beta": "files-api-2025-04-14,never-heard-of"}, {"anthropic-version": "x"},
                    {"anthropic-dangerous-direct-browser-access": "true"}, {"x-stainless-retry-count": "1"}):
        api.get("/v1/files?beta=true", headers=headers).expect(200)


def test_5_2_errors_have_one_shape(api):
    refused(api.get("/v1/nope"), 404)
    refused(api.get("/"), 404)
    refused(api.ask("PUT", "/v1/models"), 405)
    refused(api.post("/v1/messages/count_tokens", bytes=b"{", headers={"Content-Type": "application/json"}), 400)
    refused(api.post("/v1/messages/count_tokens", bytes=b"[]", headers={"Content-Type": "application/json"}), 400)
    refused(api.get("/v1/files?limit=%zz"), 400)
    refused(api.get("/v1/files", headers={"Origin": "https://elsewhere.example"}), 403)


def test_5_2_only_what_is_below_the_prefix(server):
    with server.client() as c:
        c.get("/anthropicx/v1/nope").refused(404)
        c.get("/v1/nope").refused(404)


def test_1_1_models(api):
    page = api.get("/v1/models?limit=10&beta=true").expect(200).json
    assert set(page) == {"data", "has_more", "first_id", "last_id"} and page["has_more"] is False
    model, = page["data"]
    assert (model["id"], model["type"]) == ("scripted", "model") == (page["first_id"], "model")
    assert model["capabilities"]["code_execution"] == {"supported": True}
    assert model["capabilities"]["server_tools"]["code_execution"] == {"supported": True}
    assert model["capabilities"]["thinking"]["supported"] is False
    assert api.get("/v1/models/scripted").expect(200).json == model
    refused(api.get("/v1/models/claude-none"), 404)


def count(api, **body):
    return api.post("/v1/messages/count_tokens", body).expect(200).json["input_tokens"]


def test_1_1_tokens_are_estimated(api):
    user = {"role": "user", "content": "x" * 400}
    few = count(api, model="m", messages=[user])
    assert 100 <= few < 120
    assert count(api, messages=[user], system="y" * 400) >= few + 100
    tool = {"name": "t", "description": "d" * 400, "input_schema": {"type": "object"}}
    assert count(api, messages=[user], tools=[tool]) >= few + 100
    blocks = [{"type": "text", "text": "x" * 400}]
    assert few <= count(api, messages=[{"role": "user", "content": blocks}]) < few + 20
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 100000}}
    assert 1000 < count(api, messages=[{"role": "user", "content": [picture]}]) < 3000


@pytest.mark.parametrize("body", [{}, {"messages": []}, {"messages": "x"}])
def test_1_1_nothing_to_count(api, body):
    assert "messages" in refused(api.post("/v1/messages/count_tokens", body), 400)


def test_1_4_a_body_has_an_end(api):
    body = b'{"messages": ["' + b"x" * (32 << 20) + b'"]}'
    refused(api.post("/v1/messages/count_tokens", bytes=body, headers={"Content-Type": "application/json"}), 413)


def test_containers_are_sessions(server, api):
    with server.client() as c, c.session() as one, c.session():
        name = one.id.replace("sess_", "container_")
        found = api.get("/v1/containers/" + name).expect(200).json
        assert (found["id"], found["type"], found["status"]) == (name, "container", "idle")
        assert found["expires_at"] == one.info["expires_at"] and found["skills"] is None
        page = api.get("/v1/containers?limit=1").expect(200).json
        assert page["has_more"] is True
        rest = api.get(f"/v1/containers?page={page['next_page']}").expect(200).json
        assert found["id"] in [x["id"] for x in rest["data"]]
        assert api.delete("/v1/containers/" + name).expect(200).json == {"id": name, "type": "container_deleted"}
        c.get(one.path).refused(404)
        for method in ("GET", "DELETE"):
            message = refused(api.ask(method, "/v1/containers/" + name), 404, "container_expired")
            assert name in message


@pytest.mark.parametrize("name", ["container_01doesnotexist", "sess_0123456789abcdefghjkmnpqrstv", "x" * 100])
def test_containers_that_are_none(api, name):
    refused(api.get("/v1/containers/" + name), 404, "container_expired")


@pytest.mark.parametrize("query", ["limit=0", "before_id=container_" + "0" * 28, "after_id=sess_" + "0" * 28,
                                   "after_id=container_" + "0" * 28])
def test_lists_of_containers_that_cannot_be(api, query):
    refused(api.get("/v1/containers?" + query), 400)
