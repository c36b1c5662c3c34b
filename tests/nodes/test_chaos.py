"""The short form of `./dev chaos nodes`: what clients were told is held against what is there afterwards."""

import os
import subprocess
import sys

import pytest

from support import retort

pytestmark = pytest.mark.once


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make network namespaces")
def test_faults_between_machines():
    done = subprocess.run([sys.executable, retort.REPO / "bench/chaos_nodes.py", "--kills", "3", "--partitions", "1",
                           "--pauses", "1", "--lease", "6", "--patience", "3"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
