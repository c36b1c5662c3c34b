"""The way of a real agent: data by URL, a look at it, a plot, an error, its repair, the chart, the end."""

import base64
import http.server
import re
import threading

import pytest
from support.mcp import text_of
from test_tools import bad, body_of, links, ok, session_of

FLAGS = ["--preload", "pandas,matplotlib.pyplot", "--memory", "800M", "--fetch-private"]
CSV = "region,revenue\n" + "".join(f"{'north' if i % 3 else 'south'},{i * 10}\n" for i in range(300))


@pytest.fixture(scope="module")
def address():
    """A web server on this machine, with one file."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            found = self.path == "/files/sales.csv"
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "text/csv")
            self.end_headers()
            if found:
                self.wfile.write(CSV.encode())

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{web.server_port}/files/"
        web.shutdown()


def test_the_whole_way(either, address):
    assert "numpy" in text_of(ok(either.call("list_packages", search="numpy")))
    text = bad(either.call("write_file", url=address + "none.csv"))
    assert "404" in text

    wrote = ok(either.call("write_file", url=address + "sales.csv"))
    assert f"/workspace/sales.csv ({len(CSV)} bytes)" in text_of(wrote)
    session = session_of(wrote)

    seen = ok(either.call("run_code", session_id=session, code=(
        "import pandas as pd\ndf = pd.read_csv('sales.csv')\nprint(df.shape)\ndf.groupby('region').revenue.sum()")))
    assert "(300, 2)" in text_of(seen) and re.search(r"north\s+300000", text_of(seen))

    wrong = bad(either.call("run_code", session_id=session, code="print('try')\ndf.groupby('country').sum()"))
    assert "KeyError: 'country'" in wrong and "try\n" in wrong

    drawn = ok(either.call("run_code", session_id=session, code=(
        "import matplotlib.pyplot as plt\ndf.groupby('region').revenue.sum().plot.bar(title='Revenue')\n"
        "plt.savefig('chart.png')\nplt.show()")))
    assert "chart.png" in text_of(drawn) and sum(c["type"] == "image" for c in drawn["content"]) == 1

    chart = ok(either.call("read_file", session_id=session, path="chart.png"))
    [image] = [c for c in chart["content"] if c["type"] == "image"]
    link = next(x for x in links(drawn) if x["name"] == "chart.png")
    [again] = either.request("resources/read", {"uri": link["uri"]})["contents"]
    assert again["blob"] == image["data"] and base64.b64decode(image["data"]).startswith(b"\x89PNG")

    assert body_of(ok(either.call("run_shell", session_id=session, command="wc -l < sales.csv"))) == "stdout:\n301"
    ok(either.call("close_session", session_id=session))
    assert "There is no session" in bad(either.call("list_files", session_id=session))


def test_a_file_needs_no_name_and_may_have_one(modern, address):
    wrote = ok(modern.call("write_file", url=address + "sales.csv", path="data/renamed.csv"))
    assert "/workspace/data/renamed.csv" in text_of(wrote)
