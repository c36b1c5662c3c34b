"""pip in a session: packages go below the home directory, and are found there.

The interpreter and its packages are read-only for a session, and shared by all. What pip installs
goes to ~/.local, as it does for an ordinary user: into the user site, which pip chooses by itself
where it may not write elsewhere, and into a prefix for a virtual environment, which has none.
"""

import importlib
import os
import re
import subprocess
import sys

SHUT = ("pip: there is no network in this session, so nothing can be downloaded. Use a pool with "
        "egress = allow-list and egress-hosts = pypi.org, files.pythonhosted.org; or have the "
        "package installed for everybody, in the Python of this pool.")
INDEX = ["https://pypi.org/", "https://files.pythonhosted.org/"]
BIN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/bin"  # ours: pip; in last, python

_PIP = re.compile(r"-m pip (?:install|download)\b")
_OPTIONS = {
    "PIP_BREAK_SYSTEM_PACKAGES": "1",  # Debian forbids what would change the system; this does not
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_CACHE_DIR": "1",
    "PIP_NO_WARN_SCRIPT_LOCATION": "1",
    "PIP_RETRIES": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
}


def _base():
    return os.path.join(os.path.expanduser("~"), ".local")


def folder():
    """Where packages are that this session has installed."""
    return os.path.join(_base(), "lib", "python%d.%d" % sys.version_info[:2], "site-packages")


def install():
    """In the zygote: cells and commands inherit it."""
    os.environ.update(_OPTIONS)
    places = [BIN, *os.environ.get("PATH", os.defpath).split(":"), BIN + "/last", _base() + "/bin"]
    if sys.prefix != sys.base_prefix:
        os.environ["PIP_PREFIX"] = _base()
        os.environ["PYTHONPATH"] = folder()
    os.environ["PATH"] = ":".join(places)


def refresh():
    """Makes importable what has been installed since: before a cell, after a program."""
    place = folder()
    if not os.path.isdir(place):
        return
    if place not in sys.path:
        # Before those of the system, as in any Python: what was installed last is what is meant. Not
        # by site.addsitedir(), which runs what stands in .pth files: no file that earlier code has left
        # runs by itself in the next interpreter.
        at = next((i for i, path in enumerate(sys.path) if path.endswith("-packages")), len(sys.path))
        sys.path.insert(at, place)
    importlib.invalidate_caches()


def indexes(words):
    """Where this call of pip looks for packages: (host, port) of each index."""
    import urllib.parse  # here: a zygote has no use for it

    urls = re.findall(r"(?:^| )(?:-i|--(?:extra-)?index-url)[ =](\S+)", " ".join(words))
    if not urls:
        done = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True)
        urls = re.findall(r"index-url='([^']+)'", done.stdout)
    parts = [urllib.parse.urlsplit(url) for url in urls or INDEX]
    return [(u.hostname, u.port or (80 if u.scheme == "http" else 443)) for u in parts if u.hostname]


def refusal(proxy, host, port):
    """What the way out says to a connection that it does not make, or ""."""
    import http.client
    import urllib.parse

    way = urllib.parse.urlsplit(proxy)
    asked = http.client.HTTPConnection(way.hostname, way.port, timeout=10)
    try:
        asked.request("CONNECT", "%s:%d" % (host, port))
        answer = asked.getresponse()
        return answer.reason if answer.status == 403 else ""
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        asked.close()


def why(words):
    """The sentence for a pip that has failed because of the network, or ""."""
    proxy = os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy")
    if not proxy:
        return SHUT
    said = filter(None, (refusal(proxy, *index) for index in indexes(words)))
    return "".join("pip: %s, so nothing can be downloaded from there." % reason for reason in list(said)[:1])


def explain(command, status):
    """After a program: why pip has failed, where the network is shut or does not lead to the index."""
    if status and _PIP.search(command):
        said = why(command.split())
        if said:
            print(said, file=sys.stderr)


if __name__ == "__main__":
    sentence = why(sys.argv[1:])
    if sentence:
        print(sentence)
