"""Rich values: figures, pictures and every other kind of bundle."""

import base64
import json
import struct

import pytest

from support import retort

pytestmark = pytest.mark.once

PNG = b"\x89PNG\r\n\x1a\n"


def png_size(data):
    """(width, height) of base64 text that must be a PNG."""
    raw = base64.b64decode(data, validate=True)
    assert raw.startswith(PNG) and raw[12:16] == b"IHDR" and raw.endswith(b"IEND\xaeB`\x82")
    return struct.unpack(">II", raw[16:24])


session = retort.Session("--preload", "matplotlib.pyplot,pandas")

three_figures = session.cell(
    "import matplotlib.pyplot as plt\n"
    "for n in range(3):\n"
    "    plt.figure(figsize=(n + 1, 1), dpi=100)\n"
    "    plt.plot([1, 2, n])\n")
shown = session.cell("plt.plot([3, 1, 2]); plt.show(); print('after')")
value_and_figure = session.cell("plt.plot([1, 2])")
drawn_by_pandas = session.cell(
    "import pandas as pd\n"
    "df = pd.DataFrame({'a': [1, 2, 3], 'b': ['x', 'y', '<z>']})\n"
    "df.plot(y='a');")
before_error = session.cell("plt.plot([1, 2])\n1 / 0")
not_again = session.cell("print('no figure is left')")
saved = session.cell("plt.plot([1, 2])\nplt.savefig('kept.png')\nplt.close()")
greek = session.cell("plt.title('Grüße $\\\\alpha_2$ €')\nplt.plot([1]);")


def test_several_figures_without_show():
    sizes = [png_size(d["image/png"]) for d in three_figures.displays]
    assert len(sizes) == 3
    assert sizes[0][0] < sizes[1][0] < sizes[2][0]


def test_show_displays_at_once():
    assert [e["type"] for e in shown.events] == ["display", "stdout"]
    png_size(shown.displays[0]["image/png"])


def test_figure_besides_a_result():
    assert "Line2D" in value_and_figure.result
    assert len(value_and_figure.displays) == 1


def test_pandas_plot():
    assert drawn_by_pandas.bundle is None
    assert len(drawn_by_pandas.displays) == 1


def test_figure_before_an_error():
    assert [e["type"] for e in before_error.events] == ["display", "error"]
    assert not_again.order == [("stdout", "no figure is left\n")]


def test_saved_and_closed_figure_is_a_file():
    assert saved.displays == []
    change, size, mime = saved.files["kept.png"]
    assert (change, mime) == ("created", "image/png") and size > 100


def test_text_in_figures():
    assert greek.status == "ok" and len(greek.displays) == 1
    assert "missing" not in greek.stderr


table = session.cell("df")
tables = session.cell("from IPython.display import display\ndisplay(df.head(1))\ndisplay(df.tail(1))")
described = session.cell("df.describe()")
series = session.cell("df['a']")
wide = session.cell("pd.DataFrame([list(range(30))])")


def test_dataframe_is_text_and_html():
    assert set(table.bundle) == {"text/plain", "text/html"}
    assert table.result.splitlines()[0].split() == ["a", "b"]
    html = table.bundle["text/html"]
    assert "<table" in html and "&lt;z&gt;" in html
    assert "mean" in described.result and "<table" in described.bundle["text/html"]
    assert set(series.bundle) == {"text/plain"}


def test_displayed_dataframes():
    assert ["<table" in d["text/html"] for d in tables.displays] == [True, True]


def test_all_columns_are_there():
    assert "29" in wide.bundle["text/html"]


picture = session.cell("import PIL.Image\nPIL.Image.new('RGB', (40, 30), 'red')")
svg = session.cell("from IPython.display import *\nSVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')")
html = session.cell("HTML('<b>bold</b>')")
latex = session.cell("Latex(r'$\\alpha$')")
math = session.cell("Math(r'\\frac{1}{2}')")
markdown = session.cell("Markdown('# Title')")
as_json = session.cell("JSON({'a': [1, 2, None], 'é': 'ü'})")
jpeg = session.cell("import io\nto = io.BytesIO()\nPIL.Image.new('L', (8, 8)).save(to, 'JPEG')\n"
                    "display(PIL.Image.open(to))\nImage(to.getvalue())")
several = session.cell("display('one', 2, HTML('<i>3</i>'))")
raw_bundle = session.cell("display({'text/plain': 'p', 'application/x-own+json': {'k': 1},"
                          " 'application/octet-stream': b'\\x00\\xff'}, raw=True)")
own_repr = session.cell("class Own:\n    def _repr_html_(self): return '<u>own</u>'\n"
                        "    def __repr__(self): return 'own'\nOwn()")
own_mimebundle = session.cell("class Both:\n    def _repr_mimebundle_(self, **k):\n"
                              "        return {'text/plain': 'both', 'text/x-both': 'yes'}\nBoth()")
updated = session.cell("handle = display('old', display_id='spot')\nhandle.update('new')")
cleared = session.cell("print('gone')\nclear_output()\nprint('stays')")
sized = session.cell("PIL.Image.new('RGB', (8, 4)).save('sized.png')\n"
                     "display(Image('sized.png', width=40), HTML('<b>x</b>'), metadata={'isolated': True})\n"
                     "Image('sized.png', width=21, height=9)")
page_of_a_file = session.cell("open('p.html', 'w').write('<p>')\nfrom IPython.display import HTML, SVG\n"
                              "HTML(filename='p.html')")
drawing_of_a_file = session.cell("open('d.svg', 'w').write('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')\n"
                                 "SVG(filename='d.svg')")
own_metadata = session.cell("class Wide:\n    def _repr_png_(self):\n"
                            "        return open('sized.png', 'rb').read(), {'width': 77}\nWide()")
retina = session.cell("%config InlineBackend.figure_format = 'retina'\n"
                      "plt.figure(figsize=(2, 1), dpi=50); plt.plot([1, 2])\nplt.show()\n"
                      "%config InlineBackend.figure_format = 'png'")
odd_metadata = session.cell("loop = {}\nloop['loop'] = loop\nfor odd in (loop, {'x': 'y' * 20000},"
                            " {'n': float('nan')}, {3: object}, {'é\\ud800': 1}, [1]):\n"
                            "    display({'text/plain': 'shown'}, raw=True, metadata=odd)")
broken_repr = session.cell("class Bad:\n    def __repr__(self): raise ValueError('no repr')\nBad()")


def test_picture():
    assert png_size(picture.bundle["image/png"]) == (40, 30)
    assert "text/plain" in picture.bundle


@pytest.mark.parametrize("answer, mime, text", [
    (svg, "image/svg+xml", "<svg"),
    (html, "text/html", "<b>bold</b>"),
    (latex, "text/latex", "$\\alpha$"),
    (math, "text/latex", "\\frac{1}{2}"),
    (markdown, "text/markdown", "# Title"),
    (own_repr, "text/html", "<u>own</u>"),
    (own_mimebundle, "text/x-both", "yes"),
], ids=["svg", "html", "latex", "math", "markdown", "own repr", "own bundle"])
def test_text_kinds(answer, mime, text):
    assert text in answer.bundle[mime]
    assert "text/plain" in answer.bundle


def test_json():
    assert json.loads(as_json.bundle["application/json"]) == {"a": [1, 2, None], "é": "ü"}


def test_jpeg():
    raw = base64.b64decode(jpeg.bundle["image/jpeg"], validate=True)
    assert raw.startswith(b"\xff\xd8") and raw.endswith(b"\xff\xd9")
    assert len(jpeg.displays) == 1


def test_several_displays_in_one_call():
    assert [d["text/plain"] for d in several.displays][:2] == ["'one'", "2"]
    assert several.displays[2]["text/html"] == "<i>3</i>"


def test_raw_bundle():
    (data,) = raw_bundle.displays
    assert data["text/plain"] == "p"
    assert base64.b64decode(data["application/octet-stream"]) == b"\x00\xff"
    assert json.loads(data["application/x-own+json"]) == {"k": 1}


def test_update_of_a_display():
    old, new = updated.of("display")
    assert old["display_id"] == new["display_id"] == "spot"
    assert "update" not in old and new["update"] is True
    assert new["data"]["text/plain"] == "'new'"


def test_clear():
    assert cleared.order == [("stdout", "gone\n"), ("clear", None), ("stdout", "stays\n")]


def test_broken_repr():
    assert broken_repr.status == "raised"
    assert "no repr" in str(broken_repr.events)


def test_metadata_of_displays():
    image, text = sized.of("display")
    assert image["metadata"] == {"image/png": {"width": 40}, "isolated": True, "retort": {"file": "sized.png"}}
    assert text["metadata"] == {"isolated": True}
    assert sized.of("result")[0]["metadata"] == {"image/png": {"width": 21, "height": 9}, "retort": {"file": "sized.png"}}
    assert own_metadata.of("result")[0]["metadata"] == {"image/png": {"width": 77}}
    (figure,) = retina.of("display")
    width, height = png_size(figure["data"]["image/png"])
    assert figure["metadata"]["image/png"] == {"width": width // 2, "height": height // 2}


def test_only_pictures_name_their_file():
    assert page_of_a_file.of("result")[0].get("metadata", {}) == {}
    assert drawing_of_a_file.of("result")[0]["metadata"]["retort"] == {"file": "d.svg"}


def test_metadata_that_cannot_be_sent_loses_no_display():
    assert odd_metadata.status == "ok", odd_metadata.error
    assert [d["text/plain"] for d in odd_metadata.displays] == ["shown"] * 6
