"""The same tools on standard input and output: `retort mcp --tools`."""

import base64
import json
import re
import shutil
import struct
from pathlib import Path

import pytest

from support.mcp import text_of
from support.server import folder
from support.stdio import Local


PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def place():
    """A folder that everybody may write: the server need not be who we are."""
    path = folder()
    path.chmod(0o777)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def test_qwen_tools():
    with Local("--tools", "qwen", "--memory", "1G") as client:
        client.initialize()
        assert [t["name"] for t in client.request("tools/list")["tools"]] == \
            ["code_interpreter", "python_executor"]
        client.call("code_interpreter", code="x = 6")
        assert "42" in text_of(client.call("code_interpreter", code="x * 7"))
        _, image = client.call("code_interpreter", code="plt.plot([1]); plt.show()")["content"]
        assert image["type"] == "image" and image["mimeType"] == "image/png"
        _, image = client.call("code_interpreter",
                               code="from PIL import Image\nImage.new('RGB', (2000, 10))")["content"]
        assert struct.unpack(">II", base64.b64decode(image["data"])[16:24]) == (1568, 8)


def test_qwen_images_land_in_a_folder(place):
    """A client that reads the text alone has them there; the folder is made for the first image."""
    shown = place / "made for it"
    with Local("--tools", "qwen", "--memory", "1G", "--images-dir", shown) as client:
        client.initialize()
        client.call("code_interpreter", code="1")
        assert not shown.exists()
        text, _, _ = client.call("code_interpreter", code="plt.plot([1]); plt.show(); plt.plot([2]); plt.show()")["content"]
        links = re.findall(r"!\[fig-\d+\]\(([^)]+)\)", text["text"])
        assert len(set(links)) == 2 and all(Path(link).parent == shown for link in links)
        assert all(Path(link).read_bytes().startswith(PNG) for link in links)


def test_qwen_images_in_a_folder_of_our_own():
    """A working directory that only its owner may enter: root starts the server, which is somebody else then."""
    own = folder()
    own.chmod(0o700)
    try:
        with Local("--tools", "qwen", "--memory", "1G", "--images-dir", own / "shown") as client:
            client.initialize()
            text, _ = client.call("code_interpreter", code="plt.plot([1]); plt.show()")["content"]
            [link] = re.findall(r"!\[fig-\d+\]\(([^)]+)\)", text["text"])
            assert Path(link).parent == own / "shown" and Path(link).read_bytes().startswith(PNG), text
    finally:
        shutil.rmtree(own, ignore_errors=True)


def test_qwen_images_without_a_folder(place):
    """Where it cannot be made the image still comes, and a note says why there is no file."""
    (place / "file").write_text("")
    with Local("--tools", "qwen", "--memory", "1G", "--images-dir", place / "file") as client:
        client.initialize()
        text, image = client.call("code_interpreter", code="plt.plot([1]); plt.show()")["content"]
        assert text["text"].startswith("![fig-001](attachment:fig-001.png)\n\nNote: the image was not written to the images dir:")
        assert image["type"] == "image"


def test_prisme_tools():
    with Local("--tools", "prisme") as client:
        client.initialize()
        value = json.loads(text_of(client.call("execute_python", code="return {'a': 1}")))
        assert value["result"] == {"a": 1}
