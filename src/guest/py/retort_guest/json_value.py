"""A value as JSON, with its labels. What JSON cannot express becomes text, and a note says so."""

import base64
import collections.abc
import dataclasses
import enum
import itertools
import re

DEPTH = 48  # the server reads 64 levels; tables and the envelope need a few
ITEMS = 240_000  # the server reads 250,000 values and names
INT_BITS = 63

# Text is what these are written as, so nothing is lost.
_TEXTS = {"decimal.Decimal", "fractions.Fraction", "builtins.complex", "uuid.UUID",
          "datetime.timedelta", "datetime.timezone", "zoneinfo.ZoneInfo", "pathlib.PosixPath",
          "pathlib.PurePosixPath", "pandas._libs.tslibs.period.Period",
          "pandas._libs.interval.Interval", "pandas._libs.tslibs.timedeltas.Timedelta"}
_UNSAYABLE = re.compile("[\0\ud800-\udfff]")
_NOTHING = {"pandas._libs.missing.NAType", "pandas._libs.tslibs.nattype.NaTType"}


class ResultTooLarge(Exception):
    pass


class Converter:
    def __init__(self):
        self.notes = []
        self._open = set()  # the ids of what is being looked into
        self._left = ITEMS

    def convert(self, value):
        self._left -= 1
        if self._left < 0:
            raise ResultTooLarge("the result has more than %d values: return a part or a summary "
                                 "of it, or write it to a file" % ITEMS)
        if isinstance(value, enum.Enum):
            value = value.value
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return self._int(int(value))
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, float):
            return self._float(float(value))
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self._bytes(bytes(value))
        return self._inside(value)

    def note(self, text):
        if text not in self.notes and len(self.notes) < 20:
            self.notes.append(text)

    # --- single values ---

    def _int(self, value):
        if -1 << INT_BITS <= value < 1 << INT_BITS:
            return value
        self.note("a whole number of more than 64 bits is given as text")
        try:
            return str(value)
        except ValueError:  # Python writes no more than some thousand digits
            return hex(value)

    def _float(self, value):
        if value != value:
            self.note("NaN is given as null")
            return None
        if value - value != 0:
            self.note("an infinite number is given as text")
            return "Infinity" if value > 0 else "-Infinity"
        return value

    def _text(self, value):
        text = str.__str__(value)
        if _UNSAYABLE.search(text):
            self.note("characters that JSON cannot carry (NUL, halves of a surrogate pair) are "
                      "replaced by \ufffd")
            text = _UNSAYABLE.sub("\ufffd", text)
        return text

    def _bytes(self, value):
        try:
            text = value.decode("utf-8")
            if "\0" not in text:
                return text
        except UnicodeDecodeError:
            pass
        self.note("bytes that are no text are given as base64")
        return base64.b64encode(value).decode("ascii")

    # --- values with others inside ---

    def _inside(self, value):
        if id(value) in self._open or len(self._open) >= DEPTH:
            self.note("a value that contains itself is given as text" if id(value) in self._open
                      else "what is nested more than %d levels deep is given as text" % DEPTH)
            return self._text(shown(value, repr))
        self._open.add(id(value))
        try:
            return self._known(value)
        finally:
            self._open.discard(id(value))

    def _known(self, value):
        kind = "%s.%s" % (type(value).__module__, type(value).__name__)
        if kind in _NOTHING:
            return None
        if kind in _TEXTS:
            return self._text(str(value))
        if kind == "pandas.core.frame.DataFrame":
            return self._frame(value)
        if kind == "pandas.core.series.Series":
            return self._series(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return self._pairs(zip(value._fields, value))
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return self._pairs((f.name, getattr(value, f.name, None))
                               for f in dataclasses.fields(value))
        if isinstance(value, collections.abc.Mapping):
            return self._pairs(value.items())
        if isinstance(value, (collections.abc.Set, collections.abc.Sequence,
                              collections.abc.ValuesView, collections.deque)):
            return [self.convert(v) for v in value]
        if isinstance(value, collections.abc.Iterator) and not hasattr(value, "read"):
            return [self.convert(v) for v in itertools.islice(value, ITEMS + 1)]
        return self._foreign(value)

    def _pairs(self, pairs):
        out = {}
        for key, value in pairs:
            name = self._name(key)
            if name in out:
                self.note("two keys are both written %s: the second has a number behind it"
                          % ascii(name[:80]))
                name = next(n for n in ("%s (%d)" % (name, i) for i in itertools.count(2))
                            if n not in out)
            out[name] = self.convert(value)
        return out

    def _name(self, key):
        self._left -= 1
        if isinstance(key, tuple):  # the levels of a label
            return ".".join(filter(None, map(self._name, key))) if key else "()"
        if isinstance(key, enum.Enum):
            key = key.value
        if isinstance(key, (bytes, bytearray)):
            return self._bytes(bytes(key))
        if hasattr(key, "isoformat") and not isinstance(key, type):
            return self._text(key.isoformat())
        return self._text(shown(key, str))

    def _foreign(self, value):
        if getattr(getattr(value, "dtype", None), "kind", "") in ("m", "M") \
                and type(value).__module__ == "numpy":
            return self.convert(value.astype(str).tolist())
        for name in ("tolist", "to_dict", "isoformat"):  # numpy, indexes of pandas, dates
            method = getattr(value, name, None)
            if callable(method) and not isinstance(value, type):
                try:
                    return self.convert(method())
                except ResultTooLarge:
                    raise
                except Exception:
                    break
        self.note("%s is given as text: it has no form in JSON" % type(value).__name__)
        return self._text(shown(value, str))

    # --- tables of pandas ---

    def _series(self, series):
        index = series.index
        if _is_numbered(index):
            return [self.convert(v) for v in series.tolist()]
        if index.nlevels == 1 and index.is_unique:
            return self._pairs(zip(index.tolist(), series.tolist()))
        name = "value" if series.name is None or series.name in index.names else series.name
        return self._frame(series.to_frame(name))

    def _frame(self, frame):
        """A record for each row; the labels of the rows, where they have some, are columns, too."""
        columns = list(frame.columns)
        cells = [frame.iloc[:, i].tolist() for i in range(len(columns))]
        if not _is_numbered(frame.index):
            names = [("index" if frame.index.nlevels == 1 else "level_%d" % i) if n is None else n
                     for i, n in enumerate(frame.index.names)]
            columns = names + columns
            cells = [frame.index.get_level_values(i).tolist() for i in range(len(names))] + cells
        return [self._pairs(zip(columns, row)) for row in zip(*cells)] if columns else \
            [{} for _ in range(len(frame))]


def _is_numbered(index):
    """Whether rows are merely counted."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1 \
        and index.name is None


def shown(value, how):
    try:
        return how(value)
    except Exception as error:
        return "<%s: %s while it was written>" % (type(value).__name__, type(error).__name__)
