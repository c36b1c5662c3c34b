"""Every console example of README.md and docs/*.md does what the page says.

A line that starts with "$ " is run by bash, "> " goes on with it; what follows is what it prints,
standard error included, and "[exit N]" its status if that is not 0. "..." stands for anything within
a line, and for any lines where it stands alone.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("RETORT_BIN", ROOT / "build" / "retort")).parent
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)


def commands(block):
    """[command, expected output] of each "$ " line."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], ""])
        elif line.startswith("> ") and not found[-1][1]:
            found[-1][0] += "\n" + line[2:]
        else:
            found[-1][1] += line + "\n"
    return found


def examples():
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for number, block in enumerate(BLOCK.findall(page.read_text()), 1):
            yield pytest.param(commands(block), id=f"{page.name}-{number}")


def pattern(expected):
    return "".join(
        r"(?:.*\n)*" if line.strip() == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n"
        for line in expected.splitlines())


@pytest.mark.parametrize("steps", examples())
def test_example(steps, tmp_path):
    for command, expected in steps:
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, text=True, timeout=100,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"})
        said = done.stdout + (f"[exit {done.returncode}]\n" if done.returncode else "")
        assert re.fullmatch(pattern(expected), said), f"$ {command}\n{said}\nnot:\n{expected}"


def test_there_are_examples():
    assert len(list(examples())) >= 10
