"""What IPython shows, as messages: display(), clear_output() and the value of a cell."""

import base64
import binascii
import json
import re
import sys

from IPython.core import formatters
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher

from . import figures, preview
from .errors import cut
from .link import link
from .wire import (FLAG_UPDATE, FLAG_WAIT, MSG_CLEAR, MSG_DISPLAY, MSG_RESULT, TAG_DATA,
                   TAG_DISPLAY_ID, TAG_FLAGS, TAG_METADATA, TAG_MIME)

BUNDLE_MAX = 8 * 1024 * 1024
METADATA_MAX = 16 * 1024
PLAIN = "text/plain"

# IPython carries these as base64 text or as bytes, depending on who made them.
_BINARY = ("image/", "audio/", "video/", "font/", "application/pdf", "application/octet-stream")

# Types that have text and nothing else to show, unless someone registers more for them.
_TEXT_ONLY = frozenset((bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset))


def _data(mime, value):
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if not isinstance(value, str):
        value = _json(value)
    elif mime.startswith(_BINARY) and not mime.split(";")[0].endswith("+xml"):
        try:
            return base64.b64decode("".join(value.split()), validate=True)
        except (binascii.Error, ValueError):
            pass
    return value.encode("utf-8", "backslashreplace")


def _json(value):
    try:
        return json.dumps(value, default=str, allow_nan=False)
    except ValueError:  # NaN and infinity are not JSON
        text = json.dumps(value, default=str, skipkeys=True)
        return json.dumps(json.loads(text, parse_constant=lambda name: None))


# What the server takes for a MIME type; an object with another one in its bundle loses that part.
_MIME = re.compile(r"[!#-.0-\[\]-~]{1,60}/[!#-\[\]-~]([ !#-\[\]-~]{0,58}[!#-\[\]-~])?\Z")
PARTS_MAX = 32


def bundle(data, metadata=None):
    """The MIME, DATA and METADATA fields of a bundle, at most BUNDLE_MAX bytes."""
    parts = {str(mime): _data(str(mime), value) for mime, value in data.items()
             if value is not None and _MIME.match(str(mime))}
    preview.add(parts)
    if sum(map(len, parts.values())) > BUNDLE_MAX:
        _shrink(parts)
    out = []
    for mime, value in list(parts.items())[:PARTS_MAX]:
        out += [(TAG_MIME, mime.encode("utf-8", "backslashreplace")), (TAG_DATA, value)]
    if metadata:
        out += _metadata(metadata)
    return out


def _metadata(metadata):
    """Width, height, isolated: how to show the data. Never more important than the data."""
    try:
        text = _json(metadata).encode("utf-8")
    except Exception:  # keys that are no text, an object that contains itself
        return []
    return [(TAG_METADATA, text)] if 2 < len(text) <= METADATA_MAX else []


def _shrink(parts):
    if len(parts.get(PLAIN, b"")) > BUNDLE_MAX // 2:
        parts[PLAIN] = cut(parts[PLAIN], BUNDLE_MAX // 8)
    while sum(map(len, parts.values())) > BUNDLE_MAX:
        mime = max((m for m in parts if m != PLAIN), key=lambda m: len(parts[m]))
        note = "%s of %d bytes left out: the limit is %d bytes" % (
            mime, len(parts.pop(mime)), BUNDLE_MAX)
        print("display: " + note, file=sys.stderr)
        parts.setdefault(PLAIN, note.encode())  # an empty display would say nothing


def _rich(formatter):
    """All formatters but the one for plain text."""
    yield formatter.ipython_display_formatter
    yield formatter.mimebundle_formatter
    for mime, each in formatter.formatters.items():
        if mime != PLAIN:
            yield each


class DisplayFormatter(formatters.DisplayFormatter):  # the name is what %config takes
    def format(self, obj, include=None, exclude=None):
        data, metadata = super().format(obj, include=include, exclude=exclude)
        figures.add(obj, metadata)
        return data, metadata


class Publisher(DisplayPublisher):
    def publish(self, data, metadata=None, transient=None, update=False):
        # As in a Jupyter kernel: display() passes on what it does not know, so a word that nobody
        # knows is a TypeError here.
        fields = bundle(data, metadata)
        ident = (transient or {}).get("display_id")
        if ident is not None:
            fields.append((TAG_DISPLAY_ID, str(ident).encode("utf-8", "backslashreplace")))
        fields.append((TAG_FLAGS, FLAG_UPDATE if update else 0))
        if not link.ask(MSG_DISPLAY, fields) and PLAIN in data:
            print(data[PLAIN])

    def clear_output(self, wait=False):
        link.ask(MSG_CLEAR, [(TAG_FLAGS, FLAG_WAIT if wait else 0)])


class Hook(DisplayHook):
    exec_result = None  # a trait in the base class, assigned twice per cell at 6 us each

    def quiet(self):
        # The question costs a tokenizer run over the whole cell; most cells have no ';'.
        history = self.shell.history_manager.input_hist_parsed
        return ";" in history[-1] and bool(super().quiet())

    def compute_format_data(self, result):
        formatter = self.shell.display_formatter
        kind = type(result)
        if kind in _TEXT_ONLY and not any(kind in each.type_printers for each in _rich(formatter)):
            # Asking twelve formatters in turn costs 150 us.
            return {PLAIN: formatter.formatters[PLAIN](result)}, {}
        return formatter.format(result)

    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        fields = bundle(format_dict, md_dict)
        if fields and not link.tell(MSG_RESULT, fields) and PLAIN in format_dict:
            print(format_dict[PLAIN])

    def finish_displayhook(self):
        pass
