"""A client of HTTP+SSE, the transport of MCP 2024-11-05: one stream, and messages beside it."""

import json

OLDEST = "2024-11-05"


class OldSse:
    """with OldSse(server, path) as client: its stream is open, and initialized unless version is None."""

    def __init__(self, server, path, version=OLDEST, key=None, **headers):
        self.server, self.key, self.version, self.headers = server, key, version, headers
        self.connection = server.client(key)
        self.stream = self.connection.begin("GET", path, headers={"Accept": "text/event-stream", **headers})
        assert self.stream.status == 200 and self.stream.headers["content-type"] == "text/event-stream"
        kind, self.endpoint = self.event()
        assert kind == "endpoint"
        self.last = 0

    def __enter__(self):
        if self.version:
            self.info = self.ask("initialize", {"protocolVersion": self.version, "capabilities": {},
                                                "clientInfo": {"name": "old", "version": "0"}})
            assert self.post({"method": "notifications/initialized"}).status == 202
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        self.stream.close()
        self.connection.close()

    def event(self):
        """(name, data) of the next event that is no ping."""
        lines = {}
        while line := self.stream.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if line == "\n" and lines:
                return lines["event"], lines["data"]
            if name:
                lines[name] = value
        raise AssertionError("the stream has ended")

    def message(self):
        kind, data = self.event()
        assert kind == "message"
        return json.loads(data)

    def answer(self):
        """The next response, whatever notifications come before it."""
        while "method" in (message := self.message()):
            assert "id" not in message
        return message

    def post(self, message, client=None, **query):
        with client or self.server.client(self.key) as one:
            return one.post(self.endpoint, {"jsonrpc": "2.0", **message}, headers=self.headers)

    def send(self, method, params=None):
        self.last += 1
        answer = self.post({"id": self.last, "method": method, "params": params or {}})
        assert answer.status == 202 and not answer.text
        return self.last

    def ask(self, method, params=None):
        number = self.send(method, params)
        answer = self.answer()
        assert answer["id"] == number
        return answer["result"] if "result" in answer else answer["error"]

    def call(self, tool, **arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})
