"""What README.md and docs/ point at is there, and the demo's data is what its maker makes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)|<(?:img|a)[^>]+(?:src|href)=\"([^\"]+)\"")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)


def anchor(heading):
    """The name GitHub gives a heading."""
    words = re.sub(r"[^\w\s-]", "", re.sub(r"[`*]", "", heading).lower())
    return re.sub(r"\s", "-", words.strip())


def anchors(page):
    text = FENCE.sub("", page.read_text())
    return {anchor(h) for h in re.findall(r"^#+ +(.+)$", text, re.M)}


def links():
    for page in PAGES:
        for found in LINK.findall(FENCE.sub("", page.read_text())):
            target = found[0] or found[1]
            if not re.match(r"[a-z]+:", target):
                yield pytest.param(page, target, id=f"{page.relative_to(ROOT)}:{target}")


@pytest.mark.parametrize(("page", "target"), links())
def test_link_resolves(page, target):
    path, _, fragment = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    assert file.exists(), f"{page.name} links to {target}, which does not exist"
    assert file.is_relative_to(ROOT), f"{page.name} links out of the tree: {target}"
    if fragment and file.suffix == ".md":
        assert fragment in anchors(file), f"{file.name} has no heading #{fragment}"


def test_every_page_is_linked_from_the_readme():
    linked = {(ROOT / t.partition("#")[0]).resolve() for p, t in (param.values for param in links())
              if p.name == "README.md" and t.partition("#")[0]}
    assert {p.name for p in (ROOT / "docs").glob("*.md") if p not in linked} == set()


def test_every_room_is_described():
    rooms = set(re.findall(r"^\| `src/(\w+)/", (ROOT / "CONTRIBUTING.md").read_text(), re.M))
    assert rooms == {p.name for p in (ROOT / "src").iterdir() if p.is_dir()}


def dev_verbs():
    return set(re.findall(r"^verb_(\w+)\(\)", (ROOT / "dev").read_text(), re.M))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_verbs_named_are_verbs(page):
    named = set(re.findall(r"\./dev (\w+)", page.read_text()))
    assert named <= dev_verbs(), f"{page.name} names verbs that ./dev does not have"


def test_readme_has_its_two_commands():
    blocks = re.findall(r"^```\w*\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    commands = {line.split("#")[0].strip() for block in blocks for line in block.splitlines()}
    assert {"./dev run", "./dev test"} <= commands


def test_help_lists_every_verb():
    shown = subprocess.run([ROOT / "dev", "help"], capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^  (\w+)", shown, re.M)) == dev_verbs()


def test_demo_data_is_what_its_maker_makes():
    made = subprocess.run(
        [sys.executable, ROOT / "demo" / "make_rides.py"], capture_output=True, text=True, check=True
    ).stdout
    assert made == (ROOT / "demo" / "rides.csv").read_text()
