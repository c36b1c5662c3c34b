"""Each node is restarted while clients work through a balancer: whoever is not answered is told to come again."""

import collections
import http.client
import itertools
import json
import os
import threading

import pytest

from support import retort
from support.balancer import Balancer, haproxy
from support.nodes import Nodes
from support.server import Client, free_port

pytestmark = pytest.mark.once


class Steady(threading.Thread):
    """A client that keeps its connection: any end of it in place of an answer is wrong, and any answer but the one
    wanted or 503 with Retry-After."""

    def __init__(self, front, key, number, ended):
        super().__init__(daemon=True)
        self.client, self.number, self.ended = Client(front, key), number, ended
        self.told, self.wrong, self.counts = [], [], collections.Counter()

    def ask(self, method, path, body=None, raw=None):
        response = self.client.begin(method, path, body, body=raw)
        text = response.read()
        self.counts[response.status] += 1
        if response.will_close:
            self.client.close()
        if response.status == 503 and response.headers["retry-after"]:
            self.ended.wait(0.05)
            return None
        assert response.status in (200, 201), (method, path, response.status, dict(response.headers), text)
        return text

    def run(self):
        try:
            made = None
            while not made:
                made = self.ask("POST", "/v1/sessions", {"name": f"steady{self.number}"})
            self.path = "/v1/sessions/" + json.loads(made)["id"]
            for number in itertools.count():
                if self.ended.is_set():
                    return
                word = os.urandom(8).hex()
                self.visit(word, number)
        except (AssertionError, OSError, http.client.HTTPException) as e:
            self.wrong.append(f"{type(e).__name__}: {e} {self.counts}")

    def visit(self, word, number):
        if number % 3 == 2:
            if self.ask("PUT", f"{self.path}/files/{word}", raw=word.encode()):
                self.told.append((word, None))
        else:
            done = self.ask("POST", self.path + "/execute", {"code": f"_ = open('log', 'a').write('{word}\\n')"})
            if done and json.loads(done)["status"] == "ok":
                self.told.append((word, json.loads(done)["id"]))

    def get(self, path):
        found = []
        retort.wait_until(lambda: found.append(self.client.get(path)) or found[-1].status != 503, path, retort.SECONDS)
        return found[-1].expect(200)

    def check(self):
        lines = self.get(self.path + "/files/log").text.split()
        assert len(lines) == len(set(lines))
        for word, id in self.told:
            if id:
                assert word in lines
            else:
                assert self.get(f"{self.path}/files/{word}").text == word
        for _, id in [one for one in self.told if one[1]][-20:]:
            assert self.get("/v1/executions/" + id).json["status"] == "ok"


def test_all_nodes_are_restarted(postgres, blobs):
    nodes = Nodes(postgres, blobs, 3, lease=10)
    keys = [nodes.key(f"tenant{i}") for i in range(3)]
    ended = threading.Event()
    with nodes:
        for node, key in zip(nodes.servers, keys):  # a tenant on each
            with node.client(key) as client:
                client.get("/v1/sessions").expect(200)
        with Balancer(haproxy, [n.listen for n in nodes.servers], f"127.0.0.1:{free_port()}") as front:
            front.wait_ready()
            workers = [Steady(front, key, number, ended) for key in keys for number in range(3)]
            for worker in workers:
                worker.start()
            for node in nodes.servers:
                before = [len(w.told) for w in workers]
                node.stop()
                node.start()
                retort.wait_until(lambda: any(w.wrong for w in workers) or all(
                    len(w.told) > had + 3 for w, had in zip(workers, before)), "answers", retort.SECONDS)
            ended.set()
            for worker in workers:
                worker.join(retort.SECONDS)
                assert not worker.wrong, worker.wrong[0]
            for worker in workers:
                worker.check()
            assert nodes.sql("SELECT count(*) FROM execs WHERE status <> 'ok'") == "0"
