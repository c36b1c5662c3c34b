"""model-driver, and what most tests ask through it."""

import json
import os
import subprocess

from support.retort import driver

TOOLS = [{"name": "run_python", "description": "Runs code.",
          "schema": {"type": "object", "properties": {"code": {"type": "string"}}}}]
HELLO = [{"role": "user", "parts": [{"type": "text", "text": "hello"}]}]


class Answers(list):
    """What came, in order; end is what the driver says last."""

    end = None


def drive(document, env=None):
    """The driver's lines; nothing may be left open when it ends."""
    done = subprocess.run([driver("model/model-driver")], input=json.dumps(document),
                          capture_output=True, text=True, timeout=60,
                          env={**os.environ, **(env or {})})
    assert done.returncode == 0 and done.stderr == "", done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines.pop() == {"leaked": 0}
    answers = Answers(lines)
    answers.end = answers.pop()
    assert answers.end["cloexec"]
    return answers
