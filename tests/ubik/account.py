"""One who uses Ubik's API: an account by its key, or an end user of it."""

import json
import signal
import time

from support import retort
from support.server import Client, Server

ROOT = "/ubik/api/v1"
FLAGS = ["--model-script", "-", "--fetch-private", "--ubik-event-size", "4K"]


class House:
    """A server, and the keys to it."""

    def __init__(self, *flags, config="", env=None):
        self.server = Server(*(flags or FLAGS), config=config, env=env)

    def __enter__(self):
        self.server.__enter__()
        self.key = self.server.keys("create", "--tenant", "acme", "--quiet").strip()
        self.other = self.server.keys("create", "--tenant", "other", "--quiet").strip()
        self.server.process.send_signal(signal.SIGHUP)  # which reads the keys again
        Account(self.server, None).wait_shut()
        return self

    def __exit__(self, *exc):
        return self.server.__exit__(*exc)

    def account(self, user=None, key=None, **headers):
        return Account(self.server, key or self.key, user, **headers)

    def by_token(self, user, **more):
        with self.account() as account:
            token = account.token(user, **more)
        one = Account(self.server, None, None)
        one.headers["Authorization"] = "Bearer " + token
        return one


class Account(Client):
    def __init__(self, server, key, user=None, **headers):
        super().__init__(server, headers=headers)
        if key:
            self.headers["X-API-KEY"] = key
        if user:
            self.headers["X-End-User-ID"] = user

    def wait_shut(self, seconds=retort.SECONDS):
        """Until the server has heard of its keys: nobody comes in without one."""
        until = time.monotonic() + seconds
        while self.get("/health").status != 401:
            assert time.monotonic() < until
            time.sleep(0.05)
        self.close()

    def request(self, method, path, json_body=None, **more):
        path = path if path.startswith("/ubik") else ROOT + path
        return super().request(method, path, json_body, **more)

    def token(self, user, **more):
        return self.post("/auth/token", {"external_user_id": user, **more}).expect(200).json[
            "access_token"]

    # --- executions ---

    def order(self, request=None, tool="code_execution", **inputs):
        if request is not None:
            inputs["request"] = request
        return self.post(f"/tools/{tool}/execute", {"inputs": inputs}).expect(202).json

    def wait(self, execution, *states, seconds=retort.SECONDS):
        """Until it is over, or in one of these states."""
        until = time.monotonic() + seconds
        while True:
            found = self.get("/tool-executions/" + execution).expect(200).json
            if found["status"] in (states or ("completed", "failed")):
                return found
            assert time.monotonic() < until, found
            time.sleep(0.02)

    def run(self, request=None, tool="code_execution", **inputs):
        """Its outputs, once it has completed."""
        found = self.wait(self.order(request, tool, **inputs)["execution_id"])
        assert found["status"] == "completed", found
        return found["outputs"]

    def fail(self, request=None, tool="code_execution", **inputs):
        found = self.wait(self.order(request, tool, **inputs)["execution_id"])
        assert found["status"] == "failed", found
        return found

    def code(self, code, **inputs):
        return self.run(tool="python_interpreter", code=code, **inputs)

    def printed(self, outputs):
        """What the last round printed."""
        return outputs["logs"].rsplit("STDOUT:\n", 1)[1].split("\nSTATUS:")[0].rstrip("\n")

    # --- documents ---

    def upload(self, name, data, **more):
        parts = [("files", name, data)] + [(k, None, v.encode()) for k, v in more.items()]
        [document] = self.form("/documents", *parts).expect(200).json
        return document

    # --- streams ---

    def events(self, path, **headers):
        """(name, id, data) of each event until the stream ends; pieces are put together."""
        path = path if path.startswith("/ubik") else ROOT + path
        response = self.begin("GET", path, headers=headers)
        assert response.status == 200, (response.status, response.read())
        assert response.getheader("content-type") == "text/event-stream"
        yield from whole(parse(response))
        self.close()


def parse(response):
    name = number = data = None
    while line := response.readline().decode():
        line = line.rstrip("\n")
        if line.startswith("id: "):
            number = int(line[4:])
        elif line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            data = json.loads(line[6:])
        elif not line and name:
            yield name, number, data
            name = number = data = None
        else:
            assert line in ("", ": ping"), line


def whole(events):
    pieces = []
    for name, number, data in events:
        if not name.endswith("_delta_sse"):
            yield name, number, data
            continue
        assert data["chunk_index"] == len(pieces)
        pieces.append(data["chunk_data"])
        assert data["is_last_chunk"] is (len(pieces) == data["total_chunks"])
        if data["is_last_chunk"]:
            yield data["original_event_type"], number, json.loads("".join(pieces))
            pieces = []
