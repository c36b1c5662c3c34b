"""A5: what clients without an npm package send, byte for byte where it matters, and what they read of the answer."""

import json

import pytest

from azure import Pool

OLD, MIDDLE, SHELL, NEW = ("2024-02-02-preview", "2024-10-02-preview", "2025-02-02-preview", "2025-10-02-preview")


class Wire:
    """A client that writes its requests by hand: target, headers and body as given."""

    def __init__(self, pool):
        self.pool, self.id = pool, pool.identifier

    def send(self, method, target, body=b"", kind="application/json", **headers):
        head = {"Authorization": "Bearer opaque", "User-Agent": "client/1 (Language=Python)", "Accept": "*/*", **headers}
        if body:
            head["Content-Type"] = kind
        return self.pool.client.request(method, self.pool.prefix + target, body=body or None, headers=head)

    def form(self, target, name, data):
        boundary = "b0undary"
        body = (f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
                f"Content-Type: application/octet-stream\r\n\r\n{data}\r\n--{boundary}--\r\n").encode()
        return self.send("POST", target, body, f"multipart/form-data; boundary={boundary}")


@pytest.fixture
def wire(either):
    return Wire(either)


def test_a5_langchain_py_repl(wire):
    query = f"?identifier={wire.id}&api-version={OLD}"
    body = (b'{"properties": {"codeInputType": "inline", "executionType": "synchronous", "code": "1 + 1"}}')
    answer = wire.send("POST", "/code/execute" + query, body).expect(200).json
    properties = answer.get("properties", {})
    assert (properties.get("result"), properties.get("stdout"), properties.get("stderr")) == (2, "", "")
    wire.form("/files/upload" + query, "data.csv", "a,b\n1,2\n").expect(200)
    listed = wire.send("GET", "/files" + query).expect(200).json
    assert [(f["properties"]["filename"], f["properties"]["size"]) for f in listed["value"]] == [("data.csv", 8)]
    assert wire.send("GET", "/files/content/data.csv" + query).expect(200).body == b"a,b\n1,2\n"
    wire.send("DELETE", f"/session?identifier={wire.id}&api-version={NEW}").expect(204)


def test_a5_langchain_py_image_is_dropped_from_the_text(wire):
    code = "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()"
    body = json.dumps({"properties": {"codeInputType": "inline", "executionType": "synchronous", "code": code}}).encode()
    properties = wire.send("POST", f"/code/execute?identifier={wire.id}&api-version={OLD}", body).json["properties"]
    assert isinstance(properties["result"], dict) and properties["result"].pop("base64_data")
    assert json.dumps({k: properties[k] for k in ("result", "stdout", "stderr")}, indent=2)


def test_a5_langchain_py_bash(wire):
    query = f"?identifier={wire.id}&api-version={SHELL}"
    answer = wire.send("POST", "/executions" + query, b'{"shellCommand": "echo out; exit 2"}')
    assert answer.status == 202
    assert (int(answer.json["status"]), answer.json["result"]["stdout"], answer.json["result"]["stderr"]) == (2, "out\n", "")
    stored = wire.form(f"/files{query}&path=/mnt/data", "a.sh", "echo a").json
    assert (stored["name"], stored["sizeInBytes"]) == ("a.sh", 6)
    assert [f["name"] for f in wire.send("GET", "/files" + query).json["value"]] == ["a.sh"]
    assert wire.send("GET", "/files/a.sh/content" + query).body == b"echo a"


def test_a5_langchain_js_repl(wire):
    query = f"?identifier={wire.id}&api-version={OLD}"
    body = b'{"properties":{"codeInputType":"inline","executionType":"synchronous","code":"print(1)"}}'
    answer = wire.send("POST", "/code/execute" + query, body, **{"User-Agent": "langchain-azure-dynamic-sessions/0.1"})
    assert answer.json["properties"]["stdout"] == "1\n"
    assert wire.form("/files/upload" + query, "a.txt", "x").json["value"][0]["properties"] == \
        wire.send("GET", "/files" + query).json["value"][0]["properties"]


def test_a5_llamaindex_py(wire):
    query = f"?identifier={wire.id}&api-version={OLD}"
    stored = wire.form("/files/upload" + query, "/mnt/data/notes.txt", "hello").expect(200).json["value"]
    assert [(f["properties"]["filename"], f["properties"]["size"]) for f in stored] == [("notes.txt", 5)]
    assert wire.send("GET", "/files/content/notes.txt" + query).body == b"hello"
    body = b'{"properties": {"codeInputType": "inline", "executionType": "synchronous", "code": "open(\'/mnt/data/notes.txt\').read()"}}'
    assert wire.send("POST", "/code/execute" + query, body).json["properties"]["result"] == "hello"


def test_a5_semantic_kernel_py(wire):
    query = f"?identifier={wire.id}&api-version={OLD}"
    body = json.dumps({"properties": {"identifier": wire.id, "codeInputType": "inline", "executionType": "synchronous",
                                      "code": "import os\nos.getcwd() and 'ok'", "timeoutInSeconds": 100,
                                      "sanitizeInput": True}}).encode()
    properties = wire.send("POST", "/code/execute/" + query, body).expect(200).json["properties"]
    text = "Status:\n{status}\nResult:\n{result}\nStdout:\n{stdout}\nStderr:\n{stderr}".format(**properties)
    assert text == "Status:\nSuccess\nResult:\nok\nStdout:\n\nStderr:\n"
    stored = wire.form("/files/upload" + query, "/mnt/data/x.txt", "1").json["value"][0]["properties"]
    assert stored["filename"] == "x.txt"
    assert wire.send("GET", "/files" + query).json["value"][0]["properties"]["size"] == 1


def test_a5_semantic_kernel_net(wire):
    query = f"?identifier={wire.id}&api-version={MIDDLE}"
    body = b'{"identifier":"x","codeInputType":"Inline","executionType":"Synchronous","code":"print(1)\\n2","timeoutInSeconds":100}'
    answer = wire.send("POST", "/executions" + query, body)
    assert answer.status == 202
    result = answer.json["result"]
    assert (answer.json["status"], result["executionResult"], result["stdout"], result["stderr"]) == ("Succeeded", 2, "1\n", "")
    stored = wire.form("/files" + query, "a.txt", "hello").expect(200).json
    assert (stored["name"], stored["sizeInBytes"], stored["type"]) == ("a.txt", 5, "file") and stored["lastModifiedAt"]
    assert [f["name"] for f in wire.send("GET", "/files" + query).json["value"]] == ["a.txt"]
    assert wire.send("GET", "/files/a.txt/content" + query).body == b"hello"


def test_a5_semantic_kernel_net_early(wire):
    query = f"?identifier={wire.id}&api-version=2023-08-01-preview"
    body = b'{"properties":{"identifier":"x","codeInputType":"inline","executionType":"synchronous","timeoutInSeconds":100,"pythonCode":"1 + 1"}}'
    assert wire.send("POST", "/python/execute" + query, body).json["result"] == 2
    wire.form("/python/uploadFile" + query, "a.txt", "x").expect(200)
    assert wire.send("GET", "/python/downloadFile" + query + "&filename=a.txt").body == b"x"
    assert wire.send("GET", "/python/files" + query).json["value"][0]["properties"]["filename"] == "a.txt"


def test_a5_autogen(wire):
    query = f"?api-version={OLD}&identifier={wire.id}"

    def run(code):
        body = {"properties": {"codeInputType": "inline", "executionType": "Synchronous", "code": code}}
        data = wire.send("POST", "/code/execute" + query, json.dumps(body).encode()).expect(200).json["properties"]
        output = data["stderr"] + data["stdout"]
        if "Success" in data["status"]:
            output += str(data["result"])
        return ("Failure" in data["status"]) * 1, output

    code, packages = run("import importlib.metadata\n[d.metadata['Name'] for d in importlib.metadata.distributions()]")
    names = [p.strip().strip("'") for p in packages.strip("[]").split(",\n")]
    assert code == 0 and "numpy" in names and len(names) > 10
    assert run("import os; os.chdir('/mnt/data')") == (0, "")
    assert run("print('x')\n'y'") == (0, "x\ny")
    code, output = run("1 / 0")
    assert code == 1 and "ZeroDivisionError" in output


def test_a5_langchain4j(wire):
    # java.net.http asks every plain server for HTTP/2, and goes on without.
    java = {"User-Agent": "langchain4j-azure-dynamic-sessions", "Connection": "Upgrade, HTTP2-Settings",
            "Upgrade": "h2c", "HTTP2-Settings": "AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA"}
    wire.id += "%2Bof%40mine%3F"
    query = f"?identifier={wire.id}&api-version={OLD}"

    def use(code):
        body = json.dumps({"properties": {"code": code, "codeInputType": "inline", "executionType": "synchronous"}})
        answer = wire.send("POST", "/code/execute" + query, body.encode(), **java).expect(200).json
        return {name: answer["properties"][name] for name in ("result", "stdout", "stderr")}

    assert use("x = 20\nprint('hi')\nx * 2 + 2") == {"result": 42, "stdout": "hi\n", "stderr": ""}
    assert use("x")["result"] == 20
    image = use("import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()")["result"]
    assert image["type"] == "image" and image["base64_data"]

    boundary = "----1731751200000"
    part = (f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a b.csv"\r\n'
            f"Content-Type: application/json\r\n\r\na,b\n1,2\n\r\n--{boundary}--\r\n").encode()
    stored = wire.send("POST", "/files/upload" + query, part, f"multipart/form-data; boundary={boundary}", **java)
    properties = stored.expect(200).json["value"][0]["properties"]
    assert (properties["filename"], properties["size"]) == ("a b.csv", 8)
    listed = wire.send("GET", "/files" + query, **java).expect(200).json["value"]
    assert [f["properties"]["filename"] for f in listed] == ["a b.csv"]
    assert wire.send("GET", "/files/content/a%20b.csv" + query, **java).expect(200).body == b"a,b\n1,2\n"
    wire.send("GET", "/files/content/no.csv" + query, **java).expect(404)


def test_a5_az_cli(wire):
    query = f"?identifier={wire.id}&api-version={NEW}"
    body = b'{"codeInputType":"Inline","executionType":"Synchronous","code":"print(7*9)","timeoutInSeconds":"60"}'
    wire.send("POST", "/executions" + query, body.replace(b'"60"', b"60")).expect(200)
    wire.form(f"/files{query}&path=dir", "a.txt", "hello").expect(200)
    assert wire.send("GET", f"/files{query}&path=dir").json["value"][0]["name"] == "a.txt"
    assert wire.send("GET", f"/files/a.txt{query}&path=dir").json["sizeInBytes"] == 5
    assert wire.send("GET", f"/files/a.txt/content{query}&path=dir").body == b"hello"
    wire.send("DELETE", f"/files/a.txt{query}&path=dir").expect(204)


def test_a1_foundry_docs_by_curl(server):
    with Pool(server) as pool:
        def post(text):
            return pool.client.request("POST", pool.prefix + "/mcp", body=text,
                                       headers={"Content-Type": "application/json", "x-ms-apikey": "k"})
        post(b'{ "jsonrpc": "2.0", "id": "1", "method": "initialize" }').expect(200)
        launched = post(b'{ "jsonrpc": "2.0", "id": "2", "method": "tools/call", "params": '
                        b'{ "name": "launchShell", "arguments": {} } }').json
        environment = launched["result"]["structuredContent"]["environmentId"]
        ran = post(json.dumps({"jsonrpc": "2.0", "id": "3", "method": "tools/call", "params": {
            "name": "runPythonCodeInRemoteEnvironment",
            "arguments": {"environmentId": environment, "pythonCode": "print('hi')"}}}).encode()).json
        assert ran["id"] == "3" and ran["result"]["structuredContent"]["stdout"] == "hi\n"
