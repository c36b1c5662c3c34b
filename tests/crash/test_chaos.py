"""A short form of `./dev chaos`: every fault once, while clients work; then what they were told is checked."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import chaos  # noqa: E402


@pytest.mark.once
def test_every_fault_once():
    chaos.Chaos(seconds=0, seed=1).run()
