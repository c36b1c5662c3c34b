"""Every setting of the one table takes effect: here, or in the test that SHOWN names.

A new setting fails test_every_setting_is_shown until a test starts the program with it.
"""

import ast
import contextlib
import json
import re
import ssl
import time
from pathlib import Path

import pytest
from support import retort
from support.model_server import ModelServer
from support.script import finish, plan, python, question, say, script
from support.server import Server
from support.web import CERTIFICATE, Web

pytestmark = pytest.mark.once

TESTS = Path(__file__).parents[1]
HERE = "serve/test_options.py"

# What shows that a setting does something: FILE::NAME of a test, a fixture or FLAGS, CONFIG and the like
# of a module whose tests depend on it. {} stands for the settings shown below.
SHOWN = {
    "code": "cli/test_status.py::test_status_of_a_good_end",
    "shell": "cli/test_status.py::test_status_of_a_good_end",
    "session": "cli/test_session.py",
    "folder": "cli/test_folders.py",
    "roots": "mcp/test_roots.py",
    "keep-going": "cli/test_status.py::test_keep_going_tells_of_the_first_failure",
    "file": "cli/test_files_in_and_out.py::test_input_is_a_copy_of_the_users_own",
    "out": "cli/test_files_in_and_out.py::test_artifacts_come_home",
    "tenant": "azure/test_sessions.py::test_keys_by_each_header_and_tenants_apart",
    "name": "cli/test_keys.py::test_life_of_a_key",
    "door": "serve/test_key_scopes.py::test_the_command_line",
    "expires": "serve/test_key_scopes.py::test_the_command_line",
    "read-only": "serve/test_key_scopes.py::test_the_command_line",
    "admin": "azure/test_pools.py::test_a3_over_a_restart_and_only_for_admins",
    "approver": "mcp/test_approvers.py::keyed",
    "quiet": "cli/terminal.py::make_key",
    "json": "doctor/doctor.py",
    "verbose": "doctor/test_report.py::test_verbose_keeps_the_document_clean",
    "help": "cli/test_help.py",
    "listen": "cli/test_serve.py::test_two_addresses",
    "socket-mode": "serve/test_listen.py::test_unix_socket_for_others",
    "config": "cli/test_keys.py::test_state_of_the_file",
    "check-config": "serve/test_operator.py::test_check_config",
    "state": "cli/test_keys.py::test_life_of_a_key",
    "store": "postgres/test_store.py::keys",
    "store-password-file": "postgres/test_store.py::test_a_password_from_a_file",
    "user": "cli/test_rights.py::test_user_can_be_chosen",
    "sandbox-users": "limits/test_counted_by_user.py::server",
    "drain": "cli/test_serve.py::test_end_is_bounded_and_the_second_signal_at_once",
    "log-level": "serve/test_operator.py::test_reload",
    "log-format": "serve/test_operator.py::test_log_has_the_id_of_the_request",
    "tls-cert": "serve/test_listen.py::test_tls",
    "tls-key": "serve/test_listen.py::test_tls",
    "tls-client-ca": "prisme/test_certificates.py::server",
    "plain-http": "serve/test_listen.py::test_open_to_others_with_a_key",
    "hosts": "serve/test_listen.py::test_pages_and_hosts_that_were_named",
    "origins": "serve/test_listen.py::test_pages_and_hosts_that_were_named",
    "public-url": "mcp/test_http_access.py::OAUTH",
    "oauth-servers": "mcp/test_http_access.py::OAUTH",
    "max-connections": "serve/test_bad_input.py::FLAGS",
    "header-timeout": "serve/test_bad_input.py::FLAGS",
    "durability": "disk/test_power.py::test_what_was_acknowledged_outlives_a_power_cut",
    **dict.fromkeys(["blobs", "s3-endpoint", "blob-cache"], "support/s3.py::flags"),
    **dict.fromkeys(["node-url", "node-name", "node-secret-file", "node-ca", "node-lease"],
                    "support/nodes.py::Nodes"),
    **dict.fromkeys(["node-cert", "node-key"], "nodes/test_certificates.py::two"),
    **dict.fromkeys(["s3-key-file", "s3-region"], "s3/test_blobs.py::test_key_file_and_region"),
    "s3-style": "s3/test_blobs.py::test_the_bucket_in_the_host",
    "s3-ca": "s3/test_blobs.py::test_tls",
    "tenant-sessions": "serve/test_life.py::CONFIG",
    "output-memory": "serve/test_fair.py::test_output_waits_for_room",
    "retention": "serve/test_life.py::test_retention",
    "records": "serve/test_review.py::test_more_rubbish_than_one_sweep_takes",
    "home-size": "serve/test_home.py::CONFIG",
    "file-size": "serve/test_files.py::FLAGS",
    "tenant-files": "anthropic/test_files.py::house",
    "fetch-size": "serve/test_fetch.py::FLAGS",
    "fetch-timeout": "serve/test_fetch.py::FLAGS",
    "fetch-private": "qwen/test_code_interpreter.py::FLAGS",
    "fetch-allow": "serve/test_fetch.py",
    "mcp-answer": "mcp/test_tools_long.py::FLAGS",
    "tools": "ubik/test_mcp.py",
    "pool": "mcp/test_stdio_end.py::test_flags_and_environment",
    "description": "serve/test_pools.py::CONFIG",
    "ready": "serve/test_review.py",
    "max-sessions": "serve/test_life.py::CONFIG",
    "idle-timeout": "serve/test_life.py::CONFIG",
    "lifetime": "serve/test_life.py::CONFIG",
    "egress": "serve/test_egress.py::CONFIG",
    "egress-hosts": "serve/test_egress.py::CONFIG",
    "approval": "serve/test_policies.py",
    "approval-by": "serve/test_policies.py",
    "approval-when": "serve/test_policies.py::POLICIES",
    "approval-timeout": "mcp/test_approval.py::CONFIG",
    "approval-wait": "mcp/test_approvers.py::CONFIG",
    "python": "cells/test_python.py::test_venv",
    "preload": "cells/test_python.py::test_venv",
    "learn": "serve/test_learn.py",
    "ready-max": "serve/test_ready.py::test_after_a_rush_more_are_parked",
    **dict.fromkeys(["environments", "packages", "wheels", "offline", "system-packages", "base"], "cli/test_environment.py"),
    "images": "azure/test_pools.py::test_an_environment_of_the_settings_is_an_image",
    "timeout": "limits/test_each_limit.py",
    "cpu-time": "limits/test_each_limit.py::test_cpu_time",
    "cpus": "limits/test_each_limit.py::test_cpus",
    "memory": "cli/test_status.py::test_status_of_too_much_memory",
    "pids": "limits/test_each_limit.py::test_processes",
    "disk": "limits/test_each_limit.py::test_disk",
    "tmp": "limits/test_each_limit.py::test_tmp",
    "open-files": "limits/test_each_limit.py::test_open_files",
    "output": "escape/output_flood.py::check",
    "artifacts": "limits/test_each_limit.py::test_artifact_count",
    "artifact-size": "limits/test_each_limit.py::test_artifact_size",
    "grace": "cli/test_status.py::test_second_interrupt_ends_it",
    "images-dir": "qwen/test_stdio.py::test_qwen_images_land_in_a_folder",
    "qwen-work-dir": "qwen/test_folders.py::by_setting",
    "qwen-static-url": "qwen/test_folders.py::test_q18_q19_q34_without_a_folder_and_after_the_end",
    "qwen-executor-chars": "qwen/test_tools.py::test_q36_batch_has_an_end",
    "prisme-timeout": "prisme/test_code_execution.py::FLAGS",
    "prisme-parallel": "prisme/test_settings.py::by_env",
    "prisme-builtins": "prisme/test_settings.py::by_env",
    "prisme-packages": "prisme/test_settings.py::by_env",
    "prisme-packages-more": "prisme/test_settings.py::by_env",
    "prisme-activation": "prisme/test_activation.py::FLAGS",
    "prisme-sources": "prisme/test_settings.py::trusting",
    "prisme-source-key": "prisme/test_settings.py::trusting",
    "anthropic-timeout": "anthropic/conftest.py::house",
    "anthropic-cell-timeout": "anthropic/conftest.py::house",
    "anthropic-turns": "anthropic/conftest.py::house",
    "anthropic-answer-wait": "anthropic/conftest.py::house",
    "anthropic-approval-wait": "anthropic/test_client_tools.py::test_an_approval_pauses_the_turn",
    "anthropic-capture-cwd": "anthropic/test_messages.py::narrow",
    "anthropic-download-uploads": "anthropic/test_files.py::house",
    "ubik-event-size": "ubik/account.py::FLAGS",
    "model": "cli/test_models.py::test_scripted_can_be_the_one",
    "model-tenants": "anthropic/test_files.py::house",
    "model-script": "anthropic/conftest.py::house",
    "model-url": "anthropic/test_backends.py::backend",
    "model-api": "anthropic/test_backends.py::backend",
    "model-name": "serve/test_model_key.py::test_is_nowhere_else",
    "model-key-file": "anthropic/test_backends.py::backend",
    "model-key": "serve/test_model_key.py::test_is_nowhere_else",
    "model-images": "anthropic/test_backends.py::backend",
}
# What no test can show from outside, and why.
UNSHOWN = {
    "qwen-pool": "cli/test_serve.py refuses a pool that is not there; one that is there looks like any other",
    "prisme-pool": "as qwen-pool",
    "anthropic-pool": "as qwen-pool",
    "ubik-pool": "as qwen-pool",
}
ALSO = {"prisme-timeout": "PYTHON_FUNCTIONS_RUN_TIMEOUT", "prisme-parallel": "KERNEL_POOL_SIZE",
        "prisme-builtins": "PYTHON_BUILTIN_MODULES", "prisme-packages": "PYTHON_PACKAGES_WHITELIST_IMPORT",
        "prisme-packages-more": "PYTHON_PACKAGES_AUTO_INSTALL"}


def settings():
    """The names of all commands, from --help; and those that a file or the environment alone may have."""
    names = {"model-key"}
    for command in ("run", "serve", "mcp", "keys", "environment", "doctor"):
        _, out, _ = retort.call(command, "--help")
        names |= set(re.findall(r"^  (?:-\w, |    )--([a-z0-9-]+)", out.decode(), re.M))
    return names


def source(where):
    """The text of FILE::NAME, or of all of FILE."""
    file, _, name = where.partition("::")
    text = (TESTS / file).read_text()
    if not name:
        return text
    for node in ast.parse(text).body:
        names = [node.name] if hasattr(node, "name") else [
            getattr(t, "id", None) for t in getattr(node, "targets", [])]
        if name in names:
            return ast.get_source_segment(text, node)
    raise AssertionError(f"there is no {name} in {file}")


def is_named(setting, text):
    letter = {"code": '"-c"', "file": '"-f"', "out": '"-o"', "verbose": '"-v"'}.get(setting, "~")
    return letter in text or re.search(rf"--{setting}(?![\w-])|(?:(?<![\w-])|\\n){setting} *= *\S|"
                     rf"RETORT_{setting.upper().replace('-', '_')}\b|\b{ALSO.get(setting, '~')}\b", text)


def test_every_setting_is_shown():
    here = source(HERE).split("\n# --- shown here ---\n")[1]
    rest = {s for s in settings() if not is_named(s, here)}
    assert rest - set(SHOWN) - set(UNSHOWN) == set(), "settings that no test shows"
    assert (set(SHOWN) | set(UNSHOWN)) - settings() == set(), "settings that are no more"
    for setting, where in SHOWN.items():
        assert is_named(setting, source(where)), f"{where} does not name {setting}"


# --- shown here ---

TIGHT = ["--model-script", "-", "--agent-rounds", "2", "--agent-steps", "1", "--agent-run-timeout", "1",
         "--agent-input", "20000", "--agent-tokens", "1000", "--agent-wait", "1"]


class Plain:
    """Requests in plain words, over Ubik's interface."""

    def __init__(self, client):
        self.client = client

    def post(self, request):
        return self.client.post("/ubik/api/v1/tools/code_execution/execute", {"inputs": {"request": request}})

    def end(self, order):
        path = "/ubik/api/v1/tool-executions/" + order["execution_id"]
        found = {}

        def over():
            found.update(self.client.get(path).expect(200).json)
            return found["status"] in ("completed", "failed")
        retort.wait_until(over, "its end", 120)
        return found

    def ask(self, *turns):
        return self.end(self.post(turns[0] if isinstance(turns[0], str) else script(*turns)).expect(202).json)


@contextlib.contextmanager
def serving(*flags, **more):
    with Server(*flags, **more) as server, server.client() as client:
        yield Plain(client)


@pytest.fixture(scope="module")
def tight():
    with serving(*TIGHT) as one:
        yield one


def test_agent_rounds_and_steps(tight):
    found = tight.ask(plan("a", "b", "c"), *[python(f"print({i})") for i in range(6)], say("That is all."))
    assert found["outputs"]["plan"] == ["a"] and found["outputs"]["total_rounds"] == 2
    assert found["outputs"]["status"] == "incomplete"


def test_agent_run_timeout(tight):
    found = tight.ask(plan(), python("import time; time.sleep(3600)"), python("print(42)"), finish("42"))
    assert "timeout 1s" in found["outputs"]["logs"]


def test_agent_input(tight):
    found = tight.ask(plan(), python("print(42)  # " + "x" * 21000), finish("42"))
    assert found["outputs"]["status"] == "incomplete" and found["outputs"]["total_rounds"] == 0


def test_agent_tokens(tight):
    spent = {"usage": {"input_tokens": 900, "output_tokens": 200}}
    found = tight.ask(plan(), [python("print(42)"), spent], python("print(43)"), say("42, and no more."))
    assert found["outputs"]["total_rounds"] == 1 and found["outputs"]["status"] == "incomplete"


def test_agent_wait(tight):
    found = tight.ask(plan(), question("Which year?"))
    assert found["status"] == "failed" and found["error_code"] == "InputTimeout"


def test_agent_attempts():
    wrong = [python(f"x{i} = {i} / 0") for i in range(12)]
    with serving("--model-script", "-", "--agent-attempts", "1") as plain:
        found = plain.ask(plan("a", "b", "c", "d"), *wrong[:5], plan("e", "f", "g", "h"), *wrong[5:])
    assert found["outputs"]["total_rounds"] == 6, "five, a new plan, and one attempt"


def test_agent_loops():
    with serving("--model-script", "-", "--agent-loops", "1") as plain:
        first = plain.post(script(plan(), question("Which?"))).expect(202).json
        assert plain.post(script(plan(), python("print(1)"), finish("1"))).status == 429
        plain.client.post(f"/ubik/api/v1/tool-executions/{first['execution_id']}/stop")
        plain.end(first)
        assert plain.ask(plan(), python("print(11)"), finish("11"))["status"] == "completed"


def test_agent_timeout():
    with serving("--model-script", "-", "--agent-timeout", "5") as plain:
        found = plain.ask(plan("a", "b"), python("import time; time.sleep(5.5)"), python("print(1)"))
    assert found["outputs"]["total_rounds"] == 1 and found["outputs"]["status"] == "incomplete"


@pytest.mark.parametrize("flag", ["--agent-model-timeout", "--model-timeout"])
def test_model_timeouts(flag):
    """A model that says nothing is given up: its own time is up, or that of the agent."""
    with ModelServer() as models:
        desk = models.desk(always={"fault": "silence", "seconds": 600})
        with serving("--model-url", desk.openai, flag, "1") as plain:
            order = plain.post("What is 6 * 7?").expect(202).json
            # A second question is asked only because the first was given up.
            retort.wait_until(lambda: len(desk.requests) >= 2, "a second try", 90)
            plain.client.post(f"/ubik/api/v1/tool-executions/{order['execution_id']}/stop")


def test_model_max_tokens_text_only_proxy_and_ca():
    turns = [[plan()], [say("```python\nprint(42)\n```")], [say("FINAL: 42")]]
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(CERTIFICATE)
    with ModelServer() as models, ModelServer(tls=tls) as sealed:
        desk = models.desk(turns=turns, in_order=True)
        with serving("--model-url", desk.openai, "--model-max-tokens", "321", "--model-text-only") as plain:
            assert plain.ask("What is 6 * 7?")["status"] == "completed"
        assert all(321 in (b.get("max_tokens"), b.get("max_completion_tokens")) for b in desk.bodies())
        assert not any("tools" in b for b in desk.bodies())

        with Web() as proxy, serving("--model-url", "http://model.example/v1",
                                     "--model-proxy", "http://" + proxy.here) as plain:
            plain.post("What is 6 * 7?").expect(202)
            retort.wait_until(lambda: proxy.heads, "a request through the proxy", 60)
            assert proxy.heads[0].startswith(b"POST http://model.example/v1/")

        desk = sealed.desk(turns=turns, in_order=True)
        url = desk.openai.replace("http://", "https://")
        with serving("--model-url", url, "--model-text-only", "--model-ca", CERTIFICATE) as plain:
            assert plain.ask("What is 6 * 7?")["status"] == "completed"
        with serving("--model-url", url, "--model-text-only") as plain:
            assert plain.ask("What is 6 * 7?")["status"] == "failed"


def test_isolation_floor():
    """As much as this machine has is enough; where a layer is missing, asking for all is refused."""
    _, out, _ = retort.call("doctor", "--json")
    whole = all(row["state"] == "ok" for row in json.loads(out)["rows"] if row["section"] == "Layers")
    server = Server("--isolation-floor", "all")
    if whole:
        with server:
            server.check_alive()
    else:
        server.launch()
        assert server.process.wait(120) != 0 and "isolation-floor" in server.log()
        server.discard()


def test_max_per_address():
    with Server("--max-per-address", "2") as server:
        with server.connect(), server.connect():
            with contextlib.suppress(OSError), server.connect() as third:
                third.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                assert third.recv(1000) == b""

        def answered():
            with contextlib.suppress(OSError), server.client() as c:
                return c.get("/health").status == 200
        retort.wait_until(answered, "room again")


def test_recycle():
    """A new interpreter has another seed of hash()."""
    with serving("--recycle", "1", "--ready", "1") as plain:
        def seed():
            return plain.client.post("/v1/execute", {"code": "hash('retort')"}).expect(200).json["result"]
        first = seed()
        retort.wait_until(lambda: seed() != first, "another interpreter", 120)


@pytest.fixture(scope="module")
def qwen():
    with Server("--qwen-timeout", "1", "--qwen-executor-timeout", "1", "--qwen-traceback", "full",
                "--fetch-private") as server, server.client() as client:
        yield client


def interpret(client, code, **more):
    return client.post("/qwen/code_interpreter", {"code": code, **more}).expect(200).text


def test_qwen_timeout(qwen):
    before = time.monotonic()
    assert "imeout" in interpret(qwen, "import time; time.sleep(60)")
    assert time.monotonic() - before >= 1


def test_qwen_executor_timeout(qwen):
    done = qwen.post("/qwen/python_executor", {"code": "import time; time.sleep(60)"}).expect(200)
    assert "imed out" in json.dumps(done.json).replace("Timeout", "Timed out")


def test_qwen_traceback(qwen):
    code = "def inner():\n    return 1 / 0\ninner()"
    assert "inner" in interpret(qwen, code).split("ZeroDivisionError")[0]
    with Server("--qwen-traceback", "brief") as server, server.client() as client:
        assert "inner()" not in interpret(client, code)


def test_qwen_file_dirs():
    server = Server()
    server.files.chmod(0o755)
    given = server.files / "given"
    given.mkdir(mode=0o755)
    (given / "data.csv").write_text("a,b\n1,2\n")
    server.flags += ["--qwen-file-dirs", str(given)]
    with server, server.client() as client:
        assert "a,b" in interpret(client, "print(open('data.csv').read())", files=[str(given / "data.csv")])
        refused = interpret(client, "print(1)", files=[str(server.config)])
        assert "retort.ini is not there: it is not below a folder that this server may read" in refused


def test_anthropic_wall_and_idle():
    """A message is paused when its time is up; a container that nobody uses loses its variables."""
    tool = {"type": "code_execution_20250825", "name": "code_execution"}
    turns = script({"bash": "sleep 2; echo done"}, {"bash": "echo again"}, say("Done."))
    with Server("--model-script", "-", "--anthropic-wall", "1", "--anthropic-idle", "1") as server, \
            server.client() as client:
        answer = client.post("/anthropic/v1/messages", {
            "model": "claude-sonnet-4-5", "max_tokens": 1000, "tools": [tool],
            "messages": [{"role": "user", "content": turns}]}).expect(200).json
        assert answer["stop_reason"] == "pause_turn"
        retort.wait_until(lambda: [s["state"] for s in client.all("/v1/sessions")] == ["asleep"], "its sleep", 60)
