import time

import pytest

from support import retort

ANSWERS = 1500
ANSWER = "import time; print('answer', time.monotonic()); time.sleep(0.08)"


class Neighbour:
    """Another session on the same machine, with one small cell after the other. It stops at the
    first that does not end well, so as long as it goes on every answer was a good one."""

    def __init__(self):
        self.live = retort.Live(*retort.cells(*[ANSWER] * ANSWERS))
        self.live.wait_for("answer")

    def answers(self):
        lines = self.live.output.decode().splitlines()[:-1]  # the last may be half a line
        assert all(line.startswith("answer ") for line in lines), lines[-3:]
        return [float(line.split()[1]) for line in lines]


@pytest.fixture(scope="session")
def long_neighbour():
    neighbour = Neighbour()
    with neighbour.live:
        yield neighbour


@pytest.fixture
def neighbour(long_neighbour):
    """For a test that hits a limit: it must take a while, and answers come all the time."""
    began = time.monotonic()
    yield long_neighbour
    ended = time.monotonic()
    retort.wait_until(lambda: long_neighbour.answers()[-1] > ended, "the neighbour's next answer",
                      retort.SECONDS)
    assert long_neighbour.live.process.poll() is None
    meanwhile = [at for at in long_neighbour.answers() if began < at < ended]
    assert len(meanwhile) >= 2, f"{len(meanwhile)} answers in {ended - began:.1f} s"
