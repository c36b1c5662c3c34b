"""Every console example of README.md and docs/*.md does what the page says.

A line that starts with "$ " is run by bash, "> " goes on with it; what follows is what it prints,
standard error included, and "[exit N]" its status if that is not 0. "..." stands for anything within
a line, and for any lines where it stands alone. A page that speaks to localhost:8000 has a server of
its own, and one shell from its top to its end.
"""

import os
import re
import subprocess
import tempfile

import pytest

from support.retort import BUILD, REPO as ROOT
from support.server import Server

SERVED = "localhost:8000"
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


def is_served(page):
    return any(SERVED in block for block in BLOCK.findall(page.read_text()))


def pages(served):
    return [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
            if is_served(page) == served]


def examples():
    for page in pages(served=False):
        for number, block in enumerate(BLOCK.findall(page.read_text()), 1):
            yield pytest.param(commands(block), id=f"{page.name}-{number}")


def pattern(expected):
    return "".join(
        r"(?:.*\n)*" if line.strip() == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n"
        for line in expected.splitlines())


@pytest.fixture
def place():
    """An empty folder. Unlike pytest's own it can be reached by the user that a server becomes."""
    with tempfile.TemporaryDirectory(prefix="retort-docs-") as path:
        os.chmod(path, 0o755)
        yield path


@pytest.mark.parametrize("steps", examples())
def test_example(steps, place):
    for command, expected in steps:
        done = subprocess.run(["bash", "-c", command], cwd=place, text=True, timeout=100,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"})
        said = done.stdout + (f"[exit {done.returncode}]\n" if done.returncode else "")
        assert re.fullmatch(pattern(expected), said), f"$ {command}\n{said}\nnot:\n{expected}"


def say(shell, command):
    """What the shell prints for one command, its status included."""
    shell.stdin.write(command + "\nprintf '\\n<%s>\\n' $?\n")
    shell.stdin.flush()
    said = ""
    for line in shell.stdout:
        if ended := re.fullmatch(r"<(\d+)>\n", line):
            break
        said += line
    said = said[:-1]  # the newline before the status
    if said and not said.endswith("\n"):
        said += "\n"
    return said if ended[1] == "0" else f"{said}[exit {ended[1]}]\n"


@pytest.mark.parametrize("page", pages(served=True), ids=lambda page: page.name)
def test_served_page(page, place):
    os.mkdir(f"{place}/work")
    with Server("--log-level", "warn", "--model-script", "-", "--preload", "", "--ready", "1", small=False) as server, subprocess.Popen(
            ["bash"], cwd=f"{place}/work", text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"}) as shell:
        for block in BLOCK.findall(page.read_text().replace(SERVED, f"localhost:{server.port}")):
            for command, expected in commands(block):
                said = say(shell, command)
                assert re.fullmatch(pattern(expected), said), f"$ {command}\n{said}\nnot:\n{expected}"


def test_there_are_examples():
    assert len(list(examples())) >= 10
