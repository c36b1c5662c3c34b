"""What clients hear when parts of the server die or stand still, and what is left when it ends."""

import contextlib
import errno
import http.client
import os
import re
import secrets
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support import retort
from support.faults import Faults
from support.mcp import RpcError
from support.server import Server, together
from support.ways import RESULT, WAYS as EVERY


def zygotes(server):
    """The first process of each pool's own namespaces; what is below dies with it."""
    return [keeper for warden in retort.children_now(server.pid) for keeper in retort.children_now(warden)]


def test_the_death_of_a_zygote_is_a_reason_to_try_again():
    """Whoever wants a session just then gets one, or hears when to ask again; never a 500."""
    with Server("--ready", "2") as server, server.client() as client:
        kept = client.session()
        kept.run("open('kept', 'w').write('kept')")

        def ask(i):
            with server.client() as other:
                found = []
                for _ in range(12):
                    found.append(other.post("/v1/execute", {"code": "1"}))
                    found.append(other.post("/v1/sessions", {}))
                    found.append(other.post(kept.path + "/execute", {"code": "open('kept').read()"}))
                    found.append(other.post("/azure/pools/default/executions?identifier=user%d" % i,
                                            {"properties": {"codeInputType": "inline", "executionType": "synchronous",
                                                            "code": "1"}}))
                return found

        def kill():
            for _ in range(6):
                retort.wait_until(lambda: zygotes(server), "a zygote", retort.SECONDS)
                for pid in zygotes(server):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

        *answers, _ = together(*[lambda i=i: ask(i) for i in range(4)], kill)
        for answer in (a for some in answers for a in some):
            assert answer.status in (200, 201, 202, 429), answer
            if answer.status == 429:
                assert int(answer.headers["retry-after"]) >= 1
        retort.wait_until(lambda: client.post(kept.path + "/execute", {"code": "open('kept').read()"})
                          .json.get("result") == "'kept'", "the session to wake", retort.SECONDS)


OVERLOADED = 529  # Anthropic's own word for a 429 that is not the client's doing


class Heard:
    """A server as a way to run code sees it; notes the status and the headers of every answer."""

    def __init__(self, server):
        self.server, self.answers = server, []

    def __getattr__(self, name):
        return getattr(self.server, name)

    def client(self, *args, **more):
        client = self.server.client(*args, **more)
        begin = client.begin

        def noted(*args, **more):
            response = begin(*args, **more)
            self.answers.append((response.status, {k.lower(): v for k, v in response.getheaders()}))
            return response

        client.begin = noted
        return client


# One of each kind at each door; what comes over standard input has a server of its own.
WAYS = {way: EVERY[way] for way in (
    "rest", "rest shell", "azure", "azure shell", "qwen", "qwen executor", "prisme", "anthropic", "anthropic shell",
    "anthropic editor", "ubik code", "ubik agent", "mcp", "mcp shell", "mcp qwen", "mcp prisme")}


def said(server, way):
    """What the client gets, or the error that it is told of."""
    try:
        return WAYS[way].run(server, lambda params: {"action": "decline"})
    except (AssertionError, RpcError) as told:
        return str(told)


def refused(server, way):
    """As said(), once more where a zygote lived long enough to run the code, or to begin with it."""
    for _ in range(20):
        text = said(server, way)
        if RESULT not in text and "the sandbox is gone" not in text:
            break
    return text


@pytest.mark.once
def test_no_zygote_at_any_door():
    """However code comes to us: without a zygote it is not run, and that is no failure of ours. With one
    it runs again."""
    with Server("--ready", "0", "--model-script", "-") as server:
        server.may = {way.whom for way in WAYS.values()}
        over = threading.Event()

        def kill():
            while not over.wait(0.01):  # one needs many times that to be ready
                for pid in zygotes(server):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        try:
            heard = {way: Heard(server) for way in WAYS}
            texts = dict(zip(WAYS, together(*[lambda w=w: refused(heard[w], w) for w in WAYS])))
        finally:
            over.set()
            killer.join()
        all_busy(texts, heard)
        all_run(server)


def all_busy(texts, heard):
    """None has run; each heard that it is to ask again, and where there is a head, when."""
    for way, text in texts.items():
        assert RESULT not in text, way
        for status, headers in heard[way].answers:
            assert status < 500 or status == OVERLOADED, (way, status, text)
            assert status not in (429, OVERLOADED) or int(headers.get("retry-after", 0)) >= 1, (way, headers, text)
        assert "internal" not in text.lower(), (way, text)
    busy = {way for way in WAYS if any(status == 429 for status, _ in heard[way].answers)}
    assert busy >= {"rest", "rest shell", "azure", "qwen", "qwen executor"}, texts


def all_run(server):
    with server.client() as client:
        retort.wait_until(lambda: client.get("/ready").status == 200, "another zygote", retort.SECONDS)
    for way, text in zip(WAYS, together(*[lambda w=w: said(server, w) for w in WAYS])):
        assert RESULT in text, (way, text)


@pytest.mark.once
@pytest.mark.parametrize("who", [1, 3], ids=["warden", "zygote"])
def test_one_that_is_stopped_at_any_door(who):
    """Asked the moment after, when nobody can know yet that it does not answer."""
    with Server("--ready", "0", "--model-script", "-") as server:
        server.may = {way.whom for way in WAYS.values()}
        stopped = below(server, who)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            heard = {way: Heard(server) for way in WAYS}
            texts = dict(zip(WAYS, together(*[lambda w=w: said(heard[w], w) for w in WAYS])))
            with server.client() as client:
                ready = client.get("/ready")
                assert ready.status == 503 and "has not answered" in ready.json["why"], ready
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        all_busy(texts, heard)
        all_run(server)


@pytest.mark.once
@pytest.mark.parametrize("language", ["python", "shell"])
def test_code_that_nobody_has_taken_has_not_run(language):
    """The sandbox ends while a cell waits for the interpreter, or before it has taken a command: 429, or
    the next sandbox runs it. The session goes on."""
    with Server("--ready", "0") as server, server.client() as client, ThreadPoolExecutor(1) as threads:
        session = client.session()
        session.run("open('kept', 'w').write('kept')")
        (init,) = below(server, KEEPERS["init"])
        if language == "python":
            os.kill(init, signal.SIGSTOP)
            client.post(session.path + "/restart").expect(200)
        else:
            os.kill(server.pid, signal.SIGSTOP)
        with server.client() as other:
            answer = threads.submit(other.post, session.path + "/execute", {"code": "ls", "language": language})
            if language == "python":
                retort.wait_until(lambda: client.get(session.path).expect(200).json["state"] == "running",
                                  "the cell to wait", retort.SECONDS)
            for pid in zygotes(server):
                os.kill(pid, signal.SIGKILL)
            retort.wait_until(lambda: init not in retort.pids(), "the end of the sandbox", retort.SECONDS)
            os.kill(server.pid, signal.SIGCONT)
            answer = answer.result()
        if answer.status == 200 and language == "shell":  # the server heard of the end first
            assert answer.json["stdout"] == "kept\n"
        else:
            assert answer.status == 429 and int(answer.headers["retry-after"]) >= 1, answer
        retort.wait_until(lambda: client.post(session.path + "/execute", {"code": "open('kept').read()"})
                          .json.get("result") == "'kept'", "the session to wake", retort.SECONDS)


def below(server, depth):
    """Processes so many generations below the server; 1 is the warden."""
    found = [server.pid]
    for _ in range(depth):
        found = [child for pid in found for child in retort.children(pid)]
    return found


# Whom the session's fate hangs on, and how far below the server it is: see docs/a-request.md.
KEEPERS = {"keeper": 2, "init": 4, "kernel": 5}


@pytest.mark.parametrize("who", KEEPERS)
def test_one_that_is_stopped_holds_nobody_for_ever(who):
    """A call ends by the time limit of its code, or when the sandbox is given up; the session goes on."""
    with Server("--ready", "0", "--timeout", "2") as server, server.client() as client:
        for calls in (["cell"], ["shell"], ["interrupt", "cell"], ["restart", "cell"]):
            session = client.session()
            session.run("open('kept', 'w').write('kept'); kept = 1")
            stopped = below(server, KEEPERS[who])
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            try:
                for call in calls:
                    if call == "interrupt":
                        with session.stream("import time; print('up'); time.sleep(1)") as stream:
                            if who != "kernel":
                                stream.until_said("up")
                            client.post(session.path + "/interrupt").expect(200)
                            stream.until(type="done")
                    elif call == "restart":
                        client.post(session.path + "/restart").expect(200)
                    else:
                        code = "print(6 * 7)" if call == "cell" else "echo 42"
                        answer = client.post(session.path + "/execute",
                                             {"code": code, "language": "python" if call == "cell" else "shell"})
                        assert (answer.status == 429 or answer.json["stdout"] == "42\n" or
                                answer.json["status"] in ("timeout", "session_lost")), answer
            finally:
                for pid in stopped:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGCONT)
            assert session.run("print(open('kept').read())")["stdout"] == "kept\n"
            client.delete(session.path).expect(204)


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user has no cgroups here")
def test_the_common_cgroup_goes_with_the_last_server():
    name = "retort-test-" + secrets.token_hex(4)
    own = dict(re.findall(r"^\d+:(\w+):(.*)$", Path("/proc/self/cgroup").read_text(), re.M))
    places = [Path("/sys/fs/cgroup", c, own[c].lstrip("/"), name)
              for c in ("memory", "pids", "cpu", "cpuacct") if c in own]
    if len(places) < 4:
        pytest.skip("cgroups of version 1 are not here")
    for place in places:
        place.mkdir()
    try:
        with Server() as server:
            command = server.command()
            server.stop()
            enter = "".join(f"echo $$ > {place}/cgroup.procs && " for place in places)
            server.command = lambda: ["sh", "-c", f'{enter} exec "$@"', "sh", *command]
            server.start()
            with server.client() as client:
                client.session().run("1")
            assert all((place / "retort").is_dir() for place in places)
            server.stop()
            assert not [place for place in places if (place / "retort").exists()]
    finally:
        for place in places:
            subprocess.run(["find", place, "-depth", "-type", "d", "-delete"], check=False)


def test_an_end_at_once_waits_for_bytes_on_their_way_to_the_disk(tmp_path):
    """A worker that writes an upload uses the store, which stays open until that worker is done."""
    faults = Faults(tmp_path)
    with Server(env=faults.env) as server, ThreadPoolExecutor(1) as threads:
        process = server.process

        def has_store():
            with contextlib.suppress(OSError):
                return any(str(f.readlink()).endswith("/retort.db") for f in Path(f"/proc/{process.pid}/fd").iterdir())

        def upload():
            with contextlib.suppress(OSError, http.client.HTTPException), server.client() as client:
                client.form("/v1/files", ("file", "long", bytes(1 << 20)))

        server.remember()
        faults.hold_disk(server.state)
        client = threads.submit(upload)
        retort.wait_until(faults.held, "a write that waits")
        process.send_signal(signal.SIGTERM)
        retort.wait_until(lambda: "no new requests" in server.log(), "the first signal")
        process.send_signal(signal.SIGTERM)
        client.result(retort.SECONDS)  # the connection is closed
        for _ in range(50):
            assert has_store(), server.log()
            time.sleep(0.01)
        faults.let_go(errno.ENOSPC)
        server.process = None
        assert process.wait(retort.SECONDS) == 130, server.log()
        server.check_clean()
