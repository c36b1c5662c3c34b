#!/usr/bin/env python3
"""Mixed work for half an hour, and whether the server stays as it was: memory, descriptors, threads,
processes.

    soak.py [--minutes N] [--every SECONDS] [--build DIR] [--out FILE]

Several clients at once run cells, draw plots, upload and download, hit the limits, kill their own
interpreter, let sessions sleep and wake, and several more misbehave. Every few seconds the server is
looked at. The first two minutes warm it up (caches fill; of a short run half of the time). Of the rest,
the first and the last third are compared by the lowest tenth of their looks: a look may fall on ten
megabytes that are being answered, but what leaks is there between the answers, too. One that has grown,
or an answer that was not the right one, is a failure: the exit status is then 1.
"""

import argparse
import hashlib
import json
import os
import pathlib
import random
import socket
import statistics
import struct
import sys
import threading
import time
import traceback

import machine

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Records and workspaces go soon, so that what is kept on purpose does not look like a leak.
FLAGS = ["--ready", "2", "--ready-max", "0", "--preload", "numpy,matplotlib.pyplot", "--memory", "400M", "--pids", "64",
         "--disk", "64M", "--tmp", "16M", "--timeout", "20", "--idle-timeout", "3", "--retention", "60",
         "--records", "60", "--header-timeout", "2", "--log-level", "warn", "--drain", "10"]

# What may come on top: noise of an allocator, a sandbox more or less at the moment of looking.
ALLOWED = {"memory_mb": (0.05, 4), "fds": (0, 12), "threads": (0, 1), "processes": (0, 12),
           "warden_mb": (0.05, 2), "warden_fds": (0, 12)}


WARM_S = 120


class Worker(threading.Thread):
    """Makes one kind of visit over and over."""

    def __init__(self, soak, visit, pause):
        super().__init__(name=visit.__name__, daemon=True)
        self.soak, self.visit, self.pause = soak, visit, pause
        self.count, self.random = 0, random.Random(visit.__name__)

    def run(self):
        while not self.soak.over.is_set():
            try:
                with self.soak.server.client() as client:
                    self.visit(self, client)
                self.count += 1
            except Exception:
                self.soak.wrong.append("%s: %s" % (self.name, traceback.format_exc()[-800:]))
                if len(self.soak.wrong) > 20:
                    return
            self.soak.over.wait(self.pause)


# --- visits of people who mean well ---

def cells(worker, client):
    with client.session() as s:
        s.run("total = 0")
        for i in range(20):
            assert s.run(f"total += {i}; total")["result"] == str(sum(range(i + 1)))
        assert s.shell("echo $((6 * 7))")["stdout"] == "42\n"


def streams(worker, client):
    with client.session() as s, s.stream("for i in range(200): print('x' * 200, flush=True)") as stream:
        assert stream.until(type="done")["status"] == "ok"


def plots(worker, client):
    with client.session() as s:
        done = s.run("import matplotlib.pyplot as plt\nplt.plot(range(9))\nplt.savefig('a.png');")
        assert [e for e in done["events"] if e["type"] == "display"] and done["files"]
        assert s.read("a.png")[:4] == b"\x89PNG"


def uploads(worker, client):
    data = worker.random.randbytes(worker.random.randrange(1, 4_000_000))
    digest = hashlib.sha256(data).hexdigest()
    made = client.form("/v1/files", ("file", "f", data)).expect(201).json
    with client.session() as s:
        s.put("up", data)
        done = s.run("import hashlib\nprint(hashlib.sha256(open('up', 'rb').read()).hexdigest(),"
                     "hashlib.sha256(open('f', 'rb').read()).hexdigest())", files=[{"id": made["id"]}])
        assert done["stdout"].split() == [digest, digest]
        assert len(client.get(s.path + "/workspace?format=zip").expect(200).body) > 2 * len(data)
    client.delete("/v1/files/" + made["id"]).expect(204)


def sleepers(worker, client):
    with client.session(idle_timeout=1) as s:
        s.run("open('kept', 'w').write('kept')")
        assert machine.wait_until(lambda: s.get()["state"] == "asleep", 30)
        assert s.run("open('kept').read()")["outcome"]["state_lost"] is True


def one_shots(worker, client):
    assert client.post("/v1/execute", {"code": "6 * 7"}).expect(200).json["result"] == "42"


def records(worker, client):
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 2))
    lines = client.get("/v1/executions?format=jsonl&since=" + since).expect(200).text.splitlines()
    assert all(json.loads(line)["id"] for line in lines)
    assert client.get("/metrics").expect(200).text and client.get("/v1/sessions").status == 200


# --- and of those who do not ---

def timeouts(worker, client):
    with client.session() as s:
        assert s.run("while True: pass", timeout=0.3)["status"] == "timeout"
        done = s.run("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", timeout=0.3)
        assert done["status"] == "timeout" and done["outcome"]["state_lost"]


def kills(worker, client):
    with client.session() as s:
        assert s.run("import os; os._exit(1)")["status"] == "died"
        assert s.run("x = b'x' * 10**9")["status"] in ("memory", "raised")
        s.shell("for i in $(seq 100); do sleep 60 & done 2>/dev/null; true")
        s.run("open('full', 'wb').write(b'x' * 10**8)")
        assert s.run("6 * 7")["result"] == "42"


def floods(worker, client):
    with client.session() as s:
        assert s.run("for i in range(20000): print('y' * 500)")["status"] == "ok"


def leavers(worker, client):
    with client.session() as s:
        for code in ("import time; time.sleep(60)", "while True: print('z' * 1000)"):
            with s.stream(code) as stream:
                next(stream)
        assert machine.wait_until(lambda: s.get()["state"] in ("idle", "asleep"), 30)


NOISE = [b"", b"\0" * 200, b"GET / HTTP/1.1\r\n\r\n", b"GET /x HTTP/1.1\r\nHost: localhost\r\n",
         b"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{",
         b"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
         b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"A: b\r\n" * 3000,
         b"POST /v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\n"
         b"Content-Length: 999999\r\n\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; "
         b"filename=\"f\"\r\n\r\nxxxx", b'POST /v1/execute HTTP/1.1\r\nHost: localhost\r\n'
         b'Content-Type: application/json\r\nContent-Length: 40\r\n\r\n' + b"[" * 40]


def strangers(worker, client):
    for noise in NOISE:
        with worker.soak.server.connect() as s:
            s.sendall(noise)
            if worker.random.random() < 0.3:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif worker.random.random() < 0.3:
                s.shutdown(socket.SHUT_WR)
    assert client.get("/health").status == 200


VISITS = [(cells, 0.2), (cells, 0.2), (streams, 0.5), (plots, 1), (uploads, 1), (sleepers, 1), (one_shots, 0.2),
          (records, 5), (timeouts, 1), (kills, 2), (floods, 2), (leavers, 1), (strangers, 0.5)]


# --- looking ---

class Soak:
    def __init__(self, server):
        self.server, self.over, self.wrong, self.samples = server, threading.Event(), [], []

    def look(self):
        pid = self.server.pid
        below = machine.below(pid)
        warden = [p for p in below if machine.read("/proc/%d/comm" % p) == "retort-warden\n"][:1]
        return {
            "at": time.monotonic(),
            "memory_mb": self.server.resident() / 1024,
            "fds": machine.open_files(pid),
            "threads": len(os.listdir("/proc/%d/task" % pid)),
            "processes": len(below),
            "warden_mb": memory_mb(warden[0]) if warden else None,
            "warden_fds": machine.open_files(warden[0]) if warden else None,
        }

    def run(self, seconds, every):
        workers = [Worker(self, visit, pause) for visit, pause in VISITS]
        for worker in workers:
            worker.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end and len(self.wrong) <= 20:
            time.sleep(min(every, max(0, end - time.monotonic())))
            self.samples.append(self.look())
        self.over.set()
        for worker in workers:
            worker.join(120)
            if worker.is_alive():
                self.wrong.append("%s: a request hangs" % worker.name)
        counts = {}
        for worker in workers:
            counts[worker.name] = counts.get(worker.name, 0) + worker.count
        self.wrong += ["%s: nothing was done" % name for name, count in counts.items() if count == 0]
        return counts


def memory_mb(pid):
    for line in (machine.read("/proc/%d/status" % pid) or "").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return None


def judge(samples):
    """Rows of (what, first third, last third, most, allowed, flat?)."""
    warm = min(samples[0]["at"] + WARM_S, samples[len(samples) // 2]["at"])
    kept = [s for s in samples if s["at"] >= warm]
    third = max(1, len(kept) // 3)
    rows = []
    for name, (share, more) in ALLOWED.items():
        values = [s[name] for s in kept if s[name] is not None]
        if not values:
            continue
        first, last = (statistics.quantiles(part, n=10)[0] for part in (values[:third], values[-third:]))
        limit = first + max(first * share, more)
        rows.append((name, first, last, max(values), limit, last <= limit))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=30, help="how long (30)")
    parser.add_argument("--every", type=float, default=5, metavar="SECONDS", help="between two looks (5)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--out", type=pathlib.Path, help="the JSON file (BUILD/soak.json)")
    args = parser.parse_args()
    sys.path.append(str(ROOT / "tests"))
    os.environ["RETORT_BIN"] = str(args.build / "retort")
    from support.server import Server

    with Server(*FLAGS, small=False) as server:
        soak = Soak(server)
        counts = soak.run(args.minutes * 60, args.every)
        if server.process.poll() is None:
            server.check_alive()
        else:
            soak.wrong.append("the server ended: %s" % server.log())
        warnings = sorted({line.split(": ", 1)[-1][:100] for line in server.log(10**7).splitlines()
                           if "warn" in line or "error" in line})
    rows = judge(soak.samples)

    print("%.1f minutes, %d looks; visits: %s\n" % (args.minutes, len(soak.samples), ", ".join(
        "%s %d" % item for item in counts.items())))
    print("%-12s %12s %12s %12s %12s  %s" % ("what", "first third", "last third", "most", "allowed", "flat"))
    for name, first, last, most, limit, flat in rows:
        print("%-12s %12.1f %12.1f %12.1f %12.1f  %s" % (name, first, last, most, limit, "yes" if flat else "NO"))
    for line in warnings[:10]:
        print("log: " + line)
    for text in soak.wrong[:5]:
        print("wrong: " + text)
    out = args.out or args.build / "soak.json"
    out.write_text(json.dumps({"minutes": args.minutes, "visits": counts, "rows": rows, "wrong": soak.wrong,
                               "log": warnings, "samples": soak.samples}, indent=1) + "\n")
    print("the samples are in %s" % out)
    return 0 if rows and all(row[-1] for row in rows) and not soak.wrong else 1


if __name__ == "__main__":
    sys.exit(main())
