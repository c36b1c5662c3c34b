"""The program from outside: runs it, reads its answers, watches its processes.

run() is one `retort run --json` to its end,
Session many cells in one such run, Live one that is still going.
"""

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("RETORT_BIN") or str(REPO / "build" / "retort")
BUILD = Path(PROGRAM).parent
CONFORMANCE = str(BUILD / "retort-conformance")  # with the fixtures of MCP's conformance suite
SECONDS = 120  # past this a run hangs
SOON = 20  # past this something that should happen at once does not; a cell's own time limit is longer
ARG_MAX = 100_000  # the kernel takes 128 KiB in one argument; longer code goes by a file


def driver(name, shipped=False):
    """A C program of the tests, as "fetch/fetch-driver": with sanitizers where that build is there,
    unless it is to be as shipped."""
    asan, plain = BUILD / "asan" / "tests" / name, BUILD / "tests" / name
    return asan if asan.exists() and not shipped else plain


class Answer:
    """One execution of the document."""

    def __init__(self, execution):
        self.kind, self.source = execution["kind"], execution["source"]
        self.events, self.outcome = execution["events"], execution["outcome"]

    def of(self, kind):
        return [event for event in self.events if event["type"] == kind]

    def text_of(self, kind):
        return "".join(event["text"] for event in self.of(kind))

    @property
    def stdout(self):
        return self.text_of("stdout")

    @property
    def stderr(self):
        return self.text_of("stderr")

    @property
    def status(self):
        return self.outcome["status"]

    @property
    def limits(self):
        return self.outcome["limits_hit"]

    @property
    def message(self):
        return self.outcome["message"]

    @property
    def lost(self):
        return self.outcome["state_lost"]

    @property
    def bundle(self):
        """The value of the last expression, by MIME type; None when there was none."""
        found = self.of("result")
        assert len(found) < 2, found
        return found[0]["data"] if found else None

    @property
    def result(self):
        return self.bundle and self.bundle["text/plain"]

    @property
    def displays(self):
        return [event["data"] for event in self.of("display")]

    @property
    def error(self):
        found = self.of("error")
        assert len(found) < 2, found
        return found[0] if found else None

    @property
    def files(self):
        """What is reported of each file, by its path: (change, size, MIME type)."""
        return {e["path"]: (e["change"], e["size"], e["mime"]) for e in self.of("file")}

    @property
    def order(self):
        """The events without what does not matter for their order."""
        return [(e["type"], e.get("text") or e.get("data", {}).get("text/plain") or e.get("name")
                 or e.get("path")) for e in self.events]

    def __repr__(self):
        return f"<{self.kind} {self.outcome} {str(self.events)[:2000]}>"


class Run:
    """One `retort run --json` that came to its end."""

    def __init__(self, exit, stdout, stderr):
        self.exit, self.stderr = exit, stderr
        try:
            self.document = json.loads(stdout.decode("utf-8", "strict"))
        except ValueError as error:
            raise AssertionError(f"exit {exit}, no document ({error}): {stdout[:500]!r}\n{stderr}")
        assert self.document["version"] == 1
        assert self.document["exit"] == exit
        self.answers = [Answer(e) for e in self.document["executions"]]

    def __getitem__(self, index):
        assert index < len(self.answers), f"{index} never ran; {self!r}"
        return self.answers[index]

    def __len__(self):
        return len(self.answers)

    @property
    def statuses(self):
        return [a.status for a in self.answers]

    def __repr__(self):
        last = self.answers[-1] if self.answers else None
        return f"<exit {self.exit}, {len(self)} answers, the last {last!r}; stderr {self.stderr!r}>"


def start(*args, **options):
    """Popen of the program, in a process group of its own."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
               "start_new_session": True} | options
    return subprocess.Popen([PROGRAM, *map(str, args)], **options)


def end(process):
    """Whatever has become of the test, its program ends with it."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            pipe.close()


def finish(process, input=None, seconds=SECONDS):
    """A started program to its end: (exit status, stdout as bytes, stderr as text)."""
    try:
        out, err = process.communicate(input, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"no end after {seconds} s: {process.args!r}") from None
    return process.returncode, out, (err or b"").decode("utf-8", "replace")


def call(*args, input=None, seconds=SECONDS, **options):
    """start() and finish() in one."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    process = start(*args, **options)
    try:
        return finish(process, input, seconds)
    finally:
        end(process)


def run(*args, **options):
    return Run(*call("run", "--json", *args, **options))


def cells(*codes):
    """The arguments for cells in this order."""
    return [word for code in codes for word in ("-c", code)]


class Session:
    """One session whose cells are written down beside their tests and run together, at the first
    look at any of them."""

    def __init__(self, *flags):
        self.flags, self.steps, self.done = flags, [], None

    def cell(self, code):
        return self._add("-c", code)

    def shell(self, line):
        return self._add("--shell", line)

    def _add(self, *step):
        assert self.done is None, "the session has run already"
        self.steps.append(step)
        return Later(self, len(self.steps) - 1)

    def answer(self, index):
        if self.done is None:
            self.done = self._run()
        return self.done[index]

    def _run(self):
        folder = Path(tempfile.mkdtemp(prefix="retort-test-"))
        words = []
        try:
            for i, (flag, code) in enumerate(self.steps):
                if len(code) > ARG_MAX:
                    path = folder / f"{i}.py"
                    path.write_text(code, newline="")
                    words += [str(path)]
                else:
                    words += [flag, code]
            return run("--keep-going", *self.flags, *words)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


class Later:
    """An Answer that is there when it is asked for."""

    def __init__(self, session, index):
        self._session, self._index = session, index

    def __getattr__(self, name):
        if name.startswith("_"):  # pytest asks every name of a module what it is
            raise AttributeError(name)
        return getattr(self._session.answer(self._index), name)


class Live:
    """A `retort run` that prints text, with its stdout as it comes: with Live(...) as live.

    pause: seconds between one read of its output and the next, for a slow reader.
    """

    def __init__(self, *args, pause=0, **options):
        self.process = start("run", *args, **{"stderr": subprocess.STDOUT} | options)
        self.pid, self.output, self.pause = self.process.pid, b"", pause
        self.grew = threading.Condition()
        self.reader = threading.Thread(target=self._pump, daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.process.wait()
        self.reader.join(SECONDS)
        end(self.process)

    def _pump(self):
        while chunk := os.read(self.process.stdout.fileno(), 65536):
            with self.grew:
                self.output += chunk
                self.grew.notify_all()
            time.sleep(self.pause)
        with self.grew:
            self.grew.notify_all()

    def wait_for(self, word, seconds=SECONDS):
        word, until = word.encode(), time.monotonic() + seconds
        with self.grew:
            while word not in self.output:
                left = until - time.monotonic()
                assert left > 0 and self.reader.is_alive(), \
                    f"never printed {word!r}: {self.output[-2000:]!r}"
                self.grew.wait(min(left, 0.2))

    def wait(self, seconds=SECONDS):
        """The exit status, once everything it printed has been read."""
        status = self.process.wait(seconds)
        self.reader.join(seconds)
        return status

    @property
    def lines(self):
        return self.output.decode("utf-8", "replace").splitlines()


def wait_until(holds, what, seconds=SOON):
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, f"waited {seconds} s for {what}"
        time.sleep(0.02)


# --- processes of the host ---

def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def field(pid, name):
    """A line of /proc/PID/status, as words; empty when the process is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if line.startswith(name + ":"):
                return line.split()[1:]
    return []


def read_proc(pid, name):
    """A short file of /proc/PID; empty when the process is gone. Without pathlib, as all processes are looked
    through again and again."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:
        return file.read()
    return b""


def stat(pid):
    """The state of a process and its parent; "X", 0 when it is gone."""
    words = read_proc(pid, "stat").rpartition(b")")[2].split(None, 2)
    return (words[0].decode(), int(words[1])) if words else ("X", 0)


def is_alive(pid):
    return stat(pid)[0] not in ("Z", "X")


def children(pid):
    """Of one process, those that nobody has waited for among them."""
    return [p for p in pids() if stat(p)[1] == pid]


def children_now(pid):
    """The same, asked of the kernel at once: for loops that ask again and again. One may be missing while
    others end."""
    found = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, read_proc(pid, f"task/{thread}/children").split())
    return found


def below(pid):
    """Every living descendant of a process."""
    parents = {p: stat(p)[1] for p in pids()}
    found, new = [], [pid]
    while new:
        new = [p for p, parent in parents.items() if parent in new]
        found += new
    return [p for p in found if is_alive(p)]


def with_word(word):
    """Living processes that have this word among their arguments, the program itself left out."""
    return [pid for pid in pids() if word.encode() in read_proc(pid, "cmdline").split(b"\0") and is_alive(pid)]


def has_groups():
    """Whether sessions are held by cgroups here; else by rlimits and a watch."""
    return os.geteuid() == 0 and any(
        os.path.exists("/sys/fs/cgroup/" + name) for name in ("memory", "cgroup.controllers"))


def groups():
    """The cgroup of every instance, dead or alive, in each hierarchy. Those of its sandboxes are below it and go
    first."""
    found = []
    for path, folders, _ in os.walk("/sys/fs/cgroup"):
        if os.path.basename(path) == "retort":
            found += [os.path.join(path, name) for name in folders]
            folders.clear()
    return found


def instances(pids):
    """Instances whose lock one of these living processes holds. The number in an instance's name is no
    proof: in another pid namespace of this machine another process has it, too."""
    pids, held = set(pids), set()
    for words in (line.split() for line in Path("/proc/locks").read_text().splitlines()):
        if words[1] == "FLOCK" and int(words[4]) in pids:
            held.add(words[5])
    found = set()
    for group in groups():
        with contextlib.suppress(OSError):
            st = os.stat(group)
            if f"{os.major(st.st_dev):02x}:{os.minor(st.st_dev):02x}:{st.st_ino}" in held:
                found.add(os.path.basename(group))
    return found


def groups_of(names):
    """What is left of the cgroups of these instances."""
    return [group for group in groups() if os.path.basename(group) in names] if names else []


def sandbox_users(user=None):
    """What `sandbox-users` can be for this user, or whoever runs the tests: with and without ids of its own
    for each sandbox, which root always has. ./dev installs what it takes."""
    user = user or pwd.getpwuid(os.geteuid())
    if user.pw_uid == 0:
        return ["own"]
    names = (user.pw_name, str(user.pw_uid))
    given = all(any(line.split(":")[0] in names for line in Path(file).read_text().splitlines())
                for file in ("/etc/subuid", "/etc/subgid") if os.path.exists(file))
    return ["own", "one"] if given and os.path.exists("/usr/bin/newuidmap") else ["one"]
