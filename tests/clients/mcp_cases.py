"""What every client of MCP is asked to do, and what is right."""

import base64

PLOT = "import matplotlib.pyplot as plt\nplt.plot([3, 1, 2])\nplt.show()"
SLOW = "import time\nfor i in range(8):\n    print('line', i, flush=True)\n    time.sleep(0.3)"
PNG = b"\x89PNG\r\n\x1a\n"

# (name, tool, arguments), in this order in one session.
CALLS = [
    ("run", "run_code", {"code": "print('six times seven is', 6 * 7)"}),
    ("keep", "run_code", {"code": "kept = [5, 7]"}),
    ("state", "run_code", {"code": "sum(kept)"}),
    ("put", "write_file", {"path": "in.csv", "text": "n\n4\n9\n"}),
    ("use", "run_code", {"code": "import csv\nprint('total', sum(int(r['n']) for r in csv.DictReader(open('in.csv'))))\n"
                                 "open('out.txt', 'w').write('thirteen \\u2713')"}),
    ("get", "read_file", {"path": "out.txt"}),
    ("shell", "run_shell", {"command": "wc -l < in.csv"}),
    ("plot", "run_code", {"code": PLOT}),
    ("error", "run_code", {"code": "1 / 0"}),
    ("limit", "run_code", {"code": "while True:\n    pass", "timeout_ms": 1000}),
    ("after", "run_code", {"code": "print('still', kept)"}),
    ("progress", "run_code", {"code": SLOW}),
]


def calls(session=None):
    """The calls as drivers read them, in the session with this id, or that of the connection."""
    more = {"session_id": session} if session else {}
    return [{"case": case, "tool": tool, "arguments": {**arguments, **more}} for case, tool, arguments in CALLS]


def told(seen, case, wanted, is_error=False):
    result = seen["calls"][case]
    assert wanted in result["text"], result["text"]
    assert result.get("is_error") in (None, is_error)  # None: the client does not tell


# --- one check for each case: what the driver saw ---

def check_tools(seen):
    assert {"run_code", "run_shell", "read_file", "write_file", "list_packages"} <= set(seen["tools"])


def check_run(seen):
    told(seen, "run", "six times seven is 42")
    told(seen, "shell", "3")


def check_state(seen):
    told(seen, "state", "12")


def check_files(seen):
    told(seen, "use", "total 13")
    told(seen, "get", "thirteen \u2713")


def check_plot(seen):
    images = seen["calls"]["plot"]["images"]
    assert [i["mime"] for i in images] == ["image/png"]
    assert base64.b64decode(images[0]["data"]).startswith(PNG)


def check_error(seen):
    told(seen, "error", "ZeroDivisionError", is_error=True)


def check_limit(seen):
    told(seen, "limit", "1 s", is_error=True)
    told(seen, "after", "still [5, 7]")


def check_progress(seen):
    """Told while the code ran, each more than the one before."""
    heard = seen["progress"]
    assert heard and heard == sorted(set(heard))
    told(seen, "progress", "line 7")


CHECKS = {name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")}
