"""What an operator sees and does: health, metrics, logs, SIGTERM, SIGHUP, settings."""

import concurrent.futures
import json
import signal
import threading
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from support import retort
from support.server import Server, together

pytestmark = pytest.mark.once


def metrics(client):
    """name and labels -> value, through the parser that Prometheus' own client has."""
    answer = client.get("/metrics").expect(200)
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = list(text_string_to_metric_families(answer.text))
    assert len({f.name for f in families}) == len(families)
    assert all(f.documentation and f.type != "unknown" for f in families)
    return {(s.name, *sorted(s.labels.items())): s.value for f in families for s in f.samples}


def test_health(client):
    assert client.get("/health").expect(200).json["status"] == "ok"
    assert client.get("/ready").expect(200).json["status"] == "ready"


def test_metrics(server, client):
    before = metrics(client)
    with client.session() as s:
        s.run("1")
        s.run("1 / 0")
        s.run("import time; time.sleep(60)", timeout=0.2)
        during = metrics(client)
    client.get("/v1/sessions/x").refused(404)

    def grew(name, *labels):
        return during[(name, *labels)] - before[(name, *labels)]

    assert grew("retort_sessions_created_total") == 1
    assert grew("retort_store_jobs_total") >= grew("retort_store_transactions_total") >= 1
    assert 0 < grew("retort_store_transaction_seconds_total") < 60
    assert grew("retort_pool_hits_total") + grew("retort_pool_misses_total") == 1
    assert during[("retort_sessions", ("state", "idle"))] == before[("retort_sessions", ("state", "idle"))] + 1
    for outcome in ("ok", "raised", "timeout"):
        assert grew("retort_executions_total", ("outcome", outcome)) == 1
    assert grew("retort_limits_hit_total", ("limit", "wall_time")) == 1
    assert grew("retort_cell_seconds_count") == 3 and grew("retort_cell_seconds_sum") >= 0.2
    assert grew("retort_session_create_seconds_count") == 1
    assert during[("process_resident_memory_bytes",)] > 2**20
    assert during[("retort_pool_up", ("pool", "default"))] == 1


def test_histograms_add_up(client):
    found = metrics(client)
    for name in ("retort_cell_seconds", "retort_session_create_seconds"):
        buckets = [(float(k[1][1]), v) for k, v in found.items() if k[0] == name + "_bucket"]
        values = [v for _, v in sorted(buckets)]
        assert values == sorted(values) and values[-1] == found[(name + "_count",)]


def test_refusals_are_counted():
    with Server("--max-sessions", "1") as server:
        secret = server.keys("create", "--tenant", "t", "--quiet").strip()
        server.process.send_signal(signal.SIGHUP)
        with server.client() as nobody, server.client(secret) as c:
            retort.wait_until(lambda: nobody.get("/v1/sessions").status == 401, "keys to be needed")
            before = metrics(c)
            nobody.get("/v1/sessions").refused(401)
            one = c.session()
            one.background("import time\ntime.sleep(600)")
            c.post("/v1/sessions").refused(429)
            after = metrics(c)
        for reason in ("auth", "busy"):
            key = ("retort_refused_total", ("reason", reason))
            assert after[key] == before[key] + 1


# --- logs ---

def test_log_has_the_id_of_the_request():
    with Server("--log-format", "json", "--log-level", "debug") as server, server.client() as c:
        answer = c.get("/v1/sessions/sess_aaaaaaaaaaaaaaaaaaaaaaaaaaaa")
        id = answer.headers["x-request-id"]
        retort.wait_until(lambda: id in server.log(), "the line of the request")
        lines = [line for line in server.log(10**6).splitlines() if line.startswith("{")]
        assert all(isinstance(json.loads(line), dict) for line in lines)
        assert any(id in line and "404" in line for line in lines)


def test_log_does_not_tell_secrets():
    with Server("--log-level", "debug") as server:
        secret = server.keys("create", "--tenant", "t", "--quiet").strip()
        server.process.send_signal(signal.SIGHUP)
        with server.client(secret) as c:
            retort.wait_until(lambda: c.get("/v1/keys").status == 403, "the key to be known")
            c.post("/v1/execute", {"code": "'code-of-mine'", "env": {"A": "value-of-mine"}}).expect(200)
            c.get("/v1/sessions?limit=5").expect(200)
        log = server.log(10**7)
        assert secret not in log and "value-of-mine" not in log


def test_a_line_of_the_log_is_one_line(server, client):
    client.get("/v1/sessions/x%0ainjected", headers={"User-Agent": "a\tb"})
    assert "\ninjected" not in server.log(10**6)


# --- SIGTERM ---

def test_drain():
    """What runs may end and is answered; what is new is refused; then it goes."""
    with Server("--drain", "20") as server, server.client() as c, c.session() as s:
        s.run("import os, time")
        with s.stream("print('up', flush=True)\nwhile not os.path.exists('go'): time.sleep(.01)\n"
                      "print('ended')") as stream:
            stream.until_said("up")
            kept = server.client()  # a connection from before
            kept.get("/health").expect(200)
            server.remember()
            server.process.send_signal(signal.SIGTERM)

            def refused():
                try:
                    return kept.post("/v1/execute", {"code": "1"}).status == 503
                except OSError:
                    return True

            retort.wait_until(refused, "new work to be refused")
            time.sleep(0.3)
            assert server.process.poll() is None
            with pytest.raises(OSError):
                server.connect(2).close()
            try:
                s.put("go", b"")
            except (OSError, AssertionError):
                pytest.fail("a file could not be put while the cell runs that waits for it")
            stream.until_said("ended")
            assert stream.until(type="done")["status"] == "ok"
        assert server.process.wait(retort.SECONDS) == 0
        server.process = None
        server.check_clean()


def test_drain_has_an_end():
    with Server("--drain", "1") as server, server.client() as c, c.session() as s:
        with s.stream("print('up', flush=True)\nimport time; time.sleep(600)") as stream:
            begun = next(stream)
            stream.until_said("up")
            server.stop()
        server.start()
        with server.client() as again:
            record = again.get("/v1/executions/" + begun["id"]).expect(200).json
            assert record["status"] == "session_lost" and record["stdout"] == "up\n"


WAYS = {
    "answer": ("/v1/execute", {"code": "CODE"}),
    "stream": ("/v1/execute", {"code": "CODE", "stream": True}),
    "azure": ("/azure/pools/default/executions?api-version=2025-10-02-preview&identifier=drained",
              {"codeInputType": "inline", "executionType": "synchronous", "code": "CODE"}),
    "qwen": ("/qwen/code_interpreter", {"code": "CODE"}),
}


def test_at_the_end_of_the_drain_each_gets_an_answer():
    """Whoever waits for code that does not end hears that the server is stopping; nobody is cut off."""
    code = "import time\nopen('up', 'w').close()\nwhile True:\n try: time.sleep(600)\n except BaseException: pass"
    with Server("--drain", "1", "--max-sessions", "20") as server, server.client() as c:
        def ask(path, body):
            with server.client() as one:
                return one.post(path, json.loads(json.dumps(body).replace('"CODE"', json.dumps(code))))

        with concurrent.futures.ThreadPoolExecutor(len(WAYS)) as pool:
            asked = {name: pool.submit(ask, *way) for name, way in WAYS.items()}

            def running():
                return sum(e["status"] == "running" for e in c.get("/v1/executions").json["data"])

            retort.wait_until(lambda: running() == len(WAYS), "all of them run", retort.SECONDS)
            c.close()
            server.remember()
            server.process.send_signal(signal.SIGTERM)
            for name, answer in asked.items():
                assert "the server is stopping" in answer.result().text, (name, answer.result())
        assert server.process.wait(retort.SECONDS) == 0
        server.process = None
        server.check_clean()


def test_sigint_ends_it_too():
    with Server() as server:
        server.remember()
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(retort.SECONDS) == 0
        server.process = None
        server.check_clean()


def test_term_while_starting():
    for delay in (0, 0.02, 0.1, 0.3):
        server = Server()
        try:
            server.launch()
            time.sleep(delay)
            server.remember()
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(retort.SECONDS) in (0, -signal.SIGTERM)
            server.process = None
            server.check_clean()
        finally:
            server.discard()


# --- SIGHUP ---

def test_reload():
    with Server(config="log-level = warn\n") as server, server.client() as c, c.session() as s:
        s.run("x = 1")
        server.config.write_text("log-level = debug\n")
        server.process.send_signal(signal.SIGHUP)
        retort.wait_until(lambda: "reload" in server.log(), "the reload")
        c.get("/v1/pools").expect(200)
        assert s.run("x")["result"] == "1"
        server.config.write_text("no-such-thing = 1\n")
        server.process.send_signal(signal.SIGHUP)
        retort.wait_until(lambda: "no-such-thing" in server.log(), "the complaint")
        assert s.run("x")["result"] == "1"


def test_reload_under_load():
    with Server() as server:
        stop = threading.Event()

        def work():
            with server.client() as c, c.session() as s:
                while not stop.is_set():
                    assert s.run("6 * 7")["result"] == "42"

        def hup():
            for _ in range(20):
                server.process.send_signal(signal.SIGHUP)
                time.sleep(0.02)
            stop.set()

        together(work, work, hup)


# --- settings ---

def started(text, *flags):
    """A run that ends by itself."""
    server = Server(config=text)
    try:
        return retort.call(*server.command()[1:], *flags)
    finally:
        server.discard()


def test_check_config():
    code, out, err = started("[pool a]\nmemory = 200M\n", "--check-config")
    assert code == 0 and b"200M" in out


@pytest.mark.parametrize("text, where, what", [
    ("no-such-thing = 1\n", ":1:", "no-such-thing"), ("\n\nheader-timeout = soon\n", ":3:", "header-timeout"),
    ("[pool a]\nmemory = 1\n", ":2:", "memory"), ("[nonsense]\nx = 1\n", ":", "nonsense"),
    ("[pool a]\nready = 5\nmax-sessions = 2\n", "", "ready"), ("what is this\n", ":1:", ""),
    ("[pool a]\negress = allow-list\n", "", "egress-hosts")])
def test_settings_that_cannot_be(text, where, what):
    for flags in (["--check-config"], []):
        code, out, err = started(text, *flags)
        assert code == 2 and what in err and (where in err) and ("retort.ini" in err or not where), err


def test_settings_from_the_environment():
    with Server(env={"RETORT_MAX_SESSIONS": "3"}) as server, server.client() as c:
        assert c.get("/v1/pools/default").expect(200).json["max_sessions"] == 3
