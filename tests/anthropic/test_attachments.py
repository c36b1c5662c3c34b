"""Images and documents of messages: bytes, URLs and files go to a model that takes them, or are refused plainly."""

import base64

import pytest

from api import refused
from support import retort
from support.model_server import ModelServer
from support.pdf import pdf
from support.server import Server
from support.web import Web, response
from talk import Talk

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
        with Server("--ready", "0", "--preload", "", "--fetch-private", config=config) as server:
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


def base64_of(data):
    return {"type": "base64", "media_type": "application/pdf", "data": base64.b64encode(data).decode()}


def test_a_model_without_pdf_gets_the_text(talk, models):
    tides, moons = pdf("Tides of 1904\nHigh water (noon): 3.7 m", "page two"), pdf("Monde über Kiel", compress=False)
    with Web() as web:
        ask(talk, "chats", {"type": "text", "text": "read"}, {**block("document", **base64_of(tides)), "title": "Tables"},
            block("document", type="file", file_id=uploaded(talk, "m.pdf", moons)), block("document", type="url", url=web.put("/moons.pdf", response(body=moons)))).expect(200)
    read, first, second, third = [p["text"] for p in sent(models)]
    assert read == "read" and first.startswith("Tables\n\nTides of 1904\nHigh water (noon): 3.7 m") and first.endswith("page two")
    assert second == third == "Monde über Kiel"
    answered(talk, "chats", {"type": "text", "text": "look"}, block("document", **base64_of(moons))).expect(200)
    assert "Monde über Kiel" in str(models.desk.requests[-1]["body"]["messages"])
    assert talk.get("/v1/containers").json["data"] == []  # no sandbox is left of it


def test_a_text_that_cannot_be_had_is_refused(talk, models):
    before = len(models.desk.requests)
    for source, word in ((base64_of(pdf("")), "pages are images"), (base64_of(b"no pdf at all"), "neither a PDF"), (base64_of(pdf("a")[:60]), "there is no text"),
                         ({"type": "base64", "media_type": "application/pdf", "data": "!!!!"}, "no base64"), ({"type": "url", "url": "http://127.0.0.1:1/a.pdf"}, "could not be reached")):
        text = refused(ask(talk, "chats", {"type": "text", "text": "x"}, block("document", **source)), 400)
        assert word in text and "reads no PDF" in text, text
    assert "more than 20" in refused(ask(talk, "chats", *[block("document", **base64_of(pdf("a")))] * 21), 400)
    assert len(models.desk.requests) == before


def called(content):
    """A conversation whose last message is the result of a client tool."""
    return [{"role": "user", "content": "go"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "local", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": content}]}]


def answered(talk, model, *content):
    return talk.ask_model({"model": model, "max_tokens": 9, "messages": called(list(content)),
                           "tools": [{"name": "local", "description": "d", "input_schema": {"type": "object"}}]})


def test_results_of_tools_bring_images_and_documents(talk, models):
    image, pdf = uploaded(talk, "r.png", base64.b64decode(PNG)), uploaded(talk, "r.pdf", base64.b64decode(PDF))
    text = uploaded(talk, "r.txt", b"from a file")
    answered(talk, "sees", {"type": "text", "text": "look"}, block("image", type="file", file_id=image),
             block("image", type="url", url="https://example.com/r.png"), block("document", type="file", file_id=pdf),
             block("document", type="file", file_id=text), block("document", type="text", media_type="text/plain", data="plain"),
             block("document", type="base64", media_type="application/pdf", data=PDF)).expect(200)
    png, doc = {"type": "base64", "media_type": "image/png", "data": PNG}, {"type": "base64", "media_type": "application/pdf", "data": PDF}
    [result] = models.desk.requests[-1]["body"]["messages"][-1]["content"]
    assert result["type"] == "tool_result" and result["content"] == [
        {"type": "text", "text": "look"}, block("image", **png), block("image", type="url", url="https://example.com/r.png"),
        block("document", **doc), {"type": "text", "text": "from a file"}, {"type": "text", "text": "plain"}, block("document", **doc)]

    answered(talk, "chats", {"type": "text", "text": "look"}, block("image", type="file", file_id=image)).expect(200)
    *_, result, shown = models.desk.requests[-1]["body"]["messages"]
    assert result["content"] == "look" and shown["content"][0]["image_url"]["url"] == "data:image/png;base64," + PNG

    answered(talk, "blind", block("image", type="file", file_id=image)).expect(200)  # a note, as of an image in base64
    assert PNG not in str(models.desk.requests[-1]["body"]) and "image" in str(models.desk.requests[-1]["body"]["messages"][-1])
    assert "reads no PDF" in refused(answered(talk, "chats", block("document", type="file", file_id=pdf)), 400)
    assert "is no image" in refused(answered(talk, "sees", block("image", type="file", file_id=pdf)), 400)
    assert "a file_id is expected" in refused(answered(talk, "sees", block("image", type="carrier-pigeon")), 400)
    refused(answered(talk, "sees", block("image", type="file", file_id="file_missing")), 404)


FOUND = {"type": "search_result", "title": "Moas", "source": "https://birds.example/moa", "citations": {"enabled": True},
         "content": [{"type": "text", "text": "They stood 3.6 m high."}, {"type": "text", "text": "None is left."}]}


@pytest.mark.parametrize("model", ["sees", "chats", "blind"])
def test_what_a_search_found_reaches_every_model(talk, models, model):
    ask(talk, model, FOUND, {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "body"},
                             "title": "head", "context": "from the attic"}).expect(200)
    assert [part["text"] for part in sent(models)] == [
        "Moas", "https://birds.example/moa", "They stood 3.6 m high.", "None is left.", "head", "from the attic", "body"]
    answered(talk, model, FOUND).expect(200)
    told = str(models.desk.requests[-1]["body"]["messages"][2])
    assert all(text in told for text in ("Moas", "birds.example/moa", "3.6 m high", "None is left."))


def test_texts_of_a_result_stay_where_they_are(talk, models):
    image = block("image", type="base64", media_type="image/png", data=PNG)
    content = [{"type": "text", "text": "before"}, image, {"type": "text", "text": "between"}, image, {"type": "text", "text": "behind"}]
    answered(talk, "sees", *content).expect(200)
    [result] = models.desk.requests[-1]["body"]["messages"][-1]["content"]
    assert result["content"] == content
    answered(talk, "chats", *content).expect(200)
    *_, result, shown = models.desk.requests[-1]["body"]["messages"]
    assert result["content"] == "before"
    assert [part.get("text", "image") for part in shown["content"]] == ["image", "between", "image", "behind"]


def test_what_no_model_would_see_is_refused(talk):
    """An answer without it would look like one with it."""
    for odd in ({"type": "hologram", "x": 1}, {"type": "browser_state", "tabs": []}):
        assert f"takes no `{odd['type']}`" in refused(ask(talk, "sees", {"type": "text", "text": "x"}, odd), 400)
        assert f"takes no `{odd['type']}`" in refused(answered(talk, "sees", odd), 400)


def test_betas_go_to_an_endpoint_of_anthropics(talk, models):
    def betas(model, header):
        talk.ask_model({"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]},
                       **({"anthropic-beta": header} if header else {})).expect(200)
        return models.desk.requests[-1]["headers"].get("anthropic-beta")

    assert betas("sees", "context-1m-2025-08-07, interleaved-thinking-2025-05-14") == "context-1m-2025-08-07,interleaved-thinking-2025-05-14"
    own = "code-execution-2025-08-25,files-api-2025-04-14,skills-2025-10-02"  # served here
    assert betas("sees", own) is None and betas("sees", own + ",fine-grained_x.1") == "fine-grained_x.1"
    assert betas("sees", "a b,c\"d,,good-1") == "good-1" and betas("sees", None) is None
    assert betas("chats", "context-1m-2025-08-07") is None


def test_betas_of_a_batch_go_along(talk, models):
    asked = {"model": "sees", "max_tokens": 9, "messages": [{"role": "user", "content": "in a batch"}]}
    made = talk.post("/v1/messages/batches", {"requests": [{"custom_id": "one", "params": asked}]},
                     headers={"anthropic-beta": "message-batches-2024-09-24,context-1m-2025-08-07"}).expect(200).json
    retort.wait_until(lambda: talk.get(f"/v1/messages/batches/{made['id']}").json["processing_status"] == "ended", "the batch")
    sent = next(r for r in models.desk.requests if "in a batch" in str(r["body"]["messages"]))
    assert sent["headers"]["anthropic-beta"] == "context-1m-2025-08-07"


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


def test_models_are_as_their_endpoints_say(talk, models):
    models.desk.about = {
        "sees": {"type": "model", "id": "sees", "display_name": "Seer 4", "created_at": "2025-10-15T01:02:03Z",
                 "max_input_tokens": 200000, "max_tokens": 64000, "surprise": 1,
                 "capabilities": {"pdf_input": {"supported": False}, "code_execution": {"supported": False},
                                  "thinking": {"supported": True, "types": {"adaptive": {"supported": False}}},
                                  "effort": {"supported": True, "max": {"supported": False}}}},
        "chats": {"id": "chats", "object": "model", "created": 1686935002, "owned_by": "somebody"},
        "odd": {"display_name": 7, "created_at": "yesterday", "max_tokens": "many", "capabilities": []}}
    config = "".join(f"[model {name}]\napi = {api}\nurl = {getattr(models.desk, api)}\nkey = secret-{name}\n"
                     for name, api in (("sees", "anthropic"), ("chats", "openai"), ("odd", "anthropic"), ("quiet", "anthropic")))
    with Server("--ready", "0", "--preload", "", config=config) as server, Talk(server) as other:
        found = {m["id"]: m for m in other.get("/v1/models").expect(200).json["data"]}
        assert list(found) == ["sees", "chats", "odd", "quiet"]
        sees, can = found["sees"], found["sees"]["capabilities"]
        assert (sees["display_name"], sees["created_at"]) == ("Seer 4", "2025-10-15T01:02:03.000Z")
        assert (sees["max_input_tokens"], sees["max_tokens"]) == (200000, 64000) and "surprise" not in sees
        assert not can["pdf_input"]["supported"] and can["code_execution"]["supported"]  # code runs here, not there
        assert can["thinking"]["supported"] and not can["thinking"]["types"]["adaptive"]["supported"]
        assert can["thinking"]["types"]["enabled"]["supported"]
        assert can["effort"]["supported"] and can["effort"]["low"]["supported"] and not can["effort"]["max"]["supported"]
        assert found["chats"]["created_at"] == "2023-06-16T17:03:22.000Z" and found["chats"]["max_tokens"] is None
        for name in ("odd", "quiet"):  # nothing that can be used is nothing that is known
            one = found[name]
            assert (one["display_name"], one["created_at"], one["max_tokens"]) == (name, "1970-01-01T00:00:00Z", None)
            assert one["capabilities"]["pdf_input"]["supported"]
        before = len(models.desk.asked_about)
        assert other.get("/v1/models/sees").expect(200).json == sees and len(models.desk.asked_about) == before  # it is kept
        assert ("/v1/models/sees", "secret-sees", None) in models.desk.asked_about
        assert ("/v1/models/chats", None, "Bearer secret-chats") in models.desk.asked_about


def test_a_model_that_only_the_endpoint_knows(models):
    """Without a name an endpoint is asked for whatever a request names, and so about it."""
    models.desk.about = {"sees": {"display_name": "Seer"}, "other one:2": {"display_name": "Other", "created_at": "2024-02-29T12:00:00Z"}}
    config = (f"[model sees]\napi = anthropic\nurl = {models.desk.anthropic}\n"
              f"[model one]\napi = anthropic\nurl = {models.desk.anthropic}\nname = sees\n")
    with Server("--ready", "0", "--preload", "", config=config) as server, Talk(server) as other:
        found = other.get("/v1/models/other%20one:2").expect(200).json
        assert (found["id"], found["display_name"], found["created_at"]) == ("other one:2", "Other", "2024-02-29T12:00:00.000Z")
        assert other.get("/v1/models/sees").json["display_name"] == other.get("/v1/models/one").json["display_name"] == "Seer"
        refused(other.get("/v1/models/unheard-of"), 404)
        for n in range(40):  # more names than are remembered
            refused(other.get(f"/v1/models/nobody-{n}"), 404)
        assert other.get("/v1/models/other%20one:2").expect(200).json == found
        assert [m["id"] for m in other.get("/v1/models").json["data"]] == ["sees", "one"]
    with Server("--ready", "0", "--preload", "", "--model-url", models.desk.anthropic, "--model-api", "anthropic",
                "--model-name", "sees") as server, Talk(server) as other:
        refused(other.get("/v1/models/other%20one:2"), 404)  # this one is always asked for the same
