"""How drivers end: with what they saw as a line of JSON, or, where they were told that they may fail, with the failure."""

import asyncio
import json
import sys
import traceback


def end(ask, walk):
    """walk(ask) returns what it saw, or awaits it."""
    say, sys.stdout = sys.stdout, sys.stderr  # some clients print
    try:
        seen = walk(ask)
        seen = asyncio.run(seen) if asyncio.iscoroutine(seen) else seen
    except Exception:
        if not ask.get("may_fail"):
            raise
        seen = {"refused": traceback.format_exc()}
    print(json.dumps(seen), file=say)
