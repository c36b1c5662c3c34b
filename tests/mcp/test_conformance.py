"""The protocol's own conformance suite against a real server, in its newest version and in the one
that people get by default. Its exit status says that what is scored has passed; here every check
that it wrote down is read as well, those that are not scored included.
"""

import concurrent.futures
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from support import retort
from support.mcp import Legacy, RpcError
from support.server import Server

pytestmark = pytest.mark.once
BINARY = retort.CONFORMANCE
MODULES = Path(os.environ.get("RETORT_NPM", retort.REPO / "build/npm")) / "node_modules"
NEW = MODULES / "@modelcontextprotocol/conformance/dist/index.js"
OLD = MODULES / "conformance-old/dist/index.js"

RUNS = {"legacy": [NEW, "--requirements", "2025-11-25"],
        "modern": [NEW, "--requirements", "2026-07-28"],
        "all": [NEW, "--suite", "all"],
        "old": [OLD, "--suite", "all"]}
SCORED = {"legacy": 30, "modern": 37}
UNSCORED = {"legacy": {"server-session-lifecycle", "server-sse-polling", "json-schema-2020-12"},
            "modern": {"json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation"}}
TASKS = {"tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal",
         "tasks-mrtr-input", "tasks-request-headers", "tasks-dispatch-and-envelope", "tasks-required-task-error",
         "tasks-mrtr-composition"}
SKILLS = {"sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest"}
WHEN = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")  # in the name of a folder
# It tells of a channel that the suite itself does not look at yet.
SKIPPED = {"tasks-status-notifications"}


class Run:
    """One run of the suite: its exit status, what it printed, its checks by scenario."""

    def __init__(self, server, name, place):
        program, *flags = RUNS[name]
        url = f"http://127.0.0.1:{server.port}/mcp"
        done = subprocess.run([MODULES / ".bin/node", program, "server", "--url", url, "-o", place, *flags],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=110)
        self.status, self.output = done.returncode, done.stdout + done.stderr
        self.checks = {}
        for file in Path(place).glob("server-*/checks.json"):
            scenario = WHEN.sub("", file.parent.name.removeprefix("server-"))
            assert scenario not in self.checks or name == "all", f"{scenario} ran twice"
            self.checks.setdefault(scenario, []).extend(json.loads(file.read_text()))

    def statuses(self, scenario):
        return {check["status"] for check in self.checks[scenario]} - {"INFO"}

    def complaints(self):
        return [f"{scenario}: {check['status']} {check['id']}: {check.get('errorMessage')}"
                for scenario, checks in self.checks.items() for check in checks
                if check["status"] not in ("SUCCESS", "INFO") and scenario not in SKIPPED]


@pytest.fixture(scope="module")
def runs(server, tmp_path_factory):
    """All of them, two at a time: most of the time they wait."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        made = {name: pool.submit(Run, server, name, tmp_path_factory.mktemp(name)) for name in RUNS}
        return {name: one.result() for name, one in made.items()}


@pytest.mark.parametrize("name", RUNS)
def test_nothing_is_complained_of(runs, name):
    run = runs[name]
    assert run.complaints() == []
    assert run.status == 0, run.output[-4000:]


@pytest.mark.parametrize("name", SCORED)
def test_all_that_is_scored_has_run(runs, name):
    run = runs[name]
    scored = set(run.checks) - UNSCORED[name] - TASKS - SKILLS - SKIPPED
    assert len(scored) == SCORED[name], sorted(scored)
    for scenario in scored:
        assert run.statuses(scenario) == {"SUCCESS"}, scenario


@pytest.mark.parametrize("name", UNSCORED)
def test_what_is_not_scored_has_run_and_passed(runs, name):
    for scenario in UNSCORED[name]:
        assert runs[name].statuses(scenario) == {"SUCCESS"}, scenario


@pytest.mark.parametrize("scenario", sorted(TASKS | SKILLS))
def test_extensions_have_run_and_passed(runs, scenario):
    assert runs["all"].statuses(scenario) == {"SUCCESS"}


def test_it_is_off_unless_told():
    with Server() as server, Legacy(server) as client:
        assert not [name for name in client.tools() if name.startswith("test_")]
        assert not [p["name"] for p in client.request("prompts/list")["prompts"] if p["name"].startswith("test_")]
        with pytest.raises(RpcError, match="-32002"):
            client.request("resources/read", {"uri": "test://static-text"})
