"""The door at /anthropic as its clients see it: one base URL, a key in either header, errors of one shape."""

from support.server import REQUEST_ID, form

TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
         404: "not_found_error", 405: "invalid_request_error", 409: "conflict_error",
         413: "request_too_large", 415: "invalid_request_error", 416: "invalid_request_error",
         429: "rate_limit_error", 500: "api_error"}


class Api:
    def __init__(self, server, key=None, **headers):
        self.client = server.client(key, **{"anthropic-version": "2023-06-01", **headers})

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.client.close()

    def ask(self, method, path, /, body=None, *, bytes=None, headers=None):
        answer = self.client.request(method, "/anthropic" + path, body, body=bytes, headers=headers)
        assert REQUEST_ID.fullmatch(answer.headers["request-id"]), answer
        assert answer.headers["request-id"] == answer.headers["x-request-id"]
        return answer

    def get(self, path, /, **more):
        return self.ask("GET", path, **more)

    def post(self, path, /, body=None, **more):
        return self.ask("POST", path, body, **more)

    def delete(self, path, /, **more):
        return self.ask("DELETE", path, **more)

    def send(self, *parts):
        """A form of (field, file name or None, bytes)."""
        body, kind = form(*parts)
        return self.post("/v1/files", bytes=body, headers={"Content-Type": kind})

    def upload(self, name="data.csv", data=b"a,b\n1,2\n", *parts):
        return self.send(("file", name, data), *parts).expect(200).json

    def list(self, query=""):
        return self.get("/v1/files" + query).expect(200).json


def refused(answer, status, code=None):
    """Checks the one shape of errors; returns the message."""
    assert answer.status == status, answer
    body = answer.json
    assert set(body) == {"type", "error", "request_id"} and body["type"] == "error", body
    assert body["request_id"] == answer.headers["request-id"]
    error = body["error"]
    assert error["type"] == TYPES[status], error
    assert set(error) == {"type", "message"} | ({"details"} if code else set()), error
    if code:
        assert error["details"]["error_code"] == code
    assert error["message"] and isinstance(error["message"], str)
    return error["message"]
