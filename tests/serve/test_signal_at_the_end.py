"""Signals that come while the server takes itself down: it ends as it would have ended, with the same status."""

import os
import signal
import subprocess
import tempfile

import pytest

from support import retort


@pytest.fixture(scope="module")
def bare():
    """A Python without IPython: no pool comes up, and the server ends by itself. Not below /tmp, which sandboxes have."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="retort-bare-") as place:
        os.chmod(place, 0o755)
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", place + "/env"], check=True)
        yield place


@pytest.mark.once
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_after_the_last_pool_was_refused(bare, number):
    with subprocess.Popen([retort.PROGRAM, "serve", "--listen", "127.0.0.1:0", "--state", f"{bare}/state{number}",
                           "--python", bare + "/env/bin/python", "--ready", "1"],
                          stderr=subprocess.PIPE, text=True) as server:
        said = ""
        for line in server.stderr:
            said += line
            if line.startswith("retort: no pool can run anything"):
                server.send_signal(number)
        assert server.wait() == 2, said
        assert "has no IPython" in said
