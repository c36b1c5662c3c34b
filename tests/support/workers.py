"""Clients that work over and over and remember what was acknowledged, to look for it later."""

import hashlib
import http.client
import os
import random
import threading
import time
import traceback

from support import retort


class Worker(threading.Thread):
    """Does one kind of work over and over, whatever becomes of the server; keeps what was
    acknowledged. Any answer but the one wanted, or one that says to come back, is wrong."""

    def __init__(self, server, number):
        super().__init__(daemon=True)
        self.server, self.number = server, number
        self.kept, self.wrong, self.ended = [], [], threading.Event()
        self.acknowledged = 0

    def keep(self, *what):
        self.kept.append(what)
        self.acknowledged += 1

    def run(self):
        while not self.ended.is_set():
            try:
                with self.server.client() as client:
                    self.visit(client)
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)  # it is not up again: five of these ask all the time
            except Exception:
                self.wrong.append(traceback.format_exc()[-1500:])
                return

    def session(self, client):
        answer = client.post("/v1/sessions", {"name": f"worker-{self.number}"})
        assert answer.status in (200, 201, 429, 503), answer
        return "/v1/sessions/" + answer.json["id"] if answer.status < 300 else None

    def data(self):
        return os.urandom(random.randrange(1, 60_000))


class Cells(Worker):
    """Cells that say and write something."""

    def visit(self, client):
        path = self.session(client)
        while path and not self.ended.is_set():
            word = os.urandom(8).hex()
            answer = client.post(path + "/execute", {
                "code": f"open('{word}', 'w').write('{word}'); print('{word}')"})
            if answer.status != 200:
                assert answer.status in (429, 503), answer
                return
            if answer.json["status"] == "ok":
                self.keep(path, word, answer.json["id"])

    def check(self, client):
        for path, word, id in self.kept:
            record = client.get("/v1/executions/" + id).expect(200).json
            assert (record["status"], record["stdout"]) == ("ok", word + "\n")
            assert client.get(f"{path}/files/{word}").expect(200).body == word.encode()


class Uploads(Worker):
    """Files put into a workspace."""

    def visit(self, client):
        path = self.session(client)
        while path and not self.ended.is_set():
            data = self.data()
            name = hashlib.sha256(data).hexdigest()
            answer = client.put(f"{path}/files/{name}", data)
            if answer.status != 201:
                assert answer.status in (413, 429, 503), answer
                return
            self.keep(path, name)
            if len([k for k in self.kept if k[0] == path]) == 20:  # the disk of a session is small
                self.kept = [k for k in self.kept if k[0] != path]  # gone even if no answer comes
                client.delete(path).expect(204)
                return

    def check(self, client):
        for path, name in self.kept:
            body = client.get(f"{path}/files/{name}").expect(200).body
            assert hashlib.sha256(body).hexdigest() == name


class Files(Worker):
    """Files uploaded for any session."""

    def visit(self, client):
        while not self.ended.is_set():
            data = self.data()
            made = client.form("/v1/files", ("file", "f", data)).expect(201).json
            self.keep(made["id"], hashlib.sha256(data).hexdigest())

    def check(self, client):
        for id, digest in self.kept:
            body = client.get(f"/v1/files/{id}/content").expect(200).body
            assert hashlib.sha256(body).hexdigest() == digest


class Streams(Worker):
    """Streams that were told to be done."""

    def visit(self, client):
        path = self.session(client)
        while path and not self.ended.is_set():
            word = os.urandom(8).hex()
            with client.stream(path + "/execute", {"code": f"print('{word}')"}) as stream:
                if stream.status != 200:
                    return
                done = [found for found in stream]
                if done and done[-1]["type"] == "done" and done[-1]["status"] == "ok":
                    self.keep(done[-1]["id"], word)

    def check(self, client):
        for id, word in self.kept:
            record = client.get("/v1/executions/" + id).expect(200).json
            assert (record["status"], record["stdout"]) == ("ok", word + "\n")


def wait_for_more(worker, seconds=retort.SOON):
    """Until it has had one more acknowledged, whatever the speed of this machine."""
    before, until = worker.acknowledged, time.monotonic() + seconds
    while worker.acknowledged == before and not worker.wrong and time.monotonic() < until:
        time.sleep(0.005)
