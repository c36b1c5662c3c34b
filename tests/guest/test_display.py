"""Displays and values as MIME bundles."""

import json


def shown(cell):
    assert cell.status == 0, cell.events
    return cell.of("display")


def test_classes_of_ipython(kernel):
    cell = kernel.run("from IPython.display import *\n"
                      "display(HTML('<b>x</b>'), Markdown('# t'), Latex('$x$'), SVG('<svg/>'),\n"
                      "        JSON({'a': [1, 2]}), Javascript('1'))")
    html, markdown, latex, svg, data, script = shown(cell)
    assert html["text/html"] == "<b>x</b>"
    assert markdown["text/markdown"] == "# t"
    assert latex["text/latex"] == "$x$"
    assert svg["image/svg+xml"] == "<svg/>"
    assert json.loads(data["application/json"]) == {"a": [1, 2]}
    assert script["application/javascript"] == b"1"


PNG = b"\x89PNG\r\n\x1a\n"


def test_images_are_bytes(kernel):
    cell = kernel.run("from IPython.display import Image\nfrom PIL import Image as P\n"
                      "p = P.new('RGB', (3, 2), 'red')\np.save('a.png')\np.save('a.jpg')\n"
                      "display(p, Image('a.png'), Image('a.jpg'))\np")
    first, second, third = shown(cell)
    assert first["image/png"].startswith(PNG) and second["image/png"].startswith(PNG)
    assert third["image/jpeg"].startswith(b"\xff\xd8\xff")
    assert cell.result["image/png"].startswith(PNG)


def test_raw_bundles(kernel):
    cell = kernel.run("import base64\n"
                      "png = base64.b64encode(b'raw').decode()\n"
                      "display({'text/plain': 'p', 'image/png': png, 'image/gif': 'no base64!',\n"
                      "         'application/vnd.x+json': {'n': float('nan')},\n"
                      "         'application/json': [1]}, raw=True)")
    assert shown(cell) == [{"text/plain": "p", "image/png": b"raw",
                            "application/vnd.x+json": b'{"n": null}', "image/gif": b"no base64!",
                            "application/json": "[1]"}]


def test_a_word_that_display_does_not_know(kernel):
    assert kernel.run("display(1, sep='-')").error["name"] == "TypeError"


def test_update(kernel):
    cell = kernel.run("h = display('one', display_id='spot')\nh.update('two')\n"
                      "display('three', display_id=True);")
    one, two, three = shown(cell)
    assert one == {"text/plain": "'one'", "id": "spot"}
    assert two == {"text/plain": "'two'", "id": "spot", "flags": 1}
    assert three["id"]


def test_clear(kernel):
    cell = kernel.run("from IPython.display import clear_output\nprint('a')\nclear_output()\n"
                      "clear_output(wait=True)\nprint('b')")
    assert cell.events == [("stdout", "a\n"), ("clear", 0), ("clear", 1), ("stdout", "b\n")]


def test_repr_methods(kernel):
    cell = kernel.run("class R:\n    def _repr_html_(self):\n        return '<i>r</i>'\n"
                      "    def __repr__(self):\n        return 'r'\nR()")
    assert cell.result == {"text/plain": "r", "text/html": "<i>r</i>"}
    cell = kernel.run("class M:\n    def _repr_mimebundle_(self, **kw):\n"
                      "        return {'text/plain': 'm', 'x/y': 'z'}\nM()")
    assert cell.result == {"text/plain": "m", "x/y": b"z"}
    cell = kernel.run("class D:\n    def _ipython_display_(self):\n        print('own')\nD()")
    assert cell.events == [("stdout", "own\n")]


def test_broken_repr(kernel):
    cell = kernel.run("class B:\n    def __repr__(self):\n        raise ValueError('no repr')\nB()")
    assert cell.status == 1
    assert (cell.error["name"], cell.error["text"]) == ("ValueError", "no repr")
    assert cell.error["frames"] == [["<cell 1>", 3, "__repr__", "raise ValueError('no repr')"]]
    cell = kernel.run("class C:\n    def __repr__(self):\n        return 5\nC()")
    assert cell.status == 1 and cell.error["name"] == "TypeError"
    assert kernel.run("1").value == "1"


def test_display_that_is_too_large(kernel):
    cell = kernel.run("display({'text/plain': 'small', 'text/html': 'x' * 9_000_000}, raw=True)")
    assert shown(cell) == [{"text/plain": "small"}]
    assert "text/html of 9000000 bytes left out" in cell.err
    assert cell.events[0][0] == "stderr"


def test_value_that_is_too_large(kernel):
    cell = kernel.run("'x' * 9_000_000")
    assert cell.value.startswith("'xxx") and "bytes left out" in cell.value
    assert len(cell.value) < 2_000_000


def test_large_bundle_in_several_packets(kernel):
    cell = kernel.run("from IPython.display import HTML\nHTML('y' * 1_000_000)")
    assert cell.result["text/html"] == "y" * 1_000_000


def test_lone_surrogates(kernel):
    cell = kernel.run("class S:\n    def __repr__(self):\n        return '\\udcff'\nS()")
    assert cell.value == "\\udcff"


def test_frame(science):
    cell = science.run("import pandas as pd\npd.DataFrame({'a': [1, 2]})")
    assert "<table" in cell.result["text/html"]
    assert cell.value.split() == ["a", "0", "1", "1", "2"]


def test_wide_frame_keeps_its_columns(science, kernel):
    for each in (science, kernel):
        cell = each.run("import pandas as pd\n"
                        "pd.DataFrame([[1] * 18], columns=['column %d' % i for i in range(18)])")
        assert "column 9" in cell.value and "column 9" in cell.result["text/html"]


def test_a_package_that_registers_comms_when_imported(kernel):
    """As ipywidgets does: with the kernel of a shell that has one."""
    kernel.run("%%writefile widgets.py\nfrom IPython import get_ipython\n"
               "kernel = get_ipython().kernel\n"
               "kernel.comm_manager.register_target('own', print)\n")
    cell = kernel.run("import sys; sys.path.insert(0, '')\nimport widgets\n"
                      "comms = widgets.kernel.comm_manager\n"
                      "comms.targets['own'] is print, comms.get_comm('none')")
    assert (cell.value, cell.status) == ("(True, None)", 0)
    assert kernel.run("comms.unregister_target('own', print); list(comms.targets)").value == "[]"


def test_a_result_without_anything_to_show(kernel):
    cell = kernel.run("class Bare:\n    def _repr_mimebundle_(self, **kwargs):\n"
                      "        return {'text/plain': None, 'no type': 'x'}\nBare()")
    assert (cell.events, cell.status) == ([], 0)
    assert kernel.run("type(_).__name__").value == "'Bare'"
