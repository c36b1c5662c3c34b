"""A smaller copy of a picture, for doors that show it to a model.

Their clients take images of 1568 pixels a side and of some hundred kilobytes. A picture above that
gets a further part in its bundle, "image/png;preview=1" or "image/jpeg;preview=1"; the original is
left as it is. What cannot be read, or would take much memory to read, gets none.
"""

import io
import struct
import warnings

SIDE = 1568
BYTES = 525_000  # 700,000 as base64
PIXELS = 25_000_000  # a hundred megabytes while it is being made smaller
_KINDS = ("image/png", "image/jpeg", "image/webp", "image/gif")
_TRIES = ((SIDE, 85), (SIDE, 60), (SIDE // 2, 60))


def add(parts):
    """parts: the bundle, MIME type to bytes."""
    data = next((parts[mime] for mime in _KINDS if parts.get(mime)), None)
    if data is None or (len(data) <= BYTES and _fits(data)):
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = _make(data)
    except Exception:  # whatever a decoder thinks of a stranger's bytes
        return
    if found:
        parts[found[0] + ";preview=1"] = found[1]


def _fits(data):
    """Most pictures are PNG, and say their size in the first bytes: no decoder is imported."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) > 24:
        return max(struct.unpack(">II", data[16:24])) <= SIDE
    if data.startswith((b"GIF87a", b"GIF89a")) and len(data) > 10:
        return max(struct.unpack("<HH", data[6:10])) <= SIDE
    return False


def _make(data):
    from PIL import Image
    with Image.open(io.BytesIO(data)) as image:
        if len(data) <= BYTES and max(image.size) <= SIDE:
            return None
        if image.width * image.height > PIXELS:
            return None
        image.draft("RGB", (SIDE, SIDE))
        small = image.convert("RGBA" if _has_alpha(image) else "RGB")
    small.thumbnail((SIDE, SIDE), reducing_gap=2.0)
    out = _saved(small, "PNG")
    if len(out) <= BYTES:
        return "image/png", out
    return _as_jpeg(small, Image)


def _has_alpha(image):
    return image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info


def _as_jpeg(small, Image):
    if small.mode == "RGBA":
        white = Image.new("RGB", small.size, "white")
        white.paste(small, mask=small.getchannel("A"))
        small = white
    for side, quality in _TRIES:
        small.thumbnail((side, side))
        out = _saved(small, "JPEG", quality=quality)
        if len(out) <= BYTES:
            return "image/jpeg", out
    return None


def _saved(image, kind, **more):
    out = io.BytesIO()
    image.save(out, kind, **more)
    return out.getvalue()
