"""docs/a-request.md names a function per step; each must still be where it says."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "a-request.md"
STEP = re.compile(r"`([\w./-]+\.(?:c|h|py)):(\w+)`")
ENOUGH_STEPS = 10  # fewer is no walk through the house


def steps():
    return sorted(set(STEP.findall(PAGE.read_text())))


def defines(source, suffix, name):
    """Whether the source defines the function: a name, parameters, then a body."""
    if suffix == ".py":
        return re.search(rf"^\s*(?:async\s+)?def {name}\(", source, re.M) is not None
    # House style puts the opening brace of a function alone in column one, and nothing that
    # only calls or declares it stands at the start of a line with its type.
    return re.search(rf"^\w[\w\s*()]*?\b{name}\([^;{{}}]*\)\n{{", source, re.M) is not None


def test_the_page_walks_the_whole_house():
    assert len(steps()) >= ENOUGH_STEPS


@pytest.mark.parametrize(("path", "function"), steps(), ids=lambda v: v)
def test_step_exists(path, function):
    file = ROOT / path
    assert file.is_file(), f"{PAGE.name} names {path}, which does not exist"
    assert defines(file.read_text(), file.suffix, function), f"{path} does not define {function}()"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("int step(int a)\n{\n", True),
        ("static struct err *step(int a,\n                 int b)\n{\n", True),
        ("__attribute__((noreturn)) void step(void)\n{\n", True),
        ("int step(int a);\n\nint other(void)\n{\n", False),
        ("int other(void)\n{\n    step(1);\n}\n", False),
        ("int misstep(int a)\n{\n", False),
    ],
)
def test_the_check_itself(source, found):
    assert defines(source, ".c", "step") is found
