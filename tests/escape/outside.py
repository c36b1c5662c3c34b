"""The host's side of an escape test: runs the real program, reads its answer, keeps what it needs.

A guest file holds either GUEST (one cell) and EXPECT (what it must report), or check(box) where
something has to be prepared on the host or looked at from there afterwards. Both end up here. A
GUEST runs in a fresh session of the one server that all of them share; a check starts `retort run`
as often as it likes.
"""

import contextlib
import json
import os
import pwd
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from guest import PRELUDE
from support.retort import SECONDS, SOON, sandbox_users
from support.server import Server

REPO = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("RETORT_BIN", REPO / "build" / "retort"))
USER = os.environ.get("RETORT_TEST_USER", "retort-test")
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


class Failed(AssertionError):
    """What went wrong, in words; shown without a traceback."""


def same(got, want, what="the guest reported"):
    if got != want:
        raise Failed(f"{what}:\n  {got!r}\nexpected:\n  {want!r}")


def holds(condition, text):
    if not condition:
        raise Failed(text)


def modes():
    """As root; as an ordinary user, with and without subordinate ids."""
    users = {"own": "subordinate", "one": "rootless"}
    return ["root"] * (os.geteuid() == 0) + [users[kind] for kind in sandbox_users(test_user())]


def cell(code, **given):
    """One cell; the names given are set in it before the guest's own code."""
    lines = "".join(f"{name} = {value!r}\n" for name, value in given.items())
    return ["-c", PRELUDE + lines + code]


def plain(code):
    """One cell without the prelude."""
    return ["-c", code]


def shell(command):
    return ["--shell", command]


class Run:
    """One finished `retort run`."""

    def __init__(self, exit, stdout, stderr, seconds, peak_kb):
        self.exit, self.stdout, self.stderr = exit, stdout, stderr
        self.seconds, self.peak_kb = seconds, peak_kb
        self.doc = None

    def parse(self):
        try:
            self.doc = json.loads(self.stdout.decode("utf-8", "strict"))
        except ValueError as e:
            raise Failed(
                f"exit {self.exit}, and what it printed is not one JSON document ({e}):\n"
                f"{self.stdout[:2000]!r}\n{self.stderr[-2000:].decode(errors='replace')}"
            ) from None
        same(self.doc.get("version"), 1, "version of the document")
        same(self.doc.get("exit"), self.exit, "exit status in the document and of the process")
        return self

    def __getitem__(self, index):
        """One execution of the document."""
        executions = self.doc["executions"]
        if not -len(executions) <= index < len(executions):
            raise Failed(f"execution {index} never ran; the last one: {self.brief()}")
        return executions[index]

    def __len__(self):
        return len(self.doc["executions"])

    def status(self, index=-1):
        return self[index]["outcome"]["status"]

    def statuses(self):
        return [e["outcome"]["status"] for e in self.doc["executions"]]

    def outcome(self, index=-1):
        return self[index]["outcome"]

    def text(self, index=None, stream="stdout"):
        chosen = self.doc["executions"] if index is None else [self[index]]
        return "".join(ev["text"] for e in chosen for ev in e["events"] if ev["type"] == stream)

    def files(self, index=None):
        """Reported files by path."""
        chosen = self.doc["executions"] if index is None else [self[index]]
        return {ev["path"]: ev for e in chosen for ev in e["events"] if ev["type"] == "file"}

    @property
    def report(self):
        return reported(self.text())

    def said(self):
        """What the program itself had to say."""
        return self.stderr[-1500:].decode(errors="replace")

    def brief(self):
        """The end of the story, for a failure message."""
        if not self.doc["executions"]:
            return f"exit {self.exit}, nothing ran: {self.doc.get('error')} {self.said()}"
        last = self[-1]
        errors = [
            ev.get("traceback") or ev.get("message")
            for ev in last["events"]
            if ev["type"] == "error"
        ]
        return (
            f"exit {self.exit}, outcome {last['outcome']}\n"
            + "\n".join(errors)
            + self.text(-1, "stderr")[-1500:]
            + self.said()
        )


class Live:
    """A `retort run` in text mode that is still going, with its output as it comes."""

    def __init__(self, process):
        self.process, self.output = process, b""
        self.grew = threading.Condition()
        self.reader = threading.Thread(target=self.pump, daemon=True)
        self.reader.start()

    def pump(self):
        while chunk := os.read(self.process.stdout.fileno(), 65536):
            with self.grew:
                self.output += chunk
                self.grew.notify_all()
        with self.grew:
            self.grew.notify_all()

    def wait_for(self, word, seconds=60):
        word, end = word.encode(), time.monotonic() + seconds
        with self.grew:
            while word not in self.output:
                left = end - time.monotonic()
                if left <= 0 or (self.process.poll() is not None and not self.reader.is_alive()):
                    raise Failed(f"never printed {word!r}: {self.output[-1500:]!r}")
                self.grew.wait(min(left, 0.2))

    def report(self):
        return reported(self.output.decode(errors="replace"))

    def end(self, seconds=60):
        self.process.wait(seconds)
        self.reader.join(seconds)
        return self.process.returncode


class Box:
    """Where a guest is run: as root or as an ordinary user, with a folder on the host.

    house(mode) is the server that the guests of a mode share.
    """

    def __init__(self, mode, house=None):
        self.mode, self.house = mode, house
        self.is_root = mode == "root"
        self.has_own_users = mode != "rootless"
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        holds(os.access(PROGRAM, os.X_OK), f"{PROGRAM} is not there: build it first")
        self.user = pwd.getpwuid(0) if self.is_root else test_user()
        self.tmp = Path(tempfile.mkdtemp(prefix="retort-escape-"))
        self.stack.callback(shutil.rmtree, self.tmp, ignore_errors=True)
        self.tmp.chmod(0o755)
        self.own(self.tmp)
        return self

    def __exit__(self, *exc):
        self.stack.close()

    def own(self, path):
        if os.geteuid() == 0:
            os.chown(path, self.user.pw_uid, self.user.pw_gid, follow_symlinks=False)
        return path

    def dir(self, name):
        path = self.tmp / name
        path.mkdir()
        return self.own(path)

    def file(self, name, data=b""):
        path = self.tmp / name
        path.write_bytes(data)
        return self.own(path)

    def decoy(self, folder=None):
        """A host file that anyone on the host may read, and its secret."""
        secret = secrets.token_hex(16)
        path = Path(folder or self.tmp) / f"decoy-{secrets.token_hex(6)}.txt"
        path.write_text(secret)
        path.chmod(0o644)
        self.stack.callback(path.unlink, missing_ok=True)
        return path, secret

    def env(self, extra=None):
        return {
            "PATH": PATH,
            "HOME": self.user.pw_dir,
            "USER": self.user.pw_name,
            "LANG": "C.UTF-8",
        } | (extra or {})

    def become(self):
        """How the command line starts so that the rest runs as this box's user."""
        if self.is_root or os.geteuid() != 0:
            return []
        return [
            "setpriv",
            f"--reuid={self.user.pw_uid}",
            f"--regid={self.user.pw_gid}",
            "--init-groups",
            "--inh-caps=-all",
            "--",
        ]

    def users(self):
        return ["--sandbox-users", "own" if self.has_own_users else "one"]

    def command(self, steps, flags, json_mode, prefix=()):
        argv = [*prefix, *self.become(), str(PROGRAM), "run", "--preload", "", *self.users()]
        argv += ["--json"] if json_mode else []
        return argv + [str(f) for f in flags] + [word for step in steps for word in step]

    def popen(self, argv, env, cwd, stdin, **kw):
        process = subprocess.Popen(
            argv,
            env=self.env(env),
            cwd=cwd or self.tmp,
            stdin=stdin,
            stdout=subprocess.PIPE,
            start_new_session=True,
            **kw,
        )
        self.stack.callback(end_group, process)
        return process

    def run(
        self,
        *steps,
        flags=(),
        json=True,
        env=None,
        cwd=None,
        stdin=subprocess.DEVNULL,
        seconds=SECONDS,
        prefix=(),
        alone=False,
        **kw,
    ):
        """Runs the steps in one session to the end. Fails when that takes longer than seconds.

        A run that asks for nothing else than a time limit has its session on the server that guests share, unless
        it is to be alone."""
        is_plain = not alone and json and stdin is subprocess.DEVNULL and not (env or cwd or prefix or kw)
        limits = limits_of(flags)
        if is_plain and self.house and set(limits) <= {"--timeout", "--grace"}:
            return self.house(self.mode).play(steps, "--keep-going" in flags, limits.get("--timeout"))
        argv = self.command(steps, flags, json, prefix)
        began = time.monotonic()
        process = self.popen(argv, env, cwd, stdin, stderr=subprocess.PIPE, **kw)
        peak = Peak(process.pid)
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            end_group(process)
            out, err = process.communicate()
            raise Failed(
                f"no answer after {seconds} s; printed {out[-800:]!r} {err[-800:]!r}"
            ) from None
        finally:
            peak.stop()
        run = Run(process.returncode, out, err, time.monotonic() - began, peak.kb)
        holds(run.exit >= 0, f"the program was ended by signal {-run.exit}: {err[-1500:]!r}")
        return run.parse() if json else run

    def start(self, *steps, flags=(), env=None, cwd=None, prefix=()):
        """Starts a session in text mode and returns while it runs."""
        argv = self.command(steps, flags, False, prefix)
        return Live(self.popen(argv, env, cwd, subprocess.DEVNULL, stderr=subprocess.STDOUT))

    def outcomes(self, guests):
        """How each of these cells ends, by its name, in a session of its own on the shared server."""
        house = self.house(self.mode)
        return {name: house.execute(code)["status"] for name, code in guests.items()}

    def ok(self, run):
        holds(run.exit == 0, f"the guest did not come to its end: {run.brief()}")
        return run.report


class Peak:
    """The most memory a process ever held, watched from outside while it lives."""

    def __init__(self, pid):
        self.pid, self.kb, self.done = pid, 0, threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        while not self.done.wait(0.05):
            try:
                status = Path(f"/proc/{self.pid}/status").read_text()
            except OSError:
                return
            if found := re.search(r"VmHWM:\s+(\d+) kB", status):
                self.kb = max(self.kb, int(found[1]))

    def stop(self):
        self.done.set()
        self.thread.join()


class Island:
    """Two network namespaces of our own with one cable between them, and nothing else.

    `near` is where the program under test is started, `far` where the listener waits. No packet
    of either can leave the pair.
    """

    NEAR, FAR = "198.51.100.1", "198.51.100.2"

    def __init__(self, stack, also=()):
        holder = ["unshare", "--net", "--", "sleep", "120"]
        self.holders = [subprocess.Popen(holder) for _ in range(2)]
        for h in self.holders:
            stack.callback(h.wait)
            stack.callback(h.kill)
        host = os.readlink("/proc/self/ns/net")
        for h in self.holders:
            until(
                lambda h=h: os.readlink(f"/proc/{h.pid}/ns/net") != host,
                "a network namespace of its own",
            )
        near, far = (h.pid for h in self.holders)
        self.near, self.far = self.enter(near), self.enter(far)
        ip = [
            "ip",
            "link",
            "add",
            "cable0",
            "type",
            "veth",
            "peer",
            "name",
            "cable0",
            "netns",
            str(far),
        ]
        subprocess.run([*self.near, *ip], check=True)
        for side, address in ((self.near, self.NEAR), (self.far, self.FAR)):
            subprocess.run(
                [*side, "ip", "addr", "add", f"{address}/24", "dev", "cable0"], check=True
            )
            subprocess.run([*side, "ip", "link", "set", "lo", "up"], check=True)
            subprocess.run([*side, "ip", "link", "set", "cable0", "up"], check=True)
        for address in also:
            subprocess.run(
                [*self.far, "ip", "addr", "add", f"{address}/32", "dev", "cable0"], check=True
            )
            subprocess.run(
                [*self.near, "ip", "route", "add", f"{address}/32", "dev", "cable0"], check=True
            )

    def enter(self, pid):
        return ["nsenter", f"--net=/proc/{pid}/ns/net", "--"]


def until(condition, what, seconds=SOON):
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError):
            if condition():
                return
        if time.monotonic() > end:
            raise Failed(f"waited {seconds} s for {what}")
        time.sleep(0.02)


def processes_with(word):
    """Host pids of processes that were given this word as an argument of its own."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError):
                if word.encode() in Path("/proc", entry, "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry))
    return found


def end_group(process):
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


made_user = threading.Lock()


def test_user():
    """The ordinary user: whoever runs the suite, or one made for it where that is root."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    with made_user:
        try:
            return pwd.getpwnam(USER)
        except KeyError:
            subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", USER], check=True)
            return pwd.getpwnam(USER)


def expected(value, mode):
    """A tuple is a pair: where sandboxes have users of their own, where there is one for all."""
    if isinstance(value, tuple):
        return value[1] if mode == "rootless" else value[0]
    if isinstance(value, dict):
        return {k: expected(v, mode) for k, v in value.items()}
    if isinstance(value, list):
        return [expected(v, mode) for v in value]
    return value


def limits_of(flags):
    """Flags that have values, with these."""
    words = [flag for flag in flags if flag != "--keep-going"]
    return dict(zip(words[::2], words[1::2]))


EXITS = {"ok": 0, "timeout": 124, "memory": 137, "session_lost": 3}


class House(Server):
    """The server that guests share; it runs as the user of its mode."""

    def __init__(self, mode):
        self.box = Box(mode)
        # What is stopped at a time limit is hostile, and what is polite has ended by itself.
        super().__init__("--preload", "", "--ready", "2", "--grace", "0.3", *self.box.users(), small=False)

    def __enter__(self):
        self.box.__enter__()
        self.box.own(self.files)
        self.env = self.box.env()
        return super().__enter__()

    def __exit__(self, *exc):
        with self.box:
            super().__exit__(*exc)

    def command(self):
        return [*self.box.become(), *super().command()]

    def play(self, steps, keep_going, timeout=None):
        """The steps in a session of their own, told as `retort run --json` would."""
        began, done, exit = time.monotonic(), [], 0
        more = {"timeout": float(timeout)} if timeout else {}
        with self.client() as client, client.session() as session:
            for kind, code in steps:
                language = "shell" if kind == "--shell" else "python"
                answer = client.post(f"/v1/sessions/{session.id}/execute",
                                     {"code": code, "language": language, **more})
                holds(answer.status == 200, f"the server answered {answer!r}\n{self.log()}")
                done.append(answer.json)
                status = answer.json["outcome"]["status"]
                exit = exit or EXITS.get(status, 1)
                if status == "session_lost" or status != "ok" and not keep_going:
                    break
        run = Run(exit, b"", b"", time.monotonic() - began, None)
        run.doc = {"version": 1, "executions": done, "exit": exit}
        return run

    def execute(self, code):
        """The record of one cell in a session of its own."""
        with self.client() as client:
            done = client.post("/v1/execute", {"code": PRELUDE + code})
        holds(done.status == 200, f"the server answered {done!r}\n{self.log()}")
        return done.json

    def examine(self, module):
        """One guest: what it reported, compared with what its file expects."""
        done = self.execute(module.GUEST)
        got, want = reported(done["stdout"]), expected(module.EXPECT, self.box.mode)
        if got != want and done["status"] != "ok":
            raise Failed(f"it reported {got!r}\nexpected {want!r}\n{str(done)[-3000:]}")
        same(got, want)
        same(done["status"], "ok", "outcome")


def reported(text):
    """Everything report() said, in one dict."""
    said = {}
    for line in text.splitlines():
        if line.startswith("{"):
            with contextlib.suppress(ValueError):
                said.update(json.loads(line))
    return said
