"""A session pool as clients of Azure see it: one base URL, an identifier, an api-version."""

import secrets
from urllib.parse import urlencode

OLD, MIDDLE, NEW = "2024-02-02-preview", "2024-10-02-preview", "2025-10-02-preview"
ARM = "/subscriptions/0000-1/resourceGroups/my-group/providers/Microsoft.App/sessionPools/"


class Pool:
    def __init__(self, server, prefix="/azure/pools/default", key=None, identifier=None, **headers):
        self.client = server.client(key, **headers)
        self.prefix, self.identifier = prefix, identifier or "id-" + secrets.token_hex(8)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.client.close()

    def url(self, path, /, version=None, identifier=..., **query):
        who = self.identifier if identifier is ... else identifier
        query = {**({"identifier": who} if who is not None else {}),
                 **({"api-version": version} if version else {}), **query}
        return f"{self.prefix}/{path}" + ("?" + urlencode(query) if query else "")

    def ask(self, method, path, /, body=None, version=None, identifier=..., headers=None, **query):
        return self.client.request(method, self.url(path, version, identifier, **query), body, headers=headers)

    def get(self, path, /, version=None, **more):
        return self.ask("GET", path, None, version, **more)

    def post(self, path, /, body=None, version=None, **more):
        return self.ask("POST", path, body, version, **more)

    def delete(self, path, /, version=None, **more):
        return self.ask("DELETE", path, None, version, **more)

    def run(self, code, **more):
        """In the oldest of the nested dialects: what is in properties."""
        body = {"properties": {"codeInputType": "inline", "executionType": "synchronous", "code": code, **more}}
        return self.post("code/execute", body, OLD).expect(200).json["properties"]

    def execution(self, version=NEW, **body):
        return self.post("executions", body, version)

    def upload(self, where, /, *parts, version=None, **query):
        return self.client.form(self.url(where, version, **query), *parts)

    def rpc(self, method, params=..., id=1, headers=None):
        body = {"jsonrpc": "2.0", "id": id, "method": method, **({} if params is ... else {"params": params})}
        return self.client.request("POST", self.prefix + "/mcp", body, headers=headers)

    def tool(self, name, **arguments):
        answer = self.rpc("tools/call", {"name": name, "arguments": arguments}).expect(200).json
        assert "error" not in answer, answer
        return answer["result"]


def code_of(answer):
    """The code of an error, which is also in a header."""
    code = answer.json["error"]["code"]
    assert answer.headers["x-ms-error-code"] == code, answer
    assert answer.json["error"]["message"] and answer.json["error"]["traceId"]
    return code


def document(**properties):
    return {"location": "here", "properties": {"poolManagementType": "Dynamic", "containerType": "PythonLTS",
                                               **properties}}

