"""Hands out archives and pictures that grow without end when opened: nested zips, a gzip, a PNG
of 2^31 pixels.

The host opens nothing: an artifact is bytes, copied as they are.
"""

import hashlib

from outside import cell, holds, same

GUEST = """
import gzip, hashlib, io, zipfile, zlib

zeros = bytes(10 << 20)
level = io.BytesIO()
with zipfile.ZipFile(level, "w", zipfile.ZIP_DEFLATED) as z:
    z.writestr("0", zeros)
for n in range(3):
    outer = io.BytesIO()
    with zipfile.ZipFile(outer, "w", zipfile.ZIP_DEFLATED) as z:
        for i in range(10):
            z.writestr(f"{i}.zip", level.getvalue())
    level = outer
chunk = (
    lambda kind, data: struct.pack(">I", len(data))
    + kind
    + data
    + struct.pack(">I", zlib.crc32(kind + data))
)
png = (
    b"\\x89PNG\\r\\n\\x1a\\n"
    + chunk(b"IHDR", struct.pack(">IIBBBBB", 0x7FFFFFFF, 0x7FFFFFFF, 8, 6, 0, 0, 0))
    + chunk(b"IDAT", zlib.compress(zeros))
    + chunk(b"IEND", b"")
)
files = {
    "bomb.zip": level.getvalue(),
    "bomb.gz": gzip.compress(zeros),
    "bomb.png": png,
    "slip.zip": None,
}
slip = io.BytesIO()
with zipfile.ZipFile(slip, "w") as z:
    z.writestr("../../../../tmp/slipped", "x")
files["slip.zip"] = slip.getvalue()
for name, data in files.items():
    open("/workspace/" + name, "wb").write(data)
from IPython.display import Image, display

display(Image(data=png))
report(**{n: hashlib.sha256(d).hexdigest() for n, d in files.items()})
"""


def check(box):
    out = box.dir("out")
    run = box.run(cell(GUEST), flags=["--out", out])
    said = box.ok(run)
    said["figure-1.png"] = said["bomb.png"]  # what was displayed is kept as a figure
    same(
        {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in out.iterdir()},
        said,
        "the host's copies",
    )
    holds(run.peak_kb < 200_000, f"the program held {run.peak_kb} kB")
