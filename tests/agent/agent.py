"""Drives agent-driver: starts loops, hears of what happens, answers, stops, kills."""

import json
import queue
import subprocess
import threading

from support.retort import BUILD, driver
from support.script import script

PATIENCE = 60

# Begins code that says so, and goes on when Driver.release() lets it.
HELD = """import os, time
print('begun', flush=True)
while not os.path.exists('go'):
    time.sleep(0.01)
"""

# Draws as plotting packages do, without any.
DRAW = """import base64
from IPython.display import display
class Figure:
    png = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
    def _repr_png_(self):
        return self.png
    def save(self, name):
        open(name, "wb").write(self.png)
figure = Figure()
"""


class Loop:
    """One loop: what it has said so far, and how it ended."""

    def __init__(self):
        self.id = None
        self.events = []
        self.record = None
        self.news = threading.Condition()

    def wait(self, what, patience=PATIENCE):
        with self.news:
            assert self.news.wait_for(what, patience), (self.id, self.events[-3:])

    def end(self, patience=PATIENCE):
        self.wait(lambda: self.record is not None, patience)
        return self.record

    def event(self, **like):
        """The first event that has all of these."""
        def found():
            return [e for e in self.events if all(e.get(k) == v for k, v in like.items())]
        self.wait(found)
        return found()[0]

    def phases(self):
        return [e["phase"] for e in self.events if e["type"] == "phase"]


class Driver:
    def __init__(self, store, first=(), **settings):
        """first: commands that wait for it, before it is ready."""
        settings.setdefault("script", "-")
        settings.setdefault("ready", 2)
        self.process = subprocess.Popen(
            [driver("agent/agent-driver", shipped=True), BUILD / "guest", store, json.dumps(settings)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answers = queue.Queue()
        self.loops = {}
        self.lock = threading.Lock()
        for command in first:
            self.tell(**command)
        assert json.loads(self.process.stdout.readline()) == {"ready": True}
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            if not line.endswith("\n"):
                break
            said = json.loads(line)
            if "answer" in said:
                self.answers.put(said)
                continue
            loop = self.loop(said["id"])
            with loop.news:
                if "event" in said:
                    loop.events.append(said["event"])
                else:
                    loop.record = said["end"] or {"error": said["error"]}
                loop.news.notify_all()

    def loop(self, name):
        with self.lock:
            if name not in self.loops:
                self.loops[name] = Loop()
                self.loops[name].id = name
            return self.loops[name]

    def tell(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def ask(self, **command):
        self.tell(**command)
        return self.answers.get(timeout=PATIENCE)

    def start(self, request, **more):
        answer = self.ask(do="start", request=request, **more)
        assert "error" not in answer, answer
        assert answer["record"]["status"] == "pending"
        return self.loop(answer["record"]["id"])

    def play(self, *turns, **more):
        """The record of a loop that plays these turns to its end."""
        return self.start(script(*turns), **more).end()

    def get(self, loop, **more):
        return self.ask(do="get", id=loop.id, **more)

    def release(self, loop):
        """Lets code that is HELD go on."""
        sandbox = self.get(loop)["record"]["sandbox_id"]
        answer = self.ask(do="write", session=sandbox, path="go")
        assert "error" not in answer, answer

    def executions(self, record):
        return self.ask(do="executions", session=record["sandbox_id"])["executions"]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=PATIENCE) == 0
