"""kill -9 again and again, under load, at any moment: what was acknowledged is there afterwards,
and nothing else is left. `./dev chaos` goes on with it for as long as one likes."""

import contextlib
import json
import os
import random
import threading
import time

import pytest

from support import retort
from support.server import Server
from support.workers import Cells, Files, Streams, Uploads, wait_for_more

KILLS = 16 if os.geteuid() == 0 else 8  # the state is kept the same way, whoever starts it


@pytest.mark.timeout(400)
def test_many_kills():
    chance = random.Random(7)
    with Server("--retention", "1h", "--disk", "64M", "--log-level", "warn") as server:
        workers = [kind(server, i) for i, kind in enumerate((Cells, Cells, Streams, Uploads, Files))]
        for worker in workers:
            worker.start()
        for i in range(KILLS):
            if i % 3:
                wait_for_more(workers[i % len(workers)])
                time.sleep(chance.uniform(0, 0.1))
            else:
                time.sleep(chance.uniform(0, 0.5))  # while it starts
            assert server.process.poll() is None, server.log()
            server.kill()
            server.launch()
        server.wait_ready()
        for worker in workers:
            retort.wait_until(lambda: worker.wrong or worker.acknowledged >= 10, f"ten of {worker}", retort.SECONDS)
            worker.ended.set()
        for worker in workers:
            worker.join(retort.SECONDS)
            assert not worker.is_alive(), "a request hangs"
        wrong = [w for worker in workers for w in worker.wrong]
        assert not wrong, "\n".join(wrong)
        counts = {type(w).__name__ + str(w.number): w.acknowledged for w in workers}
        assert all(count >= 10 for count in counts.values()), counts
        server.kill()
        server.start()
        with server.client() as client:
            for worker in workers:
                worker.check(client)
            # Nothing is said to be running that is not.
            for info in client.all("/v1/executions"):
                assert info["status"] not in ("queued", "running"), info
            log = client.get("/v1/executions?format=jsonl").expect(200).text
            assert len({json.loads(line)["id"] for line in log.splitlines()}) == len(log.splitlines())
        server.stop()  # and no process, cgroup or mount of any of them is left


@pytest.mark.once
def test_what_was_told_can_be_read_again():
    """What a stream has said, or somebody has seen who looked, is on record after kill -9."""
    code = "import time\nfor i in range(100): print(i, 'grüße')\nprint('the last', flush=True)\n" \
           "display({'text/plain': 'shown'}, raw=True)\ntime.sleep(60)"
    with Server() as server, server.client() as client:
        session = client.session()

        def stream():
            events = session.stream(code)
            head = next(events)
            heard = []
            while not any(e.get("type") == "display" for e in heard):
                heard.append(next(events))
            streams.append(events)  # a reader that goes would end the code
            return head["id"], "".join(e["text"] for e in heard if e["type"] == "stdout")

        def look(id_):
            found = {"stdout": ""}
            while "the last" not in found["stdout"]:
                found = client.get("/v1/executions/" + id_).expect(200).json
            return id_, found["stdout"]

        def background():
            return look(session.background(code)["id"])

        def watched():
            """Nobody told its client; another has looked."""
            threading.Thread(target=lambda: quietly(server.client().post, session.path + "/execute", {"code": code}),
                             daemon=True).start()
            retort.wait_until(lambda: client.get("/v1/executions?limit=1").json["data"][0]["status"] == "running"
                              and not client.get("/v1/executions?limit=1").json["data"][0]["id"] in told,
                              "it runs", retort.SECONDS)
            return look(client.get("/v1/executions?limit=1").json["data"][0]["id"])

        told, streams = {}, []
        for way in (stream, background, watched):
            id_, text = way()
            assert text.endswith("the last\n") and text.startswith("0 grüße\n")
            told[id_] = text
            server.kill()
            server.start()
            client.close()
            found = client.get("/v1/executions/" + id_).expect(200).json
            assert (found["status"], found["stdout"]) == ("session_lost", text), way.__name__
            assert "the server ended" in found["outcome"]["message"]
        assert [e["type"] for e in client.get("/v1/executions/" + next(iter(told))).json["events"]][-1] == "display"


@pytest.mark.once
def test_a_session_is_there_as_soon_as_its_client_hears_of_it():
    """Made and deleted a moment before kill -9: its client has the last word."""
    with Server("--ready", "4") as server, server.client() as client:
        for i in range(4):
            body = {"metadata": {"round": i}, "env": {"WORD": str(i)}}
            made = [client.post("/v1/sessions", body).expect(201).json["id"] for _ in range(4)]
            gone = client.post("/v1/sessions", {}).expect(201).json["id"]
            if i % 2:
                made.append(client.post("/v1/sessions", body).expect(201).json["id"])
            client.delete("/v1/sessions/" + gone).expect(204)
            server.kill()
            server.start()
            client.close()
            for session in made:
                found = client.get("/v1/sessions/" + session).expect(200).json
                assert (found["metadata"], found["state"]) == ({"round": i}, "asleep"), found
            assert client.get("/v1/sessions/" + gone).status == 404
            answer = client.post(f"/v1/sessions/{made[-1]}/execute", {"code": "import os; os.environ['WORD']"})
            assert answer.expect(200).json["result"] == f"'{i}'", answer
            for session in made:
                client.delete("/v1/sessions/" + session).expect(204)


def quietly(do, *args):
    with contextlib.suppress(Exception):
        do(*args)


@pytest.mark.once
def test_what_a_stream_has_told_of_is_on_record():
    """The id comes with the first line, and stands for a record from then on."""
    with Server() as server, server.client() as client:
        session = client.session()
        ids = []
        for _ in range(5):
            with session.stream("import time; time.sleep(60)") as stream:
                ids.append(next(stream)["id"])
                server.kill()
            server.start()
            client.close()
            assert client.get("/v1/executions/" + ids[-1]).expect(200).json["status"] == "session_lost"
        assert len(set(ids)) == 5
