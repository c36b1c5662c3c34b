"""The text editor tool: one call on standard input as JSON, the content of its result on standard output.

It is a command in the sandbox, so it reaches what the user's own commands reach, and nothing else. What
another program writes to the file between reading and writing is lost. Runs with any Python 3, without its
site packages and without our own.
"""

import base64
import difflib
import errno
import json
import os
import re
import sys
import tempfile

READ_MAX = 16 << 20  # of a file that is viewed or changed
PICTURE_MAX = 5 << 20
VIEW_MAX = 256 << 10  # of text; total_lines shows that there is more
HUNK_MAX = 256 << 10  # past that only numbers of lines are given
FOLDER_MAX = 1000  # names
FOLDER_DEEP = 2  # levels
CONTEXT = 3
CELLS_MAX = 1000 * 1000  # removed lines times added lines that are compared
TYPE = "text_editor_code_execution_"

PICTURES = re.compile(rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|RIFF.{4}WEBP", re.DOTALL)


class Wrong(Exception):
    code = "invalid_tool_input"


class Missing(Wrong):
    code = "file_not_found"


def text_of(data):
    return data.decode("utf-8", "replace")


# --- the call ---


def path_of(call):
    path = call.get("path")
    if not isinstance(path, str) or not path:
        raise Wrong("path is missing")
    if "\0" in path:
        raise Wrong("the path holds a NUL")
    found = re.match(r"\$(INPUT_DIR|OUTPUT_DIR|HOME)(?=/|$)|\$\{(INPUT_DIR|OUTPUT_DIR|HOME)\}(?=/|$)|~(?=/|$)", path)
    if found:
        name = found.group(1) or found.group(2) or "HOME"
        path = os.environ.get(name, "/tmp") + path[found.end():]
    return path.rstrip("/") or "/"


def string(call, name, text):
    value = call.get(name)
    if not isinstance(value, str):
        raise Wrong("%s is missing: %s" % (name, text))
    return value.encode("utf-8", "surrogatepass")


# --- reading and writing ---


def read(path):
    """Follows links. Never waits for a FIFO that somebody has put there."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise Missing("there is no file or folder %s" % path) from None
    with open(fd, "rb") as file:
        kind = os.fstat(fd).st_mode & 0o170000
        if kind == 0o040000:
            raise Wrong("%s is a folder" % path)
        if kind != 0o100000:
            raise Wrong("%s is no regular file" % path)
        size = os.fstat(fd).st_size
        if size > READ_MAX:
            raise Wrong("%s has %d bytes, and the editor reads %d: use a command" % (path, size, READ_MAX))
        return file.read(READ_MAX + 1)


def write(path, data):
    """The whole file or none of it. A link stays a link, and a script that can be run stays one."""
    path = os.path.realpath(path)
    if os.path.isdir(path):
        raise Wrong("%s is a folder" % path)
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    try:
        mode = os.stat(path).st_mode & 0o7777
    except OSError:
        mode = 0o666 & ~umask()
    try:
        fd, name = tempfile.mkstemp(prefix=".retort-upload-", dir=folder)
    except PermissionError:
        fd = name = None  # a file of ours in a folder that is not
    except OSError as e:
        e.filename = path  # not the name that nobody has asked for
        raise
    if name is None:
        with open(path, "wb") as file:
            file.write(data)
        return
    try:
        with open(fd, "wb") as file:
            file.write(data)
            os.fchmod(fd, mode)
        os.rename(name, path)
    except BaseException:
        os.unlink(name)
        raise


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


# --- view ---


def view_result(kind, content, lines=None, first=None, total=None):
    return {"type": TYPE + "view_result", "file_type": kind, "content": content, "num_lines": lines,
            "start_line": first, "total_lines": total}


def lines_of(data):
    return data.split(b"\n")[:-1] if data.endswith(b"\n") else data.split(b"\n") if data else []


def range_of(call):
    given = call.get("view_range")
    if given is None:
        return 1, -1
    if (not isinstance(given, list) or len(given) != 2 or not all(type(n) is int for n in given)
            or given[0] < 1 or given[1] != -1 and given[1] < given[0]):
        raise Wrong("view_range is [first, last] with 1 <= first <= last, or last = -1")
    return given


def fitting(lines):
    """As many of the lines as fit; a part of the first one when it alone is too long."""
    size = 0
    for i, line in enumerate(lines):
        size += len(line) + 1
        if size > VIEW_MAX + 1 and i > 0:
            return lines[:i]
    if lines and len(lines[0]) > VIEW_MAX:
        return [text_of(lines[0][:VIEW_MAX]).rstrip("\ufffd").encode()]
    return lines


def view_folder(path):
    names = []
    for folder, folders, files in os.walk(path):
        below = os.path.relpath(folder, path)
        deep = 0 if below == "." else below.count("/") + 1
        names += [os.path.normpath(os.path.join(below, name)) for name in files]
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        names += [os.path.normpath(os.path.join(below, name)) + "/" for name in folders
                  if deep + 1 >= FOLDER_DEEP or name in links or not os.listdir(os.path.join(folder, name))]
        folders[:] = sorted(set(folders) - set(links)) if deep + 1 < FOLDER_DEEP else []
    names.sort()
    shown = fitting([os.fsencode(name) for name in names[:FOLDER_MAX]])
    return view_result("text", text_of(b"\n".join(shown)), len(shown), 1, len(names))


def view(call, path):
    if os.path.isdir(path):
        return view_folder(path)
    data = read(path)
    kind = "image" if PICTURES.match(data) else "pdf" if data.startswith(b"%PDF-") else "text"
    if kind != "text":
        if len(data) > PICTURE_MAX:
            raise Wrong("the file has %d bytes; at most %d of a picture or PDF are shown" % (len(data), PICTURE_MAX))
        return view_result(kind, base64.b64encode(data).decode())
    first, last = range_of(call)
    if b"\0" in data:
        raise Wrong("the file is no text; look at it with a command")
    lines = lines_of(data)
    if first > max(len(lines), 1):
        raise Wrong("view_range begins at line %d, and the file has %d" % (first, len(lines)))
    shown = fitting(lines[first - 1:None if last == -1 else last])
    return view_result("text", text_of(b"\n".join(shown)), len(shown), first, len(lines))


# --- create ---


def create(call, path):
    data = string(call, "file_text", "the text of the file")
    there = os.path.exists(path)
    if os.path.isdir(path):
        raise Wrong("path names a folder")
    write(path, data)
    return {"type": TYPE + "create_result", "is_file_update": there}


# --- str_replace ---


def changed_lines(old, new):
    """(mark, line) of each line of the two lists."""
    if len(old) * len(new) > CELLS_MAX:
        return [("-", line) for line in old] + [("+", line) for line in new]
    out = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            out += [(" ", line) for line in old[a:b]]
        else:
            out += [("-", line) for line in old[a:b]] + [("+", line) for line in new[c:d]]
    return out


def hunk(before, after):
    """One hunk of a unified diff, as a result has room for one."""
    a, b = whole_lines(before), whole_lines(after)
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    first = max(start - CONTEXT, 0)
    rows = [(" ", line) for line in a[first:start]]
    rows += changed_lines(a[start:len(a) - end], b[start:len(b) - end])
    rows += [(" ", line) for line in a[len(a) - end:len(a) - end + CONTEXT]]
    old = sum(mark != "+" for mark, _ in rows)
    new = sum(mark != "-" for mark, _ in rows)
    lines = []
    for mark, line in rows:
        lines.append(mark + text_of(line[:-1] if line.endswith(b"\n") else line))
        if not line.endswith(b"\n"):
            lines.append("\\ No newline at end of file")
    return {"type": TYPE + "str_replace_result", "old_start": first + (old > 0), "old_lines": old,
            "new_start": first + (new > 0), "new_lines": new,
            "lines": lines if sum(map(len, lines)) <= HUNK_MAX else None}


def whole_lines(data):
    """Lines with their newlines; a carriage return ends none."""
    lines = data.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def str_replace(call, path):
    old = string(call, "old_str", "the text to be replaced") if call.get("old_str") else b""
    new = call.get("new_str")
    if not old:
        raise Wrong("old_str is missing: the text to be replaced")
    if new is not None and not isinstance(new, str):
        raise Wrong("new_str is no string")
    new = (new or "").encode("utf-8", "surrogatepass")
    if old == new:
        raise Wrong("old_str and new_str are the same")
    data = read(path)
    if b"\0" in data:
        raise Wrong("%s is no text; change it with a command" % path)
    at = data.find(old)
    if at < 0:
        raise Wrong("old_str is not in %s: it has to be there exactly as it is given" % path)
    again = data.find(old, at + 1)
    if again >= 0:
        raise Wrong("old_str is in %s more than once, at lines %d and %d: give more of the lines around it"
                    % (path, data.count(b"\n", 0, at) + 1, data.count(b"\n", 0, again) + 1))
    after = data[:at] + new + data[at + len(old):]
    result = hunk(data, after)
    write(path, after)
    return result


COMMANDS = {"view": view, "create": create, "str_replace": str_replace}


def refusal(code, text):
    return {"type": TYPE + "tool_result_error", "error_code": code, "error_message": text}


def run(call):
    command = COMMANDS.get(call.get("command"))
    try:
        if not command:
            raise Wrong("command is one of view, create and str_replace")
        return command(call, path_of(call))
    except Wrong as wrong:
        return refusal(wrong.code, str(wrong))
    except OSError as error:
        code = Missing.code if error.errno == errno.ENOENT else Wrong.code
        return refusal(code, "%s: %s" % (error.filename or call.get("path"), error.strerror))


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(json.loads(sys.stdin.buffer.read()))))
