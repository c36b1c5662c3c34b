"""A machine without node: the program is built all the same, and a sentence stands in the place of the page."""

import os
import shlex
import subprocess
import sys

from support import retort
from support.server import Server

BUILD = retort.REPO / "build"
PAGE = retort.REPO / "src/doors/console/page.py"


def link_command():
    """How ninja links the program, which is where this one differs."""
    said = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", "-s", "retort"], capture_output=True, text=True, check=True)
    return shlex.split(said.stdout)


def test_the_page_is_left_out_and_said_so(tmp_path):
    bare = {**os.environ, "PATH": str(tmp_path)}
    made = subprocess.run([sys.executable, PAGE, tmp_path / "page.c", tmp_path / "page.d", retort.REPO / "web",
                           tmp_path / "no_modules", tmp_path / "work"], env=bare, capture_output=True, text=True, check=True)
    assert "the console is left out" in made.stderr
    subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-I", retort.REPO / "src", "-c", tmp_path / "page.c", "-o", tmp_path / "page.o"], check=True)
    command = link_command()
    out = command.index("-o")
    command[out:out + 2] = ["-o", str(BUILD / "retort-without-page"), str(tmp_path / "page.o")]
    subprocess.run(command, cwd=BUILD, check=True)
    try:
        with Server("--preload", "", program=BUILD / "retort-without-page") as server, server.client() as client:
            page = client.get("/", headers={"Accept": "text/html"}).expect(200)
            assert page.headers["content-type"].startswith("text/html")
            assert "This build has no console: node was not there" in page.text and "./dev build" in page.text
            assert client.get("/console/frame.html").status == 404
            assert client.post("/v1/execute", {"code": "6 * 7"}).expect(200).json["result"] == "42"
    finally:
        (BUILD / "retort-without-page").unlink()
