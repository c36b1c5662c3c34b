"""Sessions share the server: many files, or much output, of one are no reason for another to wait."""

import threading

import pytest

from support import retort
from support.server import Server, together

pytestmark = pytest.mark.once  # nothing here depends on the walls

HOGS = 8
FILES = 3000
MANY = f"""
import os
for d in range({FILES} // 500):
    os.makedirs(f"d{{d}}", exist_ok=True)
    for i in range(500):
        with open(f"d{{d}}/{{i}}", "wb") as f:
            f.write(os.urandom(16))
print("written")
"""


@pytest.fixture(scope="module")
def server():
    with Server("--disk", "256M") as running:
        yield running


class Hog(threading.Thread):
    """A session whose code writes many files; over when its call is answered."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.client = server.client()
        self.session = self.client.session()
        self.written, self.outcome = threading.Event(), None

    def run(self):
        with self.session.stream(MANY) as stream:
            stream.until_said("written")
            self.written.set()
            self.outcome = stream.until(type="done")

    def is_saving(self):
        return self.written.is_set() and self.is_alive()


def in_threads(calls):
    threads = [threading.Thread(target=call, daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    return threads


def test_saves_of_others_are_no_queue(server):
    """Each of the neighbour's calls is answered while most of the others are still being saved.

    Were the saves taken one after the other, the neighbour would wait for more than half of them.
    Whether enough are being saved at a time is up to the machine, so it gets a few tries.
    """
    for _ in range(5):
        with server.client() as client, client.session() as neighbour:
            neighbour.run("open('own', 'w').write('x')")
            hogs = [Hog(server) for _ in range(HOGS)]
            for hog in hogs:
                hog.start()
            for hog in hogs:
                assert hog.written.wait(retort.SECONDS)
            before = sum(hog.is_saving() for hog in hogs)
            client.put(neighbour.path + "/files/sent", b"x" * 10).expect(201)
            assert client.get(neighbour.path + "/files/own").expect(200).body == b"x"
            names = {f["path"] for f in client.get(neighbour.path + "/files").expect(200).json["data"]}
            after = sum(hog.is_saving() for hog in hogs)
            for hog in hogs:
                hog.join(retort.SECONDS)
                assert hog.outcome["status"] == "ok", hog.outcome
            # Deleted together, bit by bit; the neighbour's own are not touched by it.
            gone = in_threads([lambda h=h: h.client.delete(h.session.path).expect(204) for h in hogs])
            neighbour.run("open('more', 'w').write('y')")
            for thread in gone:
                thread.join(retort.SECONDS)
            assert all(client.get(h.session.path).status == 404 for h in hogs)
            assert {"own", "sent"} <= names
        if before >= HOGS - 2:
            break
    assert before >= HOGS - 2, "the machine saved too few at a time to tell"
    assert after > HOGS / 2, f"{before} were being saved before the calls, {after} after them"


def test_output_waits_for_room():
    """Far more is printed at a time than the server may hold: the code waits, and nothing is lost."""
    with Server("--output-memory", "4M", "--max-sessions", "30") as server, server.client() as client:
        sessions = [client.session() for _ in range(20)]
        answers = together(*[lambda s=s: server.client().post(
            s.path + "/execute", {"code": "print('x' * 1_000_000)"}).expect(200).json for s in sessions])
        for answer in answers:
            assert answer["status"] == "ok"
            assert answer["stdout"] == "x" * 1_000_000 + "\n"
            assert not [e for e in answer["events"] if e["type"] == "status"]
        peak = int(retort.field(server.pid, "VmHWM")[0])
        assert peak < 120 * 1024, f"{peak} KB"  # 20 of them at once take more
        server.check_alive()
