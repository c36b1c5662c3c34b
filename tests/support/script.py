"""Requests that are their own script: what a model would reply, turn by turn."""

import json


def script(*turns):
    """Each turn is a step or a list of steps."""
    return json.dumps({"turns": [t if isinstance(t, list) else [t] for t in turns]})


def plan(*steps):
    return {"text": json.dumps({"steps": steps or ["compute it"]})}


def python(code):
    return {"python": code}


def call(tool, **args):
    return {"tool": {"name": tool, "input": args}}


def finish(answer, **more):
    return call("finish", answer=answer, **more)


def question(text):
    return call("ask_user", question=text)


def say(text):
    return {"text": text}


def simple(code, answer="done", *steps):
    """A plan, one piece of code, an answer."""
    return script(plan(*steps), python(code), finish(answer))
