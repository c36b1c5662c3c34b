"""The suite mounts file systems, in a mount namespace of its own. That takes root; an ordinary user has
no such tests."""

import ctypes
import os
import subprocess

import pytest

CLONE_NEWNS = 0x00020000

if os.geteuid() != 0:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="package", autouse=True)
def own_mounts():
    """With the end of this process every mount goes, however it ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.unshare(CLONE_NEWNS) == 0, os.strerror(ctypes.get_errno())
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
