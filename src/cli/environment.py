"""Fills the folder of an environment: python3 -c THIS FOLDER PACKAGES WHEELS OFFLINE SYSTEM, the last two 0 or 1.

Makes a virtual environment of the Python that runs this, installs what the file PACKAGES names,
imports each package, and writes FOLDER/retort.json: only then is the environment ready. What is
there already is kept, so a second call goes on where the first was interrupted. Progress goes to
standard error; the last line of standard output is one sentence: what is there now, or why it
failed.
"""

import collections
import importlib.util
import json
import os
import re
import subprocess
import sys

# Sessions run their cells with these.
OF_SESSIONS = {"IPython": "ipython", "matplotlib_inline": "matplotlib-inline"}

# What pip prints, and what to tell of it; the first that matches.
TROUBLES = [
    (r"No space left on device|Errno 28", "the disk is full"),
    (r"NewConnectionError|name resolution|Network is unreachable|Connection refused|ConnectTimeout|Read timed out",
     "the package index does not answer; without a network give a folder of wheels with --wheels DIR --offline"),
    (r"(?:No matching distribution found for|that satisfies the requirement) (\S+)", "there is no package {} for this Python"),
    (r"Invalid requirement: (.+)", "the list of packages has a line that is no package: {}"),
    (r"Failed building wheel for (\S+)", "package {} has no wheel for this Python, and could not be built"),
    (r"ERROR: (.+)", "{}"),
]

# Runs in the new environment: the names of modules that a distribution installs, and whether each imports.
IMPORTS = """
import importlib, importlib.metadata as metadata, json, re, sys
def modules_of(name):
    of = metadata.distribution(name)
    named = (of.read_text("top_level.txt") or "").split()
    if not named:
        named = {f.parts[0].split(".")[0] for f in of.files or () if f.suffix in (".py", ".so", ".pyd")}
    found = [n for n in sorted(set(named)) if n.isidentifier() and not n.startswith("_")]
    apart = [n for n in found if n.lower() not in ("tests", "test", "docs", "examples", "benchmarks")]
    return apart or found
for name in sys.argv[1:]:
    for module in modules_of(name):
        try:
            importlib.import_module(module)
            print("ok", name, module, flush=True)
        except BaseException as e:
            print("bad", name, module, type(e).__name__ + ":", str(e).splitlines()[0] if str(e) else "", flush=True)
"""


# So does this: pip's version, and which of the modules named are not there.
ASKS = """
import importlib.metadata as metadata, importlib.util, json, sys
try: pip = metadata.version("pip")
except metadata.PackageNotFoundError: pip = ""
print(json.dumps([pip, [name for name in sys.argv[1:] if not importlib.util.find_spec(name)]]))
"""


def end(sentence, status=1):
    print(sentence, flush=True)
    sys.exit(status)


def say(text):
    print(text, file=sys.stderr, flush=True)


def follow(command):
    """Runs a command and shows what it prints; the last lines, or None when it went well."""
    last = collections.deque(maxlen=200)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          text=True, errors="replace") as process:
        for line in process.stdout:
            say(line.rstrip("\n"))
            last.append(line)
    return "".join(last) if process.returncode else None


def absent(said, wheels, offline, missing):
    """What else to say when pip finds no such package: where it looked, and what is there."""
    name = re.search(r"(?:No matching distribution found for|that satisfies the requirement) (\S+)", said)
    if not name or not offline:
        return ""
    if name[1] in missing:
        return "; IPython and matplotlib-inline run the cells: add it to the wheels, or use --system-packages"
    there = re.search(r"\(from versions: (?!none\))([^)]*)\)", said)
    place = f" in {wheels}" if wheels else ""
    return place + (f"; there is {there[1]}" if there else "; with --offline no index is asked")


def why(said):
    for pattern, sentence in TROUBLES:
        if found := re.search(pattern, said):
            return sentence.format(*found.groups())
    return "pip failed: " + (said.strip().splitlines() or ["it says nothing"])[-1]


def names_in(file):
    """The distributions that a requirements file names, without those of files it includes."""
    with open(file, encoding="utf-8-sig") as lines:
        words = (re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:[\[<>=!~;@ #].*)?$", line) for line in lines)
        return [word[1] for word in words if word]


def ask(python):
    """(version of pip, packages to install for the sessions) of an environment: what it has of its base's."""
    done = subprocess.run([python, "-I", "-c", ASKS, *OF_SESSIONS], stdout=subprocess.PIPE, text=True)
    pip, missing = json.loads(done.stdout or '["", []]')
    return tuple(map(int, re.findall(r"\d+", pip)[:2])), [OF_SESSIONS[module] for module in missing]


def names_of(report):
    """The distributions that the list asked for by a path, an address or another list, from pip's report."""
    try:
        with open(report, encoding="utf-8") as file:
            rows = json.load(file)["install"]
        os.unlink(report)
    except FileNotFoundError:
        return []
    return [row["metadata"]["name"] for row in rows if row["requested"]]


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def main(folder, packages, wheels, offline, system):
    os.umask(0o022)  # sessions are other users
    if not all(map(importlib.util.find_spec, ("venv", "ensurepip"))):
        end("this Python has no module venv; install python3-venv, or name another Python with --base")
    try:
        names = names_in(packages)
    except (OSError, UnicodeDecodeError) as e:
        end(f"cannot read the list of packages {packages}: {getattr(e, 'strerror', None) or e}")

    say(f"making {folder}")
    flags = ["--system-site-packages"] if system == "1" else []
    if flags and importlib.util.find_spec("pip"):
        flags.append("--without-pip")  # the base's own is there, and a second one takes seconds
    if said := follow([sys.executable, "-m", "venv", *flags, folder]):
        end(why(said))
    python = os.path.join(folder, "bin", "python")
    pip, missing = ask(python)
    command = [python, "-I", "-m", "pip", "install", "--disable-pip-version-check", "--no-input",
               "--progress-bar", "off", "--prefer-binary", "-r", packages, *missing]
    command += ["--find-links", wheels] if wheels else []
    command += ["--no-index"] if offline == "1" else []
    report = os.path.join(folder, "report.json")
    if pip >= (22, 2):  # before that it cannot write what it installs to a file
        command += ["--report", report]
    say(f"installing {len(names)} package{'' if len(names) == 1 else 's'}" if names else "installing")
    if said := follow(command):
        end(why(said) + absent(said, wheels, offline == "1", missing))
    named = {*map(plain, names), *missing}
    names += [name for name in names_of(report) if plain(name) not in named]
    if not names:
        end(f"the list {packages} names no package; write one package per line")

    say("importing them")
    tried = subprocess.run([python, "-I", "-c", IMPORTS, *names], stdout=subprocess.PIPE, text=True, cwd="/",
                           stdin=subprocess.DEVNULL)
    rows = [line.split(" ", 3) for line in tried.stdout.splitlines() if line.startswith(("ok ", "bad "))]
    for _, name, module, trouble in (row for row in rows if row[0] == "bad"):
        say(f"{name}: import {module} fails: {trouble}")
    bad = sorted({row[1] for row in rows if row[0] == "bad"})
    good = {row[1] for row in rows if row[0] == "ok"} - set(bad)
    if bad:
        end(f"cannot import {', '.join(bad)}; mend the list of packages, and call this again")
    if tried.returncode:
        end("an import ended the interpreter; leave out packages until it works, and call this again")

    made = {"python": "%d.%d.%d" % sys.version_info[:3], "packages": sorted(names, key=str.lower),
            "modules": sorted(row[2] for row in rows)}
    with open(os.path.join(folder, "retort.json.new"), "w") as file:
        json.dump(made, file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(file.name, os.path.join(folder, "retort.json"))
    end(f"{len(good)} package{' imports' if len(good) == 1 else 's import'} in Python {made['python']}", 0)


try:
    main(*sys.argv[1:])
except OSError as e:
    end("the disk is full" if e.errno == 28 else f"{e.filename or 'the new environment'}: {e.strerror}")
except KeyboardInterrupt:
    end("interrupted; call this again to go on")
