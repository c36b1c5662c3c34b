"""The same door in front of models that are asked over the network, in both of their dialects."""

import base64
import re
import struct

import pytest

from support.model_server import ModelServer
from support.server import Server
from talk import Talk, answer, body, kinds, rebuilt, results, said, tool

KEY = "sk-of-the-operator"
LOCAL = {"name": "local", "description": "d", "input_schema": {"type": "object"}}
LOOKUP = {**LOCAL, "name": "lookup", "allowed_callers": ["code_execution_20260120"]}


@pytest.fixture(scope="module", params=["anthropic", "openai"])
def backend(request, tmp_path_factory):
    key = tmp_path_factory.mktemp("keys") / "key"
    key.write_text(KEY + "\n")
    key.chmod(0o600)  # of whoever starts the server, which serves as somebody else when that is root
    with ModelServer() as models:
        desk = models.desk()
        with Server("--model-url", getattr(desk, request.param), "--model-api", request.param,
                    "--model-images", "--model-key-file", key) as server:
            server.api, server.desk = request.param, desk
            yield server


@pytest.fixture
def talk(backend):
    with Talk(backend) as one:
        yield one


def last_sent(backend):
    return backend.desk.requests[-1]["body"]


def test_a_turn_with_a_result(talk, backend):
    message = talk.go([[{"text": "look"}, {"bash": "echo hi"}], [{"text": "done"}]])
    assert kinds(message) == ["text", "server_tool_use", "bash_code_execution_tool_result", "text"]
    assert results(message)[0]["stdout"] == "hi\n" and message["usage"]["input_tokens"] == 22
    assert "hi" in str(last_sent(backend)["messages"][-1])
    described = str(last_sent(backend)["tools"])
    assert all(word in described for word in ("$INPUT_DIR", "$OUTPUT_DIR", "no network", "30 seconds"))


def test_the_model_sees_the_preview_of_a_large_image(talk, backend):
    """Small ones as they are; in the order of the code."""
    code = "from PIL import Image\nfor size in (2000, 10), (8, 6): display(Image.new('RGB', size))"
    talk.go([[{"python": code}], [{"text": "seen"}]], tools=[tool("20260120")])
    sent = re.findall(r"iVBORw0KGgo[A-Za-z0-9+/=]+", str(last_sent(backend)["messages"]))
    assert [struct.unpack(">II", base64.b64decode(s)[16:24]) for s in sent] == [(1568, 8), (8, 6)]


def test_a_damaged_image_does_not_reach_a_model(talk, backend):
    """An endpoint refuses it, with every later request that has it in its history."""
    make = ("from PIL import Image\nfrom IPython.display import Image as Shown\nImage.new('RGB', (9, 7)).save('whole.png')\n"
            "whole = open('whole.png', 'rb').read()\nopen('torn.png', 'wb').write(whole[:-9])\nImage.new('L', (8001, 1)).save('wide.png')\n"
            "display(Shown(data=whole[:-9], format='png'))")
    views = [{"edit": {"command": "view", "path": name}} for name in ("torn.png", "wide.png", "whole.png")]
    message = talk.go([[{"python": make}], views, [{"text": "seen"}]], tools=[tool("20260120")])
    assert [r["file_type"] for r in results(message)[1:]] == ["image"] * 3  # the client gets them
    again = {**body([], tools=[tool("20260120")]), "messages": [{"role": "user", "content": "x"}, said(message), {"role": "user", "content": "y"}]}
    for _ in range(2):
        sent = str(last_sent(backend)["messages"])
        assert sent.count("iVBORw0KGgo") == 1 and sent.count("an image that cannot be shown") == 2 and sent.count("[the image]") == 1
        talk.message(again)


def test_the_key_goes_to_the_endpoint_and_nowhere_else(talk, backend):
    everywhere = "cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; env"
    message = talk.go([[{"bash": everywhere}, {"python": "import os; print(os.environ)"}], [{"text": "x"}]], tools=[tool("20260120")])
    sent = backend.desk.requests[-1]
    assert KEY in (sent["headers"].get("x-api-key"), sent["headers"].get("authorization", "").removeprefix("Bearer "))
    assert KEY not in str(sent["body"]) and KEY not in str(message) and KEY not in backend.log(1 << 20)
    assert all(KEY.encode() not in path.read_bytes() for path in backend.state.rglob("*") if path.is_file())


def test_text_streams_as_it_comes(talk):
    events, message = talk.stream(body([[{"text": "a long text in many pieces"}, {"bash": "echo 1"}], [{"text": "end"}]]))
    pieces = [e["delta"]["text"] for e in events if e["type"] == "content_block_delta" and e["index"] == 0]
    assert len(pieces) > 1 and "".join(pieces) == "a long text in many pieces"
    assert kinds(message) == ["text", "server_tool_use", "bash_code_execution_tool_result", "text"]


def test_a_conversation_goes_on(talk):
    """History with calls, results, a client's tool and a pause is one that the endpoint takes."""
    request = body([[{"bash": "echo 1 > f"}, {"edit": {"command": "view", "path": "f"}}],
                    [{"tool": {"name": "local", "input": {}}}], [{"bash": "cat f"}], [{"text": "end"}]],
                   tools=[tool(), LOCAL])
    first = talk.message(request)
    assert first["stop_reason"] == "tool_use"
    request["messages"] += [said(first), answer(first["content"][-1], "r")]
    second = talk.message(request)
    assert results(second)[0]["stdout"] == "1\n" and second["stop_reason"] == "end_turn"


def test_the_model_reads_of_functions_and_not_of_calls(talk, backend):
    request = body([[{"python": "print(await lookup({}))"}], [{"text": "end"}]], tools=[tool("20260120"), LOOKUP])
    first = talk.message(request)
    assert "async def lookup" in str(last_sent(backend)["tools"])
    request["messages"] += [said(first), answer(first["content"][-1], "hidden")]
    second = talk.message(request)
    assert results(second)[0]["stdout"] == "hidden\n"
    assert "toolu_" not in str(last_sent(backend)["messages"])


def test_broken_arguments_are_an_error_block(talk):
    [result] = results(talk.go([[{"raw_call": {"name": "bash_code_execution", "raw": '{"command": '}}], [{"text": "x"}]]))
    assert result["error_code"] == "invalid_tool_input"


def test_thinking_comes_back_as_it_was(talk, backend):
    if backend.api != "anthropic":
        return
    request = body([[{"thinking": "hm"}, {"bash": "echo 1"}], [{"text": "x"}]])
    for message in (talk.message(request), talk.stream(request)[1]):
        assert message["content"][0]["type"] == "thinking" and message["content"][0]["thinking"] == "hm"
        again = {**request, "messages": [*request["messages"], said(message), {"role": "user", "content": "and?"}]}
        talk.message(again)
        sent = [b for m in last_sent(backend)["messages"] for b in m["content"] if isinstance(b, dict)]
        assert [b["thinking"] for b in sent if b["type"] == "thinking"] == ["hm"]


# --- live: a stream is written as the model writes, in its order ---


def test_a_stream_does_not_wait_for_the_model(talk, backend):
    """Text and the input of a call are there while the model still writes them."""
    desk, call = backend.desk, {"command": "echo one two three"}
    for step, member in (({"text": "first and second", "hold": 2}, "text"),
                         ({"tool": {"name": "bash_code_execution", "input": call}, "hold": 3}, "partial_json"),
                         ({"tool": {"name": "local", "input": {"a": "long enough"}}, "hold": 2}, "partial_json")):
        desk.gate.clear()
        with talk.begin(body([[step], [{"text": "end"}]], tools=[tool(), LOCAL])) as events:
            seen, early = [], ""
            for event in events:
                seen.append(event)
                early += event.get("delta", {}).get(member) or ""
                if len(early) >= 14:
                    break
            assert not desk.gate.is_set() and early
            desk.gate.set()
            message = rebuilt(seen + list(events))
        talk.client.close()
        assert message["stop_reason"] == ("tool_use" if "local" in str(step) else "end_turn"), message


@pytest.mark.parametrize("backend", ["anthropic"], indirect=True)
def test_thinking_streams_in_its_place(talk, backend):
    desk = backend.desk
    desk.gate.clear()
    steps = [{"thinking": "a thought in pieces", "hold": 2}, {"redacted": "c2VjcmV0"}, {"text": "one"}, {"thinking": "again"},
             {"bash": "echo 1"}]
    request = body([steps, [{"thinking": "after"}, {"text": "end"}]])
    with talk.begin(request) as events:
        seen = []
        for event in events:
            seen.append(event)
            if event.get("delta", {}).get("thinking"):
                break
        assert not desk.gate.is_set()
        desk.gate.set()
        message = rebuilt(seen + list(events))
    talk.client.close()
    order = ["thinking", "redacted_thinking", "text", "thinking", "server_tool_use", "bash_code_execution_tool_result",
             "thinking", "text"]
    whole = talk.message(request)
    assert kinds(message) == order == kinds(whole)
    assert [b["thinking"] for b in message["content"] if "thinking" in b] == ["a thought in pieces", "again", "after"]
    assert [b["thinking"] for b in whole["content"] if "thinking" in b] == ["a thought in pieces", "again", "after"]
    assert all(b["signature"] for b in message["content"] + whole["content"] if b["type"] == "thinking")
    again = {**request, "messages": [*request["messages"], said(message), {"role": "user", "content": "and?"}]}
    talk.message(again)
    sent = [b["type"] for m in last_sent(backend)["messages"] for b in m["content"] if m["role"] == "assistant"]
    assert sent == ["thinking", "redacted_thinking", "text", "thinking", "tool_use", "thinking", "text"]


def test_a_character_in_two_halves(talk, backend):
    text = "abcdef\U0001F600 and seven \U0001F680"
    events, message = talk.stream(body([[{"text": text}]]))
    assert message["content"][0]["text"] == text == talk.go([[{"text": text}]])["content"][0]["text"]
    assert sum("text_delta" in str(e) for e in events) > 2


@pytest.mark.parametrize("stream", [True, False])
def test_a_reply_that_breaks_off_in_a_call(talk, backend, stream):
    """Code has run, so the message pauses. The half of a command that the client has read never runs."""
    turns = [[{"bash": "echo ran >> /workspace/log"}],
             [{"text": "now"}, {"tool": {"name": "bash_code_execution", "input": {"command": "echo torn > /workspace/torn"}}, "cut": 5}]]
    request = body(turns)
    message = talk.stream(request, lenient=True)[1] if stream else talk.message(request)
    assert message["stop_reason"] == "pause_turn"
    half = {"command": "echo to > /workspace/torn"}  # an SDK makes some input of the half that it has
    for block in message["content"]:
        if block["type"] == "server_tool_use" and block["input"] != {"command": "echo ran >> /workspace/log"}:
            block["input"] = half
    request["messages"].append(said(message))  # as it is
    backend.desk.faults.append({"fault": "say", "steps": [{"bash": "cat log; ls torn"}]})
    last = talk.message({**request, "container": message["container"]["id"]})
    assert results(last)[0]["stdout"] == "ran\n" and "No such file" in results(last)[0]["stderr"], last


def test_a_reply_that_breaks_off_in_a_call_of_the_clients(talk, backend):
    request = body([[{"bash": "echo ran"}], [{"tool": {"name": "local", "input": {"long": "enough to cut"}}, "cut": 2}]],
                   tools=[tool(), LOCAL])
    message = talk.stream(request, lenient=True)[1]
    assert message["stop_reason"] == "pause_turn" and kinds(message)[-1] == "tool_use"
    request["messages"].append(said(message))
    backend.desk.faults.append({"fault": "say", "steps": [{"text": "on"}]})
    assert talk.message(request)["stop_reason"] == "end_turn"


@pytest.mark.parametrize("backend", ["anthropic"], indirect=True)
def test_thinking_that_breaks_off_is_not_sent_back(talk, backend):
    """Without its signature an endpoint would refuse it."""
    request = body([[{"bash": "echo ran"}], [{"thinking": "a long one", "cut": 1}]])
    message = talk.stream(request)[1]
    assert message["stop_reason"] == "pause_turn" and kinds(message)[-1] == "thinking"
    request["messages"].append(said(message))
    backend.desk.faults.append({"fault": "say", "steps": [{"text": "on"}]})
    assert talk.message(request)["stop_reason"] == "end_turn"
    assert "thinking" not in str(last_sent(backend)["messages"][1:]) and last_sent(backend)["messages"][-1]["role"] == "user"


def test_max_tokens_in_the_middle_of_a_command(talk, backend):
    """A command of which a half is known never runs."""
    broken = {"raw_call": {"name": "bash_code_execution", "raw": '{"command": "touch /workspace/no'}}
    request = body([[broken, {"stop": "length"}]])
    for message in (talk.message(request), talk.stream(request, lenient=True)[1]):
        assert message["stop_reason"] == "max_tokens"
        assert results(message)[0]["error_code"] == "invalid_tool_input"


@pytest.fixture(scope="module")
def troubled():
    faults = {"busy": "429", "closed": {"fault": "status", "status": 401}}
    with ModelServer() as models:
        config = "".join(f"[model {name}]\napi = anthropic\nurl = {models.desk(always=fault).anthropic}\n"
                         for name, fault in faults.items())
        with Server("--ready", "0", config=config) as server:
            yield server


@pytest.mark.parametrize("model, status", [("busy", 429), ("closed", 500)])
def test_trouble(troubled, model, status):
    with Talk(troubled) as talk:
        refused = talk.ask_model(body([[{"text": "x"}]], model=model))
        assert refused.status == status, refused


# --- what the model says of its end ---


messages_only = pytest.mark.parametrize("backend", ["anthropic"], indirect=True)  # chat completions do not say it


@messages_only
def test_a_stop_sequence_is_told(talk, backend):
    request = body([[{"text": "one"}, {"stop": "sequence"}]], stop_sequences=["END"])
    for message in (talk.message(request), talk.stream(request)[1]):
        assert message["stop_reason"] == "stop_sequence" and message["stop_sequence"] == "END"


@messages_only
def test_a_full_window_is_no_max_tokens(talk, backend):
    assert talk.go([[{"text": "one"}, {"stop": "window"}]])["stop_reason"] == "model_context_window_exceeded"


@messages_only
def test_usage_of_a_cache_is_the_models(talk, backend):
    usage = {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 30, "output_tokens": 2}
    told = talk.go([[{"bash": "true"}, {"usage": usage}], [{"text": "end"}, {"usage": usage}]])["usage"]
    assert {name: told[name] for name in usage} == {name: 2 * n for name, n in usage.items()}
    assert told["cache_creation"] == {"ephemeral_5m_input_tokens": 60, "ephemeral_1h_input_tokens": 0}
    usage["cache_creation"] = {"ephemeral_5m_input_tokens": 13, "ephemeral_1h_input_tokens": 17}
    assert talk.go([[{"text": "end"}, {"usage": usage}]])["usage"]["cache_creation"] == usage["cache_creation"]


def test_a_tool_that_nobody_declared_is_the_models_mistake(talk, backend):
    message = talk.go([[{"tool": {"name": "browse", "input": {}}}, {"text": "and"}], [{"bash": "echo on"}], [{"text": "end"}]])
    assert kinds(message) == ["text", "server_tool_use", "bash_code_execution_tool_result", "text"]
    assert message["stop_reason"] == "end_turn"
    assert "there is no tool `browse`. The tools are: bash_code_execution, text_editor" in str(last_sent(backend)["messages"])


def test_bash_is_there_only_where_the_version_has_it(talk, backend):
    message = talk.go([[{"tool": {"name": "bash_code_execution", "input": {"command": "echo no"}}}], [{"text": "end"}]],
                      tools=[tool("20250522")])
    assert kinds(message) == ["text"] and "there is no tool `bash_code_execution`" in str(last_sent(backend)["messages"])


@messages_only
def test_interleaved_thinking_keeps_its_place(talk, backend):
    first = talk.go([[{"thinking": "one"}, {"text": "a"}, {"thinking": "two"}, {"text": "b"}]])
    assert kinds(first) == ["thinking", "text", "thinking", "text"]
    talk.message({**body([]), "messages": [{"role": "user", "content": "x"}, said(first), {"role": "user", "content": "y"}]})
    sent = [m for m in last_sent(backend)["messages"] if m["role"] == "assistant"][0]["content"]
    assert [b["type"] for b in sent] == ["thinking", "text", "thinking", "text"]


@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_refusal_of_the_model_says_why(talk, backend, status):
    backend.desk.faults.append({"fault": "status", "status": status, "message": "temperature is not for this model"})
    answer = talk.ask_model(body([[{"text": "x"}]]))
    assert answer.status == (404 if status == 404 else 400)
    assert "temperature is not for this model" in answer.json["error"]["message"]
    assert answer.headers["x-should-retry"] == "false"


# --- what a request asks of the model ---


@messages_only
def test_options_reach_the_model(talk, backend):
    options = {"temperature": 0.5, "top_p": 0.9, "top_k": 7, "thinking": {"type": "enabled", "budget_tokens": 1024},
               "output_config": {"effort": "low"}, "metadata": {"user_id": "u"}}
    talk.go([[{"bash": "true"}], [{"text": "x"}]], **options)
    for sent in backend.desk.requests[-2:]:
        assert {name: sent["body"].get(name) for name in options} == options


@pytest.mark.parametrize("backend", ["openai"], indirect=True)
def test_options_that_the_model_cannot_take_are_refused(talk, backend):
    talk.go([[{"text": "x"}]], temperature=0.5, top_p=0.9, thinking={"type": "disabled"}, metadata={"user_id": "u"})
    assert (last_sent(backend)["temperature"], last_sent(backend)["top_p"]) == (0.5, 0.9)
    for name, value in {"top_k": 7, "thinking": {"type": "enabled", "budget_tokens": 1024}, "output_config": {"effort": "low"}}.items():
        answer = talk.ask_model(body([[{"text": "x"}]], **{name: value}))
        assert answer.status == 400 and answer.json["error"]["message"].startswith(name + ": ")


@pytest.mark.parametrize("kind, name, call", [
    ("bash_20250124", "bash", {"command": "ls"}),
    ("text_editor_20250728", "str_replace_based_edit_tool", {"command": "view", "path": "/x"}),
    ("memory_20250818", "memory", {"command": "view", "path": "/memories"}),
    ("computer_20250124", "computer", {"action": "left_click", "coordinate": [3, 4]})])
def test_tools_of_anthropic_that_the_client_runs(talk, backend, kind, name, call):
    screen = {"display_width_px": 1283, "display_height_px": 771} if name == "computer" else {}
    request = body([[{"tool": {"name": name, "input": call}}], [{"text": "end"}]],
                   tools=[tool(), {"type": kind, "name": name, **screen}])
    first = talk.message(request)
    assert first["stop_reason"] == "tool_use" and first["content"][0]["name"] == name and first["content"][0]["input"] == call
    assert first["container"] is None
    request["messages"] += [said(first), answer(first["content"][0], "done")]
    assert talk.message(request)["stop_reason"] == "end_turn"
    told = str(last_sent(backend)["tools"]).replace("'", '"')
    assert all(f'"{argument}"' in told for argument in call) and (not screen or "1283 x 771" in told)
