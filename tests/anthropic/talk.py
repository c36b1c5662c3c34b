"""POST /v1/messages as a client writes and reads it. The model plays what the user's text says."""

import http.client
import json

from api import Api
from support.retort import wait_until


def tool(version="20250825"):
    return {"type": f"code_execution_{version}", "name": "code_execution"}


def user(turns, *more):
    return {"role": "user", "content": [{"type": "text", "text": json.dumps({"turns": turns})}, *more]}


def body(turns, *more, **fields):
    return {"model": "scripted", "max_tokens": 1024, "tools": [tool()], "messages": [user(turns, *more)], **fields}


def answer(call, content, **more):
    """The user's message with the result of a call, or of each of several."""
    calls = call if isinstance(call, list) else [call]
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": c["id"], "content": content, **more}
                                        for c in calls]}


def said(message):
    return {"role": "assistant", "content": message["content"]}


def kinds(message):
    return [block["type"] for block in message["content"]]


def results(message):
    return [block["content"] for block in message["content"] if block["type"].endswith("_tool_result")]


def running(client):
    """The executions that are under way, by their ids."""
    return {e["id"] for e in client.all("/v1/executions") if e["status"] == "running"}


def begun(client, before, code=""):
    """The execution that has begun since, with this in its code. The list may show it a moment later than the stream
    does, and one of a test before as well."""
    def found():
        return [e["id"] for e in client.all("/v1/executions")
                if e["status"] == "running" and e["id"] not in before
                and code in client.get("/v1/executions/" + e["id"]).json["code"]]
    wait_until(found, "the code to begin")
    [one] = found()
    return one


class Talk(Api):
    def ask_model(self, request, **headers):
        return self.post("/v1/messages", request, headers=headers)

    def message(self, request, **headers):
        return self.ask_model(request, **headers).expect(200).json

    def go(self, turns, *more, **fields):
        return self.message(body(turns, *more, **fields))

    def bash(self, command, **fields):
        """What one command comes to."""
        [result] = results(self.go([[{"bash": command}]], **fields))
        return result

    def python(self, code, version="20260120", **fields):
        [result] = results(self.go([[{"python": code}]], **{"tools": [tool(version)], **fields}))
        return result

    def begin(self, request, **headers):
        """A stream that has begun: its events one by one."""
        response = self.client.begin("POST", "/anthropic/v1/messages", {**request, "stream": True}, headers=headers)
        return Events(self.client, response)

    def stream(self, request, lenient=False, **headers):
        """All events, and the message that they make. lenient: a call may break off."""
        with self.begin(request, **headers) as events:
            assert events.status == 200, events.response.read()
            found = list(events)
        self.client.close()
        return found, rebuilt(found, lenient)


class Events:
    def __init__(self, client, response):
        self.client, self.response, self.status = client, response, response.status
        self.headers = {k.lower(): v for k, v in response.getheaders()}

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.client.close()
        self.response.close()

    def __iter__(self):
        return self

    def __next__(self):
        name = None
        while True:
            try:
                line = self.response.readline().decode().rstrip("\n")
            except http.client.IncompleteRead:
                raise StopIteration from None
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                event = json.loads(line[6:])
                assert event["type"] == name, event
                assert self.response.readline() == b"\n"
                return event
            else:
                assert not line, line
                raise StopIteration


def parsed(text, lenient):
    try:
        return json.loads(text)
    except ValueError:
        if not lenient:
            raise
        return {"raw": text}


def rebuilt(events, lenient=False):
    """As an SDK puts a message together; checks the order of events on the way."""
    assert events[0]["type"] == "message_start" and events[-1]["type"] == "message_stop", events
    message, opened = events[0]["message"], None
    assert message["content"] == [] and message["stop_reason"] is None
    for event in events[1:-1]:
        kind = event["type"]
        if kind == "content_block_start":
            assert opened is None and event["index"] == len(message["content"])
            opened, typed = json.loads(json.dumps(event["content_block"])), ""
            message["content"].append(opened)
        elif kind == "content_block_delta":
            assert event["index"] == len(message["content"]) - 1
            delta = event["delta"]
            if delta["type"] == "text_delta":
                opened["text"] += delta["text"]
            elif delta["type"] == "input_json_delta":
                assert opened["input"] == {}
                typed += delta["partial_json"]
            elif delta["type"] in ("thinking_delta", "signature_delta"):
                member = delta["type"].removesuffix("_delta")
                opened[member] += delta[member]
            else:
                raise AssertionError(event)
        elif kind == "content_block_stop":
            assert event["index"] == len(message["content"]) - 1
            if typed:
                opened["input"] = parsed(typed, lenient)
            opened = None
        elif kind == "message_delta":
            assert opened is None
            message.update(event["delta"])
            message["usage"].update(event["usage"])
        else:
            assert kind == "ping", event
    return message
