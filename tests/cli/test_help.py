"""--help everywhere, from the one table of options."""

import re
from pathlib import Path

import pytest

from support import retort

pytestmark = pytest.mark.once

LIMITS = ["timeout", "cpu-time", "cpus", "memory", "pids", "disk", "tmp", "open-files", "output",
          "artifacts", "artifact-size", "grace"]
SERVE = ["listen", "socket-mode", "config", "check-config", "state", "store", "store-password-file", "node-url",
         "node-name", "node-secret-file", "node-ca", "node-cert", "node-key", "node-lease", "user",
         "sandbox-users", "isolation-floor", "drain", "log-level", "log-format", "tls-cert", "tls-key",
         "tls-client-ca", "plain-http", "hosts", "origins", "public-url", "oauth-servers",
         "max-connections", "max-per-address", "header-timeout", "durability", "blobs", "s3-endpoint",
         "s3-region", "s3-style", "s3-key-file", "s3-ca", "blob-cache", "tenant-sessions", "output-memory", "retention",
         "records", "home-size", "file-size", "tenant-files", "fetch-size", "fetch-timeout", "fetch-private",
         "fetch-allow", "mcp-answer", "description", "ready", "ready-max", "max-sessions", "idle-timeout",
         "lifetime", "recycle", "learn", "egress", "egress-hosts", "approval", "approval-by",
         "approval-when", "approval-timeout", "approval-wait", "python", "environments", "preload", "images",
         *LIMITS, "qwen-pool", "qwen-timeout", "qwen-work-dir", "qwen-file-dirs",
         "qwen-static-url", "qwen-traceback", "qwen-executor-timeout", "qwen-executor-chars",
         "prisme-pool", "prisme-timeout", "prisme-parallel", "prisme-builtins", "prisme-packages",
         "prisme-packages-more", "prisme-activation", "prisme-sources", "prisme-source-key",
         "anthropic-pool", "anthropic-timeout", "anthropic-cell-timeout", "anthropic-turns",
         "anthropic-wall", "anthropic-idle", "anthropic-answer-wait", "anthropic-approval-wait",
         "anthropic-capture-cwd", "anthropic-download-uploads", "ubik-pool", "ubik-event-size",
         "model", "model-tenants", "model-script", "model-url", "model-api", "model-name",
         "model-key-file", "model-timeout", "model-max-tokens", "model-images", "model-text-only",
         "model-proxy", "model-ca", "agent-loops", "agent-steps", "agent-rounds", "agent-attempts",
         "agent-run-timeout", "agent-timeout", "agent-model-timeout", "agent-input",
         "agent-tokens", "agent-wait", "help"]
KEYS = ["tenant", "name", "admin", "approver", "pool", "door", "read-only", "expires", "quiet", "config", "state",
        "store", "store-password-file", "json", "verbose", "help"]
ENVIRONMENT = ["packages", "wheels", "offline", "system-packages", "base", "config", "environments", "json", "help"]
STORE = ["store-password-file", "user", "s3-endpoint", "s3-region", "s3-style", "s3-key-file", "s3-ca", "help"]
BENCH = ["server", "seconds", "python", "environments", "json", "help"]
RUN = ["code", "shell", "keep-going", "session", "server", "file", "out", "folder", *LIMITS, "python",
       "environments", "preload", "sandbox-users", "json", "verbose", "help"]
REPL = [name for name in RUN if name not in ("code", "shell", "keep-going", "json")]


def shown(*args):
    status, out, err = retort.call(*args)
    assert (status, err) == (0, ""), err
    return out.decode()


def test_of_the_program():
    for args in (("--help",), ("-h",), ("help",)):
        text = shown(*args)
        assert text.startswith("usage: retort")
        assert "\n  run " in text and "\n  doctor " in text and "--version" in text
        assert "retort help configuration" in text


@pytest.mark.parametrize("args", [("run", "--help"), ("run", "-h"), ("help", "run"),
                                  ("run", "-c", "1 / 0", "--timeout", "1", "--help")])
def test_of_run(args):
    text = shown(*args)
    assert text.startswith("usage: retort run")
    assert re.findall(r"^  .{4}--([a-z0-9-]+)", text, re.M) == RUN
    for status in ("0", "1", "2", "3", "124", "130", "137"):
        assert re.search(rf"\b{status}\b", text)


@pytest.mark.parametrize("command", ["run", "repl", "serve", "mcp", "keys", "environment", "doctor"])
def test_columns(command):
    """What an option does begins in one column, also where its name is long."""
    for line in shown(command, "--help").splitlines():
        if re.match(r"  .{4}--", line):
            assert re.fullmatch(r".{26}  \S.*|  .{4}--\S+( \S+)?", line), line


def test_of_serve_and_keys():
    for command, options in (("serve", SERVE), ("keys", KEYS), ("repl", REPL), ("store", STORE), ("bench", BENCH)):
        text = shown(command, "--help")
        assert text.startswith(f"usage: retort {command}")
        assert re.findall(r"^  .{4}--([a-z0-9-]+)", text, re.M) == options


def test_of_mcp():
    text = shown("mcp", "--help")
    assert text.startswith("usage: retort mcp")
    found = re.findall(r"^  .{4}--([a-z0-9-]+)", text, re.M)
    assert {*LIMITS, "state", "config", "pool", "python", "preload", "egress", "folder", "roots", "verbose",
            "help"} <= set(found)
    assert not {"listen", "tls-cert", "json", "log-level"} & set(found)
    assert "removed at the end" in " ".join(text.split())


def test_of_environment():
    text = shown("environment", "--help")
    assert text.startswith("usage: retort environment (create NAME --packages FILE | list | delete NAME)")
    assert re.findall(r"^  .{4}--([a-z0-9-]+)", text, re.M) == ENVIRONMENT


def test_of_doctor():
    text = shown("doctor", "--help")
    assert text.startswith("usage: retort doctor")
    assert "--python" in text and "--store " in text and "--blobs " in text and "--timeout" not in text


def test_every_option_of_the_source_is_shown():
    source = (retort.REPO / "src/cli/options.c").read_text()
    table = source[source.index("options[] = {"):source.index("options_count")]
    assert set(re.findall(r'^    \{"([a-z0-9-]+)"', table, re.M)) == {
        *RUN, *SERVE, *KEYS, *ENVIRONMENT, *BENCH, "pool", "tools", "images-dir", "roots", "model-key"}


def test_lines_fit_a_wide_terminal():
    for args in (("--help",), ("run", "--help"), ("doctor", "--help"), ("serve", "--help"),
                 ("keys", "--help"), ("environment", "--help"), ("mcp", "--help"), ("repl", "--help"), ("store", "--help"), ("bench", "--help")):
        assert max(map(len, shown(*args).splitlines())) <= 120


def test_version():
    meson = (Path(retort.REPO) / "meson.build").read_text()
    assert shown("--version") == f"retort {re.search(r'version: .([0-9.]+)', meson)[1]}\n"


def rows():
    """The rows of the table of options: name, commands and the whole text of each."""
    source = (retort.REPO / "src/cli/options.c").read_text()
    sets = dict(re.findall(r"^#define ([A-Z_]+) +\(?(IN\(COMMAND_.*)$", source, re.M))
    table = source[source.index("options[] = {"):source.index("options_count")]
    for row in re.split(r'^    (?=\{")', table, flags=re.M)[1:]:
        name, wanted = re.match(r'\{"([a-z0-9-]+)",\s*[^,]+,\s*OPTION_\w+,\s*GROUP_\w+,\s*([A-Z_| ]+),', row).groups()
        words = " ".join(sets[word] for word in wanted.split(" | "))
        yield name, re.findall(r"COMMAND_([A-Z]+)", words), row


def test_help_lists_the_values_of_a_choice():
    """Each option with fixed values, in the help of each command that takes it."""
    seen = set()
    for name, commands, row in rows():
        if "OPTION_CHOICE" not in row:
            assert ".choices" not in row, name
            continue
        values = re.search(r'\.choices = "([^"]+)"', row)[1].split("|")
        for command in commands:
            text = " ".join(shown(command.lower(), "--help").split())
            line = text[text.index(f" --{name} "):]
            assert f"One of {', '.join(values)}." in re.split(r" (?:-\w, )?--(?=[a-z])", line)[1], (command, name)
        seen.add(name)
    assert {"approval", "approval-by", "egress", "log-level", "log-format", "durability", "roots", "tools"} <= seen


def test_a_wrong_choice_is_told_the_right_ones():
    for name, commands, row in rows():
        if "OPTION_CHOICE" in row:
            values = re.search(r'\.choices = "([^"]+)"', row)[1].split("|")
            status, _, err = retort.call(commands[0].lower(), f"--{name}", "wrong")
            assert status == 2 and all(value in err for value in values), err


def test_doors_of_a_key_are_listed():
    """keys --door: the text of the help has every door that a key can be limited to."""
    known = re.search(r"\w+\[\] = \{\s*(\"rest\"[^}]+)\}", (retort.REPO / "src/service/scope.c").read_text())[1]
    text = " ".join(shown("keys", "--help").split())
    assert re.search(r"only these doors: ([^.]+)\.", text)[1].split(", ") == re.findall(r'"([^"]+)"', known)
