"""Sends well-formed messages with contents nobody expects: types with line breaks, a thousand
parts, a thousand frames, bytes that are no text.

What is no bundle and no error ends the session. What may be one is data, in a valid document.
"""

from guest import WIRE
from outside import cell, same

TOOLS = """
def part(mime, data):
    return field(TAG_MIME, mime) + field(TAG_DATA, data)

frame = field(12, b"<cell 1>") + number(13, 2**64 - 1) + field(14, b"f") + field(15, b"x")
w = wire()
"""

BODIES = {
    "a line break in a type": ("MSG_DISPLAY", "part(b'text/plain\\r\\nX: y', b'x')"),
    "no type": ("MSG_DISPLAY", "part(b'', b'')"),
    "a long type": ("MSG_DISPLAY", "part(b'a' * 5000, b'x')"),
    "every byte": ("MSG_DISPLAY", "part(b'text/plain', bytes(range(256)))"),
    "data without type": ("MSG_DISPLAY", "field(TAG_DATA, b'x') * 3"),
    "types without data": ("MSG_DISPLAY", "field(TAG_MIME, b'text/plain') * 3"),
    "a thousand parts": ("MSG_DISPLAY", "part(b'text/plain', b'x') * 1000"),
    "a thousand frames": ("MSG_ERROR", "field(6, b'E') + field(5, b'm') + frame * 600"),
    "no name": ("MSG_ERROR", "field(6, b'') + field(5, bytes(range(256)))"),
}
DATA = {"every byte": "ok", "no name": "raised"}


def check(box):
    guests = {name: WIRE + TOOLS + f"w.send(packet({kind}, {body}))\ntime.sleep(0.1)"
              for name, (kind, body) in BODIES.items()}
    same(box.outcomes(guests), {name: DATA.get(name, "session_lost") for name in BODIES}, "outcomes")
    for status, exit in (("ok", 0), ("raised", 1), ("session_lost", 3)):
        name = next(n for n in BODIES if DATA.get(n, "session_lost") == status)
        run = box.run(cell(guests[name]))
        same([name, run.status(0), run.exit], [name, status, exit], "outcome and exit status")
