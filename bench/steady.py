"""How much of the machine was ours: whoever reads a figure wants to know what else ran."""

import os
import time

import machine

SPINS = 300       # of a millisecond each, about
CALM_BUSY = 0.15  # less than this is taken by others
CALM_JITTER = 1.3  # a piece of work that never waits takes as long every time, nearly


def _steal():
    """Ticks that the host gave to other machines, and all ticks."""
    numbers = [int(word) for word in machine.read("/proc/stat").split("\n", 1)[0].split()[1:]]
    return numbers[7], sum(numbers[:8])


def _piece(rounds):
    begun = time.perf_counter()
    for _ in range(rounds):
        pass
    return time.perf_counter() - begun


def jitter():
    """The same piece of work over and over: its median and its worst in twenty, as shares of its best."""
    rounds = int(20000 * 1e-3 / max(_piece(20000), 1e-6))
    took = sorted(_piece(rounds) for _ in range(SPINS))
    return {"p50": took[SPINS // 2] / took[0], "p95": took[SPINS * 95 // 100] / took[0]}


class Watch:
    """From a bench's begin to its end."""

    def __init__(self):
        self.busy = machine.busy()
        self.jitter = jitter()
        self.load = os.getloadavg()[0]
        self.steal, self.ticks = _steal()

    def end(self):
        """What to print, and what to keep."""
        steal, ticks = _steal()
        after = jitter()
        found = {
            "busy_before": self.busy, "load_before": self.load, "nice": os.nice(0),
            "steal": (steal - self.steal) / max(1, ticks - self.ticks),
            "jitter_p50": max(self.jitter["p50"], after["p50"]),
            "jitter_p95": max(self.jitter["p95"], after["p95"]),
        }
        found["calm"] = (self.busy < CALM_BUSY and found["steal"] < 0.02
                         and found["jitter_p95"] < CALM_JITTER)
        return found


def tell(found):
    text = ("Others took %d %% of the processors before it began (load %.1f), the host %.1f %% during it; "
            "a loop that never waits took %.2f times its best in the median, %.2f in its worst twentieth.") % (
        100 * found["busy_before"], found["load_before"], 100 * found["steal"],
        found["jitter_p50"], found["jitter_p95"])
    if found["calm"]:
        return text
    return (text + "\nTHE MACHINE WAS BUSY: look at the ratios, and at what came at best; "
                   "high percentiles are others' doing.")
