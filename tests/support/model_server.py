"""A model server on loopback that plays scripts, in both wire formats, and misbehaves on command.

    with ModelServer() as server:
        desk = server.desk(turns=[[{"python": "print(6*7)"}], [{"text": "It is 42."}]],
                           faults=["429", {"fault": "status", "status": 500}])
        desk.openai       # http://127.0.0.1:PORT/d/1/v1, for --model-api openai
        desk.anthropic    # http://127.0.0.1:PORT/d/1, for --model-api anthropic
        desk.requests     # [{"path", "headers" (lower case), "body"}, ...] in the order they came

A desk is one endpoint with a script, faults and records of its own, so that tests share a server
and not its state. It speaks chat completions and Messages, streamed when asked.

What is played, as with --model-script: the last text of the user that begins with {"turns", else
the turns of the desk. Reply number n of the conversation, counted from the message that has the
script, is turn n; after the last turn the reply is empty. With in_order=True the replies of the desk
are counted instead, for conversations that leave out what is old. A turn is a list of steps:

    {"text": t}    {"thinking": t}    (the latter is signed, or reasoning_content)
    {"python": code}  {"bash": cmd}   {"edit": input}   as calls of the tool that was offered for it
    {"tool": {"name", "input"}}       any call
    {"raw_call": {"name", "raw"}}     a call whose arguments are this text
    {"stop": "length" | "refusal" | "window" | "sequence"}    how the reply ends; the last two with Messages alone
    {"usage": {"input_tokens", "output_tokens"}}        {"sleep_ms": n}
    {"redacted": data}    thinking that nobody can read; with Messages alone

A text, thinking or call may have "hold": n, and the stream waits after n of its pieces until desk.gate
is set; or "cut": n, and it hangs up there.

Faults are taken one a request, before the script is looked at; `always` is for every request after
those. A fault is its name or {"fault": name, ...}; see FAULTS. One that lets the request go on
afterwards ("no-parallel") only looks at what was sent, and stays.

From another process: POST /control with {"turns", "faults", "always"} answers {"openai",
"anthropic", "requests"}; the last is a URL to GET. `python3 server.py [PORT]` serves until killed.
"""

import itertools
import json
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

SIGNATURE = "c2lnbmVk"


# --- the script ---


def texts_of(message):
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    return [p["text"] for p in content or [] if p.get("type") == "text"]


def find_turn(messages, turns, number=None):
    """The steps that come now; number: of the reply, where the conversation does not tell."""
    start = 0
    for i, message in reversed(list(enumerate(messages))):
        found = [t for t in texts_of(message) if t.startswith('{"turns"')]
        if message["role"] == "user" and found:
            turns, start = json.loads(found[0])["turns"], i
            break
    n = sum(m["role"] == "assistant" for m in messages[start:]) if number is None else number
    return turns[n] if n < len(turns) else []


RUNS = {
    "python": ("code", ["run_python", "code_execution"]),
    "bash": ("command", ["run_shell", "bash_code_execution"]),
    "edit": (None, ["text_editor_code_execution"]),
}


def call_of(step, tools):
    """(name, arguments as text), or None."""
    if "tool" in step:
        return step["tool"]["name"], json.dumps(step["tool"].get("input", {}))
    if "raw_call" in step:
        return step["raw_call"]["name"], step["raw_call"]["raw"]
    for kind, (argument, names) in RUNS.items():
        if kind in step:
            name = next((n for n in names if n in tools), names[-1])
            return name, json.dumps({argument: step[kind]} if argument else step[kind])
    return None


class Reply:
    """A turn, ready to be written in either format: parts are (kind, ...) tuples."""

    ids = itertools.count(1)

    def __init__(self, steps, tools):
        self.stops = []  # of each part: where the stream stands still
        self.parts, self.stop, self.usage = [], None, {"input_tokens": 11, "output_tokens": 7}
        for step in steps:
            time.sleep(step.get("sleep_ms", 0) / 1000)
            call = call_of(step, tools)
            before = len(self.parts)
            if call:
                self.parts.append(("call", f"call_{next(Reply.ids)}", *call))
            elif "text" in step:
                self.parts.append(("text", step["text"]))
            elif "thinking" in step:
                self.parts.append(("thinking", step["thinking"]))
            elif "redacted" in step:
                self.parts.append(("redacted", step["redacted"]))
            if len(self.parts) > before:
                self.stops.append({k: step[k] for k in ("hold", "cut") if k in step})
            self.stop = step.get("stop", self.stop)
            self.usage.update(step.get("usage", {}))
        self.has_calls = any(p[0] == "call" for p in self.parts)

    def of(self, kind):
        return [p for p in self.parts if p[0] == kind]


def pieces(text, n=7):
    """Of n units of UTF-16, as thoughtless endpoints count: some end in the middle of a character."""
    data = text.encode("utf-16-le", "surrogatepass")
    units = "".join(chr(int.from_bytes(data[i:i + 2], "little")) for i in range(0, len(data), 2))
    return [units[i:i + n] for i in range(0, len(units), n)]


# --- chat completions ---


class OpenAI:
    path = "/chat/completions"

    @staticmethod
    def tools(body):
        return [t["function"]["name"] for t in body.get("tools", [])]

    @staticmethod
    def finish(reply):
        names = {"length": "length", "refusal": "content_filter"}
        return names.get(reply.stop, "tool_calls" if reply.has_calls else "stop")

    @staticmethod
    def usage(reply):
        i, o = reply.usage["input_tokens"], reply.usage["output_tokens"]
        return {"prompt_tokens": i, "completion_tokens": o, "total_tokens": i + o}

    @classmethod
    def whole(cls, reply, body):
        calls = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}}
                 for _, i, n, a in reply.of("call")]
        text = "".join(t for _, t in reply.of("text"))
        message = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = calls
        if reply.of("thinking"):
            message["reasoning_content"] = "".join(t for _, t in reply.of("thinking"))
        return {"id": "chatcmpl-1", "object": "chat.completion", "model": body.get("model"),
                "choices": [{"index": 0, "message": message, "finish_reason": cls.finish(reply)}],
                "usage": cls.usage(reply)}

    @classmethod
    def events(cls, reply, body):
        def chunk(delta, finish=None, **more):
            return "", {"id": "chatcmpl-1", "object": "chat.completion.chunk",
                        "model": body.get("model"),
                        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}

        yield chunk({"role": "assistant", "content": None})
        at = 0
        for number, (kind, *rest) in enumerate(reply.parts):
            stops = reply.stops[number]
            if kind == "thinking":
                yield from (chunk({"reasoning_content": p}) for p in pieces(rest[0]))
            elif kind == "text":
                for n, p in enumerate(pieces(rest[0])):
                    yield from (w for w, at in stops.items() if at == n)
                    yield chunk({"content": p})
            else:
                call_id, name, arguments = rest
                yield chunk({"tool_calls": [{"index": at, "id": call_id, "type": "function",
                                             "function": {"name": name, "arguments": ""}}]})
                for n, p in enumerate(pieces(arguments)):
                    yield from (w for w, at in stops.items() if at == n)
                    yield chunk({"tool_calls": [{"index": at, "function": {"arguments": p}}]})
                at += 1
        yield chunk({}, cls.finish(reply))
        if (body.get("stream_options") or {}).get("include_usage"):
            yield "", {"id": "chatcmpl-1", "object": "chat.completion.chunk",
                       "model": body.get("model"), "choices": [], "usage": cls.usage(reply)}
        yield "", "[DONE]"

    @staticmethod
    def error(status, message, code=None):
        kind = "server_error" if status >= 500 else "invalid_request_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}


# --- Messages ---


class Anthropic:
    path = "/v1/messages"

    @staticmethod
    def tools(body):
        return [t["name"] for t in body.get("tools", [])]

    @staticmethod
    def finish(reply):
        names = {"length": "max_tokens", "refusal": "refusal", "pause": "pause_turn",
                 "window": "model_context_window_exceeded", "sequence": "stop_sequence"}
        return names.get(reply.stop, "tool_use" if reply.has_calls else "end_turn")

    @staticmethod
    def sequence(reply, body):
        return body["stop_sequences"][0] if reply.stop == "sequence" else None

    @staticmethod
    def block(part):
        kind, *rest = part
        if kind == "text":
            return {"type": "text", "text": rest[0]}
        if kind == "thinking":
            return {"type": "thinking", "thinking": rest[0], "signature": SIGNATURE}
        if kind == "redacted":
            return {"type": "redacted_thinking", "data": rest[0]}
        try:
            arguments = json.loads(rest[2])
        except ValueError:
            arguments = rest[2]
        return {"type": "tool_use", "id": rest[0], "name": rest[1], "input": arguments}

    @classmethod
    def whole(cls, reply, body):
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model"),
                "content": [cls.block(p) for p in reply.parts], "stop_reason": cls.finish(reply),
                "stop_sequence": cls.sequence(reply, body), "usage": reply.usage}

    @classmethod
    def events(cls, reply, body):
        def event(kind, **more):
            return kind, {"type": kind, **more}

        usage = {**reply.usage, "output_tokens": 1}
        yield event("message_start", message={**cls.whole(reply, body), "content": [],
                                              "stop_reason": None, "usage": usage})
        yield event("ping")
        for i, (kind, *rest) in enumerate(reply.parts):
            if kind == "text":
                start, deltas = {"type": "text", "text": ""}, [
                    {"type": "text_delta", "text": p} for p in pieces(rest[0])]
            elif kind == "thinking":
                start, deltas = {"type": "thinking", "thinking": "", "signature": ""}, [
                    *({"type": "thinking_delta", "thinking": p} for p in pieces(rest[0])),
                    {"type": "signature_delta", "signature": SIGNATURE}]
            elif kind == "redacted":
                start, deltas = cls.block((kind, *rest)), []
            else:
                start = {"type": "tool_use", "id": rest[0], "name": rest[1], "input": {}}
                deltas = [{"type": "input_json_delta", "partial_json": p}
                          for p in pieces(rest[2])]
            yield event("content_block_start", index=i, content_block=start)
            for n, delta in enumerate(deltas):
                yield from (w for w, at in reply.stops[i].items() if at == n)
                yield event("content_block_delta", index=i, delta=delta)
            yield event("content_block_stop", index=i)
        yield event("message_delta", delta={"stop_reason": cls.finish(reply),
                                            "stop_sequence": cls.sequence(reply, body)},
                    usage={"output_tokens": reply.usage["output_tokens"]})
        yield event("message_stop")

    @staticmethod
    def error(status, message, code=None):
        kinds = {401: "authentication_error", 429: "rate_limit_error", 500: "api_error",
                 529: "overloaded_error"}
        return {"type": "error", "error": {"type": kinds.get(status, "invalid_request_error"),
                                           "message": message}}


# --- faults: each takes the handler, the wire format, the body, and the fault's own words ---


def answer_status(h, wire, body, status=500, message="something broke", code=None, **headers):
    """{"fault": "status", "status", "message", "code", "retry_after", any_header: value}"""
    h.send_json(status, wire.error(status, message, code), **headers)


def answer_429(h, wire, body, retry_after="1", **headers):
    h.send_json(429, wire.error(429, "Rate limit reached"), retry_after=retry_after, **headers)


def answer_500(h, wire, body):
    h.send_json(500, wire.error(500, "Internal server error"))


def answer_bad_key(h, wire, body):
    """A thoughtless endpoint: it repeats the key."""
    key = h.headers.get("x-api-key") or (h.headers.get("authorization") or "")[7:]
    h.send_json(401, wire.error(401, f"Incorrect API key provided: {key}. You sent {key}."))


def answer_too_long(h, wire, body):
    text = {OpenAI: "This model's maximum context length is 8192 tokens. However, your messages "
                    "resulted in 9000 tokens.",
            Anthropic: "prompt is too long: 210000 tokens > 200000 maximum"}[wire]
    h.send_json(400, wire.error(400, text, "context_length_exceeded"))


def answer_no_tools(h, wire, body):
    """Stays: requests with tools are refused, others go on."""
    if "tools" not in body:
        return False
    h.send_json(400, wire.error(400, f"{body.get('model')} does not support tools"))


def answer_no_parallel(h, wire, body):
    if "parallel_tool_calls" not in body:
        return False
    h.send_json(400, wire.error(400, "Unrecognized request argument: parallel_tool_calls"))


def answer_no_max_tokens(h, wire, body):
    if "max_tokens" not in body:
        return False
    h.send_json(400, wire.error(400, "Unsupported parameter: 'max_tokens' is not supported with "
                                     "this model. Use 'max_completion_tokens' instead."))


def answer_no_max_completion_tokens(h, wire, body):
    if "max_completion_tokens" not in body:
        return False
    h.send_json(400, wire.error(400, "max_completion_tokens: extra fields not permitted"))


def answer_no_stream_options(h, wire, body):
    if "stream_options" not in body:
        return False
    h.send_json(400, wire.error(400, "Unknown field: stream_options"))


def answer_cut_stream(h, wire, body, after=3):
    """Some events, then the connection ends in the middle of one."""
    reply = h.reply(wire, body)
    h.begin_stream(chunked=False)
    for event in itertools.islice(wire.events(reply, body), after):
        h.put_event(event)
    h.wfile.write(b'data: {"cho')
    h.hang_up()


def answer_bad_json(h, wire, body):
    h.send_bytes(200, b"<html>not a model</html>", content_type="text/html")


def answer_bad_stream(h, wire, body):
    h.begin_stream()
    h.put(b'data: {"choices": [}\n\n')
    h.end_stream()


def answer_error_in_stream(h, wire, body, message="Overloaded"):
    reply = h.reply(wire, body)
    h.begin_stream()
    for event in itertools.islice(wire.events(reply, body), 2):
        h.put_event(event)
    h.put_event(("error", wire.error(529, message)))
    h.end_stream()


def answer_plain(h, wire, body):
    """Plain JSON, although a stream was asked for."""
    h.send_json(200, wire.whole(h.reply(wire, body), body))


def answer_drip(h, wire, body, every_ms=50, seconds=30):
    """A stream that never comes to its end."""
    h.begin_stream()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        h.put(b": still thinking\n\n")
        time.sleep(every_ms / 1000)


def answer_silence(h, wire, body, seconds=30):
    h.gone.wait(seconds)
    h.hang_up()


def answer_endless(h, wire, body, mebibytes=256):
    """More than anybody wants to keep."""
    h.begin_stream(chunked=False)
    for _ in range(mebibytes):
        h.wfile.write(b": " + b"x" * (1 << 20) + b"\n")
    h.hang_up()


def answer_endless_event(h, wire, body, mebibytes=256):
    """One event that is more than anybody wants to keep."""
    h.begin_stream(chunked=False)
    h.wfile.write(b'data: {"x": "')
    for _ in range(mebibytes):
        h.wfile.write(b"x" * (1 << 20))
    h.hang_up()


def answer_huge_header(h, wire, body, kibibytes=200):
    h.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for i in range(kibibytes):
        h.wfile.write(b"x-%d: " % i + b"y" * 1024 + b"\r\n")
    h.wfile.write(b"\r\n{}")
    h.hang_up()


def answer_redirect(h, wire, body, location="http://127.0.0.1:1/"):
    h.send_bytes(307, b"", location=location)


def answer_say(h, wire, body, steps, plain=False):
    """{"fault": "say", "steps": [...]}: this turn, whatever the script says."""
    h.send_reply(wire, {**body, "stream": body.get("stream") and not plain},
                 Reply(steps, wire.tools(body)))


def answer_text_call(h, wire, body, code="print(6*7)"):
    """A model that writes its calls as text."""
    text = '<tool_call>{"name": "run_python", "arguments": {"code": %s}}</tool_call>'
    h.send_reply(wire, body, Reply([{"text": text % json.dumps(code)}], []))


def answer_two_calls(h, wire, body):
    h.send_reply(wire, body, Reply([{"python": "print(1)"}, {"python": "print(2)"}],
                                   wire.tools(body)))


def answer_refusal(h, wire, body):
    h.send_reply(wire, body, Reply([{"text": "I will not."}, {"stop": "refusal"}], []))


def answer_doubled(h, wire, body):
    """The same arguments twice, one after the other."""
    once = json.dumps({"code": "print(1)"})
    h.send_reply(wire, body, Reply([{"raw_call": {"name": "run_python", "raw": once + once}}], []))


FAULTS = {name[len("answer_"):].replace("_", "-"): fn
          for name, fn in list(globals().items()) if name.startswith("answer_")}
STAYS = {"no-tools", "no-parallel", "no-max-tokens", "no-max-completion-tokens",
         "no-stream-options"}


# --- the server ---


class Desk:
    def __init__(self, server, number, turns=None, faults=(), always=None, in_order=False):
        self.turns, self.faults, self.always = turns or [], list(faults), always
        self.in_order, self.replies = in_order, 0
        self.requests = []
        self.about, self.asked_about = {}, []  # GET /v1/models/{name}: {name: answer}, and who has asked
        self.lock, self.gate = threading.Lock(), threading.Event()
        self.base = f"http://127.0.0.1:{server.port}/d/{number}"
        self.openai, self.anthropic = self.base + "/v1", self.base

    def next_faults(self):
        """Those that only look, then at most one that does not."""
        with self.lock:
            found = []
            for fault in list(self.faults):
                fault = {"fault": fault} if isinstance(fault, str) else dict(fault)
                found.append(fault)
                if fault["fault"] not in STAYS:
                    self.faults.remove(self.faults[len(found) - 1])
                    return found
            if self.always:
                found.append({"fault": self.always} if isinstance(self.always, str)
                             else dict(self.always))
            return found

    def bodies(self):
        return [r["body"] for r in self.requests]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def log_message(self, *_):
        pass

    # what is written

    def send_bytes(self, status, data, content_type="application/json", **headers):
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            if value is not None:
                self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(data)

    def send_json(self, status, value, **headers):
        self.send_bytes(status, json.dumps(value).encode(), **headers)

    def begin_stream(self, chunked=True):
        self.chunked = chunked
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        if chunked:
            self.send_header("transfer-encoding", "chunked")
        else:
            self.send_header("connection", "close")
        self.end_headers()

    def put(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if self.chunked else data)
        self.wfile.flush()

    def put_event(self, event):
        kind, data = event
        text = data if isinstance(data, str) else json.dumps(data)
        self.put((f"event: {kind}\n" if kind else "").encode() + f"data: {text}\n\n".encode())

    def end_stream(self):
        if self.chunked:
            self.wfile.write(b"0\r\n\r\n")

    def hang_up(self):
        self.close_connection = True
        try:
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    # what is played

    def reply(self, wire, body):
        with self.desk.lock:
            number = self.desk.replies if self.desk.in_order else None
            self.desk.replies += 1
        return Reply(find_turn(body["messages"], self.desk.turns, number), wire.tools(body))

    def send_reply(self, wire, body, reply):
        if not body.get("stream"):
            self.send_json(200, wire.whole(reply, body))
            return
        self.begin_stream()
        for event in wire.events(reply, body):
            if event == "cut":
                return self.hang_up()
            if event == "hold":
                self.desk.gate.wait(60)
            else:
                self.put_event(event)
        self.end_stream()

    def play(self, wire, body):
        for fault in self.desk.next_faults():
            words = dict(fault)
            if FAULTS[words.pop("fault")](self, wire, body, **words) is not False:
                return
        self.send_reply(wire, body, self.reply(wire, body))

    # what is asked

    def find_desk(self):
        parts = self.path.split("/", 3)
        self.desk = self.server.desks.get(parts[2]) if len(parts) > 2 and parts[1] == "d" else None
        return "/" + parts[3] if self.desk and len(parts) > 3 else ""

    def do_GET(self):
        rest = self.find_desk()
        if rest == "/requests":
            self.send_json(200, self.desk.requests)
        elif rest == "/v1/models":
            self.send_json(200, {"object": "list", "data": [{"id": "test", "object": "model"}]})
        elif rest.startswith("/v1/models/") and unquote(rest.rpartition("/")[2]) in self.desk.about:
            self.desk.asked_about.append((rest, self.headers.get("x-api-key"), self.headers.get("authorization")))
            self.send_json(200, self.desk.about[unquote(rest.rpartition("/")[2])])
        else:
            self.send_json(404, {"error": {"message": "no such page"}})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/control":
            desk = self.server.model_server.desk(**body)
            self.send_json(200, {"openai": desk.openai, "anthropic": desk.anthropic,
                                 "requests": desk.base + "/requests"})
            return
        rest = self.find_desk()
        wire = next((w for w in (OpenAI, Anthropic) if rest == w.path or rest == "/v1" + w.path),
                    None)
        if not wire:
            self.send_json(404, {"error": {"message": f"no such page: {self.path}"}})
            return
        self.gone = self.server.model_server.gone
        self.desk.requests.append({
            "path": self.path, "body": body, "peer": self.client_address[1],
            "headers": {k.lower(): v for k, v in self.headers.items()}})
        try:
            self.play(wire, body)
        except OSError:
            self.close_connection = True  # the other side has seen enough


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class ModelServer:
    """port 0: any that is free."""

    def __init__(self, port=0, tls=None):
        self.http = Listener(("127.0.0.1", port), Handler)
        if tls:
            self.http.socket = tls.wrap_socket(self.http.socket, server_side=True,
                                               do_handshake_on_connect=False)
        self.port = self.http.server_address[1]
        self.http.model_server, self.http.desks = self, {}
        self.numbers = itertools.count(1)
        self.gone = threading.Event()

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.gone.set()
        self.http.shutdown()
        self.http.server_close()

    def desk(self, turns=None, faults=(), always=None, in_order=False):
        number = str(next(self.numbers))
        self.http.desks[number] = Desk(self, number, turns, faults, always, in_order)
        return self.http.desks[number]


if __name__ == "__main__":
    with ModelServer(int(sys.argv[1]) if len(sys.argv) > 1 else 0) as own:
        print(f"http://127.0.0.1:{own.port}/control", flush=True)
        threading.Event().wait()
