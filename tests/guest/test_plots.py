"""Figures come as PNG by themselves, once each."""

import pytest

PNG = b"\x89PNG\r\n\x1a\n"
IMPORT = "import matplotlib.pyplot as plt\n"


@pytest.fixture(params=["kernel", "science"])
def plots(request):
    """A kernel that imports matplotlib itself, and one that has it."""
    return request.getfixturevalue(request.param)


def figures(cell):
    shown = cell.of("display")
    assert all(d["image/png"].startswith(PNG) for d in shown)
    return len(shown)


def test_figures(plots):
    cell = plots.run(IMPORT + "plt.plot([1, 2]);")
    assert (cell.status, figures(cell), cell.err) == (0, 1, "")
    cell = plots.run("for i in range(3):\n    plt.figure()\n    plt.plot([i, 1])")
    assert figures(cell) == 3
    cell = plots.run("plt.plot([3])\nplt.show()\nprint('after')")
    assert [k for k, _ in cell.events] == ["display", "stdout"]
    assert figures(plots.run("1")) == 0
    cell = plots.run("plt.plot([1])\n1 / 0")
    assert cell.status == 1 and figures(cell) == 1
    assert [k for k, _ in cell.events] == ["display", "error"]
    assert figures(plots.run("%time plt.plot([1]);")) == 1
    cell = plots.run("fig, ax = plt.subplots()\nax.plot([1])\nfig")
    assert figures(cell) == 1 and cell.result["image/png"].startswith(PNG)
    assert figures(plots.run("fig.savefig('x.png')")) == 0
    assert plots.run("plt.get_fignums()").value == "[]"


def test_no_warning_and_no_font_search(kernel):
    cell = kernel.run("import matplotlib, os\nimport matplotlib.font_manager\n"
                      "os.path.islink(os.path.join(matplotlib.get_cachedir(), "
                      "os.listdir(matplotlib.get_cachedir())[0]))")
    assert (cell.value, cell.err) == ("True", "")


def test_the_directories_are_the_users_own(plots):
    # The attribute has had three names and two types.
    cell = plots.run("import matplotlib.texmanager, os, pathlib\nhome = os.path.expanduser('~')\n"
                     "tex, = (v for v in vars(matplotlib.texmanager.TexManager).values()\n"
                     "        if isinstance(v, (str, pathlib.Path)) and str(v).endswith('/tex.cache'))\n"
                     "pathlib.Path(matplotlib.get_configdir(), 'own').touch()\n"
                     "pathlib.Path(matplotlib.get_cachedir(), 'own').touch()\n"
                     "[os.path.relpath(path, home) for path in (matplotlib.get_configdir(), "
                     "matplotlib.get_cachedir(), tex)]")
    assert cell.value == ("['.config/matplotlib', '.cache/matplotlib', "
                          "'.cache/matplotlib/tex.cache']")


@pytest.mark.parametrize("end", ["", "plt.show()\n"])
def test_run_shows_each_figure_once(plots, end):
    plots.run("%matplotlib inline")
    plots.run("%%writefile plot.py\n" + IMPORT + "plt.plot([1, 2])\n" + end)
    assert figures(plots.run("%run plot.py")) == 1
    assert figures(plots.run("1")) == 0


def test_magics(science):
    assert figures(science.run("%matplotlib inline\n" + IMPORT + "plt.plot([1]);")) == 1
    cell = science.run("%matplotlib qt\nplt.plot([1]);")
    assert figures(cell) == 1 and "inline" in cell.err
    cell = science.run("%matplotlib nosuch")
    assert cell.status == 1 and "nosuch" in cell.of("error")[0]["text"] and not cell.err


def test_own_backend(science):
    cell = science.run("import matplotlib\nmatplotlib.use('Agg')\n" + IMPORT
                       + "plt.plot([1])\nplt.savefig('a.png')\nimport os\nos.listdir()")
    assert figures(cell) == 0 and cell.value == "['a.png']"


def test_figure_that_cannot_be_drawn(science):
    cell = science.run(IMPORT + "plt.title('$\\\\notacommand$');")
    assert cell.status == 1 and {e["name"] for e in cell.of("error")} == {"ValueError"}
    assert science.run("1").value == "1"


def test_pandas_plot(science):
    assert figures(science.run("import pandas as pd\npd.Series([1, 3]).plot();")) == 1


PREVIEW = {"image/png;preview=1", "image/jpeg;preview=1"}


def test_a_large_figure_has_a_preview(plots):
    cell = plots.run(IMPORT + "plt.figure(figsize=(20, 5), dpi=100)\nplt.plot([1, 2]);")
    [shown] = cell.of("display")
    assert int.from_bytes(shown["image/png"][16:20], "big") > 1500
    large = plots.run("plt.figure(figsize=(40, 10), dpi=100)\nplt.plot([1, 2]);").of("display")[0]
    size = large["image/png;preview=1"][16:24]
    assert large["image/png"].startswith(PNG) and int.from_bytes(size[:4], "big") == 1568
    assert not PREVIEW & set(plots.run("plt.plot([1]);").of("display")[0])


def test_a_heavy_picture_has_a_preview(science):
    cell = science.run("import os\nfrom PIL import Image\n"
                       "Image.frombytes('RGB', (1000, 1000), os.urandom(3000000))")
    assert len(cell.result["image/png"]) > 2000000
    assert 0 < len(cell.result["image/jpeg;preview=1"]) <= 525000


def test_what_is_no_picture_has_no_preview(kernel):
    cell = kernel.run("display({'image/png': b'\\x89PNG\\r\\n\\x1a\\n' + b'x' * 600000,\n"
                      "         'text/plain': 'p'}, raw=True)")
    assert (cell.status, cell.err) == (0, "")
    assert set(cell.of("display")[0]) == {"image/png", "text/plain"}
