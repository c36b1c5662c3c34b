"""The servers that benches start: those of the tests, on a machine that others use too."""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def server(build, *flags, config=""):
    """Use it with `with`. The program of the build that is named first is everybody's."""
    os.environ.setdefault("RETORT_BIN", str(build / "retort"))
    if str(ROOT / "tests") not in sys.path:
        sys.path.append(str(ROOT / "tests"))
    from support import retort
    from support.server import Server, living

    class Alone(Server):
        def check_clean(self, seconds=retort.SECONDS):
            """Nothing of its own is left. Mounts may be those of another server, which came meanwhile."""
            retort.wait_until(lambda: not living(self.family), "the end of every process", seconds)
            retort.wait_until(lambda: not retort.groups_of(self.instances), "the end of every cgroup", seconds)

    return Alone(*flags, config=config, small=False, program=str(build / "retort"))
