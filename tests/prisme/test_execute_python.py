"""execute_python: {result, logs, error}, over MCP and over plain HTTP."""

import io
import json
import os
import re
import secrets
import signal
import socket
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import retort
from support.mcp import Legacy, Modern, RpcError, text_of

FLAGS = ["--fetch-private", "--memory", "1G"]
DENIED = "not allowed by PYTHON_PACKAGES_WHITELIST_IMPORT"
DUTIES = 10


@pytest.fixture
def legacy(server):
    with Legacy(server, path="/prisme/mcp") as one:
        yield one


@pytest.fixture
def modern(server):
    return Modern(server, path="/prisme/mcp")


@pytest.fixture(params=["legacy", "modern"])
def either(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def p(modern):
    """The value of a script, once its two forms have been found the same."""
    def run(code, *files, error=False):
        arguments = {"code": code, **({"files": list(files)} if files else {})}
        result = modern.call("execute_python", **arguments)
        value = json.loads(text_of(result))
        assert value == result["structuredContent"]
        assert result.get("isError", False) is error, value
        assert isinstance(value["duration"], int)
        assert ("error" in value) is error
        return value
    return run


def sheet(rows):
    """A small .xlsx file."""
    body = "".join("<row>%s</row>" % "".join(
        f'<c t="inlineStr"><is><t>{cell}</t></is></c>' if isinstance(cell, str) else
        f"<c><v>{cell}</v></c>" for cell in row) for row in rows)
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    rels = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    pack = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("[Content_Types].xml", f'<Types xmlns="{pack}/content-types">'
                   '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.'
                   'relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>'
                   f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
                   f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/>'
                   '</Types>')
        z.writestr("_rels/.rels", f'<Relationships xmlns="{pack}/relationships"><Relationship '
                   f'Id="r" Type="{rels}/officeDocument" Target="xl/workbook.xml"/></Relationships>')
        z.writestr("xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{pack}/relationships">'
                   f'<Relationship Id="r" Type="{rels}/worksheet" Target="worksheets/sheet1.xml"/>'
                   '</Relationships>')
        z.writestr("xl/workbook.xml", f'<workbook {main} xmlns:r="{rels}"><sheets>'
                   '<sheet name="s" sheetId="1" r:id="r"/></sheets></workbook>')
        z.writestr("xl/worksheets/sheet1.xml",
                   f"<worksheet {main}><sheetData>{body}</sheetData></worksheet>")
    return out.getvalue()


# --- the tool ---

def test_p1_tool_and_schema(either):
    tool, = either.request("tools/list")["tools"]
    assert tool["name"] == "execute_python"
    schema = tool["inputSchema"]
    assert schema["required"] == ["code"] and set(schema["properties"]) == {"code", "files"}
    assert schema["properties"]["files"]["type"] == "array"
    assert schema["properties"]["files"]["items"]["type"] == "string"


# --- values ---

def test_p2_stdout_is_the_result(p):
    assert p("print(2+2)")["result"] == "4"


def test_p3_returned_value(p):
    assert p('return {"a":1}')["result"] == {"a": 1}
    assert p("def f(n):\n    return n\nfor i in range(5):\n    if i == 3:\n        return f(i)\n"
             "return 'no'")["result"] == 3
    assert p("import numpy as np\nreturn {'m': np.arange(3), 'x': float('nan')}")["result"] == \
        {"m": [0, 1, 2], "x": None}


def test_p4_assigned_result(p):
    assert p("result=[1,2]")["result"] == [1, 2]
    assert p("result = 1\nreturn 2")["result"] == 2
    assert p("result = 1\n3")["result"] == 1
    assert p("3 + 4")["result"] == 7


def test_p5_logs_are_apart(p):
    value = p("print('a')\nprint('b')\nreturn 5")
    assert value["logs"] == ["a", "b"] and value["result"] == 5


def test_p6_duration(p):
    assert p("import time\ntime.sleep(0.3)")["duration"] >= 300


# --- errors ---

def test_p7_error_object(p):
    error = p("x = 1\n\n1/0", error=True)["error"]
    assert set(error) == {"code", "message", "stack"}
    assert error["code"] == "ZeroDivisionError" and error["message"] == "division by zero"
    assert "line 3" in error["stack"]
    assert "line 2" in p("x = 1\nreturn 1/0", error=True)["error"]["stack"]
    assert p("return (", error=True)["error"]["code"] == "SyntaxError"


def test_p8_always_a_result(p):
    code = "import ctypes"
    assert p(code, error=True)["error"]["code"] == "ImportError"
    assert p("print([].__class__.__base__.__subclasses__())\n" * 2)["logs"]
    died = p("def f():\n    return f\nimport weakref\nweakref.sys.modules['os']._exit(3)",
             error=True)["error"]
    assert died["code"] == "InterpreterDied" and died["message"]
    assert p("return 1")["result"] == 1


@pytest.mark.parametrize(("whom", "code"), [("interpreter", "InterpreterDied"), ("init", "CodeSandboxUnreachable")])
def test_p8_sandbox_killed_from_outside(p, server, whom, code):
    mark = f"mark-{secrets.token_hex(8)}"
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(p, f"open('/workspace/{mark}', 'w').close()\nimport time\ntime.sleep(60)",
                             error=True)
        retort.wait_until(lambda: in_sandbox(server, mark), "the script")
        interpreter = in_sandbox(server, mark)[-1]
        init = int(retort.field(interpreter, "PPid")[0])
        os.kill({"interpreter": interpreter, "init": init}[whom], signal.SIGKILL)
        died = answer.result(30)["error"]
    assert died["code"] == code and died["message"]
    assert p("return 1")["result"] == 1


def in_sandbox(server, mark):
    """Processes whose workspace has this file, as far as we may look; a child after its parent."""
    return [pid for pid in retort.below(server.pid) if os.path.exists(f"/proc/{pid}/root/workspace/{mark}")]


def test_p20_stateless(p):
    p("x=1; open('f', 'w').write('1')")
    assert p("print(x)", error=True)["error"]["code"] == "NameError"
    assert p("open('f')", error=True)["error"]["code"] == "FileNotFoundError"


def test_sessions_do_not_pile_up(p, client):
    before = len(client.all("/v1/sessions"))
    p("return 1")
    retort.wait_until(lambda: len(client.all("/v1/sessions")) <= before, "the end of the session")


def test_files_that_a_script_leaves_can_be_had(p, client):
    value = p("open('out.csv', 'w').write('a,b')\nreturn 1")
    assert [f["path"] for f in value["files"]] == ["out.csv"]
    got = client.get(f"/v1/sessions/{value['session']}/files/out.csv").expect(200)
    assert got.text == "a,b"


# --- files ---

def test_p9_files_by_url(p, shelf):
    shelf.files["/ventes.csv"] = b"montant\n1.5\n2\n"
    code = ("import csv\nwith open('ventes.csv', newline='') as f:\n"
            "    rows = list(csv.DictReader(f))\n"
            "print({'lignes': len(rows), 'total': sum(float(r['montant']) for r in rows)})")
    assert p(code, shelf.url("/ventes.csv?v=1"))["result"] == "{'lignes': 2, 'total': 3.5}"


def test_p10_excel_with_default_packages(p, shelf):
    shelf.files["/t.xlsx"] = sheet([["n", "v"], ["a", 1], ["b", 41]])
    code = "import pandas as pd\nreturn int(pd.read_excel('t.xlsx').v.sum())"
    assert p(code, shelf.url("/t.xlsx"))["result"] == 42


def test_p11_pdf_is_refused(p, shelf):
    shelf.files["/r.pdf"] = b"%PDF-1.4"
    error = p("print('ran')", shelf.url("/r.pdf"), error=True)["error"]
    assert error["code"] == "UnsupportedFileType"
    assert "r.pdf" in error["message"] and "CSV" in error["message"] and "Excel" in error["message"]


def test_p12_download_failure(p, shelf):
    value = p("print('ran')", shelf.url("/missing.csv"), error=True)
    assert value["error"]["code"] == "FileDownloadFailed"
    assert shelf.url("/missing.csv") in value["error"]["message"]
    assert value["logs"] == []


# --- the sandbox ---

def test_p13_no_network(p, shelf):
    shelf.files["/x"] = b"x"
    asked = len(shelf.asked)
    code = f"import urllib.request\nurllib.request.urlopen({shelf.url('/x')!r}, timeout=2)"
    assert p(code, error=True)["error"]["code"] == "URLError"
    assert len(shelf.asked) == asked


@pytest.mark.parametrize("module", ["http.client", "urllib.request"])
def test_p13_no_network_for_a_raw_socket(p, module):
    """The list denies the module; a package that is allowed has it all the same."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        address = listener.getsockname()
        code = f"import {module}\nsocket = {module}.socket\n"
        refused = p(f"{code}socket.create_connection({address!r}, 2)", error=True)["error"]
        assert refused["code"] == "ConnectionRefusedError"
        outside = p(f"{code}s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                    "s.sendto(b'x', ('192.0.2.1', 53))", error=True)["error"]
        assert outside["code"] == "OSError" and "unreachable" in outside["message"]
        raw = p(f"{code}socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)", error=True)["error"]
        assert raw["code"] == "PermissionError"
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.parametrize("code", [
    "import os", "import os.path", "from os import path", "import subprocess", "import sys",
    "import socket", "import importlib", "__import__('os')", "exec('import os')",
    "def f():\n    import pickle\nf()", "return __import__('ctypes')", "import scipy", "import sklearn",
])
def test_p14_p15_denied_imports(p, code):
    error = p(code, error=True)["error"]
    assert error["code"] == "ImportError" and error["message"].endswith(DENIED), error


def test_p14_p15_allowed_imports(p):
    names = "json csv re math statistics datetime collections io pathlib base64 zlib urllib.parse uuid"
    assert p("\n".join("import " + n for n in names.split()) + "\nreturn 1")["result"] == 1
    assert p("import numpy, pandas, openpyxl, requests, urllib3\nreturn 1")["result"] == 1


def test_p17_transitive_imports(p, shelf):
    assert p("import pandas as pd\nreturn pd.DataFrame({'a': [1, 2]}).describe().shape")["result"] == \
        [8, 1]
    shelf.files["/mine.py"] = b"import json\nvalue = 7\n"
    shelf.files["/bad.py"] = b"import os\n"
    assert p("import mine\nreturn mine.value", shelf.url("/mine.py"))["result"] == 7
    assert p("import bad", shelf.url("/bad.py"), error=True)["error"]["message"].endswith(DENIED)


def test_p22_skill_is_served(modern, either):
    skill, = modern.request("skills/list")["skills"]
    uri, = [row["uri"] for row in skill["resources"]]
    assert uri == skill["uri"] == "skill://execute-python/SKILL.md"
    text = either.request("resources/read", {"uri": uri})["contents"][0]["text"]
    assert [f"{n}. **" in text for n in range(1, DUTIES + 1)] == [True] * DUTIES
    for word in ("`files`", "CodeSandboxUnreachable", "two retries", "Never invent", "standard library"):
        assert word in text


def test_p22_the_skill_speaks_of_tools_that_there_are(modern, either):
    """Nothing of the skill for other tools is here."""
    text = either.request("resources/read", {"uri": "skill://execute-python/SKILL.md"})["contents"][0]["text"]
    assert set(re.findall(r"`([a-z]+_[a-z_]+)`", text)) == {"execute_python"}
    other = "skill://code-interpreter/SKILL.md"
    assert other not in [r["uri"] for r in either.request("resources/list")["resources"]]
    for method in ("resources/read", "skills/get", "resources/directory/read"):
        with pytest.raises(RpcError):
            modern.request(method, {"uri": other.removesuffix("/SKILL.md") if "directory" in method else other})


# --- over plain HTTP ---

def test_p30_functions(client):
    body = {"functions": {"hello": {"code": "return 'Hello ' + name", "parameters": {"name": {}},
                                    "language": "python"}}}
    assert client.post("/prisme/v2/functions/ws1", body).expect(200).json == body
    got = client.post("/prisme/v2/functions/ws1/run/hello",
                      {"parameters": {"name": "world"}}).expect(200).json
    assert got["result"] == "Hello world" and got["logs"] == [] and isinstance(got["duration"], int)
    assert "error" not in got


def test_p30_functions_that_are_not_there(client):
    missing = client.post("/prisme/v2/functions/ws1/run/none", {}).expect(404).json
    assert missing["error"] == "NOT_FOUND" and missing["message"]
    body = {"functions": {"f": {"code": "return 1", "language": "javascript"}}}
    assert client.post("/prisme/v2/functions/ws1", body).expect(400).json["error"] == \
        "UNSUPPORTED_LANGUAGE"


def test_p32_correlation_id(client):
    sent = {"X-Correlation-Id": "abc-123"}
    answers = [client.post("/prisme/execute_python", {"code": "1"}, headers=sent),
               client.post("/prisme/execute_python", {}, headers=sent),
               client.post("/prisme/mcp", {}, headers=sent),
               client.get("/prisme/v2/functions/nothing", headers=sent)]
    assert [a.headers.get("x-correlation-id") for a in answers] == ["abc-123"] * 4
    bare = client.post("/prisme/execute_python", {"code": "1"})
    assert bare.headers["x-correlation-id"] == bare.headers["x-request-id"]


@pytest.mark.parametrize("method, path, status", [
    ("GET", "/prisme/nowhere", 404), ("POST", "/prisme/v9/functions/ws1", 404), ("GET", "/prisme", 404),
    ("DELETE", "/prisme/execute_python", 405), ("PUT", "/prisme/v2/functions/ws1", 405),
    ("OPTIONS", "/prisme/execute_python", 204),
])
def test_p32_correlation_id_where_nothing_is(client, method, path, status):
    bare = client.request(method, path).expect(status)
    assert bare.headers["x-correlation-id"] == bare.headers["x-request-id"]
    sent = client.request(method, path, headers={"X-Correlation-Id": "abc-123"}).expect(status)
    assert sent.headers["x-correlation-id"] == "abc-123"
    if status != 204:
        assert bare.json["details"]["status"] == status and bare.json["message"]


def test_p32_correlation_id_of_a_body_that_is_too_large(server):
    with server.client() as c:
        answer = c.post("/prisme/execute_python", {"code": "1", "parameters": {"p": "x" * (21 << 20)}},
                        headers={"X-Correlation-Id": "big-1"}).expect(413)
        assert answer.headers["x-correlation-id"] == "big-1"


def test_the_model_is_told_what_it_may_import(modern):
    told = modern.request("server/discover")["instructions"].split("may import: ")[1].rstrip(".").split(",")
    assert {"csv", "statistics", "pandas", "openpyxl"} <= set(told) and "os" not in told
