"""A file or function that a comment or a page names exists, and the name of a type means one thing."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [p for top in ("src", "tests", "fuzz", "bench") for p in sorted((ROOT / top).rglob("*.[ch]"))]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md", ROOT / "README.md"]
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
FUNCTION = re.compile(r"(?<![\w>])([A-Za-z]\w*)\(\)(?: in ([\w/]+\.c))?")
FILE = re.compile(r"(?<![\w/.*<>{-])([\w/-]+\.(?:c|h|py))\b")
TYPE = re.compile(r"\b(?:struct|union|enum)\s+(\w+)\s*\{|\b(?:S?TAILQ|S?LIST)_HEAD\((\w+),")
OF_THE_SYSTEM = {"close_range", "inet_aton", "json_loadfd"}  # named, and not called


def code_of(text):
    return COMMENT.sub(" ", STRING.sub('""', text))


def called(code):
    return set(re.findall(r"(\w+)\)?\s*\(", code))


CODE = {p: called(code_of(p.read_text())) for p in SOURCES}
PYTHON = [p for top in ("src", "tests") for p in (ROOT / top).rglob("*.py") if p != Path(__file__)]
FUNCTIONS = OF_THE_SYSTEM.union(*CODE.values(), *(called(p.read_text()) for p in PYTHON))
FILES = [str(p.relative_to(ROOT)) for top in ("src", "tests", "fuzz", "bench", "docs", "skills")
         for p in (ROOT / top).rglob("*") if p.suffix in (".c", ".h", ".py")]


def files_called(name):
    return [f for f in FILES if f == name or f.endswith("/" + name)]


def wrong_in(prose):
    for name, file in FUNCTION.findall(prose):
        if name not in FUNCTIONS and "NAME" not in name:
            yield f"{name}()"
        elif file and not any(name in CODE.get(ROOT / f, ()) for f in files_called(file)):
            yield f"{name}() in {file}"
    yield from (f for f in FILE.findall(prose) if not files_called(f) and "NAME" not in f)


def test_comments():
    wrong = [f"{path.relative_to(ROOT)}:{text[:m.start()].count(chr(10)) + 1}: {name}"
             for path in SOURCES for text in [path.read_text()]
             for m in COMMENT.finditer(text) for name in wrong_in(m[0])]
    assert not wrong


def test_pages():
    quoted = [(path.name, quote) for path in PAGES for quote in re.findall(
        r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", path.read_text(), flags=re.S | re.M))]
    assert not [(page, name) for page, quote in quoted for name in wrong_in(quote)
                if not name.endswith(".py") or name.startswith(("src/", "tests/"))]


def types_in(code):
    return [a or b for a, b in TYPE.findall(code_of(code))]


def test_types():
    """A search for `struct session {` finds one place in src."""
    places = {}
    for path in sorted((ROOT / "src").rglob("*.[ch]")):
        for name in types_in(path.read_text()):
            places.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert len(places) > 300
    assert not {name: found for name, found in places.items() if len(found) > 1}


def test_the_check_of_types():
    assert types_in("""
        struct one {int a; struct two *b; enum three {A} c;};
        static const struct four { const char *text; } rows[] = {{"struct five {"}}; /* struct six { */
        STAILQ_HEAD(seven, one);
    """) == ["one", "three", "four", "seven"]


@pytest.mark.parametrize(("prose", "wrong"), [
    ("loop_run() in loop.c turns", []),
    ("loop_run() in buf.c turns", ["loop_run() in buf.c"]),
    ("nobody_ever_wrote_this() and there_is_no_such.c", ["nobody_ever_wrote_this()", "there_is_no_such.c"]),
])
def test_the_check_itself(prose, wrong):
    assert list(wrong_in(prose)) == wrong
