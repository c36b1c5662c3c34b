"""Clients of Azure dynamic sessions, and of Resource Manager, which makes their pools.

Some want TLS: they trust the certificate of the tests.
"""

import base64
import json
import shutil
import ssl

import pytest

from rows import npm, python
from servers import is_refusal, locked
from support import retort
from support.server import folder
from support.web import CERTIFICATE

SESSIONS = [
    python("langchain-azure-dynamic-sessions", "langchain-azure-dynamic-sessions", "langchain_sessions.py"),
    python("semantic-kernel", "semantic-kernel", "semantic_kernel_sessions.py"),
    python("autogen-ext", "autogen-ext", "autogen_sessions.py"),
    npm("@llamaindex/azure", "azure", "llamaindex_sessions.mjs"),
]
POOLS = [
    python("azure-mgmt-appcontainers", "azure-mgmt-appcontainers", "arm_pools.py"),
    npm("@azure/arm-appcontainers", "azure", "arm.mjs", "pools"),
]
# What was azure-mgmt-resource's and @azure/arm-resources' own has packages of its own now.
DEPLOYMENTS = [
    python("azure-mgmt-resource-deployments", "azure-mgmt-resource", "arm_deployments.py"),
    npm("@azure/arm-resourcesdeployments", "azure", "arm.mjs", "deployments"),
]
GROUPS = [npm("@azure/arm-resources", "azure", "arm.mjs", "groups")]
PNG = b"\x89PNG\r\n\x1a\n"
PLOT = "import matplotlib.pyplot as plt\nplt.plot([3, 1, 2])\nplt.show()"
USE = ("import csv\nopen('/mnt/data/out.txt', 'w').write('total ' + str(sum(int(r['n']) for r in "
       "csv.DictReader(open('/mnt/data/in.csv')))))")
TEMPLATE = retort.REPO / "tests/azure/template.json"
SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"


@pytest.fixture(scope="module")
def trust():
    """The variables by which clients learn of the certificate; the file is one that everybody may read."""
    place = folder()
    shutil.copy(CERTIFICATE, place / "ca.pem")
    (place / "ca.pem").chmod(0o644)
    yield {name: str(place / "ca.pem") for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")}
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def ask(trust):
    """What drivers are asked, of a server with TLS."""
    tls = ssl.create_default_context(cafile=CERTIFICATE)
    tls.check_hostname = False
    pem = trust["SSL_CERT_FILE"]
    with locked("--tls-cert", pem, "--tls-key", pem, tls=tls) as one:
        base = f"https://127.0.0.1:{one.port}"
        yield {"base": base, "key": one.key, "admin": one.admin, "subscription": SUBSCRIPTION, "pool": base + "/azure/pools/default",
               "plot": PLOT, "use": USE, "template": json.loads(TEMPLATE.read_text())}


def cases(rows, checks):
    """(row, case) for each check of a client; some clients can do less than others."""
    return pytest.mark.parametrize(("row", "case"), [
        pytest.param(row, case, id=f"{row.id}-{case}") for row in rows
        for case in checks if case not in LACKS.get(row.client, ())])


# What a client does not offer at all.
LACKS = {"semantic-kernel": {"tool_call", "end", "functions", "packages", "restart"},
         "autogen-ext": {"tool_call", "end"},
         "langchain-azure-dynamic-sessions": {"functions", "packages", "restart"},
         "@llamaindex/azure": {"tool_call", "end", "functions", "packages", "restart"}}


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


def check_key(seen):
    """One client tells that it failed, and not why."""
    assert is_refusal(seen) or "Failed to execute Python code" in seen, seen


SESSION_CHECKS = {name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")}


@cases(SESSIONS, SESSION_CHECKS)
def test_sessions(row, case, ask, trust, place, walked):
    SESSION_CHECKS[case](walked(row, "sessions", lambda: row.run(ask, place, **trust))[case])


# --- pools ---

def arm(ask, name=None):
    """What makes and changes pools is an administrator's."""
    return {**ask, "key": ask["admin"], "name": name}


POOL_CHECKS = {
    "create": lambda seen: seen["name"] == "walk-pool" and seen["endpoint"].endswith("/walk-pool"),
    "get": lambda seen: seen == 5,
    "update": lambda seen: seen == 7,
    "listed": lambda seen: all("walk-pool" in names for names in seen),
    "refused": lambda seen: seen["status"] == 400 and "maxConcurrentSessions" in seen["message"],
    "delete": lambda seen: seen == "SessionPoolNotFound",
    "key": is_refusal,
}


@cases(POOLS, POOL_CHECKS)
def test_pools(row, case, ask, trust, place, walked):
    seen = walked(row, "pools", lambda: row.run(arm(ask, "walk-pool"), place, **trust))
    assert POOL_CHECKS[case](seen[case]), seen[case]


GROUP_CHECKS = {"made": lambda seen: seen == "walk-node", "got": lambda seen: seen == "Succeeded", "key": is_refusal}


@cases(GROUPS, GROUP_CHECKS)
def test_groups(row, case, ask, trust, place, walked):
    seen = walked(row, "groups", lambda: row.run(arm(ask), place, **trust))
    assert GROUP_CHECKS[case](seen[case]), seen[case]


# --- deployments of a template ---

DEPLOYMENT_CHECKS = {
    "validate": lambda seen: seen == "Succeeded",
    "what_if": lambda seen: seen == [["Create", "walk-made"]],
    "create": lambda seen: seen == {"state": "Succeeded", "made": ["walk-made"]},
    "get": lambda seen: seen == ["walk-made", True, False],
    "listed": lambda seen: seen == ["walk-made"],
    "operations": lambda seen: set(seen) == {"Succeeded"},
    "refused": lambda seen: seen["status"] == 400 and "'cpu'" in seen["message"],
    "delete": lambda seen: seen is False,
    "key": is_refusal,
}


@cases(DEPLOYMENTS, DEPLOYMENT_CHECKS)
def test_deployments(row, case, ask, trust, place, walked):
    seen = walked(row, "deployments", lambda: row.run(arm(ask, "walk-made"), place, **trust))
    assert DEPLOYMENT_CHECKS[case](seen[case]), seen[case]
