"""Images and documents of messages: bytes, URLs and files go to a model that takes them, or are refused plainly."""

import base64

import pytest

from api import refused
from support.model_server import ModelServer
from support.server import Server
from talk import Talk, body

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n and so on").decode()
PDF = base64.b64encode(b"%PDF-1.4 and so on").decode()
CACHE = {"cache_control": {"type": "ephemeral"}}


@pytest.fixture(scope="module")
def models():
    with ModelServer() as models:
        desk = models.desk(always={"fault": "say", "steps": [{"text": "seen"}]})
        config = (f"[model sees]\napi = anthropic\nurl = {desk.anthropic}\nimages = true\n"
                  f"[model chats]\napi = openai\nurl = {desk.openai}\nimages = true\n"
                  f"[model blind]\napi = openai\nurl = {desk.openai}\n")
        with Server("--ready", "0", "--preload", "", config=config) as server:
            server.desk = desk
            yield server


@pytest.fixture
def talk(models):
    with Talk(models) as one:
        yield one


def block(kind, **source):
    return {"type": kind, "source": source}


def ask(talk, model, *blocks, **fields):
    return talk.ask_model({"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": list(blocks)}], **fields})


def sent(models):
    return models.desk.requests[-1]["body"]["messages"][0]["content"]


def uploaded(talk, name, data):
    return talk.upload(name, data)["id"]


def test_what_a_model_of_messages_gets(talk, models):
    image, pdf = uploaded(talk, "a.png", base64.b64decode(PNG)), uploaded(talk, "a.pdf", base64.b64decode(PDF))
    text = uploaded(talk, "a.txt", "grüße".encode())
    ask(talk, "sees", {"type": "text", "text": "look"},
        block("image", type="base64", media_type="image/png", data=PNG),
        block("image", type="url", url="https://example.com/a.png"), block("image", type="file", file_id=image),
        block("document", type="base64", media_type="application/pdf", data=PDF),
        block("document", type="url", url="https://example.com/a.pdf"),
        {**block("document", type="file", file_id=pdf), "title": "T"}, block("document", type="file", file_id=text),
        block("document", type="text", media_type="text/plain", data="plain")).expect(200)
    png, doc = {"type": "base64", "media_type": "image/png", "data": PNG}, {"type": "base64", "media_type": "application/pdf", "data": PDF}
    assert sent(models) == [
        {"type": "text", "text": "look"}, block("image", **png), block("image", type="url", url="https://example.com/a.png"),
        block("image", **png), block("document", **doc), block("document", type="url", url="https://example.com/a.pdf"),
        {**block("document", **doc), "title": "T"}, {"type": "text", "text": "grüße"}, {"type": "text", "text": "plain"}]


def test_what_chat_completions_get(talk, models):
    image = uploaded(talk, "a.png", base64.b64decode(PNG))
    ask(talk, "chats", block("image", type="url", url="https://example.com/a.png"), block("image", type="file", file_id=image)).expect(200)
    assert [i["image_url"]["url"] for i in sent(models)] == ["https://example.com/a.png", "data:image/png;base64," + PNG]


def test_what_a_model_cannot_take_is_refused(talk, models):
    image, pdf = uploaded(talk, "a.png", base64.b64decode(PNG)), uploaded(talk, "a.pdf", base64.b64decode(PDF))
    before = len(models.desk.requests)
    for model, one, word in (
            ("blind", block("image", type="base64", media_type="image/png", data=PNG), "sees no images"),
            ("blind", block("image", type="url", url="https://example.com/a.png"), "sees no images"),
            ("blind", block("image", type="file", file_id=image), "sees no images"),
            ("chats", block("document", type="base64", media_type="application/pdf", data=PDF), "reads no PDF"),
            ("chats", block("document", type="file", file_id=pdf), "reads no PDF"),
            ("sees", block("image", type="file", file_id=pdf), "is no image"),
            ("sees", block("document", type="file", file_id=image), "is no document"),
            ("sees", block("image", type="carrier-pigeon"), "a file_id is expected"),
            ("sees", block("document"), "a file_id is expected")):
        assert word in refused(ask(talk, model, one), 400), one
    refused(ask(talk, "sees", block("image", type="file", file_id="file_missing")), 404)
    assert len(models.desk.requests) == before


def test_cache_control_reaches_a_model_that_knows_it(talk, models):
    tool = {"name": "local", "description": "d", "input_schema": {"type": "object"}, **CACHE}
    ask(talk, "sees", {"type": "text", "text": "long", **CACHE},
        {**block("image", type="base64", media_type="image/png", data=PNG), **CACHE}, {"type": "text", "text": "end"},
        system=[{"type": "text", "text": "be brief", **CACHE}], tools=[tool], **CACHE).expect(200)
    body = models.desk.requests[-1]["body"]
    assert body["system"] == [{"type": "text", "text": "be brief", **CACHE}] and body["tools"][0]["cache_control"]
    assert ["cache_control" in b for b in body["messages"][0]["content"]] == [True, True, False]
    assert body["cache_control"] == {"type": "ephemeral"}
    ask(talk, "chats", {"type": "text", "text": "long", **CACHE}, tools=[tool], **CACHE).expect(200)
    assert "cache_control" not in str(models.desk.requests[-1]["body"])


def test_models_say_what_they_take(talk):
    can = {m["id"]: {name: m["capabilities"][name]["supported"] for name in ("image_input", "pdf_input", "thinking", "batch")}
           for m in talk.get("/v1/models").expect(200).json["data"]}
    assert can["sees"] == {"image_input": True, "pdf_input": True, "thinking": True, "batch": True}
    assert can["chats"] == {"image_input": True, "pdf_input": False, "thinking": False, "batch": True}
    assert can["blind"]["image_input"] is False


def test_skills_are_refused_by_name(talk):
    skills = [{"type": "anthropic", "skill_id": "pptx", "version": "latest"}]
    assert "no skill `pptx`" in refused(talk.ask_model(body([[{"text": "x"}]], container={"skills": skills})), 400)
