import pytest

from support import retort

ANSWERS = 1500
ANSWER = "import time; print('answer'); time.sleep(0.08)"


class Neighbour:
    """Another session on the same machine, with one small cell after the other. It stops at the
    first that does not end well, so as long as it goes on every answer was a good one."""

    def __init__(self):
        self.live = retort.Live(*retort.cells(*[ANSWER] * ANSWERS))
        self.live.wait_for("answer")

    def answers(self):
        """How many there have been so far."""
        lines = self.live.output.decode().splitlines()[:-1]  # the last may be half a line
        assert all(line == "answer" for line in lines), lines[-3:]
        return len(lines)


@pytest.fixture(scope="session")
def long_neighbour():
    neighbour = Neighbour()
    with neighbour.live:
        yield neighbour


@pytest.fixture
def neighbour(long_neighbour):
    """For a test that hits a limit: it must take a while, and answers come all the time."""
    before = long_neighbour.answers()
    yield long_neighbour
    after = long_neighbour.answers()
    retort.wait_until(lambda: long_neighbour.answers() > after, "the neighbour's next answer",
                      retort.SECONDS)
    assert long_neighbour.live.process.poll() is None
    assert after - before >= 2, f"{after - before} answers meanwhile"
