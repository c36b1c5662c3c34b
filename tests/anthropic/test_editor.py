"""The text editor: on all files that commands reach."""

import base64
import importlib.util
import json
import pathlib
import random

import pytest

from talk import results

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


@pytest.fixture(scope="module")
def guest():
    path = pathlib.Path(__file__).parents[2] / "src/guest/py/retort_guest/edit.py"
    spec = importlib.util.spec_from_file_location("edit", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def edit(command, path, **more):
    return {"edit": {"command": command, "path": path, **more}}


# --- from outside ---


def test_everywhere_a_command_may_write(talk):
    """In /tmp, by $HOME, through links to files and folders, and in the workspace by either name."""
    made = results(talk.go([
        [edit("create", "/tmp/fib.py", file_text="print(1)\n"), edit("create", "~/b.txt", file_text="home"),
         edit("create", "deep/er/c.sh", file_text="echo c\n"), {"bash": "chmod 755 deep/er/c.sh; ln -s /tmp/fib.py link; ln -s deep folder"}],
        [edit("str_replace", "link", old_str="1", new_str="2"), edit("create", "folder/er/c.sh", file_text="echo d\n"),
         edit("view", "/workspace/deep/er/c.sh"), edit("view", "/mnt/data/deep")],
        [{"bash": "python3 /tmp/fib.py; cat $HOME/b.txt; ./deep/er/c.sh; readlink link"}]]))
    assert [r["is_file_update"] for r in (made[0], made[1], made[2], made[5])] == [False, False, False, True]
    assert made[4]["lines"] == ["-print(1)", "+print(2)"] and made[6]["content"] == "echo d"
    assert made[7]["content"] == "er/c.sh"
    assert made[8]["stdout"] == "2\nhomed\n/tmp/fib.py\n"


def test_folders(talk):
    shown = results(talk.go([[{"bash": "mkdir -p a/b/c e; touch a/x a/b/y a/b/c/z; ln -s a l; mkdir /tmp/t; touch /tmp/t/f"}],
                             [edit("view", "."), edit("view", "a/"), edit("view", "/tmp/t")]]))[1:]
    assert [line for line in shown[0]["content"].split("\n") if not line.startswith(("msg_", "input"))] == \
        ["a/b/", "a/x", "e/", "l/"]
    assert shown[1]["content"] == "b/c/\nb/y\nx" and shown[2]["content"] == "f"
    assert shown[2]["file_type"] == "text" and shown[2]["total_lines"] == 1


def test_what_it_makes_in_output_dir_is_handed_out(talk):
    message = talk.go([[edit("create", "$OUTPUT_DIR/report.md", file_text="# it\n"), edit("create", "$OUTPUT_DIR/deep/no.md", file_text="x")]])
    one, two = results(message)
    [file] = one["content"]
    assert file["type"] == "text_editor_code_execution_output" and file["filename"] == "report.md"
    assert talk.get(f"/v1/files/{file['file_id']}/content").body == b"# it\n"
    assert "content" not in two, "what is not at the top is not for the user"


@pytest.mark.parametrize("call, code", [
    ({}, "invalid_tool_input"), ({"command": "insert", "path": "a"}, "invalid_tool_input"),
    ({"command": "view"}, "invalid_tool_input"), ({"command": "view", "path": 7}, "invalid_tool_input"),
    ({"command": "view", "path": "a\0b"}, "invalid_tool_input"),
    ({"command": "view", "path": "nope"}, "file_not_found"), ({"command": "view", "path": "a/below"}, "file_not_found"),
    ({"command": "create", "path": "/etc/x", "file_text": ""}, "invalid_tool_input"),
    ({"command": "create", "path": "a"}, "invalid_tool_input"), ({"command": "create", "path": ".", "file_text": ""}, "invalid_tool_input"),
    ({"command": "create", "path": "a/below", "file_text": ""}, "invalid_tool_input"),
    ({"command": "view", "path": "a", "view_range": [9, 9]}, "invalid_tool_input"),
    ({"command": "view", "path": "a", "view_range": [2, 1]}, "invalid_tool_input"),
    ({"command": "str_replace", "path": "a", "old_str": "", "new_str": "x"}, "invalid_tool_input"),
    ({"command": "str_replace", "path": "a", "old_str": "no", "new_str": "x"}, "invalid_tool_input"),
    ({"command": "str_replace", "path": "a", "old_str": "x", "new_str": "y"}, "invalid_tool_input"),
    ({"command": "str_replace", "path": "a", "old_str": "b", "new_str": "b"}, "invalid_tool_input"),
    ({"command": "str_replace", "path": "a", "old_str": "b", "new_str": []}, "invalid_tool_input"),
    ({"command": "str_replace", "path": "nope", "old_str": "x"}, "file_not_found"),
    ({"command": "view", "path": "bin"}, "invalid_tool_input"), ({"command": "view", "path": "big"}, "invalid_tool_input"),
    ({"command": "view", "path": "pipe"}, "invalid_tool_input"), ({"command": "view", "path": "dangling"}, "file_not_found"),
])
def test_refused(guest, call, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_bytes(b"xbx")
    (tmp_path / "bin").write_bytes(b"a\0b")
    with open("big", "wb") as file:
        file.truncate(17 << 20)
    guest.os.mkfifo("pipe")
    guest.os.symlink("nowhere", "dangling")
    if call.get("path") == "/etc/x":
        call = {**call, "path": "/proc/nothing-here/x"}
    result = guest.run(call)
    assert result["error_code"] == code or call["path"].startswith("/proc") and "error_code" in result
    assert result["error_message"] and (tmp_path / "a").read_bytes() == b"xbx"
    json.dumps(result)


def test_an_error_names_the_file_that_was_asked_for(guest):
    wrong = guest.run({"command": "create", "path": "/proc/a-new-one", "file_text": "x"})
    assert wrong["error_message"].startswith("/proc/a-new-one: ")


def test_edits_are_on_record(talk):
    message = talk.go([[edit("create", "recorded.txt", file_text="é \"quoted\" \\ EDIT\nEDIT\n")], [edit("view", "recorded.txt")]])
    assert results(message)[1]["content"] == "é \"quoted\" \\ EDIT\nEDIT"
    session = "sess_" + message["container"]["id"].removeprefix("container_")
    rows = [row for row in talk.client.all("/v1/executions") if row["session"] == session]
    codes = [talk.client.get("/v1/executions/" + row["id"]).json["code"] for row in rows]
    assert len(codes) == 2 and any('"command":"create"' in code and "recorded.txt" in code for code in codes)


def test_a_long_text(talk):
    text = "".join(f"line {n} of many\n" for n in range(20000))
    made, shown = results(talk.go([[edit("create", "long.txt", file_text=text)], [edit("view", "long.txt", view_range=[19999, -1])]]))
    assert made["is_file_update"] is False
    assert shown["content"] == "line 19998 of many\nline 19999 of many" and shown["total_lines"] == 20000


def test_pictures_come_as_base64(talk):
    code = base64.b64encode(PNG).decode()
    shown = results(talk.go([[{"bash": f"echo {code} | base64 -d > p.png; printf '%%PDF-1.4' > d.pdf"}],
                             [edit("view", "p.png"), edit("view", "d.pdf")]]))[1:]
    assert [s["file_type"] for s in shown] == ["image", "pdf"] and shown[0]["num_lines"] is None
    assert base64.b64decode(shown[0]["content"]) == PNG and base64.b64decode(shown[1]["content"]) == b"%PDF-1.4"


# --- hunks ---


def told(guest, before, after):
    h = guest.hunk(before.encode(), after.encode())
    return "%d,%d %d,%d" % (h["old_start"], h["old_lines"], h["new_start"], h["new_lines"]), h["lines"]


@pytest.mark.parametrize("before, after, place, lines", [
    ("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nV\n6\n7\n8\n9\n", "2,7 2,7", [" 2", " 3", " 4", "-5", "+V", " 6", " 7", " 8"]),
    ("1\n2\n", "V\n2\n", "1,2 1,2", ["-1", "+V", " 2"]), ("1\n", "", "1,1 0,0", ["-1"]), ("", "1\n", "0,0 1,1", ["+1"]),
    ("1\n3\n", "1\n2\n3\n", "1,2 1,3", [" 1", "+2", " 3"]),
    ("a\nb\nc\nd\ne\n", "X\nb\nc\nd\nY\n", "1,5 1,5", ["-a", "+X", " b", " c", " d", "-e", "+Y"]),
    ("1\n2", "V\n2", "1,2 1,2", ["-1", "+V", " 2", "\\ No newline at end of file"]),
    ("1\n2", "1\n2\n", "1,2 1,2", [" 1", "-2", "\\ No newline at end of file", "+2"]),
    ("a\r\nb\r\n", "a\r\nc\r\n", "1,2 1,2", [" a\r", "-b\r", "+c\r"])])
def test_hunks(guest, before, after, place, lines):
    assert told(guest, before, after) == (place, lines)


def test_a_hunk_can_be_applied(guest):
    chance = random.Random(1)
    for _ in range(500):
        before, after = ([chance.choice("abcd") + "\n" for _ in range(chance.randrange(20))] for _ in range(2))
        if before == after:
            continue
        h = guest.hunk("".join(before).encode(), "".join(after).encode())
        first = h["old_start"] - (h["old_lines"] > 0)
        got = before[:first] + [line[1:] + "\n" for line in h["lines"] if line[0] != "-"] + before[first + h["old_lines"]:]
        assert got == after and [line[1:] + "\n" for line in h["lines"] if line[0] != "+"] == \
            before[first:first + h["old_lines"]]


def test_a_hunk_that_is_too_long(guest):
    h = guest.hunk(b"x" * (400 << 10), b"y")
    assert h["lines"] is None and (h["old_lines"], h["new_lines"]) == (1, 1)
    h = guest.hunk(b"\n" * (400 << 10), b"\n" * 100)
    assert h["lines"] is None and h["old_lines"] - h["new_lines"] == (400 << 10) - 100
