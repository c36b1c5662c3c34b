"""Images: what a model is shown of them, and where the originals are."""

import base64
import json
import struct

import pytest
from support.mcp import Legacy, Modern, text_of
from test_tools import bad, body_of, execution_of, links, ok, session_of

FLAGS = ["--preload", "matplotlib.pyplot", "--memory", "800M"]
SIDE, BASE64_MAX, RESULT_MAX = 1568, 700_000, 1_048_576
PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.show()\n"
NOISE = ("import os\nfrom PIL import Image\nfrom IPython.display import display\n"
         "def noise(w, h): return Image.frombytes('RGB', (w, h), os.urandom(w * h * 3))\n")


@pytest.fixture(scope="module")
def drawn(server):
    """A client, and a session for the module."""
    client = Modern(server)
    return client, session_of(client.call("run_code", code="1"))


@pytest.fixture
def run(drawn):
    client, session = drawn
    return lambda code: client.call("run_code", code=code, session_id=session)


def images(result):
    """(mime, bytes) of each, which must be what a client takes."""
    found = []
    for c in result["content"]:
        if c["type"] == "image":
            assert 0 < len(c["data"]) <= BASE64_MAX
            found.append((c["mimeType"], base64.b64decode(c["data"], validate=True)))
    assert len(found) <= 4
    assert len(json.dumps(result)) < RESULT_MAX
    return found


def png_size(data):
    assert data.startswith(b"\x89PNG\r\n\x1a\n") and data.endswith(b"IEND\xaeB`\x82")
    return struct.unpack(">II", data[16:24])


def blob(client, uri):
    return client.request("resources/read", {"uri": uri})["contents"][0]


def test_a_plot(either):
    result = ok(either.call("run_code", code=PLOT))
    [(mime, data)] = images(result)
    width, height = png_size(data)
    assert mime == "image/png" and body_of(result) == f"image 1: image/png, {width} x {height}"
    assert "Figure" not in text_of(result)
    # No link to what is there: LangChain hands a link of this type to its model as a second image.
    assert [c["type"] for c in result["content"]] == ["text", "image"]
    assert base64.b64decode(blob(either, f"retort://executions/{execution_of(result)}/images/1")["blob"]) == data
    again = ok(either.call("get_execution", execution_id=execution_of(result)))
    assert images(again) == [(mime, data)]


def test_a_plot_before_an_error(run):
    result = run(PLOT + "1 / 0")
    assert "ZeroDivisionError" in bad(result) and len(images(result)) == 1


def test_an_older_client_gets_no_links(server):
    with Legacy(server, version="2025-03-26") as client:
        result = ok(client.call("run_code", code=PLOT))
        assert [c["type"] for c in result["content"]] == ["text", "image"]


def test_a_large_plot_is_shown_smaller(drawn, run):
    result = ok(run("import matplotlib.pyplot as plt\nplt.figure(figsize=(20, 15), dpi=150)\nplt.plot([1, 2])\nplt.show()"))
    [(mime, data)] = images(result)
    assert max(png_size(data)) <= SIDE and "shown smaller" in text_of(result)
    original = links(result)[0]["uri"]
    assert original in text_of(result)
    assert max(png_size(base64.b64decode(blob(drawn[0], original)["blob"]))) > SIDE


def test_heavy_pixels_become_jpeg(run):
    result = ok(run(NOISE + "noise(1400, 1400)"))
    [(mime, data)] = images(result)
    assert mime == "image/jpeg" and data.startswith(b"\xff\xd8") and data.endswith(b"\xff\xd9")
    assert "shown smaller" in text_of(result)


def test_four_at_most(drawn, run):
    result = ok(run("import matplotlib.pyplot as plt\nfor i in range(6):\n    plt.figure(figsize=(1 + i, 1))\n    plt.plot([i])\n    plt.show()"))
    assert len(images(result)) == 4 and len(links(result)) == 2  # to those that are not shown
    assert text_of(result).count("4 at most") == 2
    one = ok(drawn[0].call("get_execution", execution_id=execution_of(result), image=6))
    [(_, data)] = images(one)
    assert png_size(data)[0] > png_size(images(result)[0][1])[0]
    assert "no image 7" in bad(drawn[0].call("get_execution", execution_id=execution_of(result), image=7))


def test_a_result_stays_below_a_megabyte(run):
    result = ok(run(NOISE + "for i in range(4): display(noise(400, 400))"))
    assert 1 <= len(images(result)) < 4
    assert "as much as one answer may hold" in text_of(result)


@pytest.mark.parametrize("data, word", [
    ("b''", ""), ("b'\\x89PNG\\r\\n\\x1a\\n' + b'x' * 100", "damaged"), ("b'hello'", "no PNG"),
    ("open('whole.png', 'rb').read()[:-20]", "damaged")])
def test_broken_ones_are_told_of(run, data, word):
    result = ok(run("from PIL import Image as I\nI.new('RGB', (9, 9)).save('whole.png')\n"
                    f"from IPython.display import display\ndisplay({{'image/png': {data}, 'text/plain': 'p'}}, raw=True)"))
    assert images(result) == [] and word in text_of(result)


def test_a_picture_that_lies_about_its_size(run):
    result = ok(run("import struct, zlib\nfrom IPython.display import display\n"
                    "def chunk(t, d): return struct.pack('>I', len(d)) + t + d + struct.pack('>I', zlib.crc32(t + d))\n"
                    "p = b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 90000, 90000, 8, 2, 0, 0, 0))"
                    " + chunk(b'IDAT', b'') + chunk(b'IEND', b'')\n"
                    "display({'image/png': p, 'image/png;preview=1': p}, raw=True)"))
    assert images(result) == [] and "1568 pixels" in text_of(result)


def test_svg_is_a_link(drawn, run):
    result = ok(run("from IPython.display import SVG\nSVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')"))
    assert images(result) == [] and "image/svg+xml" in text_of(result)
    assert links(result)[0]["mimeType"] == "image/svg+xml"


def test_saved_pictures_are_read(drawn, run):
    client, session = drawn
    kinds = ("png", "jpeg", "gif", "webp")
    result = ok(run("from PIL import Image\n"
                    f"for k in {kinds}: Image.new('RGB', (30, 20), 'red').save('red.' + k)"))
    assert images(result) == [] and len(links(result)) == 4
    for kind in kinds:
        shown = ok(client.call("read_file", session_id=session, path=f"red.{kind}"))
        [(mime, data)] = images(shown)
        assert mime == f"image/{kind}" and f"image/{kind}, 30 x 20" in text_of(shown)


def test_a_saved_picture_that_is_too_large(drawn, run):
    client, session = drawn
    ok(run("from PIL import Image\nImage.new('RGB', (2000, 10)).save('wide.png')"))
    text = text_of(client.call("read_file", session_id=session, path="wide.png"))
    assert "2000 x 10; not shown" in text and "thumbnail" in text


def test_previews_are_in_rest_answers_too(server):
    with server.client() as client:
        done = client.post("/v1/execute", {"code": NOISE + "noise(2000, 10)"}).expect(200).json
        data = done["events"][-1]["data"]
        assert set(data) == {"image/png", "image/png;preview=1", "text/plain"}
        assert png_size(base64.b64decode(data["image/png;preview=1"])) == (1568, 8)
