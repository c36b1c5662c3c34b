"""The guest's numbers are those of the header."""

import re

from harness import TOP, wire


def header():
    """Names and numbers of the enums in wire.h."""
    text = (TOP / "src/wire/wire.h").read_text()
    found = {}
    for body in re.findall(r"enum \w+ \{(.*?)\}", re.sub(r"/\*.*?\*/", "", text, flags=re.S), re.S):
        value = -1
        for name, number in re.findall(r"(\w+)(?:\s*=\s*(\w+))?\s*(?:,|$)", body):
            value = int(number, 0) if number else value + 1
            found[name] = value
    return found


def test_numbers_agree():
    theirs = header()
    ours = {name: value for name, value in vars(wire).items() if name.startswith(("MSG_", "TAG_"))}
    assert ours["MSG_CELL"] == 0x10 and ours["TAG_CELL_NO"] == 16
    assert ours == {name: theirs.get(name) for name in ours}


def test_all_that_a_kernel_may_say_is_there():
    names = {name for name, value in header().items()
             if name.startswith("MSG_") and 0x10 <= value < 0x30}
    assert names == {name for name in vars(wire) if name.startswith("MSG_")}
