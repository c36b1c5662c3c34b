"""The clients: a row for each published package, in one version. See conftest.py for what is done with them.

A driver is a small program in the client's own language. It reads one line of JSON, does what it is
asked with the client as it is published, and prints what it saw as one line of JSON. Whether that is
right is the caller's to say, so that drivers of the same protocol are judged by the same words.
"""

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import install

HERE = Path(__file__).parent
SECONDS = 240  # for one driver, on a slow machine

# How each kind of file says NAME at VERSION.
PINS = {".txt": r"^{}==(\S+)$", ".json": r'"node_modules/{}": {{\s+"version": "([^"]+)"', ".sum": r"^{} v(\S+) h1:",
        ".xml": r"<artifactId>{}</artifactId>\s+<version>([^<]+)<", ".lock": r'^name = "{}"\nversion = "([^"]+)"'}


@dataclass(frozen=True)
class Row:
    """pins: the file, below this folder, that names what is installed; driver: what is run there, with its arguments."""

    client: str
    language: str
    registry: str
    pins: str
    driver: tuple

    @property
    def path(self):
        return HERE / self.pins

    @property
    def version(self):
        name = re.escape(self.client.rpartition(":")[2])
        found = re.search(PINS[self.path.suffix].format(name), self.path.read_text(), re.M | re.I)
        assert found, f"{self.pins} does not name {self.client}"
        return found[1]

    @property
    def id(self):
        return f"{self.client}-{self.version}"

    def command(self):
        return COMMANDS[self.registry](install.install(self.registry, self.path), *self.driver)

    def run(self, ask, place, **env):
        """What the driver printed for what it was asked; place: an empty folder to work in."""
        command = [*map(str, self.command())]
        done = subprocess.run(command, input=json.dumps(ask) + "\n", cwd=place, capture_output=True, text=True,
                              timeout=SECONDS, env={**os.environ, **env})
        said = done.stdout.strip().splitlines()
        assert done.returncode == 0 and said, f"{command} ended with {done.returncode}:\n{done.stderr[-4000:]}"
        return json.loads(said[-1])


def node():
    """A newer one than Debian's."""
    return install.install("npm", HERE / "node/node/package-lock.json") / "node_modules/.bin/node"


# How what is installed in a folder is run.
COMMANDS = {
    "PyPI": lambda folder, driver, *more: (folder / "bin/python", HERE / "python" / driver, *more),
    "npm": lambda folder, driver, *more: (node(), HERE / "node" / driver, folder, *more),
    "Go modules": lambda folder, driver: (folder / driver,),
    "Maven Central": lambda folder, driver: ("java", "-cp", f"{folder}/classes:{folder}/lib/*", driver),
    "crates.io": lambda folder, driver: (folder / driver,),
}


def python(client, pins, *driver):
    return Row(client, "Python", "PyPI", f"python/{pins}.txt", driver)


def npm(client, pins, *driver):
    return Row(client, "TypeScript", "npm", f"node/{pins}/package-lock.json", driver)


def go(client, driver):
    return Row(client, "Go", "Go modules", "go/go.sum", (driver,))


def java(client, driver):
    """client: group:artifact."""
    return Row(client, "Java", "Maven Central", "java/pom.xml", (driver,))


def rust(client):
    return Row(client, "Rust", "crates.io", "rust/Cargo.lock", ("clients",))
