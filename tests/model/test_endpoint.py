"""Questions to endpoints that behave, and to those that do not, in both wire formats."""

import email.utils
import json
import socket
import ssl
import threading
import time

import pytest
from driver import HELLO, TOOLS, drive
from support.model_server import ModelServer
from support.web import CERTIFICATE

TURN = [{"text": "Let me see."}, {"python": "print(6*7)"}]
CALL = {"type": "call", "name": "run_python", "args": {"code": "print(6*7)"}}


def say(*steps, **more):
    return {"fault": "say", "steps": list(steps), **more}


def without_ids(parts):
    return [{k: v for k, v in part.items() if k != "id"} for part in parts]


# --- what goes well ---


def test_a_reply(server, ask, api):
    answers = ask(server.desk([TURN]), api)
    [reply] = answers
    assert without_ids(reply["parts"]) == [{"type": "text", "text": "Let me see."}, CALL]
    assert reply["parts"][1]["id"].startswith("call_")
    assert (reply["stop"], reply["input_tokens"], reply["output_tokens"], reply["name"]) == \
        ("calls", 11, 7, "big-1")
    assert reply["texts"] == [[0, "Let me "], [0, "see."]]


def test_what_is_sent(server, ask, api):
    desk = server.desk([TURN])
    ask(desk, api, {"system": "Be brief.", "stop": ["END"], "max_tokens": 99,
                    "one_at_a_time": True})
    [request] = desk.requests
    assert request["headers"]["content-type"] == "application/json"
    assert "expect" not in request["headers"] and "accept-encoding" not in request["headers"]
    key, version = request["headers"].get("x-api-key"), request["headers"].get("anthropic-version")
    body = request["body"]
    assert (body["model"], body["max_tokens"], body["stream"]) == ("big-1", 99, True)
    if api == "openai":
        assert request["path"].endswith("/v1/chat/completions") and (key, version) == (None, None)
        assert request["headers"]["authorization"] == "Bearer sk-secret-1234"
        assert body["messages"] == [{"role": "system", "content": "Be brief."},
                                    {"role": "user", "content": "hello"}]
        assert body["stop"] == ["END"] and body["parallel_tool_calls"] is False
        assert body["stream_options"] == {"include_usage": True}
    else:
        assert request["path"].endswith("/v1/messages") and "authorization" not in request["headers"]
        assert (key, version) == ("sk-secret-1234", "2023-06-01")
        assert body["system"] == "Be brief." and body["stop_sequences"] == ["END"]
        assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]
        assert body["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}


def test_no_key_is_no_header(server, ask, api):
    desk = server.desk([TURN])
    ask(desk, api, model={"key": None})
    assert not {"authorization", "x-api-key"} & set(desk.requests[0]["headers"])


def test_base_urls_as_people_write_them(server, ask, api):
    desk = server.desk([TURN])
    bases = {"openai": ["/v1", "/v1/"], "anthropic": ["", "/", "/v1", "/v1/"]}[api]
    for base in bases:
        [reply] = ask(desk.base + base, api)
        assert reply["stop"] == "calls"


def test_whose_name_is_sent(server, ask, api):
    desk = server.desk([TURN])
    ask(desk, api, {"name": "other"})
    ask(desk, api, {"name": "other"}, {"name": None})
    ask(desk, api, model={"name": None})
    assert [b["model"] for b in desk.bodies()] == ["big-1", "other", "fast"]


def test_max_tokens_of_the_setting_and_of_nobody(server, ask, api):
    desk = server.desk([TURN])
    ask(desk, api, model={"max_tokens": 5})
    ask(desk, api)
    assert desk.bodies()[0]["max_tokens"] == 5
    assert desk.bodies()[1].get("max_tokens") == (8192 if api == "anthropic" else None)


def test_connections_are_used_again(server, ask, api):
    desk = server.desk([TURN])
    assert len(ask(desk, api, rounds=5)) == 5
    # A reply is told when its last event is there; the next question may come before the end.
    assert len({r["peer"] for r in desk.requests}) <= 2


def test_a_hundred_at_once(server, ask, api):
    desk = server.desk([TURN])
    answers = ask(desk, api, times=100)
    assert [a["stop"] for a in answers] == ["calls"] * 100
    assert len(desk.requests) == 100
    assert answers.end["kept"] < 40  # 16 connections are kept, and what libcurl needs


def test_a_large_question_and_a_large_reply(server, ask, api):
    desk = server.desk([[{"text": "x" * 2_000_000}]], always="plain")
    [reply] = ask(desk, api, {"messages": [{"role": "user", "parts": [
        {"type": "text", "text": "y" * 3_000_000}]}]})
    assert reply["parts"][0]["text"] == "x" * 2_000_000
    assert "y" * 3_000_000 in json.dumps(desk.bodies()[0])


def test_how_a_reply_ends(server, ask, api):
    stops = ["length", "refusal"]
    answers = ask(server.desk(faults=[say({"text": "half"}, {"stop": s}) for s in stops]), api,
                  rounds=2)
    assert [a["stop"] for a in answers] == stops
    assert {a["parts"][0]["text"] for a in answers} == {"half"}


def test_pause(server, ask):
    [reply] = ask(server.desk([[{"text": "wait"}, {"stop": "pause"}]]), "anthropic")
    assert reply["stop"] == "pause"


def test_an_empty_reply(server, ask, api):
    [reply] = ask(server.desk([[]]), api)
    assert (reply["parts"], reply["stop"]) == ([], "done")


def test_thoughts(server, ask, api):
    [reply] = ask(server.desk([[{"thinking": "I wonder."}, {"text": "Yes."}]]), api)
    if api == "anthropic":
        assert reply["parts"][0] == {"type": "kept", "api": "anthropic", "block": {
            "type": "thinking", "thinking": "I wonder.", "signature": "c2lnbmVk"}}
        assert [t[0] for t in reply["texts"]] == [1]
    assert reply["parts"][-1] == {"type": "text", "text": "Yes."}


# --- what endpoints do ---


def test_plain_json_for_a_stream(server, ask, api):
    streamed = ask(server.desk([[{"thinking": "hm"}, *TURN]]), api)[0]
    plain = ask(server.desk([[{"thinking": "hm"}, *TURN]], ["plain"]), api)[0]
    assert without_ids(plain["parts"]) == without_ids(streamed["parts"])
    assert plain["stop"] == streamed["stop"] and plain["output_tokens"] == 7


def test_two_calls(server, ask, api):
    [reply] = ask(server.desk(faults=["two-calls"]), api)
    assert [p["args"]["code"] for p in reply["parts"]] == ["print(1)", "print(2)"]
    assert len({p["id"] for p in reply["parts"]}) == 2


RAW = ["print(1)", '{"code": "a"}{"code": "a"}', '{"code": ', '"x"', "[1]",
       '{"code": "a\\u0000b"}']


@pytest.mark.parametrize("plain", [True, False])
def test_arguments_that_are_no_object(server, ask, api, plain):
    faults = [say({"raw_call": {"name": "run_python", "raw": raw}}, plain=plain) for raw in RAW]
    answers = ask(server.desk(faults=faults), api, rounds=len(RAW))
    for raw, reply in zip(RAW, answers):
        [part] = reply["parts"]
        assert reply["stop"] == "calls" and part["args"] is None, raw
        if not (api == "anthropic" and plain):  # there JSON stands as it is, and not as text
            assert part["raw"] == raw


def test_no_arguments_are_an_empty_object(server, ask, api):
    [reply] = ask(server.desk([[{"raw_call": {"name": "run_python", "raw": ""}}]]), api)
    assert reply["parts"][0]["args"] == {}


def test_a_call_as_text_is_text(server, ask, api):
    [reply] = ask(server.desk(faults=["text-call"]), api)
    assert reply["stop"] == "done" and reply["parts"][0]["text"].startswith("<tool_call>")


def test_refusal(server, ask, api):
    [reply] = ask(server.desk(faults=["refusal"]), api)
    assert (reply["stop"], reply["parts"][0]["text"]) == ("refusal", "I will not.")


@pytest.mark.parametrize("fault, gone, come", [
    ("no-parallel", "parallel_tool_calls", None),
    ("no-max-tokens", "max_tokens", "max_completion_tokens"),
    ("no-stream-options", "stream_options", None),
])
def test_what_is_refused_is_left_out_and_remembered(server, ask, fault, gone, come):
    desk = server.desk([TURN], [fault])
    answers = ask(desk, "openai", {"one_at_a_time": True, "max_tokens": 50}, rounds=2)
    assert [a["stop"] for a in answers] == ["calls", "calls"]
    assert [gone in b for b in desk.bodies()] == [True, False, False]
    if come:
        assert [b.get(come) for b in desk.bodies()] == [None, 50, 50]


def test_all_of_them_at_once_and_back(server, ask):
    desk = server.desk([TURN], ["no-parallel", "no-max-tokens", "no-stream-options"])
    [reply] = ask(desk, "openai", {"one_at_a_time": True, "max_tokens": 50})
    assert reply["stop"] == "calls" and len(desk.requests) == 4
    desk = server.desk([TURN], ["no-max-tokens", "no-max-completion-tokens"])
    [failed] = ask(desk, "openai", {"max_tokens": 50})
    assert failed["trouble"] == "denied" and len(desk.requests) == 3


# --- trouble ---


def test_429(server, ask, api):
    [failed] = ask(server.desk(faults=["429"]), api)
    assert failed == {"trouble": "busy", "status": 429, "retry_ms": 1000,
                      "text": "the model fast answered 429: Rate limit reached"}


AGAIN = [
    ({"retry_after": "7"}, 7000, 7000),
    ({"retry_after": "1", "retry_after_ms": "250"}, 250, 251),
    ({"retry_after": None}, 0, 0),
    ({"retry_after": "soon"}, 0, 0),
    ({"retry_after": "999999999"}, 3600_000, 3600_000),
    ({"retry_after": "-1"}, 0, 0),
]


def test_when_to_come_again(server, ask, api):
    faults = [{"fault": "429", **headers} for headers, *_ in AGAIN]
    answers = ask(server.desk(faults=faults), api, rounds=len(AGAIN))
    for (headers, least, most), failed in zip(AGAIN, answers):
        assert failed["trouble"] == "busy" and least <= failed["retry_ms"] <= most, headers


def test_when_to_come_again_as_a_date(server, ask, api):
    date = email.utils.formatdate(time.time() + 100, usegmt=True)
    [failed] = ask(server.desk(faults=[{"fault": "429", "retry_after": date}]), api)
    assert 60_000 < failed["retry_ms"] <= 101_000


STATUSES = {400: "denied", 401: "denied", 403: "denied", 404: "denied", 408: "busy", 409: "busy",
            413: "too_long", 422: "denied", 500: "busy", 502: "busy", 503: "busy", 529: "busy"}


def test_statuses(server, ask, api):
    desk = server.desk(faults=[{"fault": "status", "status": s} for s in STATUSES])
    answers = ask(desk, api, rounds=len(STATUSES))
    assert {a["status"]: a["trouble"] for a in answers} == STATUSES
    for failed in answers:
        assert failed["text"] == f"the model fast answered {failed['status']}: something broke"
    assert len(desk.requests) == len(STATUSES)  # trying again is for others to decide


def test_no_credit_left_is_not_busy(server, ask):
    [failed] = ask(server.desk(faults=[{"fault": "status", "status": 429,
                                        "code": "insufficient_quota"}]), "openai")
    assert failed["trouble"] == "denied"


def test_too_long(server, ask, api):
    [failed] = ask(server.desk(faults=["too-long"]), api)
    assert (failed["trouble"], failed["status"]) == ("too_long", 400)


TOO_LONG = [
    "This model's maximum context length is 4096 tokens",
    "the request exceeds the available context size. try increasing the context size",
    "input length and `max_tokens` exceed context limit: 199000 + 4096 > 200000",
    "prompt is too long: 5 tokens > 4 maximum",
    "Input is too long for requested model.",
]


def refusals(messages):
    return [{"fault": "status", "status": 400, "message": m} for m in messages]


def test_too_long_in_other_words(server, ask, api):
    desk = server.desk(faults=refusals(TOO_LONG))
    answers = ask(desk, api, {"max_tokens": 9}, rounds=len(TOO_LONG))
    assert [a["trouble"] for a in answers] == ["too_long"] * len(TOO_LONG)
    assert len(desk.requests) == len(TOO_LONG)


def test_no_tools(server, ask, api):
    desk = server.desk([[{"text": "FINAL: hi"}]], ["no-tools"])
    answers = ask(desk, api)
    assert answers[0]["trouble"] == "no_tools" and answers.end["text_only"]
    [reply] = ask(desk, api, {"tools": []})
    assert reply["stop"] == "done"


NO_TOOLS = [
    "registry.ollama.ai/library/gemma:2b does not support tools",
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
    "tools: Extra inputs are not permitted",
    "Function calling is not enabled for this model",
]


def test_no_tools_in_other_words(server, ask):
    answers = ask(server.desk(faults=refusals(NO_TOOLS)), "openai", rounds=len(NO_TOOLS))
    assert [a["trouble"] for a in answers] == ["no_tools"] * len(NO_TOOLS)


WRONG_TOOL = [
    "tools.0.input_schema: JSON schema is invalid",
    "tools[0].function.parameters: 'oneOf' is not permitted",
    "Invalid schema for function 'x': 'foo' is not supported in tools",
]


def test_a_tool_that_is_wrong_is_not_no_tools(server, ask, api):
    """Else one caller's mistake would take tools away from all."""
    answers = ask(server.desk(faults=refusals(WRONG_TOOL)), api, rounds=len(WRONG_TOOL))
    assert [a["trouble"] for a in answers] == ["denied"] * len(WRONG_TOOL)
    assert not answers.end["text_only"]


def test_one_name_of_many_without_tools_is_not_all_of_them(server, ask, api):
    answers = ask(server.desk(faults=["no-tools"]), api, {"name": "small"}, {"name": None})
    assert answers[0]["trouble"] == "no_tools" and not answers.end["text_only"]


def test_text_only_is_never_offered_tools(server, ask, api):
    desk = server.desk([TURN])
    answers = ask(desk, api, {"one_at_a_time": True}, {"text_only": True})
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(desk.bodies()[0])
    assert answers.end["text_only"]


def test_a_key_that_is_repeated_is_not_told(server, ask, api):
    [failed] = ask(server.desk(faults=["bad-key"]), api)
    assert failed["trouble"] == "denied" and "sk-secret" not in json.dumps(failed)
    assert failed["text"].endswith("Incorrect API key provided: ***. You sent ***.")


def test_what_is_told_is_one_short_line(server, ask, api):
    message = "a\nb\tc\x1b[31m\u2028 " + "long " * 1000
    [failed] = ask(server.desk(faults=[{"fault": "status", "status": 400, "message": message}]),
                   api)
    assert failed["text"].startswith("the model fast answered 400: a b c") and \
        len(failed["text"]) < 400 and "\x1b" not in failed["text"]


def test_a_cut_stream(server, ask, api):
    faults = [{"fault": "cut-stream", "after": after} for after in (0, 1, 3, 5)]
    answers = ask(server.desk([TURN], faults), api, rounds=4)
    assert [a["trouble"] for a in answers] == ["busy"] * 4


def test_nonsense(server, ask, api):
    answers = ask(server.desk([TURN], ["bad-json", "bad-stream"]), api, rounds=2)
    assert [(a["trouble"], a["text"]) for a in answers] == \
        [("nonsense", "the model fast answered something that is no reply")] * 2


def test_an_error_within_a_stream(server, ask, api):
    [failed] = ask(server.desk([TURN], ["error-in-stream"]), api)
    assert failed["trouble"] == "busy" and failed["text"].endswith(": Overloaded")


def test_floods(server, ask, api):
    faults = ["endless", "endless-event", "huge-header"]
    answers = ask(server.desk(faults=faults), api, rounds=3)
    assert [a["trouble"] for a in answers] == ["nonsense"] * 3


def test_a_flood_of_an_error_is_only_begun(server, ask, api):
    desk = server.desk(faults=[{"fault": "status", "status": 500, "message": "x" * 10_000_000}])
    [failed] = ask(desk, api)
    assert (failed["trouble"], failed["status"]) == ("busy", 500) and len(failed["text"]) < 400


def test_a_drip_ends_with_the_time(server, ask, api):
    answers = ask(server.desk(faults=["drip", "silence"]), api, {"wall_ms": 300}, rounds=2)
    assert [(a["trouble"], a["text"]) for a in answers] == \
        [("busy", "the model fast did not answer in time")] * 2


def test_time_of_the_setting(server, ask, api):
    [failed] = ask(server.desk(faults=["silence"]), api, model={"timeout_ms": 200})
    assert failed["text"] == "the model fast did not answer in time"


def test_redirects_are_not_followed(server, ask, api):
    trap = server.desk([TURN])
    [failed] = ask(server.desk(faults=[{"fault": "redirect", "location": trap.openai}]), api)
    assert (failed["trouble"], failed["status"]) == ("denied", 307) and not trap.requests


def test_nobody_there(ask, api):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    [failed] = ask(f"http://127.0.0.1:{port}/v1", api)
    assert (failed["trouble"], failed["text"]) == ("busy", "the model fast could not be reached")


def test_a_name_without_an_address(ask, api):
    [failed] = ask("http://nobody.invalid/v1", api)
    assert failed["trouble"] == "busy"


def test_not_http(ask, api):
    def babble(listener):
        conn, _ = listener.accept()
        with conn:
            conn.recv(65536)
            conn.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=babble, args=(listener,), daemon=True).start()
        [failed] = ask(f"http://127.0.0.1:{listener.getsockname()[1]}", api)
    assert failed["trouble"] == "busy" and failed["status"] == 0


def test_a_stream_that_is_not_closed_is_over_all_the_same(ask):
    """[DONE] is the end, whether or not the connection agrees."""
    body = (b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
            b"data: [DONE]\n\n")

    def answer(listener, held):
        conn, _ = listener.accept()
        held.append(conn)
        conn.recv(65536)
        conn.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + body)

    held = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener, held), daemon=True).start()
        [reply] = ask(f"http://127.0.0.1:{listener.getsockname()[1]}", "openai")
    assert reply["parts"] == [{"type": "text", "text": "hi"}]
    held[0].close()


# --- TLS, proxies ---


@pytest.fixture(scope="module")
def secure():
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(CERTIFICATE)
    with ModelServer(tls=tls) as own:
        yield own


def test_a_certificate_of_nobody_is_refused(secure, ask, api):
    desk = secure.desk([TURN])
    [failed] = ask(getattr(desk, api).replace("http://", "https://"), api)
    assert (failed["trouble"], failed["text"]) == \
        ("busy", "the model fast has no certificate that can be trusted")
    assert not desk.requests


def test_a_certificate_that_is_trusted_must_be_for_this_name(secure, ask, api):
    desk, trust = secure.desk([TURN]), {"ca_file": str(CERTIFICATE)}
    [reply] = ask(getattr(desk, api).replace("http://", "https://"), api, model=trust)
    assert reply["stop"] == "calls"
    [failed] = ask(getattr(desk, api).replace("http://127.0.0.1", "https://localhost"), api,
                   model=trust)
    assert failed["text"] == "the model fast has no certificate that can be trusted"
    assert len(desk.requests) == 1


def test_a_proxy_of_the_environment_does_not_count(server, ask, api):
    env = {"http_proxy": "http://127.0.0.1:1", "HTTP_PROXY": "http://127.0.0.1:1",
           "all_proxy": "http://127.0.0.1:1"}
    assert ask(server.desk([TURN]), api, env=env)[0]["stop"] == "calls"


def test_a_proxy_of_the_settings_does(server, ask, api):
    desk = server.desk([TURN])
    # This server is its own proxy: it is asked for a whole URL, and has no such page.
    [failed] = ask("http://far.invalid/v1", api,
                   model={"proxy": f"http://127.0.0.1:{server.port}"})
    assert (failed["trouble"], failed["status"]) == ("denied", 404)
    assert "far.invalid" in failed["text"] and not desk.requests


# --- cancelling ---


@pytest.mark.parametrize("when, fault", [
    ("start", None), ("start", "silence"), ("text", None), ("text", "plain"), (100, "drip"),
    (100, "silence"),
])
def test_cancel(server, ask, api, when, fault):
    """From outside, from within a piece of text, and all of several at once."""
    answers = ask(server.desk([TURN], always=fault), api, cancel=when, times=5)
    assert answers == [{"cancelled": True}] * 5


def test_cancel_and_ask_again(server, ask, api):
    answers = ask(server.desk([TURN]), api, cancel="text", rounds=20)
    assert answers == [{"cancelled": True}] * 20


# --- whom to ask ---


def test_whom_to_ask(server):
    desks = {n: server.desk([[{"text": n}]]) for n in ("fast", "local")}
    models = [{"label": n, "api": "openai", "url": d.openai} for n, d in desks.items()]
    base = {"models": models, "tenants": "acme=local , beta=scripted", "script": "-",
            "ask": {"messages": HELLO}}

    def found(**more):
        return drive({**base, **more}).end

    assert found()["found"] == "fast"
    assert found(standard="local")["found"] == "local"
    assert found(tenant="acme")["found"] == "local"
    assert found(tenant="beta")["found"] == "scripted"
    assert found(tenant="other")["found"] == "fast"
    assert found(tenant="acme", wanted="fast")["found"] == "fast"
    assert found(tenant="acme", wanted="claude-opus")["found"] == "local"
    assert found(tenant="acme")["names"] == ["local", "fast", "scripted"]
    assert found(tenant="beta")["names"] == ["scripted", "fast", "local"]
    assert found()["names"] == ["fast", "local", "scripted"]


def test_scripted_where_there_is_no_other():
    assert drive({"script": "-"}).end["found"] == "scripted"
    assert drive({}).end["found"] is None and drive({}).end["names"] == []


def test_images_are_shown_to_those_who_see(server, ask, api):
    image = {"mime": "image/png", "data": "iVBORw0K"}
    messages = [
        {"role": "user", "parts": [{"type": "text", "text": "plot"}]},
        {"role": "assistant", "parts": [{**CALL, "id": "c1"}]},
        {"role": "user", "parts": [
            {"type": "result", "id": "c1", "text": "done", "attached": [{"type": "image", **image}]},
            {"type": "image", **image}]}]
    desk = server.desk([TURN])
    answers = ask(desk, api, {"messages": messages}, {"images": True})
    ask(desk, api, {"messages": messages})
    seen, unseen = map(json.dumps, desk.bodies())
    assert answers.end["sees_images"] and seen.count("iVBORw0K") == 2
    assert "iVBORw0K" not in unseen and unseen.count("an image, image/png, 6 B") == 2


def test_tools_of_the_driver_are_what_the_model_is_shown(server, ask, api):
    desk = server.desk([TURN])
    ask(desk, api)
    [tool] = desk.bodies()[0]["tools"]
    shown = tool["function"] if api == "openai" else tool
    assert shown["name"] == TOOLS[0]["name"] and shown["description"] == TOOLS[0]["description"]
    assert (shown.get("parameters") or shown.get("input_schema")) == TOOLS[0]["schema"]
