"""Interpreters start while the kernel moves the memory of the machine about.

The image of an interpreter is copied page by page, and a page that is on its way to another place
is neither there nor absent: once such pages became zeros, and 1 of 22 starts crashed. The unit
guest/heap says it of every page; here the kernel does it for real, where root may ask for it."""

import contextlib
import subprocess

import pytest

from support import retort

COMPACT = "/proc/sys/vm/compact_memory"
# Objects of many sizes, made by modules that were imported before the image was made.
CODE = """
import decimal, gc, json, re
kept = [gc.get_freeze_count() > 1000, json.loads(json.dumps({"a": [1, 2.5, None]})),
        re.sub("b+", "-", "abbc"), str(decimal.Decimal(1) / 7)]
print(kept)
"""
SAID = "[True, {'a': [1, 2.5, None]}, 'a-c', '0.1428571428571428571428571429']\n"


@contextlib.contextmanager
def moving():
    """Kills its shell in the end: the kernel stops in the middle, for such a signal alone."""
    loop = subprocess.Popen(["sh", "-c", f"while echo 1 >{COMPACT}; do :; done"],
                            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        loop.kill()
        loop.wait()


@pytest.mark.once
def test_interpreters_start_whole():
    with moving():
        for _ in range(3):
            status, out, err = retort.call("run", "--preload", "decimal,json,re", "-c", CODE)
            assert (status, out.decode(), err) == (0, SAID, "")
