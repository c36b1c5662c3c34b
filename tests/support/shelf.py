"""Files by URL, for doors that fetch them."""

import http.server
from urllib.parse import urlsplit


class Shelf(http.server.ThreadingHTTPServer):
    """A web server on loopback: shelf.files by path, and what was asked for. A path that has an event in
    shelf.gates is answered when the event is set."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files, self.asked, self.gates = {}, [], {}

    def handle_error(self, *args):
        """A client may go while it waits at a gate."""

    def url(self, path):
        return f"http://127.0.0.1:{self.server_port}{path}"


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        found = self.server.files.get(urlsplit(self.path).path)
        if gate := self.server.gates.get(self.path):
            gate.wait(60)
        self.send_response(200 if found is not None else 404)
        self.send_header("content-length", str(len(found or b"")))
        self.end_headers()
        self.wfile.write(found or b"")

    def log_message(self, *args):
        pass
