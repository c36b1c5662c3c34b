"""Modules that several sessions import are there before the next session starts."""

import pytest

from support import retort
from support.server import Server

# One that is found in the session's own folder, and one that every Python has.
VOTE = """\
open('of_my_own.py', 'w').write('number = 1')
import of_my_own
import sched, xml.dom.minidom
import this
"""
LOADED = "import sys\nprint(sorted({'sched', 'xml.dom.minidom', 'this', 'of_my_own'} & set(sys.modules)))"


@pytest.fixture(scope="module")
def house():
    with Server("--learn", "1", "--ready", "1") as server, server.client() as c:
        yield c


def learned(c):
    return c.get("/v1/pools/default").expect(200).json["learned"]


def vote(c, sessions):
    for _ in range(sessions):
        with c.session() as made:
            assert made.run(VOTE)["status"] == "ok"


def test_learned(house):
    assert learned(house) == []
    with house.session() as before:
        assert before.run(LOADED)["stdout"] == "[]\n"
        vote(house, 2)
        retort.wait_until(lambda: learned(house), "modules to be learned", 120)
        # this prints a poem when it is imported: that belongs to whoever imports it
        assert set(learned(house)) >= {"sched", "xml.dom.minidom"}
        assert not {"this", "of_my_own"} & set(learned(house))
        with house.session() as made:
            assert made.run(LOADED)["stdout"] == "['sched', 'xml.dom.minidom']\n"
            assert made.run("import sched; sched.scheduler().empty()")["result"] == "True"
            assert "Beautiful" in made.run("import this")["stdout"]
        assert before.run(LOADED)["stdout"] == "[]\n"  # it lives on as it was


def test_never():
    with Server("--learn", "0", "--ready", "1") as server, server.client() as c:
        vote(c, 3)
        assert learned(c) == []
