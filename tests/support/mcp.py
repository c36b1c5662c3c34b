"""A small MCP client over HTTP, in both eras.

Legacy has a session; Modern says all of itself with each request. Of both:

    call("run_code", code="6 * 7")      the result of a tool; RpcError for a JSON-RPC error
    request("tools/list")               the result of any method
    ask("tools/call", {...})            a Reply, whatever came of it: status, headers, messages
    begin("tools/call", {...})          an Exchange: messages as they come; close() goes away

`answers` of a client has a function for each method the server may ask for, as
{"elicitation/create": lambda params: {"action": "accept", "content": {}}}. Legacy posts what it
returns while the call goes on; Modern repeats the call with it.
"""

import base64
import itertools
import json

META = "io.modelcontextprotocol/"
VERSION_KEY = META + "protocolVersion"
CAPABILITIES_KEY = META + "clientCapabilities"
LOG_KEY = META + "logLevel"

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId",
         "tasks/update": "taskId", "tasks/cancel": "taskId"}
ROUNDS = 10  # of questions within one call


class RpcError(Exception):
    def __init__(self, error):
        super().__init__(f"{error['code']}: {error['message']}")
        self.code, self.message, self.data = error["code"], error["message"], error.get("data")


def text_of(result):
    """All the text of a tool's result."""
    return "\n".join(c["text"] for c in result["content"] if c["type"] == "text")


class Event:
    """One event of a stream; message: None when it has no data."""

    def __init__(self):
        self.id = self.retry = self.message = None

    def __repr__(self):
        return f"<event {self.id} retry {self.retry} {self.message}>"


class Exchange:
    """The answer to one request of HTTP as it comes. Iterating gives messages; events() events."""

    def __init__(self, connection, response, question=None):
        self.connection, self.response, self.question = connection, response, question
        self.status = response.status
        self.headers = {k.lower(): v for k, v in response.getheaders()}
        self.streams = self.headers.get("content-type", "").startswith("text/event-stream")
        self.last_id = None  # of the events seen
        self.pings = 0

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        self.connection.close()
        self.response.close()

    def __iter__(self):
        if not self.streams:
            body = self.response.read()
            found = json.loads(body) if body else []
            yield from found if isinstance(found, list) else [found]
            return
        for event in self.events():
            if isinstance(event.message, list):
                yield from event.message
            elif event.message is not None:
                yield event.message

    def events(self):
        event, seen = Event(), False
        while line := self.response.readline():
            name, _, value = line.decode().rstrip("\n").partition(":")
            value = value.removeprefix(" ")
            if line == b"\n" and seen:
                self.last_id = event.id or self.last_id
                yield event
                event, seen = Event(), False
            elif name == "id":
                event.id, seen = value, True
            elif name == "retry":
                event.retry, seen = int(value), True
            elif name == "data":
                seen = True
                event.message = json.loads(value) if value else None
            elif name == "" and line != b"\n":
                self.pings += 1
            else:
                assert line == b"\n" or (name, value) == ("event", "message"), line

    def until(self, method):
        """The first message of that method; questions before it are answered."""
        for message in self:
            if message.get("method") == method:
                return message
            self.answer(message)
        raise AssertionError(f"never came: {method}")

    def answer(self, message):
        if self.question and "id" in message and "method" in message:
            self.question(message)

    def reply(self):
        """Everything until the end."""
        messages = []
        for message in self:
            messages.append(message)
            self.answer(message)
        self.close()
        return Reply(self.status, self.headers, messages, self.streams)


class Reply:
    def __init__(self, status, headers, messages, streamed):
        self.status, self.headers, self.messages, self.streamed = status, headers, messages, streamed

    @property
    def response(self):
        """The one response among the messages."""
        found = [m for m in self.messages if "method" not in m]
        assert len(found) == 1, self
        return found[0]

    @property
    def result(self):
        if "error" in self.response:
            raise RpcError(self.response["error"])
        return self.response["result"]

    def of(self, method):
        """The parameters of each notification or request of that method."""
        return [m.get("params") for m in self.messages if m.get("method") == method]

    def refused(self, status, code):
        """Checks that it is an error, and this one; returns it."""
        assert self.status == status, self
        error = self.response["error"]
        assert error["code"] == code, error
        assert error["message"] and isinstance(error["message"], str)
        return error

    def __repr__(self):
        return f"<{self.status} {self.headers} {str(self.messages)[:1500]}>"


class Peer:
    """What both eras share."""

    def __init__(self, server, key=None, capabilities=None, answers=None, path="/mcp", headers=None):
        self.server, self.path, self.key = server, path, key
        self.capabilities = {} if capabilities is None else capabilities
        self.answers = answers or {}
        self.headers = {"Accept": "application/json, text/event-stream", **(headers or {})}
        self.ids = itertools.count(1)

    def post(self, message, headers=None, body=None):
        """An Exchange for any message, or for any bytes. A header of None is left out."""
        if body is None:
            body = json.dumps(message).encode()
        return self.send("POST", body, {"Content-Type": "application/json", **(headers or {})})

    def send(self, method, body=None, headers=None):
        headers = {k: v for k, v in {**self.headers, **(headers or {})}.items() if v is not None}
        connection = self.server.client(self.key)
        response = connection.begin(method, self.path, body=body, headers=headers)
        return Exchange(connection, response, self.question)

    def shoot(self, method, params=None):
        """Sends a request and waits for nothing: the socket."""
        params = self.params(params)
        body = json.dumps({"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": params})
        headers = {"Host": "localhost", "Content-Length": len(body), **self.headers,
                   **self.headers_of(method, params)}
        s = self.server.connect()
        s.sendall(f"POST {self.path} HTTP/1.1\r\n".encode()
                  + b"".join(f"{k}: {v}\r\n".encode() for k, v in headers.items())
                  + f"\r\n{body}".encode())
        return s

    def params(self, params=None):
        return params or {}

    def headers_of(self, method, params):
        raise NotImplementedError

    def question(self, message):
        """A server's request on a stream of ours."""
        raise AssertionError(f"nobody expected to be asked: {message}")

    def begin(self, method, params=None, headers=None, **more):
        raise NotImplementedError

    def ask(self, method, params=None, **more):
        return self.begin(method, params, **more).reply()

    def request(self, method, params=None, **more):
        return self.ask(method, params, **more).result

    def call(self, tool, **arguments):
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def tools(self):
        return {t["name"]: t for t in self.request("tools/list")["tools"]}


class Legacy(Peer):
    """with Legacy(server) as client: initialized, and its session ended at the end."""

    def __init__(self, server, version=LEGACY, **more):
        super().__init__(server, **more)
        self.version, self.session, self.info = version, None, None

    def __enter__(self):
        return self.initialize()

    def __exit__(self, kind, *exc):
        if kind is None and self.session:
            self.end()

    def initialize(self):
        reply = self.ask("initialize", {"protocolVersion": self.version,
                                        "capabilities": self.capabilities,
                                        "clientInfo": {"name": "tests", "version": "1"}})
        self.info = reply.result
        self.session = reply.headers.get("mcp-session-id")
        self.version = self.info["protocolVersion"]
        self.notify("notifications/initialized")
        return self

    def own_headers(self):
        if not self.session:
            return {}
        return {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": self.version}

    def headers_of(self, method, params):
        return self.own_headers()

    def post(self, message, headers=None, body=None):
        return super().post(message, {**self.own_headers(), **(headers or {})}, body)

    def begin(self, method, params=None, headers=None, id=None):
        message = {"jsonrpc": "2.0", "id": next(self.ids) if id is None else id, "method": method}
        if params is not None:
            message["params"] = params
        return self.post(message, headers)

    def notify(self, method, params=None):
        message = {"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}
        exchange = self.post(message)
        assert exchange.status == 202, exchange.status
        assert list(exchange) == []
        exchange.close()

    def cancel(self, id, reason="enough"):
        self.notify("notifications/cancelled", {"requestId": id, "reason": reason})

    def question(self, message):
        answer = self.answers.get(message["method"])
        assert answer, f"nobody expected to be asked: {message}"
        exchange = self.post({"jsonrpc": "2.0", "id": message["id"],
                              "result": answer(message.get("params", {}))})
        assert exchange.status == 202, exchange.status
        exchange.close()

    def listen(self, last_id=None):
        """The GET stream; last_id: that of a POST, from after that event on."""
        return self.send("GET", headers={**self.own_headers(), "Accept": "text/event-stream",
                                         "Last-Event-ID": last_id})

    def end(self):
        exchange = self.send("DELETE", headers=self.own_headers())
        assert exchange.status == 204, exchange.status
        exchange.close()
        self.session = None


class Modern(Peer):
    """meta: what is said with each request beside the version and the capabilities."""

    def __init__(self, server, version=MODERN, meta=None, **more):
        super().__init__(server, **more)
        self.version, self.meta = version, meta or {}

    def params(self, params=None):
        params = dict(params or {})
        params["_meta"] = {VERSION_KEY: self.version, CAPABILITIES_KEY: self.capabilities, **self.meta,
                           **params.get("_meta", {})}
        return params

    def headers_of(self, method, params):
        headers = {"MCP-Protocol-Version": self.version, "Mcp-Method": method}
        if isinstance(params.get(NAMED.get(method)), str):
            headers["Mcp-Name"] = header_text(params[NAMED[method]])
        return headers

    def begin(self, method, params=None, headers=None, id=None):
        params = self.params(params)
        message = {"jsonrpc": "2.0", "id": next(self.ids) if id is None else id, "method": method,
                   "params": params}
        return self.post(message, {**self.headers_of(method, params), **(headers or {})})

    def request(self, method, params=None, **more):
        """Questions are answered, and the request repeated, as often as it takes."""
        params = dict(params or {})
        for _ in range(ROUNDS):
            result = super().request(method, params, **more)
            if result.get("resultType") != "input_required" or not self.answers:
                return result
            params = {**params, **self.answered(result)}
        raise AssertionError(f"still asking after {ROUNDS} rounds: {result}")

    def answered(self, result):
        """What a call that ended with questions is repeated with."""
        more = {"inputResponses": {key: self.answers[q["method"]](q.get("params", {}))
                                   for key, q in result.get("inputRequests", {}).items()}}
        if "requestState" in result:
            more["requestState"] = result["requestState"]
        return more


def header_text(value):
    """A parameter as a header says it: what does not fit into one is base64."""
    plain = value.isascii() and value.isprintable() and value == value.strip()
    if plain and not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="
