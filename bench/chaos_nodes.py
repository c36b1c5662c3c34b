"""Three nodes, PostgreSQL, S3 and HAProxy, each in a network namespace of its own, and faults on purpose.

    python3 bench/chaos_nodes.py [--kills 30] [--partitions 10] [--pauses 5] [--lease 15] [--patience 5]
                                 [--tenants 3] [--room 80] [--seed N]

patience: seconds that a client waits for an answer; room: sandboxes of each node. With one tenant and little room its
sandboxes are on all of them.

Clients of all doors work through HAProxy meanwhile, and keep a history of what they were told. It is held against
what is there at the end: nothing acknowledged is lost, nothing ran twice, nothing old was written or read, and after
each fault every client was answered again in time. Only root can make network namespaces.
"""

import argparse
import bisect
import collections
import contextlib
import http.client
import json
import os
import random
import re
import secrets
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from chaos_doors import DOORS, Refused, Register, Uploads, Words  # noqa: E402
from support import retort, s3  # noqa: E402
from support.balancer import Balancer, haproxy  # noqa: E402
from support.machines import Network  # noqa: E402
from support.nodes import Nodes  # noqa: E402
from support.postgres import Postgres  # noqa: E402
from support.server import Client, Server, form  # noqa: E402

NODES = 3
PACE = 0.15  # seconds that a client rests after each call
LATER = (429, 502, 503, 504, 507)
GONE = (OSError, http.client.HTTPException)
WORD = re.compile(r"\b[0-9a-f]{16}\b")
FLAGS = ["--plain-http", "--model-script", "-", "--memory", "200M", "--idle-timeout", "3600"]


class Ask:
    """One client of the balancer, with the key of a tenant: the body of an answer, or Refused."""

    def __init__(self, front, key):
        self.client = Client(front, key)
        self.counts, self.wrong = collections.Counter(), []
        self.now, self.rest = time.monotonic, time.sleep

    def __call__(self, method, path, body, headers, **missing):
        """missing: what a 404 is."""
        try:
            response = self.client.begin(method, path, None if isinstance(body, bytes) else body,
                                         body=body if isinstance(body, bytes) else None, headers=headers)
            text = response.read().decode(errors="replace")
        except GONE:
            self.counts["none"] += 1
            self.client.close()
            raise
        if response.will_close:
            self.client.close()
        self.counts[response.status] += 1
        if response.status == 404 and missing:
            return missing["missing"]
        if response.status >= 400:
            if response.status not in LATER:
                self.wrong.append(f"{method} {path}: {response.status} {text[:300]}")
            raise Refused(f"{response.status} {text[:300]}")
        return text

    def form(self, path, *parts):
        body, kind = form(*parts)
        return self("POST", path, body, {"Content-Type": kind})


class Worker(threading.Thread):
    def __init__(self, chaos, name, ask, what):
        super().__init__(daemon=True, name=name)
        self.chaos, self.ask, self.what = chaos, ask, what
        self.answered = []  # when it asked, and when it was answered
        self.wrong = []

    def run(self):
        while not self.chaos.over.is_set():
            began = time.monotonic()
            try:
                if self.what.work():
                    self.answered.append((began, time.monotonic()))
                time.sleep(PACE)
            except (Refused, *GONE):
                time.sleep(PACE)
            except Exception as e:  # an answer that makes no sense
                self.wrong.append(f"{self.name}: {type(e).__name__}: {e}")
                time.sleep(PACE)

    def after(self, moment):
        """How long after it an answer came to what was asked after it; or None."""
        found = self.answered[bisect.bisect_left(self.answered, (moment,)):][:1]
        return found[0][1] - moment if found else None


class Placed(Server):
    """A server on a machine."""

    def __init__(self, machine, *flags, **more):
        super().__init__(*flags, listen=f"{machine.address}:8000", **more)
        self.machine, self.port = machine, 8000

    def launch(self):
        with self.machine.inside():
            super().launch()

    def connect(self, seconds=retort.SECONDS):
        return self.machine.connect(self.machine.address, self.port, seconds)


class PlacedNodes(Nodes):
    def __init__(self, machines, *args, **more):
        self.machines = machines
        super().__init__(*args, **more)

    def make(self, number, config, certificate):
        machine = self.machines[number]
        server = Placed(machine, config=config, env=s3.ENV)
        server.store = ["--store", self.url]
        server.flags += [*map(str, self.flags), "--node-name", f"n{number}", "--node-url", f"http://{server.listen}"]
        return server


class PlacedPostgres(Postgres):
    def __init__(self, machine):
        super().__init__(trusts=Network.RANGE, listen_addresses=machine.address)
        self.machine = machine

    def start(self):
        with self.machine.inside():
            super().start()


class PlacedS3(s3.S3):
    def __init__(self, machine):
        super().__init__(host=machine.address, disk="/dev/shm")  # so many small files are long in going
        self.machine = machine

    def start(self):
        with self.machine.inside():
            return super().start()


class Front(Balancer):
    """HAProxy on a machine; clients are on another."""

    def __init__(self, machine, servers, clients, patience):
        super().__init__(haproxy, servers, f"{machine.address}:8443")
        self.machine, self.clients, self.patience = machine, clients, patience

    def __enter__(self):
        with self.machine.inside():
            return super().__enter__()

    def connect(self):
        return self.tls.wrap_socket(self.clients.connect(self.host, self.port, self.patience),
                                    server_hostname="localhost")


class Chaos:
    def __init__(self, args, out=print):
        self.args, self.out = args, out
        self.random = random.Random(args.seed)
        self.over = threading.Event()
        self.wrong, self.faults = [], []
        # A node is taken over from when its lease is over, by a look that there are four of in each lease; a client
        # may wait for an answer then that does not come.
        self.promise = args.lease * 1.25 + 2 * args.patience

    # --- the place ---

    @contextlib.contextmanager
    def place(self):
        with contextlib.ExitStack() as stack:
            self.lan = stack.enter_context(Network())
            self.spots = [self.lan.machine() for _ in range(NODES)]
            self.at_db, self.at_s3, self.at_front, clients = [self.lan.machine() for _ in range(4)]
            self.postgres = stack.enter_context(PlacedPostgres(self.at_db))
            self.blobs = stack.enter_context(PlacedS3(self.at_s3))
            self.nodes = PlacedNodes(self.spots, self.postgres, self.blobs, NODES, *FLAGS, "--max-sessions",
                                     self.args.room, lease=self.args.lease)
            keys = [self.nodes.key(f"tenant{i}") for i in range(self.args.tenants)]
            for node in self.nodes.servers:
                name = self.nodes.url.removeprefix("postgresql:///").partition("?")[0]
                node.store = ["--store", f"postgresql://postgres@{self.at_db.address}/{name}?sslmode=disable"]
            stack.enter_context(self.nodes)
            for node, key in zip(self.nodes.servers, keys):  # a tenant on each
                with node.client(key) as client:
                    client.get("/v1/sessions").expect(200)
            front = stack.enter_context(Front(self.at_front, [n.listen for n in self.nodes.servers], clients,
                                              self.args.patience))
            self.workers = [self.worker(front, name, tenant, key) for tenant, key in enumerate(keys)
                            for name in (*DOORS, "files", "register")]
            yield

    def worker(self, front, name, tenant, key):
        ask = Ask(front, key)
        what = (Words(DOORS[name](ask, tenant)) if name in DOORS else
                Uploads(ask) if name == "files" else Register(ask, tenant, self.promise))
        return Worker(self, f"{name} {tenant}", ask, what)

    # --- faults: each says hit() when it has struck, and returns when it was over if the nodes cannot mend it ---

    def hit(self):
        self.began = time.monotonic()

    def wait(self, most):
        time.sleep(self.random.uniform(0.2, most))

    def revive(self, number):
        """It may have found that others have taken over, and have ended."""
        node = self.nodes[number]
        if node.process is not None and node.process.poll() is not None:
            if number != self.harmed or "another node has taken over" not in node.log():
                self.wrong.append(f"node {number} ended by itself: {node.log()[-600:]}")
            node.process = None
        if node.process is None:
            node.start()

    def any_node(self):
        """Mostly one where a tenant lives: those that come back are empty."""
        tenant = self.random.randrange(self.args.tenants)
        home = self.nodes.home(f"tenant{tenant}") if self.random.random() < 0.7 else None
        self.harmed = self.random.randrange(NODES) if home is None else home
        return self.harmed

    def kill_node(self):
        number = self.any_node()
        self.nodes[number].kill()
        self.hit()
        self.wait(1.5 * self.args.lease)
        self.revive(number)

    def lose_machine(self):
        """No other machine hears of its end."""
        number = self.any_node()
        others = [m for m in self.lan.machines if m is not self.spots[number]]
        self.lan.cut(self.spots[number], *others)
        self.nodes[number].kill()
        self.hit()
        self.wait(1.5 * self.args.lease)
        self.lan.mend(self.spots[number], *others)
        self.revive(number)

    def kill_postgres(self):
        self.postgres.kill()
        self.hit()
        self.wait(5)
        self.postgres.start()
        return time.monotonic()

    def kill_s3(self):
        self.blobs.kill()
        self.hit()
        self.wait(5)
        self.blobs.start()
        return time.monotonic()

    def pause_node(self):
        """All of it, as the machine beneath does it."""
        number = self.any_node()
        pids = [self.nodes[number].pid, *retort.below(self.nodes[number].pid)]
        for signum in signal.SIGSTOP, signal.SIGCONT:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signum)
            if signum == signal.SIGSTOP:
                self.hit()
                self.nodes.wait_gone(number)
                self.wait(2)
        self.nodes[number].process.wait(retort.SECONDS)
        self.revive(number)

    def cut(self, *others):
        number = self.any_node()
        spots = [m for m in others if m is not self.spots[number]]
        self.lan.cut(self.spots[number], *spots)
        self.hit()
        self.wait(1.5 * self.args.lease)
        self.lan.mend(self.spots[number], *spots)
        mended = time.monotonic()
        retort.wait_until(lambda: self.nodes[number].process.poll() is not None or self.nodes.sql(
            f"SELECT 1 FROM retort_writers WHERE name = 'n{number}' AND until > clock_timestamp()"),
            "a lease, or the end", retort.SECONDS)
        self.revive(number)
        return mended

    def cut_from_database(self):
        self.cut(self.at_db)

    def cut_from_peers(self):
        return self.cut(*self.spots)

    def cut_from_clients(self):
        self.cut(self.at_front)

    def cut_from_s3(self):
        return self.cut(self.at_s3)

    def cut_from_all(self):
        self.cut(*self.lan.machines)

    def plan(self):
        kills = [self.kill_node, self.kill_postgres, self.lose_machine, self.kill_s3, self.kill_node]
        cuts = [self.cut_from_database, self.cut_from_clients, self.cut_from_peers, self.cut_from_all,
                self.cut_from_s3]
        faults = [some[i % len(some)] for count, some in (
            (self.args.kills, kills), (self.args.partitions, cuts), (self.args.pauses, [self.pause_node]))
            for i in range(count)]
        return self.random.sample(faults, len(faults))

    # --- the run ---

    def all_answered(self, since, most):
        """Until every client was answered: the longest that it took, and by whom."""
        until = time.monotonic() + most
        while True:
            times = [(w.after(since), w.name) for w in self.workers]
            missing = [name for took, name in times if took is None]
            if not missing:
                return max(times)
            if time.monotonic() > until:
                self.wrong.append(f"no answer for {most:.0f} s: {missing}")
                return most, missing[0]
            time.sleep(0.05)

    def harm(self, fault):
        name, self.harmed = fault.__name__, None
        mended, began = fault(), self.began
        took, whom = self.all_answered(began, 2 * self.promise + time.monotonic() - began)
        # What lasts is not the nodes' to mend: they have their time from its end on.
        allowed = self.promise + (mended - began if mended else 0)
        self.faults.append((name, took, allowed))
        for number in range(NODES):
            self.revive(number)
        if took > allowed:
            self.wrong.append(f"{name}: {whom} was answered after {took:.1f} s only")
        self.out(f"{len(self.faults):3} {name:18} {time.monotonic() - began:5.1f} s, all answered after {took:5.1f} s "
                 f"(last {whom})", flush=True)

    def play(self):
        for worker in self.workers:
            worker.start()
        self.all_answered(time.monotonic(), retort.SECONDS)
        self.out(f"{len(self.workers)} clients are answered", flush=True)
        for fault in self.plan():
            self.harm(fault)
        self.over.set()
        for worker in self.workers:
            worker.join(retort.SECONDS)
            assert not worker.is_alive(), f"{worker.name} still waits for an answer"

    # --- the verdict ---

    def patiently(self, call):
        """What is there, once it is not refused for the moment."""
        until = time.monotonic() + retort.SECONDS
        while True:
            try:
                return call()
            except (Refused, *GONE) as e:
                if time.monotonic() > until:
                    raise AssertionError(f"still refused: {e!r}") from None
                time.sleep(0.2)

    def records(self):
        """How often each word has been run, by the records of its tenant."""
        found = collections.Counter()
        for worker in self.workers[::len(self.workers) // self.args.tenants]:
            text = self.patiently(lambda ask=worker.ask: ask("GET", "/v1/executions?format=jsonl", None, {}))
            for line in text.splitlines():
                record = json.loads(line)
                found.update((word, record["status"]) for word in set(WORD.findall(record["code"] or "")))
        return found

    def judge(self):
        lost, twice, stale = [], [], []
        with ThreadPoolExecutor(len(self.workers)) as threads:
            for worker, found in zip(self.workers, threads.map(lambda w: self.patiently(w.what.judge), self.workers)):
                for all_of_them, some in zip((lost, twice, stale), found):
                    all_of_them += [f"{worker.name}: {one}" for one in some]
        self.check_records([w.what for w in self.workers if isinstance(w.what, Words)], lost, twice)
        for worker in self.workers:
            self.wrong += worker.wrong + worker.ask.wrong
        return lost, twice, stale

    def check_records(self, words, lost, twice):
        found = self.records()
        times = collections.Counter()
        for (word, _), count in found.items():
            times[word] += count
        for what in words:
            lost += [f"record of {word}" for word in what.ran if not found[word, "ok"]]
            twice += [f"records of {word}" for word in what.tried if times[word] > 1]

    def report(self, lost, twice, stale):
        kinds = collections.defaultdict(list)
        for name, took, _ in self.faults:
            kinds[name].append(took)
        self.out(f"\n{'fault':20}{'times':>6}{'median, s':>11}{'longest, s':>12}  until every client was answered again")
        for name, took in sorted(kinds.items()):
            took.sort()
            self.out(f"{name:20}{len(took):6}{took[len(took) // 2]:11.1f}{took[-1]:12.1f}")
        counts = sum((w.ask.counts for w in self.workers), collections.Counter())
        words = [w.what for w in self.workers if isinstance(w.what, Words)]
        self.out(f"\nanswers: {dict(sorted(counts.items(), key=str))}\n"
                 f"acknowledged: {sum(len(w.what.ran) for w in self.workers)}, of them executions"
                 f" {sum(len(what.ran) for what in words)} of {sum(len(what.tried) for what in words)} asked for\n")
        for name, what in (("acknowledged and lost", lost), ("run twice", twice), ("written or read stale", stale),
                           ("other", self.wrong)):
            self.out(f"{name:24}{len(what):5}")
            for one in what[:10]:
                self.out(f"    {one}")

    def run(self):
        with self.place():
            try:
                self.play()
                self.out("what clients were told is compared with what is there", flush=True)
                found = self.judge()
            finally:
                self.over.set()
            self.report(*found)
        return not any((*found, self.wrong))


def main():
    parser = argparse.ArgumentParser()
    for name, count in (("kills", 30), ("partitions", 10), ("pauses", 5), ("lease", 15), ("patience", 5),
                        ("tenants", 3), ("room", 80)):
        parser.add_argument("--" + name, type=int, default=count)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 30))
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    sys.exit(0 if Chaos(args).run() else 1)


if __name__ == "__main__":
    main()
