"""Three nodes under load, and what becomes of nodes: one is killed, one is paused past its lease, one is cut from the
database. What clients were told is held against what is there afterwards: nothing that was acknowledged is lost,
nothing has run twice, and nothing was written by a node that others had taken over from."""

import collections
import contextlib
import hashlib
import os
import random
import signal

import pytest

from support import retort
from support.nodes import Gate, Nodes
from support.workers import Worker, wait_for_more

pytestmark = pytest.mark.once

PAUSE = 0.03  # a light load
LATER = (429, 502, 503, 507)  # and then it is not known, or not done


class Of:
    """A node as one tenant sees it."""

    def __init__(self, node, key):
        self.node, self.key = node, key

    def client(self):
        return self.node.client(self.key)


class Log(Worker):
    """Cells that each add one line to a file of their session."""

    def visit(self, client):
        path = self.session(client)
        while path and not self.ended.is_set():
            word = os.urandom(8).hex()
            answer = client.post(path + "/execute", {"code": f"_ = open('log', 'a').write('{word}\\n')"})
            if answer.status != 200:
                assert answer.status in LATER, answer
                return
            if answer.json["status"] == "ok":
                self.keep(path, word, answer.json["id"])
                self.ended.wait(PAUSE)
            else:
                assert answer.json["status"] == "session_lost", answer

    def session(self, client):
        answer = client.post("/v1/sessions", {"name": f"log-{self.number}"})
        assert answer.status in (200, 201, *LATER), answer
        return "/v1/sessions/" + answer.json["id"] if answer.status < 300 else None

    def check(self, client):
        paths = {path for path, _, _ in self.kept}
        assert len(paths) == 1
        lines = client.get(paths.pop() + "/files/log").expect(200).text.split()
        twice = [word for word, times in collections.Counter(lines).items() if times > 1]
        assert not twice
        assert {word for _, word, _ in self.kept} <= set(lines)
        for _, _, id in random.sample(self.kept, min(20, len(self.kept))):
            assert client.get("/v1/executions/" + id).expect(200).json["status"] == "ok"


class Uploaded(Worker):
    """Files of the tenant."""

    def visit(self, client):
        while not self.ended.is_set():
            data = self.data()
            answer = client.form("/v1/files", ("file", "f", data))
            if answer.status != 201:
                assert answer.status in LATER, answer
                return
            self.keep(answer.json["id"], hashlib.sha256(data).hexdigest())
            self.ended.wait(PAUSE)

    def check(self, client):
        for id, digest in self.kept:
            assert hashlib.sha256(client.get(f"/v1/files/{id}/content").expect(200).body).hexdigest() == digest


def ends(node):
    """It has found that another has taken over."""
    assert node.process.wait(retort.SECONDS) != 0
    assert "another node has taken over" in node.log()
    node.process = None


def killed(nodes, number, gate):
    nodes[number].kill()
    nodes.wait_gone(number)


def paused(nodes, number, gate):
    nodes[number].process.send_signal(signal.SIGSTOP)
    nodes.wait_gone(number)
    nodes[number].process.send_signal(signal.SIGCONT)
    ends(nodes[number])


def cut(nodes, number, gate):
    gate.open.clear()
    nodes.wait_gone(number)
    gate.open.set()
    ends(nodes[number])


def test_nodes_come_and_go(postgres, blobs):
    with contextlib.ExitStack() as stack:
        nodes = Nodes(postgres, blobs, 3, lease=2)
        gates = [stack.enter_context(Gate(postgres)) for _ in nodes.servers]
        for node, gate in zip(nodes.servers, gates):
            node.store = ["--store", gate.url(nodes.url)]
        keys = [nodes.key(f"tenant{i}") for i in range(3)]
        stack.enter_context(nodes)
        workers = [kind(Of(nodes[(tenant + n) % 3], key), 10 * tenant + n)
                   for tenant, key in enumerate(keys) for n, kind in enumerate((Log, Uploaded))]
        for worker in workers:
            worker.start()
        for worker in workers:
            wait_for_more(worker, retort.SECONDS)
        for tenant, harm in enumerate((killed, paused, cut)):
            number = nodes.home(f"tenant{tenant}")
            harm(nodes, number, gates[number])
            nodes[number].start()
            for worker in workers:  # everybody is answered again
                wait_for_more(worker, retort.SECONDS)
        for worker in workers:
            worker.ended.set()
        for worker in workers:
            worker.join()
            assert not worker.wrong, worker.wrong[0]
        for worker in workers:
            with Of(nodes[random.randrange(3)], worker.server.key).client() as client:
                worker.check(client)
