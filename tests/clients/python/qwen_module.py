"""Drives clients/qwen_agent_retort.py inside of Qwen-Agent's own agents.

In: {"url", "models": {agent: URL}, "csv": a path, "clients": the folder of the module}; the models
speak chat completions. Out: what the tool and the agents said, by the name of the case.
"""

import json
import os
import sys

ask = json.loads(sys.stdin.readline())
sys.path.insert(0, ask["clients"])

from qwen_agent.agents import Assistant, ReActChat  # noqa: E402
from qwen_agent.tools.base import TOOL_REGISTRY  # noqa: E402
import qwen_agent_retort  # noqa: E402

PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()\nopen('made.txt', 'w').write('by the code');"
SUM = "import csv\nprint(sum(int(r['n']) for r in csv.DictReader(open('numbers of mine.csv'))))"


def tool(**more):
    return qwen_agent_retort.CodeInterpreter({"url": ask["url"], "work_dir": "work", **more})


def say(code):
    return json.dumps({"code": code})


def registered():
    return TOOL_REGISTRY["code_interpreter"] is qwen_agent_retort.CodeInterpreter


def state():
    one, other = tool(), tool()
    one.call(say("x = 41"))
    return [one.call(say("x + 1")), one.call("```py\nprint(x)\n```"), one.call({"code": "x"}), other.call(say("x"))]


def files():
    one = tool()
    first = one.call(say(SUM), files=[ask["csv"]])
    one.call(say("open('numbers of mine.csv', 'a').write('100\\n')"), files=[ask["csv"]])
    kept = one.call(say(SUM), files=[ask["csv"]])  # it has not changed here, so it is as the code left it
    missing = one.call(say("1 + 1"), files=["/nowhere/at all.csv"])
    return [first, kept, missing]


def images():
    text = tool().call(say(PLOT))
    path = text.partition("](")[2].rstrip(")")
    with open(path, "rb") as image, open("work/made.txt") as made:
        return [text.partition("](")[0], os.path.dirname(path) == os.path.abspath("work"), image.read(8).hex(), made.read()]


def timeouts():
    one = tool(timeout=1)
    one.call(say("y = 7"))
    return [one.call(say("import time; time.sleep(60)")), one.call(say("y")), one.call(say("import time; time.sleep(2); y"), timeout=20)]


def unreachable():
    try:
        tool(url="http://127.0.0.1:9").call(say("1"))
    except RuntimeError as error:
        return str(error)


def talk(kind, *files):
    """All messages of an agent whose model has the tool add up some numbers."""
    bot = kind(llm={"model": "m", "model_server": ask["models"][kind.__name__], "api_key": "x", "generate_cfg": {"max_retries": 0}},
               function_list=[{"name": "code_interpreter", "url": ask["url"], "work_dir": "work"}])
    content = [{"text": "Sum it."}, *({"file": file} for file in files)]
    *_, last = bot.run([{"role": "user", "content": content}])
    return last


def assistant():
    return [m["content"] for m in talk(Assistant)]


def react():
    return [m["content"] for m in talk(ReActChat, ask["csv"])]


cases = (registered, state, files, images, timeouts, unreachable, assistant, react)
print(json.dumps({case.__name__: case() for case in cases}))
