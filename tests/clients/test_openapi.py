"""Schemathesis, which makes requests of a description of routes and holds the answers against it: /v1/openapi.json."""

import subprocess

import pytest

import install
from rows import python
from servers import locked

ROW = python("schemathesis", "schemathesis", "st")
EXAMPLES = 12  # of each route, in each phase
SEED = 20260728
LASTING = "/v1/events"  # a stream without an end
# A 400 is also for what a schema cannot say: a place in a list, a pool or an address that is not there.
SETTINGS = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", 400, 401, 403, 404, 409, 429]
"""


@pytest.fixture(scope="module")
def server():
    """Small limits: what is made up is rarely worth waiting for."""
    with locked("--timeout", "3") as one:
        yield one


@pytest.mark.parametrize("phase", ["examples", "coverage", "fuzzing", "stateful"])
@pytest.mark.parametrize("row", [ROW], ids=lambda row: row.id)
def test_phase(row, phase, server, place):
    program = install.install(row.registry, row.path) / "bin" / row.driver[0]
    (place / "schemathesis.toml").write_text(SETTINGS)
    done = subprocess.run(
        [program, "run", f"http://127.0.0.1:{server.port}/v1/openapi.json", "--phases", phase, "--checks", "all", "--seed", str(SEED),
         "--max-examples", str(EXAMPLES), "--header", f"Authorization: Bearer {server.key}", "--no-color", "--continue-on-failure",
         "--exclude-path", LASTING],
        cwd=place, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]
