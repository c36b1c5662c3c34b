"""Clients of Azure dynamic sessions.

Some want TLS: they trust the certificate of the tests.
"""

import base64
import json
import shutil
import ssl

import pytest

from rows import python
from support.server import Server, folder
from support.web import CERTIFICATE

SESSIONS = [
    python("langchain-azure-dynamic-sessions", "langchain-azure-dynamic-sessions", "langchain_sessions.py"),
    python("semantic-kernel", "semantic-kernel", "semantic_kernel_sessions.py"),
    python("autogen-ext", "autogen-ext", "autogen_sessions.py"),
]
PNG = b"\x89PNG\r\n\x1a\n"
PLOT = "import matplotlib.pyplot as plt\nplt.plot([3, 1, 2])\nplt.show()"
USE = ("import csv\nopen('/mnt/data/out.txt', 'w').write('total ' + str(sum(int(r['n']) for r in "
       "csv.DictReader(open('/mnt/data/in.csv')))))")


@pytest.fixture(scope="module")
def trust():
    """The variables by which clients learn of the certificate; the file is one that everybody may read."""
    place = folder()
    shutil.copy(CERTIFICATE, place / "ca.pem")
    (place / "ca.pem").chmod(0o644)
    yield {name: str(place / "ca.pem") for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")}
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def base(trust):
    """The address of a server with TLS."""
    tls = ssl.create_default_context(cafile=CERTIFICATE)
    tls.check_hostname = False
    pem = trust["SSL_CERT_FILE"]
    with Server("--memory", "1G", "--tls-cert", pem, "--tls-key", pem, tls=tls) as one:
        yield f"https://127.0.0.1:{one.port}"


def cases(rows, checks):
    """(row, case) for each check of a client; some clients can do less than others."""
    return pytest.mark.parametrize(("row", "case"), [
        pytest.param(row, case, id=f"{row.id}-{case}") for row in rows
        for case in checks if case not in LACKS.get(row.client, ())])


# What a client does not offer at all.
LACKS = {"semantic-kernel": {"tool_call", "end", "functions", "packages", "restart"},
         "autogen-ext": {"tool_call", "end"},
         "langchain-azure-dynamic-sessions": {"functions", "packages", "restart"}}


# --- sessions: one check for each case, what the driver saw ---

def check_run(seen):
    if "text" in seen:
        assert seen == {"text": "counting\n42", "status": 0}
    else:
        assert (seen["result"], seen["stdout"], seen["stderr"]) == (42, "counting\n", "")


def check_state(seen):
    assert str(seen).strip() == "12"


def check_plot(seen):
    """Base64 alone, or in what the client makes of the answer."""
    found = seen.split("'base64_data': '")[-1].split("'")[0]
    assert base64.b64decode(found).startswith(PNG)


def check_files(seen):
    assert {"in.csv", "out.txt"} <= set(seen["listed"]) and seen["read"] == "total 13"
    assert seen.get("sent", ["in.csv", 6]) == ["in.csv", 6]


def check_error(seen):
    assert "ZeroDivisionError: division by zero" in seen


def check_tool_call(seen):
    """The image goes beside the text, not into it."""
    assert json.loads(seen["content"])["result"] == {"type": "image", "format": "png"} and seen["artifact"] == "png"


def check_end(seen):
    assert seen == []


def check_functions(seen):
    assert seen == "3.5\n"


def check_packages(seen):
    assert {"numpy", "pandas", "matplotlib"} <= set(seen)


def check_restart(seen):
    assert seen != 0


SESSION_CHECKS = {name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")}


@cases(SESSIONS, SESSION_CHECKS)
def test_sessions(row, case, base, trust, place, walked):
    ask = {"pool": base + "/azure/pools/default", "plot": PLOT, "use": USE}
    SESSION_CHECKS[case](walked(row, "sessions", lambda: row.run(ask, place, **trust))[case])
