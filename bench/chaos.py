"""Faults on purpose: clients work while parts of the server die, stand still or run out of room.

    python3 bench/chaos.py --minutes 10 [--seed N]

Each client keeps a history of what it was told. At the end the server is stopped, started once more
and held against it: what was acknowledged is there, nothing has run twice, nothing is left behind,
and the server's memory is what it was. All of it is on loopback.
"""

import argparse
import contextlib
import http.client
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support import retort  # noqa: E402
from support.server import Server  # noqa: E402

CLIENTS = 3
GONE = (OSError, http.client.HTTPException, AssertionError, json.JSONDecodeError)
FILES = 100  # uploads that a client keeps
PACE = 0.02  # seconds that a client rests after each call
NOT_SAVED = "could not be saved yet, and is lost if the sandbox is"
GROWN = 128 * 1024  # kilobytes of memory that all this may leave behind in one server


def children(pid):
    return [p for p in retort.pids() if retort.field(p, "PPid") == [str(pid)]]


class Worker(threading.Thread):
    """One client: appends lines to a file by running code, uploads files, and notes what it is told."""

    def __init__(self, chaos, number):
        super().__init__(daemon=True)
        self.chaos, self.number, self.random = chaos, number, random.Random(chaos.seed + number)
        self.session = None
        self.tried, self.told = [], {}  # lines; and when and how they were acknowledged
        self.files, self.records = {}, {}  # contents and codes by id
        self.deleted = []  # files, by id
        self.unsaved = []  # answers without the file: they must say that it is not saved yet
        self.refused = {}

    def call(self, client, method, path, *args, **more):
        answer = client.request(method, path, *args, **more)
        if answer.status >= 400:
            self.refused[answer.status] = self.refused.get(answer.status, 0) + 1
            time.sleep(0.05)
        return answer

    def append(self, client):
        line = secrets.token_hex(8)
        code = f"with open('lines', 'a') as f: f.write('{line}\\n')"
        self.tried.append(line)
        answer = self.call(client, "POST", f"/v1/sessions/{self.session}/execute", {"code": code})
        if answer.status == 200 and answer.json["status"] == "ok":
            self.records[answer.json["id"]] = code
            if any(file["path"] == "lines" for file in answer.json["files"]):
                self.told[line] = time.monotonic(), answer.body
            else:  # the disk was full just then
                self.unsaved.append(answer)

    def upload(self, client):
        content = secrets.token_bytes(self.random.randrange(1, 20000))
        answer = client.form("/v1/files", ("file", "name", content))
        if answer.status == 201:
            self.files[answer.json["id"]] = content
        if len(self.files) > FILES:
            self.delete(client, self.random.choice([*self.files]))

    def delete(self, client, name):
        del self.files[name]  # whether it is there is not known until the answer has come
        if client.delete(f"/v1/files/{name}").status == 204:
            self.deleted.append(name)

    def begin(self, client):
        answer = self.call(client, "POST", "/v1/sessions", {})
        if answer.status == 201:
            self.session = answer.json["id"]

    def run(self):
        client = self.chaos.server.client()
        while not self.chaos.over.is_set():
            try:
                if not self.session:
                    self.begin(client)
                else:
                    self.random.choice([self.append, self.append, self.upload])(client)
                time.sleep(PACE)
            except GONE:
                client.close()
                time.sleep(0.05)
        client.close()


class Chaos:
    def __init__(self, seconds, seed, out=print):
        self.seconds, self.seed, self.out = seconds, seed, out
        self.random = random.Random(seed)
        self.over = threading.Event()
        self.server = Server("--max-sessions", "60", "--output-memory", "32M")
        self.small_disk = False
        self.counts, self.history = {}, []

    # --- faults ---

    def kill_server(self):
        self.server.kill()
        self.server.start()

    def kill_zygote(self):
        for warden in children(self.server.pid):
            for keeper in children(warden):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(keeper, signal.SIGKILL)

    def stop_warden(self):
        wardens = children(self.server.pid)
        for signum in (signal.SIGSTOP, signal.SIGCONT):
            for pid in wardens:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signum)
            time.sleep(0.5)

    def many_connections(self):
        """Until the server takes no more, or has a few hundred."""
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError):
                for _ in range(300):
                    stack.enter_context(self.server.connect(2))
            time.sleep(0.2)

    def slow_reader(self):
        with self.server.client() as client:
            stream = client.stream("/v1/execute", {"code": "print('x' * 4_000_000)"})
            time.sleep(0.5)
            stream.close()

    def many_files(self):
        code = ("import os\nfor i in range(1500):\n"
                "    with open(f'f{i}', 'wb') as f: f.write(os.urandom(16))")
        with self.server.client() as client:
            session = client.session()
            client.post(session.path + "/execute", {"code": code})
            client.delete(session.path)

    def full_disk(self):
        filler = self.server.state / "filler"
        try:
            with contextlib.suppress(OSError), open(filler, "wb") as f:
                while f.write(b"\0" * 1048576):
                    pass
            time.sleep(0.5)
        finally:
            filler.unlink(missing_ok=True)

    def faults(self):
        found = [self.kill_server, self.kill_zygote, self.stop_warden, self.many_connections,
                 self.slow_reader, self.many_files]
        return found + [self.full_disk] * self.small_disk

    # --- the run ---

    def mount(self):
        """A small disk of its own for the state, where root may make one."""
        if os.geteuid() != 0:
            return
        self.server.state.mkdir()
        megabytes = 192 + int(self.seconds / 4)  # what is on record grows by a sixth of that
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "retort-chaos",
                               self.server.state], capture_output=True)
        self.small_disk = done.returncode == 0
        self.server.mounts = self.server.mounts | {
            line for line in Path("/proc/mounts").read_text().splitlines() if "retort-chaos" in line}

    def play(self):
        workers = [Worker(self, n) for n in range(CLIENTS)]
        for worker in workers:
            worker.start()
        until = time.monotonic() + self.seconds
        order = self.random.sample(self.faults(), len(self.faults()))
        while order or time.monotonic() < until:  # each of them once, however short
            fault = order.pop() if order else self.random.choice(self.faults())
            self.counts[fault.__name__] = self.counts.get(fault.__name__, 0) + 1
            self.history.append((time.monotonic(), fault.__name__))
            try:
                fault()
            except GONE as e:  # the fault met another's; the server itself must be there
                self.out(f"{fault.__name__}: {type(e).__name__}")
            assert self.server.process.poll() is None, f"{fault.__name__} ended the server:\n{self.server.log()}"
            time.sleep(self.random.random() / 2)
        self.over.set()
        for worker in workers:
            worker.join(retort.SECONDS)
            assert not worker.is_alive(), "a client still waits for an answer"
        return workers

    def wait_for(self, client, method, path, *args):
        """An answer that is no refusal for the moment."""
        for _ in range(300):
            answer = client.request(method, path, *args)
            if answer.status not in (429, 503, 507):
                return answer
            time.sleep(0.1)
        raise AssertionError(f"still refused: {answer}")

    def check(self, worker):
        with self.server.client() as client:
            for name, content in worker.files.items():
                found = self.wait_for(client, "GET", f"/v1/files/{name}/content")
                assert found.status == 200 and found.body == content, f"lost: {name}: {found}"
            for name in worker.deleted:
                found = self.wait_for(client, "GET", f"/v1/files/{name}/content")
                assert found.status == 404, f"deleted, and there again: {name}: {found}"
            for name, code in worker.records.items():
                found = self.wait_for(client, "GET", f"/v1/executions/{name}")
                assert found.status == 200 and found.json["code"] == code, f"lost: {name}: {found}"
            unexplained = [answer for answer in worker.unsaved if NOT_SAVED not in answer.text]
            assert not unexplained, f"not saved, and no word of it: {unexplained[0]}"
            if not worker.told:
                return
            found = self.wait_for(client, "GET", f"/v1/sessions/{worker.session}/files/lines")
            assert found.status == 200, f"lost: the file of {worker.session}: {found}"
            lines = found.text.split()
            lost = [line for line in worker.told if line not in lines]
            twice = [line for line in worker.tried if lines.count(line) > 1]
            assert not lost, f"{len(lost)} of {len(worker.told)} acknowledged lines are lost: {self.story(worker, lost[0])}"
            assert not twice, f"ran twice: {twice[:3]}"

    def story(self, worker, line):
        """What was said of one line, and which faults there were around that time."""
        when, said = worker.told[line]
        near = [f"{at - when:+.2f} s {name}" for at, name in self.history if -10 < at - when < 5]
        after = list(worker.told)[list(worker.told).index(line) + 1:][:1]
        then = [f"{worker.told[a][0] - when:+.2f} s, {worker.told[a][1]}" for a in after]
        return f"{line}: {said}\nfaults: {near}\nthe next: {then}"

    def run(self):
        try:
            self.mount()
            self.server.start()
            self.server.check_alive()
            before = self.server.resident()
            workers = self.play()
            self.server.wait_ready()
            grown = self.server.resident() - before
            assert grown < GROWN, f"the server has grown by {grown} KB"
            self.server.stop()  # and everything that it should leave behind: nothing
            self.server.start()
            for worker in workers:
                self.check(worker)
            self.server.check_alive()
            self.server.stop()
        finally:
            self.over.set()
            if self.server.process is not None:
                self.server.kill()
            if self.small_disk:
                subprocess.run(["umount", "-l", self.server.state], check=False)
            self.server.discard()
        self.report(workers, grown)

    def report(self, workers, grown):
        self.out("faults: " + ", ".join(f"{n} {name}" for name, n in sorted(self.counts.items())))
        told = sum(len(w.told) for w in workers)
        tried, unsaved = (sum(n) for n in zip(*[(len(w.tried), len(w.unsaved)) for w in workers]))
        files = sum(len(w.files) for w in workers)
        gone = sum(len(w.deleted) for w in workers)
        self.out(f"executions acknowledged: {told} of {tried}, and {unsaved} whose files were not saved yet;"
                 f" files: {files}, and {gone} deleted; none lost, none twice")
        self.out(f"refusals: {[dict(sorted(w.refused.items())) for w in workers]}; memory {grown:+d} KB")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else secrets.randbelow(1 << 30)
    print(f"seed {seed}", flush=True)
    Chaos(args.minutes * 60, seed).run()


if __name__ == "__main__":
    main()
