"""A room includes, and is linked with, the rooms that CONTRIBUTING.md names beside it."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
DOORS = "doors/*"
ROW = re.compile(r"^\| `src/([\w/*]+)/` \|[^|]*\|([^|]*)\|$", re.M)
LIBRARY = re.compile(r"^(\w+) = static_library\('\1',.*?link_with: \[([^\]]*)\]", re.S | re.M)


def short(room):
    return room.removeprefix("doors/")


def table():
    uses = {}
    for room, named in ROW.findall((ROOT / "CONTRIBUTING.md").read_text()):
        words = {w for w in re.split(r"[,\s]+", named) if w}
        uses[short(room)] = set(uses) if words == {"all", "above"} else words
    return uses


def room_of(path):
    parts = Path(path).parts
    return parts[1] if parts[0] == "doors" else parts[0]


def included():
    uses = {}
    for path in SRC.rglob("*.[ch]"):
        mine = room_of(path.relative_to(SRC))
        named = re.findall(r'^#include "([\w/.]+)"', path.read_text(), re.M)
        uses.setdefault(mine, set()).update(room_of(n) for n in named if room_of(n) not in (mine, "base"))
    del uses["main.c"]
    return uses


def is_door(room):
    return (SRC / "doors" / room).is_dir() and room not in table()


def against(found):
    rows = table()
    doors = {r for r in found if is_door(r)}
    for room, uses in found.items():
        if is_door(room):
            assert uses <= rows["*"], f"doors/{room} uses {uses - rows['*']}"
        elif room == "cli":
            assert uses <= (rows["cli"] - {"*"}) | doors, f"cli uses {uses - rows['cli'] - doors}"
        else:
            assert uses == rows[room], f"{room} uses {sorted(uses)}, and the table says {sorted(rows[room])}"


def test_includes():
    found = included()
    assert set(table()) - {"*"} <= set(found) | {"base"}
    against(found)


def test_libraries():
    against({room: set(re.findall(r"\w+", named)) - {"base"}
             for room, named in LIBRARY.findall((SRC / "meson.build").read_text())})


def test_work_of_doors():
    """service_free() waits for service_work(), not for loop_work(): what a worker of a door touches may be gone."""
    on_the_loop = {str(p.relative_to(SRC)) for p in (SRC / "doors").rglob("*.[ch]")
                   if re.search(r"\bloop_work(?:_for)?\(", p.read_text())}
    assert on_the_loop == {"doors/http/server.c"}  # malloc_trim() alone, with nothing to tell
