"""Files made, changed and removed by an execution are found and told."""

import pytest

from support import retort

session = retort.Session()

MIME = {
    "a.csv": "text/csv", "a.txt": "text/plain", "a.png": "image/png", "a.jpg": "image/jpeg",
    "a.svg": "image/svg+xml", "a.json": "application/json", "a.html": "text/html",
    "a.pdf": "application/pdf", "a.zip": "application/zip", "a.md": "text/markdown",
    "a.xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "A.PNG": "image/png", "noending": "application/octet-stream", ".hidden": "application/octet-stream",
    "a.unknownending": "application/octet-stream",
}
NAMES = ["with space.txt", "Grüße.txt", "数据.csv", "🎉.txt", "quote\".txt", "back\\slash.txt",
         "-dash.txt", "a'b.txt", "new\nline.txt", "tab\t.txt"]

created = session.cell("open('data.csv', 'w').write('a,b\\n1,2\\n')")
untouched = session.cell("open('data.csv').read()")
changed = session.cell("open('data.csv', 'a').write('3,4\\n');")
rewritten = session.cell("open('data.csv', 'w').write('x,y\\n5,6\\n7,8\\n');")
renamed = session.cell("import os\nos.rename('data.csv', 'moved.csv')")
deleted = session.cell("os.remove('moved.csv')")
kinds = session.cell(f"for name in {list(MIME)!r}:\n    open(name, 'w').write('12345')\n")
folders = session.cell("os.makedirs('one/two/three')\nopen('one/two/three/deep.txt', 'w').write('deep');\n"
                       "open('one/top.txt', 'w').close()\nos.mkdir('empty')")
folder_gone = session.cell("import shutil\nshutil.rmtree('one')")
names = session.cell(f"for name in {NAMES!r}:\n    open(name, 'w').close()\n")
brief = session.cell("open('brief.txt', 'w').write('x'); os.remove('brief.txt')")
both = session.cell("open('late.txt', 'w').write('in spite of it')\n1 / 0")
touched = session.cell("os.utime('late.txt')")
same_size = session.cell("open('late.txt', 'w').write('In Spite Of It');")
linked = session.cell("os.symlink('/etc/passwd', 'link.txt'); os.mkfifo('pipe.txt')")
elsewhere = session.cell("open('/tmp/other.txt', 'w').write('x'); open('/dev/shm/other', 'w').write('x');")
imported = session.cell("open('mod.py', 'w').write('v = 1\\n')\nimport mod")
by_child = session.cell("!printf abc > by-child.txt")
by_command = session.shell("printf abcd > by-command.txt; rm by-child.txt")
seen_by_cell = session.cell("open('by-command.txt').read()")
binary = session.cell("open('zeros.bin', 'wb').write(bytes(3_000_000));")


def test_created_changed_deleted():
    assert created.files == {"data.csv": ("created", 8, "text/csv")}
    assert untouched.files == {}
    assert changed.files == {"data.csv": ("changed", 12, "text/csv")}
    assert rewritten.files == {"data.csv": ("changed", 12, "text/csv")}
    assert renamed.files == {"data.csv": ("deleted", 0, "text/csv"),
                             "moved.csv": ("created", 12, "text/csv")}
    assert deleted.files == {"moved.csv": ("deleted", 0, "text/csv")}


def test_same_size_is_still_a_change():
    assert same_size.files == {"late.txt": ("changed", 14, "text/plain")}
    assert set(touched.files) <= {"late.txt"}


def test_mime_types():
    assert kinds.files == {name: ("created", 5, mime) for name, mime in MIME.items()}


def test_folders():
    assert folders.files == {"one/two/three/deep.txt": ("created", 4, "text/plain"),
                             "one/top.txt": ("created", 0, "text/plain")}
    assert {p: c for p, (c, _, _) in folder_gone.files.items()} == {
        "one/two/three/deep.txt": "deleted", "one/top.txt": "deleted"}


def test_names():
    assert set(names.files) == set(NAMES)


def test_files_that_came_and_went():
    assert brief.files == {}


def test_files_of_a_cell_that_raised():
    assert both.status == "raised"
    assert both.files == {"late.txt": ("created", 14, "text/plain")}
    assert both.events[-1]["type"] == "file"


def test_only_regular_files_of_the_workspace():
    assert linked.files == {}
    assert elsewhere.files == {}
    assert set(imported.files) == {"mod.py"}


def test_files_of_other_processes():
    assert by_child.files == {"by-child.txt": ("created", 3, "text/plain")}
    assert by_command.files == {"by-command.txt": ("created", 4, "text/plain"),
                                "by-child.txt": ("deleted", 0, "text/plain")}
    assert seen_by_cell.result == "'abcd'" and seen_by_cell.files == {}


def test_size():
    assert binary.files == {"zeros.bin": ("created", 3_000_000, "application/octet-stream")}


@pytest.mark.parametrize("answer", [created, changed, deleted, folders, brief, linked, binary])
def test_status(answer):
    assert answer.status == "ok"
