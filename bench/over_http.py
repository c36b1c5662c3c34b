#!/usr/bin/env python3
"""Measures the server over HTTP with kept connections, beside a Jupyter kernel and nginx.

    over_http.py [--quick] [--only PART]... [--sessions N] [--calm SECONDS] [--build DIR] [--out FILE]

What is compared is taken in turns within one run, so that a busy minute of the machine falls on
everybody. No time is ever a failure; a session that is not made, a cell that does not answer, or
anything left behind is: the exit status is then 1. The clients are one small program
(http_client.c); the table says how much of a processor it used, so that a number which measures
the asking rather than the answering can be told.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

import anchors
import machine
import run

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAGS = ["--ready", str(run.READY), "--ready-max", "0", "--preload", run.PRELOAD, "--max-sessions", "2000",
         "--tenant-sessions", "2000", "--file-size", "4G", "--log-level", "warn"]
BULK = 1 << 30
PIECE = 1 << 20

CREATE = {"method": "POST", "path": "/v1/sessions", "body": "{}", "status": 201, "takes": True}
DELETE = {"method": "DELETE", "path": "/v1/sessions/{id}", "status": 204}
HEALTH = {"method": "GET", "path": "/health", "expect": "ok"}


def cell(step):
    """A step of the engine's bench as a request."""
    return {"method": "POST", "path": "/v1/sessions/{id}/execute",
            "body": json.dumps({"code": step["code"]}), "expect": step.get("expect", '"status":"ok"')}


class Load:
    """bench-http, and what it is asked; see http_client.c."""

    def __init__(self, build, port):
        self.build = build
        program = build / "bench" / "bench-http"
        source = ROOT / "bench" / "http_client.c"
        if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
            program.parent.mkdir(exist_ok=True)
            subprocess.run(["cc", "-D_GNU_SOURCE", "-std=gnu17", "-O2", "-o", program, source,
                            "-ljansson"], check=True)
        self.child = subprocess.Popen([program, str(port)], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)

    def ask(self, do, *steps, **more):
        self.child.stdin.write(json.dumps({"do": do, "steps": steps, **more}) + "\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        if not line:
            raise run.Failed("bench-http ended with status %s" % self.child.wait())
        answer = json.loads(line)
        if answer["failed"]:
            raise run.Failed("%d of %d failed, the first with: %s" % (
                answer["failed"], answer["failed"] + answer["ok"], answer["why"]))
        return answer

    def visit(self, n, *steps, **more):
        answer = self.ask("visit", *steps, n=n, **more)
        if answer["ok"] != n:
            raise run.Failed("%d of %d visits were made" % (answer["ok"], n))
        return answer

    def end(self):
        self.child.stdin.close()
        self.child.wait(10)


def delete_kept(load, server, n):
    """Deletes the sessions that were kept. The sandboxes that go with them, of all that are there: by those one
    tells a session's from the parked."""
    before = set(machine.boxes(server))
    load.ask("again", DELETE, clients=8)
    load.ask("forget")
    machine.wait_until(lambda: len(before - set(machine.boxes(server))) == n, 30)
    gone = before - set(machine.boxes(server))
    if len(gone) != n:
        raise run.Failed("%d sandboxes went with %d sessions" % (len(gone), n))
    return gone


# --- bytes, many of them ---

class Nginx:
    """Serves and takes one file on loopback: with Nginx(folder) as nginx."""

    def __init__(self, folder, port):
        self.folder, self.port = folder, port
        (folder / "www").mkdir()
        (folder / "nginx.conf").write_text("""
daemon off; master_process off; pid %(at)s/pid; error_log %(at)s/error;
events {}
http {
    access_log off; sendfile on; client_max_body_size 0; default_type application/octet-stream;
    client_body_temp_path %(at)s/in; proxy_temp_path %(at)s/p; fastcgi_temp_path %(at)s/f;
    uwsgi_temp_path %(at)s/u; scgi_temp_path %(at)s/s;
    server { listen 127.0.0.1:%(port)d; root %(at)s/www; location / { dav_methods PUT; } }
}
""" % {"at": folder, "port": port})

    def __enter__(self):
        program = ROOT / "build" / "nginx" / "usr" / "sbin" / "nginx"
        self.process = subprocess.Popen([program, "-e", self.folder / "error", "-p", self.folder,
                                         "-c", self.folder / "nginx.conf"])
        if not machine.wait_until(self._answers, 10):
            raise run.Failed("nginx does not come up")
        return self

    def _answers(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def __exit__(self, *exc):
        self.process.terminate()
        self.process.wait(10)


def exchange(port, head, source=None, before=b"", after=b""):
    """One request; source is a file whose bytes go along. Seconds, and the answer's status, head
    and first bytes; what follows those is counted and thrown away."""
    room = bytearray(PIECE)
    with socket.create_connection(("127.0.0.1", port), 120) as s:
        begun = time.perf_counter()
        s.sendall(head + before)
        if source:
            with open(source, "rb") as f:
                s.sendfile(f)
            s.sendall(after)
        got = b""
        while b"\r\n\r\n" not in got:
            piece = s.recv(65536)
            if not piece:
                raise run.Failed("no answer to %r" % head[:60])
            got += piece
        top, _, body = got.partition(b"\r\n\r\n")
        words = {name.strip().lower(): value.strip() for name, _, value in (
            line.partition(b":") for line in top.split(b"\r\n")[1:])}
        left = int(words.get(b"content-length", b"0")) - len(body)
        while left > 0:
            n = s.recv_into(room, min(left, PIECE))
            if n == 0:
                raise run.Failed("an answer was cut short")
            left -= n
        return time.perf_counter() - begun, int(top.split()[1]), body


# --- the parts ---

class Bench(run.Bench):
    """The engine's bench has the way of taking turns; its parts are replaced by these."""

    def __init__(self, server, load, report, quick, sessions):
        super().__init__(None, report, quick, sessions)
        self.server, self.load = server, load

    def _settle(self):
        with self.server.client() as c:
            machine.wait_until(lambda: c.get("/v1/pools/default").json["parked"] >= run.READY, 30)

    def create(self):
        """Sessions made, and their first answer."""
        rounds, each = (2, 3) if self.quick else (20, 8)
        made, first, empty = [], [], []
        anchor = {"jupyter": [], "jupyter_describe": []}

        def ours():
            self._settle()
            for _ in range(each):
                answer = self.load.visit(1, CREATE, DELETE)
                made.extend(answer["steps"][0])
                time.sleep(run.PAUSE_MS / 1e3)

        def described():
            self._settle()
            for _ in range(each):
                first.extend(self.load.visit(1, CREATE, cell(run.DESCRIBE), DELETE, until=1)["visit_us"])
                time.sleep(run.PAUSE_MS / 1e3)

        def nothing():
            empty.extend(self.load.visit(each * 10, HEALTH)["steps"][0])

        def jupyter():
            kernel = anchors.Jupyter()
            try:
                anchor["jupyter"].append(kernel.start_us)
                took = kernel.run(run.DESCRIBE["code"], run.DESCRIBE["expect"])
                anchor["jupyter_describe"].append(kernel.start_us + took)
            finally:
                kernel.stop()

        self._rounds(rounds, [ours, described, nothing])
        for _ in range(1 if self.quick else 5):
            jupyter()
        anchor = {name: run.summary(values) for name, values in anchor.items()}
        self.report.more["anchors_create"] = anchor
        row = self.report.row
        row("GET /health", run.summary(empty))
        row("create, pool hit", run.summary(made), ("Jupyter, ready", anchor["jupyter"]["p50"]), (0.5, 0.25))
        row("create + describe() + JSON", run.summary(first),
            ("Jupyter", anchor["jupyter_describe"]["p50"]), (12, 8))

    def warm(self):
        """A session that is up."""
        rounds, cells, few = (2, 25, 3) if self.quick else (10, 200, 20)
        took = {name: [] for name in ("assign", "print", "describe")}
        anchor = {name: [] for name in took}
        steps = {"assign": run.ASSIGN, "print": run.PRINT, "describe": run.DESCRIBE}
        self.load.visit(1, CREATE, cell(run.DESCRIBE), keep=True)
        kernel = anchors.Jupyter()

        def ours(name, count):
            took[name].extend(self.load.ask("again", cell(steps[name]), repeat=count)["steps"][0])

        def theirs(name):
            step = steps[name]
            anchor[name].extend(kernel.run(step["code"], step.get("expect", "")) for _ in range(few))

        try:
            kernel.run(run.DESCRIBE["code"])
            variants = [lambda: ours("assign", cells), lambda: ours("print", cells),
                        lambda: ours("describe", few)]
            self._rounds(rounds, variants + [lambda name=name: theirs(name) for name in anchor])
        finally:
            kernel.stop()
        self.load.ask("again", DELETE)
        self.load.ask("forget")
        anchor = {name: run.summary(values) for name, values in anchor.items()}
        self.report.more["anchors_warm"] = anchor
        row = self.report.row
        for name, what, targets in (("assign", "x = 1", (0.5, 0.2)), ("print", "print(2+2)", (0.5, 0.2)),
                                    ("describe", "describe()", ())):
            row("warm cell: " + what, run.summary(took[name]), ("Jupyter", anchor[name]["p50"]), targets)

    def durability(self):
        """Answers that outlive the process beside answers that wait for the disk."""
        from support.server import Server

        rounds, cells, clients = (2, 25, 8) if self.quick else (10, 200, 64)
        took, rates = {"process": [], "power": []}, {"process": [], "power": []}
        with Server(*FLAGS, "--python", sys.executable, "--durability", "power", small=False) as sure:
            loads = {"process": self.load, "power": Load(self.load.build, sure.port)}

            def warm(name):
                took[name] += loads[name].ask("again", cell(run.PRINT), repeat=cells)["steps"][0]

            def many(name):
                answer = loads[name].ask("again", cell(run.PRINT), clients=clients, repeat=cells // 5)
                rates[name].append(clients * (cells // 5) * 1e6 / answer["took_us"])

            for n, part in ((1, warm), (clients, many)):
                for load in loads.values():
                    load.visit(n, CREATE, cell(run.PRINT), clients=min(n, 8), keep=True)
                self._rounds(rounds, [lambda: part("process"), lambda: part("power")])
                for load in loads.values():
                    load.ask("again", DELETE, clients=min(n, 8))
                    load.ask("forget")
            loads["power"].end()
        row = self.report.row
        fast = run.summary(took["process"])
        row("warm cell, durability = process", fast)
        row("  durability = power", run.summary(took["power"]), ("process", fast["p50"]))
        fast = run.summary(rates["process"], "a second", 1)
        row("cells of %d clients, durability = process" % clients, fast)
        row("  durability = power", run.summary(rates["power"], "a second", 1), ("process", fast["p50"]))

    def rate(self):
        """Cells a second, each client in a session of its own."""
        each = 50 if self.quick else 500
        for clients in (1, 8, 64):
            n = max(1, each * 4 // clients)
            self.load.visit(clients, CREATE, cell(run.PRINT), clients=min(clients, 8), keep=True)
            answer = self.load.ask("again", cell(run.PRINT), clients=clients, repeat=n)
            self.load.ask("again", DELETE, clients=8)
            self.load.ask("forget")
            seconds = answer["took_us"] / 1e6
            count = clients * n
            self.report.row("cells a second, %d client%s" % (clients, "s" * (clients > 1)),
                            (count / seconds, "a second"), n=count)
            self.report.row("  each", run.summary(answer["steps"][0]))
            self.report.row("  of a processor, for asking", (100 * answer["cpu_us"] / answer["took_us"], "%"))

    def burst(self):
        """Everybody at once."""
        n = 20 if self.quick else 200
        self._settle()
        answer = self.load.visit(n, CREATE, cell(run.DESCRIBE), clients=n, keep=True, until=1)
        self.load.ask("again", DELETE, clients=8)
        self.load.ask("forget")
        row = self.report.row
        row("%d create + describe() at once: answered" % n, (answer["ok"], "of %d" % n), n=n)
        row("  create", run.summary(answer["steps"][0]))
        row("  until the answer", run.summary(answer["visit_us"]))
        row("  until the last", (answer["took_us"] / 1e6, "s"), n=n)

    def live(self):
        """Many at once, all alive."""
        n = 20 if self.quick else self.sessions
        if machine.available() < n * 14:
            raise run.Failed("%d sessions need about %d MB of memory: try --sessions with fewer" % (n, n * 14))
        self._settle()
        before, free = self._holds(), machine.available()
        made = self.load.visit(n, CREATE, cell(run.DESCRIBE), clients=2, keep=True, until=1)
        mb = (free - machine.available()) / n
        answers = self.load.ask("again", cell(run.PRINT), clients=8)
        held = self._holds()
        self.load.ask("again", DELETE, clients=8)
        self.load.ask("forget")
        self._settle()
        machine.wait_until(lambda: self._holds()["processes"] <= before["processes"], 120)
        after = self._holds()
        left = {k: after[k] - before[k] for k in ("processes", "server_fds") if after[k] > before[k] + 2}
        if left:
            self.report.fail("left behind by deleted sessions: %s" % left)
        self.report.more["live"] = {"n": n, "before": before, "during": held, "after": left, "mb": mb}
        row = self.report.row
        row("%d live, each ran describe(): answered" % n, (answers["ok"], "of %d" % n), n=n)
        row("  create + describe(), two at a time", run.summary(made["visit_us"]))
        row("  print(2+2) in each, eight at a time", run.summary(answers["steps"][0]))
        row("  MB a session, of MemAvailable", (mb, "MB"), n=n, targets=(9,) if not self.quick else ())
        row("  the server's own MB", (held["server_kb"] / 1024, "MB"), n=n)

    def _holds(self):
        pid = self.server.pid
        return {"processes": len(machine.below(pid)), "server_fds": machine.open_files(pid),
                "server_kb": self.server.resident()}

    def bulk(self):
        """A gigabyte in and out, beside nginx with the same file."""
        size = BULK // 16 if self.quick else BULK
        folder = self.server.files / "bulk"
        folder.mkdir()
        source = folder / "source"
        block = os.urandom(PIECE)
        with open(source, "wb") as f:
            for _ in range(size // PIECE):
                f.write(block)
        before = b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
        after = b"\r\n--b--\r\n"
        rates = {key: [] for key in ("up", "down", "nginx_up", "nginx_down")}

        def put(port, head, want, *around):
            took, status, body = exchange(port, head, source, *around)
            if status not in want:
                raise run.Failed("an upload was answered %d: %r" % (status, body[:200]))
            return size / took / 1e6, body

        def get(port, path):
            took, status, _ = exchange(port, b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                                       % path.encode())
            if status != 200:
                raise run.Failed("a download was answered %d" % status)
            return size / took / 1e6

        def ours():
            head = (b"POST /v1/files HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: "
                    b"multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n"
                    % (len(before) + size + len(after)))
            rate, body = put(self.server.port, head, (201,), before, after)
            made = json.loads(body)
            rates["up"].append(rate)
            rates["down"].append(get(self.server.port, "/v1/files/%s/content" % made["id"]))
            with self.server.client() as c:
                c.delete("/v1/files/" + made["id"]).expect(204)

        def theirs():
            head = (b"PUT /f HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % size)
            rates["nginx_up"].append(put(nginx.port, head, (201, 204))[0])
            rates["nginx_down"].append(get(nginx.port, "/f"))

        with Nginx(folder, free_port()) as nginx:
            self._rounds(1 if self.quick else 3, [ours, theirs])
        shutil.rmtree(folder)
        rates = {key: sorted(values)[len(values) // 2] for key, values in rates.items()}
        self.report.more["bulk"] = {"bytes": size, "mb_per_second": rates}
        what = "%d MB" % (size >> 20)
        # The ratio of times, as in every row: above 1 we are the faster one.
        for key, text in (("up", "in, hashed and on the disk"), ("down", "out")):
            self.report.row("%s %s" % (what, text), (rates[key], "MB/s"),
                            ("nginx", rates["nginx_" + key]))
            self.report.rows[-1]["ratio"] = rates[key] / rates["nginx_" + key]


PARTS = {"create": Bench.create, "warm": Bench.warm, "durability": Bench.durability,
         "rate": Bench.rate, "burst": Bench.burst,
         "bulk": Bench.bulk, "live": Bench.live}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def show(report, facts):
    head = ["what", "n", "anchor p50", "ours p50 / p95 / p99", "ratio", "target", "met"]
    lines = [head] + [run.cells(row) for row in report.rows]
    width = [max(len(line[i]) for line in lines) for i in range(len(head))]
    print("%(cpu)s, %(cores)d cores, %(memory_mb)d MB, Linux %(kernel)s, %(user)s, Python %(python)s" % facts)
    if facts["busy_before"] > run.CALM:
        print("The machine was %d %% busy before this began: the times say more about that than "
              "about anything else." % (100 * facts["busy_before"]))
    print()
    for i, line in enumerate(lines):
        print("  ".join(text.ljust(width[k]) for k, text in enumerate(line)).rstrip())
        if i == 0:
            print("  ".join("-" * w for w in width))
    print("\nOver HTTP on kept connections; clients and server share these processors.")


# --- what every bench over HTTP does ---

@contextlib.contextmanager
def serving(args):
    """A server with the flags of a bench, and bench-http to load it with."""
    sys.path.append(str(ROOT / "tests"))
    os.environ["RETORT_BIN"] = str(args.build / "retort")
    from support.server import Server

    with Server(*FLAGS, "--python", sys.executable, small=False) as server:
        load = Load(args.build, server.port)
        try:
            yield server, load
        finally:
            load.end()


def main(text, name, measure, more=lambda parser: None):
    """The command line of a bench: measure(report, args), a table, and BUILD/NAME.json."""
    parser = argparse.ArgumentParser(description=text.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few samples: does it run at all?")
    parser.add_argument("--calm", type=int, default=0, metavar="SECONDS",
                        help="wait this long for others to let the machine alone (0)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--out", type=pathlib.Path, help="the JSON file (BUILD/%s.json)" % name)
    more(parser)
    args = parser.parse_args()

    machine.wait_until(lambda: machine.busy(2) < run.CALM, args.calm)
    begun, facts, report = time.monotonic(), machine.facts(), run.Report()
    try:
        measure(report, args)
    except (run.Failed, RuntimeError, AssertionError, OSError, subprocess.SubprocessError) as error:
        report.fail(str(error))
    show(report, facts)
    out = args.out or args.build / (name + ".json")
    out.write_text(json.dumps({
        "version": 1, "quick": args.quick, "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": time.monotonic() - begun, "machine": facts, "rows": report.rows,
        "more": report.more, "failed": report.wrong}, indent=1) + "\n")
    print("%d seconds; the numbers are in %s" % (time.monotonic() - begun, out))
    for wrong in report.wrong:
        print("failed: %s" % wrong)
    return 1 if report.wrong else 0


# --- this one ---

def measure_parts(report, args):
    with serving(args) as (server, load):
        bench = Bench(server, load, report, args.quick, args.sessions)
        for name, part in PARTS.items():
            if not args.only or name in args.only:
                print("%s: %s" % (name, part.__doc__), file=sys.stderr)
                part(bench)


def add_options(parser):
    parser.add_argument("--only", action="append", choices=PARTS, help="this part; may be repeated")
    parser.add_argument("--sessions", type=int, default=1000, help="live at once (1000)")


if __name__ == "__main__":
    sys.exit(main(__doc__, "bench-http", measure_parts, add_options))
