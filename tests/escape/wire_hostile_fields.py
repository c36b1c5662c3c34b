"""Sends well-formed messages with contents nobody expects: types with line breaks, a thousand parts, a thousand frames, bytes that are no text.

Whatever comes through is data in a valid document.
"""

from guest import WIRE
from harness import cell, same

BODIES = {
    "names": "field(TAG_MIME, b'text/plain\\r\\nX: y') + field(TAG_DATA, b'x') + field(TAG_MIME, b'') + field(TAG_DATA, b'') + field(TAG_MIME, b'a' * 5000) + field(TAG_DATA, b'x')",
    "bytes": "field(TAG_MIME, b'text/plain') + field(TAG_DATA, bytes(range(256)))",
    "orphans": "field(TAG_DATA, b'x') * 3 + field(TAG_MIME, b'text/plain') * 3",
    "many": "(field(TAG_MIME, b'text/plain') + field(TAG_DATA, b'x')) * 1000",
    "frames": "field(6, b'E') + field(5, b'm') + (field(12, b'<cell 1>') + number(13, 2**64 - 1) + field(14, b'f') + field(15, b'x')) * 600",
}


def check(box):
    sends = "".join(f"w.send(packet({'MSG_ERROR' if n == 'frames' else 'MSG_DISPLAY'}, {b}))\ntime.sleep(0.05)\n" for n, b in BODIES.items())
    for part in (sends, *[f"w.send(packet(MSG_DISPLAY, {b}))\n" for b in list(BODIES.values())[:1]]):
        run = box.run(cell(WIRE + "w = wire()\n" + part))
        same([run.status(0), run.exit], ["session_lost", 3], "outcome and exit status")
