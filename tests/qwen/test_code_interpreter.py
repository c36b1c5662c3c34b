"""code_interpreter over plain HTTP: what a model writes goes in, Markdown comes out."""

import ast
import base64
import json
import re
import uuid
import zlib
from urllib.parse import quote, urlsplit

import pytest
from support import retort

FLAGS = ["--fetch-private", "--memory", "1G", "--timeout", "30"]
PNG = b"\x89PNG\r\n\x1a\n"
FENCE = "```"
TIMEOUT = f"error:\n\n{FENCE}\nTimeout: Code execution exceeded the time limit.\n{FENCE}"


def block(label, text):
    return f"{label}:\n\n{FENCE}\n{text}\n{FENCE}"


class Instance:
    """One instance of the tool: its own variables and files."""

    def __init__(self, client):
        self.client, self.name = client, uuid.uuid4().hex

    def post(self, body, **options):
        query = "&".join(f"{k}={quote(str(v), safe='')}" for k, v in
                         {"instance": self.name, **options}.items())
        body = body if isinstance(body, bytes) else body.encode()
        return self.client.post(f"/qwen/code_interpreter?{query}", body=body,
                                headers={"Content-Type": "text/plain"})

    def __call__(self, body, **options):
        return self.post(body, **options).expect(200).text


@pytest.fixture
def q(client):
    return Instance(client)


def links(text):
    return re.findall(r"!\[(fig-\d+)\]\(([^)]+)\)", text)


# --- what comes in ---

def test_q2_plain_string_code(q):
    assert q("print(2+2)") == block("stdout", "4\n")


def test_q3_json5_body(q):
    assert q("{code:'print(1)',}") == block("stdout", "1\n")
    assert q(json.dumps({"code": "print(2)"})) == block("stdout", "2\n")


def test_q4_fenced_with_prose(q):
    assert q(f"Sure:\n\n{FENCE}py\nprint(3)\n{FENCE}\nThat prints 3.") == block("stdout", "3\n")


def test_q5_two_fences_both_run(q):
    text = f"{FENCE}python\nx = 20\n{FENCE}\nand then\n{FENCE}\nprint(x + 2)\n{FENCE}"
    assert q(text) == block("stdout", "22\n")


def test_q6_fence_inside_json(q):
    assert q(json.dumps({"code": f"{FENCE}python\nprint(4)\n{FENCE}"})) == block("stdout", "4\n")


def test_q7_bare_json_literal_is_code(q):
    assert q("[1,2]") == block("execute_result", "[1, 2]")
    assert q('{"a":1}') == block("execute_result", "{'a': 1}")


def test_q8_empty_code_makes_no_session(q, client):
    before = len(client.all("/v1/sessions"))
    for blank in ("  ", "\n\n", '{"code": ""}'):
        answer = q.post(blank).expect(200)
        assert answer.text == "" and "x-qwen-session" not in answer.headers
    assert len(client.all("/v1/sessions")) == before


# --- state ---

def test_q9_persistent_state(q):
    assert q("x=42") == "Finished execution."
    assert q("print(x)") == block("stdout", "42\n")


def test_q35_two_instances_are_isolated(client):
    a, b = Instance(client), Instance(client)
    a("secret = 1; open('mine.txt', 'w').write('x')")
    assert "NameError" in b("secret")
    assert b("import os; os.listdir()") == block("execute_result", "[]")
    pids = b("print(sorted(int(p) for p in os.listdir('/proc') if p.isdigit()))")
    assert len(json.loads(pids.split("\n")[3])) <= 2


# --- what comes out ---

def test_q10_finished_execution(q):
    for code in ("x=1", "None", "5;"):
        assert q(code) == "Finished execution."


def test_q11_execute_result(q):
    assert q("1+1") == block("execute_result", "2")
    assert q("print('a')\n2") == block("stdout", "a\n") + "\n\n" + block("execute_result", "2")


def test_q12_labels_of_streams(q):
    code = "import sys\nprint('out')\nprint('err', file=sys.stderr)"
    assert q(code) == block("stdout", "out\n") + "\n\n" + block("stderr", "err\n")


def test_q13_error_is_one_line_or_whole(q):
    code = "def f():\n    return 1/0\nf()"
    assert q(code) == block("error", "ZeroDivisionError: division by zero\n")
    whole = q(code, traceback="full")
    assert 'line 2, in f' in whole and 'line 3, in <module>' in whole


def test_q13_chained_errors_keep_both_lines(q):
    code = "try:\n    1/0\nexcept Exception as e:\n    raise ValueError('no') from e"
    assert q(code) == block("error", "ZeroDivisionError: division by zero\n\n"
                            "The above exception was the direct cause of the following "
                            "exception:\n\nValueError: no\n")


def test_q14_right_line_numbers(q):
    text = q("for i in range(3) print(i)")
    assert re.search(r"Cell In \[\d+\], line 1\n    for i in range\(3\) print\(i\)\n", text)
    assert text.endswith(f"SyntaxError: invalid syntax\n\n{FENCE}")


def test_backticks_in_output_do_not_end_the_block(q):
    assert q("print('```')") == "stdout:\n\n````\n```\n\n````"


def test_html_is_not_lost(q):
    assert q("from IPython.display import HTML\nHTML('<b>hi</b>')") == \
        block("execute_result", "<b>hi</b>")


# --- images ---

def test_q15_image_on_show(q, client):
    (name, link), = links(q("plt.plot([1,2]);plt.show()"))
    assert name == "fig-001" and link.endswith(".png")
    got = client.get(urlsplit(link).path).expect(200)
    assert got.body.startswith(PNG) and got.headers["content-type"] == "image/png"


def test_q15_link_cannot_be_guessed(q, client):
    (_, link), = links(q("plt.plot([1,2]);plt.show()"))
    path = urlsplit(link).path
    execution, number, signature, tenant = path.split("/")[-1].split("-")
    assert client.get(path.replace(signature, "0" * 32)).status == 404
    assert client.get(path.replace(f"-{number}-", "-2-")).status == 404
    other = ("0" if tenant[0] != "0" else "1") + tenant[1:]
    assert client.get(path.replace(tenant, other)).status == 404


def test_a_link_does_not_tell_the_tenant(q):
    """Whoever is shown the text sees its links."""
    parts = [link.rpartition("-")[2].removesuffix(".png") for _, link in
             links(q("plt.figure(); plt.plot([1]); plt.figure(); plt.plot([2]); plt.show()"))]
    assert [len(p) for p in parts] == [128, 128] and parts[0] != parts[1]
    assert not any(b"local".hex() in p for p in parts)


def test_q16_images_are_counted_in_each_call(q):
    text = q("plt.plot([1,2])")
    assert text.startswith("execute_result:") and [n for n, _ in links(text)] == ["fig-001"]
    two = q("plt.figure(); plt.plot([1]); plt.figure(); plt.plot([2]); plt.show()")
    assert [n for n, _ in links(two)] == ["fig-001", "fig-002"]
    assert [n for n, _ in links(q("plt.plot([3]); plt.show()"))] == ["fig-001"]


def test_q17_image_as_last_value(q):
    text = q("from PIL import Image\nImage.new('RGB', (4, 4))")
    assert text.startswith("execute_result:") and len(links(text)) == 1


def test_q32_no_display_is_needed(q):
    assert len(links(q("import os\nassert 'DISPLAY' not in os.environ\nplt.plot([1]);plt.show()"))) == 1


def test_an_updated_display_comes_once(q):
    assert q("from IPython.display import display\n"
             "h = display({'text/plain': 'a'}, raw=True, display_id=True); print(1)\n"
             "h.update({'text/plain': 'b'}, raw=True)") == \
        block("display_data", "b") + "\n\n" + block("stdout", "1\n")


def test_of_an_image_that_is_left_out_the_preview_is_shown(q, client):
    (_, link), = links(q("from PIL import Image; import io; from IPython.display import display\n"
                         "f = io.BytesIO(); Image.new('RGB', (4, 4)).save(f, 'PNG')\n"
                         "display({'image/png;preview=1': f.getvalue()}, raw=True)"))
    assert client.get(urlsplit(link).path).expect(200).body.startswith(PNG)


# --- files ---

def test_q21_url_file_by_its_decoded_name(q, shelf):
    shelf.files["/a%20b.csv"] = b"n\n1\n"
    body = json.dumps({"code": "print(open('a b.csv').read())", "files": [shelf.url("/a%20b.csv?x=1")]})
    answer = q.post(body).expect(200)
    assert answer.text == block("stdout", "n\n1\n\n")


def test_q22_failed_file_is_reported_and_code_runs(q, shelf):
    text = q(json.dumps({"code": "print('ran')", "files": [shelf.url("/none.csv")]}))
    assert text.startswith("Note: the file ") and "none.csv" in text
    assert text.endswith(block("stdout", "ran\n"))


def test_q22_local_file_is_not_read_unless_allowed(q):
    text = q(json.dumps({"code": "print('ran')", "files": ["/etc/passwd"]}))
    assert "not below a folder" in text and text.endswith(block("stdout", "ran\n"))
    assert "NotFound" in q("open('passwd')")


def test_q40_uploaded_files_hint(q, shelf):
    shelf.files.update({"/d.csv": b"1", "/p.png": b"2"})
    body = json.dumps({"code": "1", "files": [shelf.url("/d.csv"), shelf.url("/p.png")]})
    assert q.post(body).headers["x-qwen-uploaded"] == "(Uploaded [file](d.csv) ![image](p.png)) "


# --- time ---

def test_q23_timeout_argument(q):
    assert q("import time; time.sleep(10)", timeout=1) == TIMEOUT
    assert q('{"code": "time.sleep(10)", "timeout": 1}') == TIMEOUT


@pytest.mark.parametrize("timeout", [0, None, "0"])
def test_q23_all_the_time_there_is(q, timeout):
    """Nobody asked for a number of seconds, so no note tells that it is less."""
    assert q(json.dumps({"code": "print(1)", "timeout": timeout})) == block("stdout", "1\n")
    assert "Note: 4000 s were asked for" in q(json.dumps({"code": "print(1)", "timeout": 4000}))


def test_q24_state_after_timeout(q):
    q("x = 7\nimport time")
    assert q("time.sleep(10)", timeout=1) == TIMEOUT
    assert q("print(x)") == block("stdout", "7\n")


def test_q25_timeout_cannot_be_swallowed(q):
    code = ("import time\nwhile True:\n    try:\n        time.sleep(10)\n"
            "    except BaseException:\n        pass")
    assert q(code, timeout=1).startswith(TIMEOUT)
    assert q("print('next')").endswith(block("stdout", "next\n"))


def test_q26_timeout_kills_children(q):
    code = "import subprocess, time\nsubprocess.Popen(['sleep', '61'])\ntime.sleep(60)"
    assert q(code, timeout=1) == TIMEOUT
    look = ("import glob\n[open(p).read() for p in glob.glob('/proc/[0-9]*/cmdline') "
            "if 'sleep' in open(p).read()]")
    retort.wait_until(lambda: q(look) == block("execute_result", "[]"), "the end of the child")


# --- what is there ---

def test_q27_input_is_disabled(q):
    assert q("input('name? ')") == \
        block("error", "NotImplementedError: Python input() function is disabled.\n")


def test_q28_preloaded_names(q):
    text = q("print(pd.__name__, np.__name__, plt.__name__, sns.__name__, Eq.__name__, math.__name__, "
             "json.__name__, re.__name__, os.__name__, matplotlib.__name__, signal.__name__, "
             "FontProperties.__name__, solve.__name__, symbols.__name__)")
    assert text == block("stdout", "pandas numpy matplotlib.pyplot seaborn Equality math json re os "
                         "matplotlib signal FontProperties solve symbols\n")


def test_q28_names_are_of_this_door_alone(client):
    assert client.post("/v1/execute", {"code": "np"}).json["outcome"]["status"] == "raised"


def test_q29_chinese_in_charts(q, client):
    text = q("plt.plot([1,2]); plt.title('中文标题'); plt.xlabel('−1 日本語 한국어'); plt.show()")
    assert "Glyph" not in text and "Warning" not in text
    assert len(links(text)) == 1


def test_q30_font_survives_a_theme(q):
    for call in ("sns.set_theme()", "sns.set_theme(\n    style='white',\n    font='sans-serif',\n)"):
        text = q(f"{call}\nplt.plot([1]); plt.title('中文'); plt.show()")
        assert "Glyph" not in text and "Error" not in text and len(links(text)) == 1


def test_q31_magics_shell_and_await(q):
    timed = q("%%time\nprint('in')")
    assert "in\n" in timed and "CPU times" in timed
    assert q("!echo hi") == block("stdout", "hi\n")
    assert q("import asyncio\nawait asyncio.sleep(0)\n3") == block("execute_result", "3")


def test_packages_of_the_page(q):
    code = "import numpy, pandas, matplotlib, seaborn, sklearn, scipy, sympy, openpyxl, PIL\nprint('all')"
    assert q(code) == block("stdout", "all\n")


# --- what goes wrong ---

def test_q33_dead_kernel_is_replaced(q):
    q("x = 1")
    dead = q("import os; os._exit(1)")
    assert dead.startswith("error:")
    after = q("print('back')")
    assert after.endswith(block("stdout", "back\n"))
    assert "variables are lost" in dead and "variables" not in after
    assert "NameError" in q("x")


def test_q39_wrapper_error_text(q):
    text = q.post("x = '" + "a" * (17 * 2**20) + "'")
    assert text.status >= 400
    assert text.text.startswith("An error occurred when calling tool `code_interpreter`:\nValueError: ")
    assert "\nTraceback:\n" in text.text


def test_bad_options_are_told(q):
    q.post("1", timeout="soon").refused(400)
    q.post('{"code": "1", "work_dir": "x"}').refused(400)
    q.post('{"code": "1", "files": 7}').refused(400)


# --- files by name ---

READ = "import os; print({n: open(n).read() for n in sorted(os.listdir()) if os.path.isfile(n)})"


def told(text):
    return ast.literal_eval(re.search(r"^\{.*\}$", text, re.M).group())


def test_files_without_names_of_their_own(q):
    urls = ["data:text/csv,a", "data:text/csv;base64,Yg==", "data:application/json,c", "data:text/csv;name=my%20own.csv,d"]
    text = q(json.dumps({"code": READ, "files": urls}))
    assert told(text) == {"download.csv": "a", "download-2.csv": "b", "download.json": "c", "my own.csv": "d"}
    assert text.startswith("Note: a second file named download.csv is here as download-2.csv.")


def test_files_of_the_same_name(q, shelf):
    shelf.files.update({"/one/same.txt": b"1", "/two/same.txt": b"2"})
    first, second = shelf.url("/one/same.txt"), shelf.url("/two/same.txt")
    assert told(q(json.dumps({"code": READ, "files": [first, second, first]}))) == {"same.txt": "1", "same-2.txt": "2"}


def test_files_with_their_bytes(q):
    files = [{"name": "a.txt", "content": "text"}, {"name": "b.txt", "content_base64": "Ynl0ZXM="},
             {"name": "c.txt", "url": "data:,fetched"}]
    answer = q.post(json.dumps({"code": READ, "files": files})).expect(200)
    assert told(answer.text) == {"a.txt": "text", "b.txt": "bytes", "c.txt": "fetched"}
    assert answer.headers["x-qwen-uploaded"] == "(Uploaded [file](a.txt) [file](b.txt) [file](c.txt)) "


@pytest.mark.parametrize("file", [{"content": "no name"}, {"name": "../x", "content": ""}, {"name": "a"}, 7,
                                  {"name": "a", "content": "", "url": "data:,"}])
def test_files_that_are_none(q, file):
    assert q.post(json.dumps({"code": "1", "files": [file]})).status == 400


def test_many_files(q):
    files = [{"name": f"{i}.txt", "content": str(i)} for i in range(300)]
    code = "print(sum(int(open(f'{i}.txt').read()) for i in range(300)))"
    assert q(json.dumps({"code": code, "files": files})) == block("stdout", "44850\n")


def test_upload_and_download(q, client):
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\n'
    body = head % b"C:\\in here\\one.txt" + b"1\r\n" + head % "zwölf.txt".encode() + b"12\r\n--x--\r\n"
    answer = client.post(f"/qwen/files?instance={q.name}", body=body,
                         headers={"Content-Type": "multipart/form-data; boundary=x"}).expect(200)
    assert answer.json == {"files": [{"name": "one.txt", "size": 1}, {"name": "zwölf.txt", "size": 2}]}
    said = client.post(f"/qwen/code_interpreter?instance={q.name}", body=f"{READ}; open('made', 'w').write('m')".encode(),
                       headers={"Content-Type": "text/plain", "Accept": "application/json"}).expect(200).json
    assert told(said["text"]) == {"one.txt": "1", "zwölf.txt": "12"}
    assert said["files"] == [{"path": "made", "change": "created"}] and said["session"] == answer.headers["x-qwen-session"]
    assert client.get(f"/qwen/files/made?instance={q.name}").expect(200).body == b"m"
    for wrong in (f"missing?instance={q.name}", "made?instance=nobody"):
        assert client.get(f"/qwen/files/{wrong}").status == 404


# --- what is left behind, and fonts ---

@pytest.mark.parametrize("start", ["os.system('sleep 97 &')", "os.system('setsid sleep 97 &')",
                                   "os.system('nohup sleep 97 >/dev/null 2>&1 &')"])
def test_q26_orphans_end_with_the_time(q, start):
    assert q(f"import time\n{start}\ntime.sleep(60)", timeout=1) == TIMEOUT
    assert q("!ps -eo args | grep -c '[s]leep 97'") == block("stdout", "0\n")


@pytest.mark.parametrize("code", [
    "plt.rcParams['font.sans-serif'] = ['SimHei', 'Microsoft YaHei']", "plt.rcParams['font.family'] = 'SimSun'",
    "plt.rc('font', family=['PingFang SC', 'sans-serif'])", "plt.xlabel('轴', fontname='KaiTi')",
    "plt.title('题', fontproperties=FontProperties(family='STSong'))"])
def test_q29_fonts_of_other_systems(q, code):
    text = q(f"import matplotlib.pyplot as plt\n{code}\nplt.plot([1, -2], label='图例')\nplt.ylabel('数量')\nplt.legend()\nplt.show()")
    assert re.fullmatch(r"!\[fig-001\]\(\S+\)", text)


# --- Excel as it was ---

# One sheet: n in its first cell, 5 below it. Compressed.
XLS = (
    "eNq7cF7wwcKNUg8Z0IAdAzPDv/+cDGxIYoxAzAnjCDAA5f//BzFhNAcQ/x8FQwpwcgAjko2VYTfvGXZQHILi+yEDE8MGloNAkoHhERDHMBQw+O"
    "XnpSrQETiB3ZDICHKDLZBkZJgDFOFjkAS7SghMJoNJYTC5HqxyD5h0AIv0gklboNoHjFEM5+39tCygqTiCSQksx8cAMnc7WM8tsIghgyjDCVAq"
    "rp/ACFHLyuBYlJmYMzgl5Fh4GJYwAOPNPTUvtSgx5wGDCDAClzB8/a/AwPAFllMPKIyK01eckQEo/gNVnB2L+GQmFgaGBob/CeAE3gosXNcwQy"
    "I48Q8DD7i8heI8LlDZC86rAih5lRechnmAZAoDP5gtCE7JAsDS+M/Kj5d8kwLs48EiDeDyGWKiKshihv8MjSAdQM18YBkmuLwWmK0NJpvApkqD"
    "2VJgUgSY/oC0WoAolOHWDFbTApZVA9pjDAaX7dWR2BpAduvrwB1yrY/tNYHsde4Pq0TWXbdfyKAE9HgKUD8INjPoMOowzpoJAjvtYTQjNMffBZ"
    "OSGLmfg0kA6vb/0KqKn+EvAxeYKQgmQSoY0VTUMXGBxQQZxEA1HpMQwzZwEDgg1XlcDKNgFIyCUTAKRsEoGAWjYBQMH8AIbfeD+h2gPgErtF/B"
    "Dh3X+QvE/0aHSYYtCGLIB8ISYMfUlSEPSBcxVJKUfsQYWBlhZjESqQc2XggC4UDbixiyGZLA7sgmOf0C+4WMyP4hWqMA9bIQqfb/I8WdNLYfAP"
    "L3t9U=")


def test_xls(q):
    sheet = base64.b64encode(zlib.decompress(base64.b64decode(XLS))).decode()
    body = {"code": "print(pd.read_excel('old.xls').n[0] + 1)", "files": [{"name": "old.xls", "content_base64": sheet}]}
    assert q(json.dumps(body)) == block("stdout", "6\n")
