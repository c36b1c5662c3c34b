"""Answers with an object whose every description lies, raises, or never ends.

Descriptions are made inside, under the cell's own limits; what comes out is checked as any
guest's word.
"""

from outside import holds, plain, same

RAISES = """
class Evil:
    def __repr__(self):
        raise SystemExit(0)

    def _repr_html_(self):
        raise KeyboardInterrupt

    def _repr_png_(self):
        return "not bytes"

    def _repr_mimebundle_(self, **kw):
        return {"text/plain": 5, 7: "x", "image/png": "!!!", "a\\nb": "x", "text/html": "\\ud800"}


Evil()
"""
HANGS = """
class Slow:
    def __repr__(self):
        while True:
            pass


Slow()
"""


def check(box):
    run = box.run(
        plain(RAISES),
        plain(HANGS),
        plain("print('alive')"),
        flags=["--keep-going", "--timeout", "1", "--grace", "0.5"],
    )
    holds(run.exit != 3, f"the program gave up: {run.brief()}")
    same(run.status(1), "timeout", "a description that never ends")
    same(run.text(2), "alive\n", "the next cell")
