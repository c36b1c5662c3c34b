#!/usr/bin/env python3
"""Runs cells in a Jupyter kernel and in a session, and says where the two differ.

    cells.py [--verbose] [FILE]...

A FILE of bench/cells is a notebook: cells behind lines that start with "# %%". What follows the marks on
that line is the name of a row in the table "What differs" of docs/cells.md: the cell differs on
purpose, and has to. Streams, results, displays with their metadata, errors and clear_output() are
compared; numbers that no two runs share (times, addresses, process ids) are not. Nothing but
differences on purpose: exit status 0.
"""

import argparse
import json
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile

from jupyter_client import KernelManager

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parent
PROGRAM = os.environ.get("RETORT_BIN") or str(REPO / "build" / "retort")
CELL_S = 60
NO_ID = {"update": False, "has_id": False}

# Output of programs comes to a Jupyter kernel by a thread, which may read it after the cell.
PROGRAMS = re.compile(r"subprocess|\bos\.|Popen|spawn|fork|faulthandler|ctypes")
LATE_S = 0.5

# What differs between two runs of the same kernel, too. The order matters.
VARIES = [
    (r"\x1b\[[0-9;]*m", ""),
    (r"0x[0-9a-f]{6,}", "0xADDRESS"),
    (r"/tmp/ipykernel_\d+/[\w.]+|\b\d{5,}\.py|<ipython-input-[^>]*>|(/workspace/)?<(run_cell in )?cell \d+>",
     "CELL"),
    (r"\r\n", "\n"),  # of the terminal in which a Jupyter kernel runs !cmd
    # An open file that nobody closed is found by the collector, in this cell or in a later one.
    (r"(?m)^.*ResourceWarning: unclosed file <_io.*\n.*\n.*tracemalloc.*\n", ""),
    (r"(?m)^.*ResourceWarning: Unclosed socket <zmq.*\n(  self.pid.*\n)?.*tracemalloc.*\n", ""),
    (r"(?m)^.*UserWarning: To exit: use.*\n.*\n", ""),
    (r"\d\d/\w{3}/\d{4} \d\d:\d\d:\d\d", "DATE"),
    (r"(?m)^(Ran \d+ tests?) in [\d.]+s", r"\1"),
    (r"/tmp/tmp\w{8}\b", "TEMPORARY"),
    (r"subprocess \d+ is|TextIOWrapper name=\d+", "NUMBER"),
    (r"object at [0-9a-f]{8,}", "object at ADDRESS"),
    (r"#?T_[0-9a-f]{5}", "TABLE"),
    (r"(?m)^(CPU times: ).*", r"\1T"),
    (r"(?m)^(Wall time: ).*", r"\1T"),
    (r"(?m)^(Compiler *: ).*", r"\1T"),
    (r"[\d.]+ [nmµu]?s ± [^\n]*", "TIMES"),
    (r"(?m)^The slowest run took .*\n.*\n", ""),
    (r"%\|[^|]*\|", "%|BAR|"),  # as wide as the rate leaves room
    (r"[\d.]+k?(it|B)/s?|\?(it|B)/s|\d+:\d+<[\d:?]+", "RATE"),
    (r"(\[RATE, )[\d.]+(it?)?$", r"\1RATE"),  # cut off where the line ends
    (r"timed out after [\d.]+ seconds", "timed out after T seconds"),
    (r"/tmp/cells-[\w-]*|/workspace", "FOLDER"),
    (r"(?m)(\d+ function calls.*) in [\d.]+ seconds", r"\1"),
    (r"\bpid \d+|pid=\d+", "PID"),
    (r'"(model_id|plotDivId|id|comm_id)": "[0-9a-f-]{8,}"', r'"\1": "ID"'),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID"),
    (r"\b[0-9a-f]{32}\b", "HEX"),
]


def same(text):
    for pattern, by in VARIES:
        text = re.sub(pattern, by, text)
    return text


def part(mime, value):
    """A part of a bundle in a form that both sides share."""
    if isinstance(value, str) and (mime.endswith("json") or "+json" in mime):
        try:
            value = json.loads(value)
        except ValueError:
            pass
    if not isinstance(value, str):
        return same(json.dumps(value, sort_keys=True))
    if mime.startswith(("image/", "audio/", "video/", "application/pdf")) and "svg" not in mime:
        return "".join(value.split())
    return same(value)


def bundle(kind, data, metadata, more=None):
    data = {mime: part(mime, value) for mime, value in data.items() if "preview=1" not in mime}
    return [kind, data, json.loads(same(json.dumps(metadata or {}, sort_keys=True))), more or {}]


class Told:
    """What a cell has told, in a form that both sides share."""

    def __init__(self):
        self.events = []
        self.streams = {"stdout": "", "stderr": ""}

    def stream(self, name, text):
        self.streams[name] += text
        if self.events and self.events[-1][0] == name:
            self.events[-1][1] += text
        else:
            self.events.append([name, text])

    def add(self, event):
        self.events.append(event)

    def done(self):
        events = [[e[0], same(e[1])] if e[0] in self.streams else e for e in self.events]
        # The order of the two streams among each other is chance in a kernel.
        rest = [e for e in events if e[0] not in self.streams]
        return {"stdout": same(self.streams["stdout"]), "stderr": same(self.streams["stderr"]),
                "rest": rest}


# --- a Jupyter kernel ---

class Jupyter:
    def __init__(self, folder, home):
        self.manager = KernelManager(kernel_name="python3")
        self.manager._kernel_spec = None
        env = dict(os.environ, HOME=home, MPLBACKEND="module://matplotlib_inline.backend_inline",
                   PYTHONDONTWRITEBYTECODE="1", COLUMNS="80")
        for name in ("PYTHONPATH", "MPLCONFIGDIR"):
            env.pop(name, None)
        self.manager.start_kernel(cwd=folder, env=env, extra_arguments=["--colors=NoColor"])
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=CELL_S)

    def run(self, code):
        told = Told()
        ident = self.client.execute(code, allow_stdin=False, stop_on_error=False)
        while True:
            try:
                message = self.client.get_iopub_msg(timeout=CELL_S)
            except queue.Empty:
                sys.exit("the Jupyter kernel does not answer:\n" + code)
            if message["parent_header"].get("msg_id") != ident:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                break
            self.take(told, kind, content)
        if PROGRAMS.search(code):
            self.take_late(told, ident)
        for payload in self.reply(ident).get("payload", []):
            if payload["source"] == "page":
                told.add(bundle("display", payload["data"], {}, NO_ID))
        return told.done()

    def take_late(self, told, ident):
        while True:
            try:
                message = self.client.get_iopub_msg(timeout=LATE_S)
            except queue.Empty:
                return
            if message["parent_header"].get("msg_id") == ident and message["msg_type"] == "stream":
                self.take(told, "stream", message["content"])

    def reply(self, ident):
        while True:
            message = self.client.get_shell_msg(timeout=CELL_S)
            if message["parent_header"].get("msg_id") == ident:
                return message["content"]

    @staticmethod
    def take(told, kind, content):
        if kind == "stream":
            told.stream(content["name"], content["text"])
        elif kind in ("display_data", "update_display_data"):
            ident = content.get("transient", {}).get("display_id")
            told.add(bundle("display", content["data"], content["metadata"],
                            {"update": kind != "display_data", "has_id": bool(ident)}))
        elif kind == "execute_result":
            told.add(bundle("result", content["data"], content["metadata"]))
        elif kind == "error":
            told.add(["error", content["ename"], same(content["evalue"])])
        elif kind == "clear_output":
            told.add(["clear"])

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


# --- a session ---

def session(cells, folder):
    """What each cell tells, all of them in one session."""
    args = [PROGRAM, "run", "--json", "--keep-going", "--timeout", str(CELL_S)]
    for code in cells:
        args += ["-c", code]
    env = dict(os.environ)
    env.pop("PYTHONPATH", None)
    done = subprocess.run(args, capture_output=True, env=env, cwd=folder, timeout=1200)
    document = json.loads(done.stdout)
    for execution in document["executions"]:
        told = Told()
        for event in execution["events"]:
            take(told, event)
        yield told.done()


def shared(metadata):
    """Without the entry of our own, the file of a picture: docs/cells.md, "What is the same"."""
    return {name: value for name, value in (metadata or {}).items() if name != "retort"}


def take(told, event):
    kind = event["type"]
    if kind in ("stdout", "stderr"):
        told.stream(kind, event["text"])
    elif kind == "display":
        told.add(bundle("display", event["data"], shared(event.get("metadata")),
                        {"update": event.get("update", False),
                         "has_id": "display_id" in event}))
    elif kind == "result":
        told.add(bundle("result", event["data"], shared(event.get("metadata"))))
    elif kind == "error":
        told.add(["error", event["name"], same(event["message"])])
    elif kind == "clear":
        told.add(["clear"])


# --- the corpus ---

def notebook(path):
    """(code, name of the difference or "") of each cell."""
    for text in re.split(r"(?m)^# %%", path.read_text())[1:]:
        name, _, code = text.partition("\n")
        yield code.strip("\n"), name.strip()


def differences():
    """The rows of docs/cells.md under which a difference is on purpose."""
    table = (REPO / "docs" / "cells.md").read_text().split("## What differs")[1]
    return {row.split("|")[1].strip() for row in re.findall(r"(?m)^\|.*\|$", table)[2:]}


def compare(path, verbose):
    """How many cells are equal, differ on purpose, and differ."""
    cells = list(notebook(path))
    allowed = differences()
    equal = meant = wrong = 0
    folder, home = tempfile.mkdtemp(prefix="cells-"), tempfile.mkdtemp(prefix="home-")
    try:
        jupyter = Jupyter(folder, home)
        try:
            theirs = [jupyter.run(code) for code, _ in cells]
        finally:
            jupyter.close()
        ours = list(session([code for code, _ in cells], folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)
    for n, ((code, name), a, b) in enumerate(zip(cells, theirs, ours), 1):
        where = "%s, cell %d" % (path.name, n)
        if name and name not in allowed:
            print("%s: docs/cells.md has no row '%s'" % (where, name))
            wrong += 1
        elif name and a == b:
            print("%s: equal, though it is to differ: %s" % (where, name))
            wrong += 1
        elif name:
            meant += 1
        elif a == b:
            equal += 1
        else:
            wrong += 1
            show(where, code, a, b, verbose)
    if len(ours) != len(cells):
        print("%s: %d cells, %d answers" % (path.name, len(cells), len(ours)))
        wrong += 1
    return equal, meant, wrong


def show(where, code, a, b, verbose):
    most = 100000 if verbose else 700
    print("\n--- %s\n%s" % (where, code))
    for key in a:
        if a[key] != b[key]:
            print("  %s in Jupyter: %s" % (key, repr(a[key])[:most]))
            print("  %s here:       %s" % (key, repr(b[key])[:most]))


def summary(score):
    equal, meant, wrong = score
    return ("%d cells: %d equal, %d differ on purpose, %d differ: %.2f %% as in Jupyter"
            % (sum(score), equal, meant, wrong, 100 * (equal + meant) / max(1, sum(score))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    files = args.files or sorted((HERE / "cells").glob("*.cells"))
    scores = {}
    for path in files:
        scores[path.stem] = compare(path, args.verbose)
        sys.stdout.flush()
    sums = [sum(column) for column in zip(*scores.values())]
    print()
    for name, score in scores.items():
        print("%-10s %s" % (name, summary(score)))
    print("\n" + summary(sums))
    return 1 if sums[2] else 0


if __name__ == "__main__":
    sys.exit(main())
