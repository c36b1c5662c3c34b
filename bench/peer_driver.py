"""One peer, driven from the Python it is installed in: peer_driver.py NAME, with the folder of npm's
modules in PEERS_NPM. A line on stdin asks for a round, a line of JSON answers it; see peers.py.

Times in microseconds. What a peer cannot do is in "missing" with the reason, as the peer said it.
"""

import asyncio
import json
import os
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
import uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import machine
from peer_cells import CELL, DESCRIBE, PLOT

PYTHON = "/usr/bin/python3"
NPM = os.path.realpath(os.environ.get("PEERS_NPM", "."))
WAIT_S = 60


def us_since(begun):
    return (time.perf_counter() - begun) * 1e6


class Missing(Exception):
    """The peer does not do this."""


def reason(text):
    """The line that says what is wrong, of a traceback or of whatever it is."""
    lines = [line for line in str(text).strip().split("\n") if "Error" in line] or ["no output"]
    return Missing(lines[-1].strip()[:120])


def check(text, expect):
    if expect not in text:
        raise reason(text)


class Peer:
    starts = False    # whether there is something to start before sessions are made
    pictures = False  # whether a plot comes back

    def start(self):
        pass

    def stop(self):
        pass


# --- kernels over HTTP and a websocket, as a notebook's page drives them ---

class KernelGateway(Peer):
    """jupyter_kernel_gateway: REST makes kernels, a websocket runs cells."""
    starts = pictures = True

    def start(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.child = subprocess.Popen(
            [sys.executable, "-m", "kernel_gateway", "--KernelGatewayApp.ip=127.0.0.1",
             "--KernelGatewayApp.port=%d" % self.port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + WAIT_S
        while True:
            try:
                return urllib.request.urlopen(self._url("/api"), timeout=5).read()
            except OSError:
                if self.child.poll() is not None or time.monotonic() > until:
                    raise RuntimeError("the kernel gateway does not come up") from None
                time.sleep(0.01)

    def _url(self, path, scheme="http"):
        return "%s://127.0.0.1:%d%s" % (scheme, self.port, path)

    def create(self):
        asked = urllib.request.Request(self._url("/api/kernels"), b"{}", {"Content-Type": "application/json"})
        kernel = json.load(urllib.request.urlopen(asked, timeout=WAIT_S))["id"]
        return self.loop.run_until_complete(self._connect(kernel))

    async def _connect(self, kernel):
        from tornado.websocket import websocket_connect
        ws = await websocket_connect(self._url("/api/kernels/%s/channels" % kernel, "ws"),
                                     max_message_size=2**24)
        ws.stream = ws.protocol.stream
        await self._ask(ws, "kernel_info_request", {})
        return kernel, ws

    async def _ask(self, ws, kind, content):
        """All that the kernel says about one request, until it is idle and has replied."""
        name = uuid.uuid4().hex
        await ws.write_message(json.dumps({
            "header": {"msg_id": name, "msg_type": kind, "username": "", "session": name, "version": "5.3"},
            "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}))
        said, idle, replied = "", False, False
        while not (idle and replied):
            # Its server sends small pieces and waits for each to be acknowledged: a system that delays
            # that, as Linux does, makes every cell 40 ms longer. Here it is not delayed.
            ws.stream.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            message = json.loads(await asyncio.wait_for(ws.read_message(), WAIT_S))
            if message["parent_header"].get("msg_id") != name:
                continue
            content = message["content"]
            said += content.get("text", "") + "".join(content.get("data", {})) + content.get("evalue", "")
            idle = idle or content.get("execution_state") == "idle"
            replied = replied or message["channel"] == "shell"
        return said

    def run(self, session, code, expect):
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        check(self.loop.run_until_complete(self._ask(session[1], "execute_request", content)), expect)

    def pids(self, session):
        return [pid for pid in machine.below(self.child.pid)
                if session[0] in (machine.read("/proc/%d/cmdline" % pid) or "")]

    def close(self, session):
        session[1].close()
        asked = urllib.request.Request(self._url("/api/kernels/" + session[0]), method="DELETE")
        urllib.request.urlopen(asked, timeout=WAIT_S).read()

    def stop(self):
        self.child.terminate()
        self.child.wait(WAIT_S)


# --- interpreters in this process or beside it ---

class Smolagents(Peer):
    """smolagents.LocalPythonExecutor: walks the syntax tree in the agent's own process."""
    starts = True

    def start(self):
        from smolagents.local_python_executor import LocalPythonExecutor
        self.make = LocalPythonExecutor

    def create(self):
        executor = self.make(["pandas", "numpy", "matplotlib.*"])
        executor.send_tools({})
        return executor

    def run(self, session, code, expect):
        try:
            said = session(code)
        except Exception as error:
            raise reason(error) from error
        check(said.logs + str(said.output), expect)

    def pids(self, session):
        return [os.getpid()]

    def close(self, session):
        pass


class Monty(Peer):
    """pydantic-monty: a Python of its own in Rust, a worker process for each session."""
    starts = True

    def start(self):
        import pydantic_monty
        self.monty = pydantic_monty
        self.pool = pydantic_monty.Monty(min_processes=2).__enter__()

    def create(self):
        return self.pool.checkout().__enter__()

    def run(self, session, code, expect):
        out = self.monty.CollectString()
        try:
            session.feed_run(code, print_callback=out)
        except self.monty.MontyError as error:
            raise reason(error) from error
        check(out.output, expect)

    def pids(self, session):
        return machine.below(os.getpid())[:1]

    def close(self, session):
        session.__exit__(None, None, None)

    def stop(self):
        self.pool.__exit__(None, None, None)


class Pyodide(Peer):
    """CPython as WebAssembly: a process for each session, or sessions would share one memory."""
    command = ["node"]

    def create(self):
        here = os.path.dirname(os.path.abspath(__file__))
        child = subprocess.Popen([*self.command, here + "/peer_pyodide.mjs", NPM + "/node_modules/pyodide"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._answer(child)
        return child

    def _answer(self, child):
        line = child.stdout.readline()
        if not line:
            raise RuntimeError("%s ended with status %s" % (self.command[0], child.wait()))
        return json.loads(line)

    def run(self, session, code, expect):
        session.stdin.write(json.dumps({"code": code}) + "\n")
        session.stdin.flush()
        said = self._answer(session)
        check(said.get("out") or said.get("error", ""), expect)

    def pids(self, session):
        return [session.pid]

    def close(self, session):
        session.stdin.close()
        session.wait(WAIT_S)


class Deno(Pyodide):
    command = [NPM + "/node_modules/deno/deno", "run", "--no-prompt", "--no-remote", "--allow-read",
               "--allow-env", "--cached-only"]


# --- a new process for each call ---

class Alone(Peer):
    """No session: each call is a command of its own, and nothing stays."""

    def create(self):
        return None

    def run(self, session, code, expect):
        done = subprocess.run(self.command(code), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=WAIT_S)
        check(done.stdout or done.stderr, expect)

    def pids(self, session):
        return []

    def close(self, session):
        pass


class Bubblewrap(Alone):
    def command(self, code):
        return ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
                "--tmpfs", "/tmp", PYTHON, "-c", code]


class SandboxRuntime(Alone):
    def command(self, code):
        return [NPM + "/node_modules/.bin/srt", "-c", shlex.join([PYTHON, "-c", code])]


class Sandlock(Alone):
    def start(self):
        import sandlock
        self.sandbox = sandlock.Sandbox(fs_readable=["/"])

    def run(self, session, code, expect):
        done = self.sandbox.run([PYTHON, "-c", code])
        check(str(done.stdout) or str(done.stderr), expect)


PEERS = {"kernel gateway": KernelGateway, "smolagents": Smolagents, "monty": Monty, "pyodide, node": Pyodide,
         "pyodide, deno": Deno, "bubblewrap": Bubblewrap, "sandbox-runtime": SandboxRuntime, "sandlock": Sandlock}


# --- what is asked ---

class Driver:
    def __init__(self, peer):
        self.peer, self.held = peer, None

    def round(self):
        """One session, from its begin to its end."""
        took = {"create": [], "cell": [], "first": [], "describe": [], "plot": []}
        missing = {} if self.peer.pictures else {"plot": "no picture comes back"}
        begun = time.perf_counter()
        session = self.peer.create()
        took["create"].append(us_since(begun))

        def run(into, cell, times):
            for _ in range(times):
                begun = time.perf_counter()
                self.peer.run(session, *cell)
                took[into].append(us_since(begun))

        try:
            run("cell", CELL, 10)
            for into, cell in (("describe", DESCRIBE), ("plot", PLOT)):
                try:
                    if into not in missing:
                        run(into, cell, 3)
                except Missing as why:
                    missing[into] = str(why)
        finally:
            self.peer.close(session)
        # What was the first of its kind in this session is no warm one.
        if took["describe"]:
            took["first"].append(took["create"][0] + took["describe"].pop(0))
        del took["plot"][:1]
        return {"took": took, "missing": missing}

    def hold(self):
        """A session that has run all of it, and stays for a while."""
        self.held = self.peer.create()
        for cell in (CELL, DESCRIBE, PLOT):
            try:
                self.peer.run(self.held, *cell)
            except Missing:
                pass
        return {}

    def weigh(self):
        pids = self.peer.pids(self.held)
        held = machine.rollup(pids)["pss"] if pids else None
        self.peer.close(self.held)
        return {"memory_mb": held}


def main():
    peer = PEERS[sys.argv[1]]()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a peer may print what it likes
    begun = time.perf_counter()
    peer.start()
    print(json.dumps({"start_us": us_since(begun) if peer.starts else None}), file=out, flush=True)
    driver = Driver(peer)
    ask = {"round": driver.round, "hold": driver.hold, "weigh": driver.weigh}
    try:
        for line in sys.stdin:
            print(json.dumps(ask[line.strip()]()), file=out, flush=True)
    finally:
        peer.stop()


if __name__ == "__main__":
    main()
