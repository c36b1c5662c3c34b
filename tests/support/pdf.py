"""A PDF as programs write them: pages of lines, compressed or not."""

import zlib


def pdf(*pages, compress=True):
    """Each page is a text; its lines are shown one below the other, in Helvetica."""
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(pages)))
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>".encode(),
               b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"]
    for i, page in enumerate(pages):
        shown = b"".join(b"(" + line.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)") + b") Tj 0 -20 Td "
                         for line in page.splitlines())
        drawn = b"BT /F1 14 Tf 20 700 Td " + shown + b"ET"
        drawn = zlib.compress(drawn) if compress else drawn
        objects += [f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 500 750]/Contents {5 + 2 * i} 0 R/Resources<</Font<</F1 3 0 R>>>>>>".encode(),
                    b"<</Length %d%s>>stream\n%s\nendstream" % (len(drawn), b"/Filter/FlateDecode" if compress else b"", drawn)]
    data, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % at for at in places)
    return data + (b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n"
                   % (len(objects) + 1, table, len(objects) + 1, len(data)))
