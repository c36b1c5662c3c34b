#!/usr/bin/env python3
"""embed.py OUT PAGE [SKILL.md [FILE]...]...: files of the source tree as an array in C.

PAGE becomes ui://retort/result.html; the files of a skill follow its SKILL.md and become
skill://FOLDER/..., with the digests and the front matter that skills/list shows. A skill that clients
would refuse ends the build.
"""

import hashlib
import json
import re
import sys
from pathlib import Path

MIME = {".md": "text/markdown", ".py": "text/x-python", ".html": "text/html;profile=mcp-app"}


def front_matter(text, folder):
    """The plain `key: value` lines between the two marks, as YAML would read them."""
    found = re.match(r"---\n(.*?)\n---\n", text, re.S)
    assert found, "SKILL.md has no front matter"
    rows = [line.split(": ", 1) for line in found[1].splitlines()]
    assert all(len(row) == 2 and row[1][0] not in "\"'{[&*!|>%@`#" and " #" not in row[1]
               and ": " not in row[1] for row in rows), "front matter is plain `key: value` lines"
    fields = dict(rows)
    assert fields["name"] == folder, f"the skill {fields['name']} lies in {folder}/"
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", folder) and len(folder) <= 64
    assert len(fields["description"]) <= 1024, "the description is longer than 1,024 characters"
    return fields


def quote(text):
    return json.dumps(text) if text is not None else "NULL"


def row(number, uri, path, matter):
    data = path.read_bytes()
    text = [f"static const unsigned char bytes_{number}[] = {{"]
    for at in range(0, len(data), 16):
        text.append("    " + " ".join(f"0x{byte:02x}," for byte in data[at:at + 16]))
    text.append("};")
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    shown = json.dumps(matter) if matter else None
    return "\n".join(text), (
        f"    {{{quote(uri)}, {quote(path.name)}, {quote(MIME[path.suffix])}, "
        f"{{(const char *)bytes_{number}, sizeof(bytes_{number})}},\n     {quote(digest)}, {quote(shown)}}},")


def main(out, page, *files):
    folder, rows = None, [row(0, "ui://retort/result.html", Path(page), None)]
    for number, path in enumerate(map(Path, files), 1):
        is_skill = path.name == "SKILL.md"
        folder = path.parent if is_skill else folder
        uri = f"skill://{folder.name}/{path.relative_to(folder)}"
        rows.append(row(number, uri, path, front_matter(path.read_text(), folder.name) if is_skill else None))
    Path(out).write_text("\n".join([
        "/* Made by embed.py. */",
        '#include "doors/mcp/mcp_int.h"',
        "",
        *(data for data, _ in rows),
        "const struct embedded embedded[] = {",
        *(entry for _, entry in rows),
        "    {0},",
        "};",
        "",
    ]))


main(*sys.argv[1:])
