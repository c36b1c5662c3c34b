"""A session that nobody asks anything lets go of memory, and goes on where it was.

Of its pages it keeps what differs from the interpreter's image. The unit guest/rest looks at each page;
here is a whole interpreter."""

import pytest

from support import retort, server

SETUP = """
import ctypes, random, signal, weakref
ctypes.CDLL(None).prctl(15, b"resting-one")
numbers = [random.random() for _ in range(1000)]
words = {str(n): {n: [n]} for n in numbers}
class Node: pass
nodes = [Node() for _ in range(100)]
refs = [weakref.ref(n) for n in nodes]
seen = []
signal.signal(signal.SIGALRM, lambda *_: seen.append(sum(numbers)))
total = sum(numbers)
"""
CHECK = """
assert sum(numbers) == total and all(words[str(n)] == {n: [n]} for n in numbers)
assert [r() for r in refs] == nodes
del nodes[:50]
assert [r() is None for r in refs].count(True) == 50
nodes += [Node() for _ in range(50)]
refs = [weakref.ref(n) for n in nodes]
print(len(words), sum(isinstance(n, Node) for n in nodes))
"""


def resting(s):
    """The kernel by the name it gave itself."""
    return next(p for p in retort.below(s.process.pid) if retort.field(p, "Name") == ["resting-one"])


def anonymous(pid):
    return int(retort.field(pid, "RssAnon")[0])


@pytest.mark.once
def test_a_session_at_rest_is_small_and_whole():
    with server.Server() as s, s.client() as c, c.session() as session:
        assert session.run(SETUP)["status"] == "ok"
        pid = resting(s)
        for _ in range(2):
            assert session.run(CHECK)["stdout"] == "1000 100\n"
            busy = anonymous(pid)
            retort.wait_until(lambda: anonymous(pid) < busy / 2, "the session to rest", retort.SECONDS)
        # The alarm comes between two cells, and finds a handler that the second of them runs.
        session.run("signal.setitimer(signal.ITIMER_REAL, 0.05)")
        retort.wait_until(lambda: anonymous(pid) < busy / 2, "the session to rest again", retort.SECONDS)
        assert session.run("seen == [total]")["result"] == "True"
