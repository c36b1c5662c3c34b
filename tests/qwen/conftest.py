import http.server
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

tests = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(tests), str(tests / "serve"), str(tests / "mcp")]

from server import Server  # noqa: E402


@pytest.fixture(scope="module")
def server(request):
    """The server of a module; FLAGS and ENV in the module add to its settings."""
    with Server(*getattr(request.module, "FLAGS", ()),
                env=getattr(request.module, "ENV", None)) as one:
        yield one


@pytest.fixture
def client(server):
    with server.client() as one:
        yield one


class Shelf(http.server.ThreadingHTTPServer):
    """A web server on loopback: shelf.files by path, and what was asked for."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files, self.asked = {}, []

    def url(self, path):
        return f"http://127.0.0.1:{self.server_port}{path}"


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        found = self.server.files.get(urlsplit(self.path).path)
        self.send_response(200 if found is not None else 404)
        self.send_header("content-length", str(len(found or b"")))
        self.end_headers()
        self.wfile.write(found or b"")

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def shelf():
    with Shelf() as one:
        threading.Thread(target=one.serve_forever, daemon=True).start()
        yield one
        one.shutdown()
