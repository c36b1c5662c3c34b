"""Exceptions as the server wants them: name, message, a compact traceback, the user's frames."""

import linecache
import os
import traceback

import IPython

from .wire import (TAG_ERRNO, TAG_FRAME_FILE, TAG_FRAME_LINE, TAG_FRAME_NAME, TAG_FRAME_TEXT,
                   TAG_NAME, TAG_TEXT, TAG_TRACE)

TRACE_MAX = 32 * 1024
TEXT_MAX = 8 * 1024
LIBRARY_MAX = 3  # frames of other people's code: the last ones say what was wrong
FRAMES_HEAD = 16
FRAMES_TAIL = 48

_HIDDEN = (os.path.dirname(os.path.abspath(__file__)) + os.sep,
           os.path.dirname(IPython.__file__) + os.sep,
           "<frozen importlib", "<decorator-gen-")

workspace = os.sep + "workspace" + os.sep  # set by the kernel: where the user's files are


def is_user(filename):
    if filename.startswith("<cell "):
        return True
    return (filename.startswith(workspace) and "/site-packages/" not in filename
            and "/dist-packages/" not in filename)


def fields(value, tb):
    """The body of MSG_ERROR for an exception. Never raises, whatever the exception's class does."""
    try:
        return _fields(value, tb)
    except Exception:
        # Past a metaclass of the user's own.
        name = type.__dict__["__name__"].__get__(type(value))
        return [(TAG_NAME, _bytes(name)), (TAG_TEXT, b""),
                (TAG_TRACE, _bytes(name + " (its traceback cannot be shown)\n"))]


def _fields(value, tb):
    made = traceback.TracebackException(type(value), value, tb)
    frames = _frames(made, value)
    _prune_all(made, set())
    unborn = isinstance(value, SyntaxError) and is_user(str(value.filename)) \
        and not any(is_user(f.filename) for f in made.stack if not isinstance(f, int))
    if unborn:
        # The cell itself did not compile: there is no call to trace.
        made.stack.clear()
        made.text = made.text or linecache.getline(value.filename, value.lineno or 0)
    trace = "".join(made.format())
    if unborn:
        trace = trace.replace("Traceback (most recent call last):\n", "", 1)
    out = [(TAG_NAME, _bytes(type(value).__name__)),
           (TAG_TEXT, cut(_bytes(_text(value)), TEXT_MAX)),
           (TAG_TRACE, cut(_bytes(trace), TRACE_MAX))]
    if isinstance(value, OSError) and isinstance(value.errno, int) and value.errno >= 0:
        out.append((TAG_ERRNO, value.errno))
    for filename, line, name, text in frames:
        out += [(TAG_FRAME_FILE, _bytes(filename)), (TAG_FRAME_LINE, line),
                (TAG_FRAME_NAME, _bytes(name)), (TAG_FRAME_TEXT, _bytes(text[:512]))]
    return out


def cut(data, limit):
    """Head and tail of a text (as UTF-8) that is too long."""
    if len(data) <= limit:
        return data
    half = limit // 2
    head = data[:half].decode("utf-8", "ignore").encode("utf-8")
    tail = data[-half:].decode("utf-8", "ignore").encode("utf-8")
    left = len(data) - len(head) - len(tail)
    return b"%s\n... %d bytes left out ...\n%s" % (head, left, tail)


def _text(value):
    try:
        return str(value)
    except Exception:
        return "<its message cannot be shown>"


def _bytes(text):
    return text.encode("utf-8", "backslashreplace")


def _frames(made, value):
    found = [(f.filename, f.lineno or 0, f.name, (f.line or "").strip())
             for f in made.stack if is_user(f.filename)]
    if isinstance(value, SyntaxError) and is_user(str(value.filename)):
        line = value.lineno or 0
        text = value.text or linecache.getline(value.filename, line)
        found.append((value.filename, line, "<module>", text.strip()))
    if len(found) > FRAMES_HEAD + FRAMES_TAIL:
        found = found[:FRAMES_HEAD] + found[-FRAMES_TAIL:]
    return found


class _Stack(traceback.StackSummary):
    """A stack in which a number stands for that many frames left out."""

    def format(self, **options):
        run = []
        for item in self + [0]:
            if not isinstance(item, int):
                run.append(item)
                continue
            yield from traceback.StackSummary.from_list(run).format(**options)
            run = []
            if item:
                yield "  ... %d more in libraries\n" % item


def _prune(stack):
    shown = [f for f in stack if not f.filename.startswith(_HIDDEN)]
    for start, frame in enumerate(shown):
        if is_user(frame.filename):
            del shown[:start]  # what called the user's code is our machinery
            break
    spare = sum(not is_user(f.filename) for f in shown) - LIBRARY_MAX
    out = _Stack()
    for frame in shown:
        if spare > 0 and not is_user(frame.filename):
            spare -= 1
            if out and isinstance(out[-1], int):
                out[-1] += 1
            else:
                out.append(1)
        else:
            out.append(frame)
    return out


def _prune_all(made, seen):
    if made is None or id(made) in seen:
        return
    seen.add(id(made))
    made.stack = _prune(made.stack)
    _prune_all(made.__cause__, seen)
    _prune_all(made.__context__, seen)
    for inner in getattr(made, "exceptions", None) or ():
        _prune_all(inner, seen)
