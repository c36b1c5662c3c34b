"""The text of a PDF or an Excel workbook as Markdown: a path as argument, the text on standard output.

It is a command in the sandbox, because the file is a stranger's. It uses what the Python of the pool has;
where that is nothing, it says so and exits with 3.
"""

import importlib
import itertools
import shutil
import subprocess
import sys
import warnings

TEXT_MAX = 256 << 10  # bytes, and a little more: who reads it cuts
SHEETS_MAX = 50
ROWS_MAX = 2000  # of one sheet
COLUMNS_MAX = 100


class Missing(Exception):
    """There is nothing here to read such a file with."""


def module(*names):
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            pass
    return None


# --- Excel ---


def cell(value):
    text = "" if value is None else str(value)
    return " ".join(text.replace("|", "\\|").split())


def table(title, rows):
    """A sheet: its name, and a table whose head is its first row."""
    rows = [[cell(value) for value in itertools.islice(row, COLUMNS_MAX)]
            for row in itertools.islice(rows, ROWS_MAX)]
    while rows and not any(rows[-1]):
        rows.pop()
    width = max((len(row) for row in rows), default=0)
    while width and not any(len(row) >= width and row[width - 1] for row in rows):
        width -= 1
    yield "## %s\n" % title
    for number, row in enumerate(rows):
        yield "| %s |" % " | ".join((row + [""] * width)[:width])
        if number == 0:
            yield "|%s" % (" --- |" * width)
    yield ""


def new_workbook(path):
    openpyxl = module("openpyxl")
    if not openpyxl:
        raise Missing("the Python of this pool has no openpyxl")
    # As an open file: openpyxl goes by the name otherwise, and this one has no suffix.
    book = openpyxl.load_workbook(open(path, "rb"), read_only=True, data_only=True)
    for sheet in book.worksheets[:SHEETS_MAX]:
        yield from table(sheet.title, sheet.iter_rows(values_only=True))


def old_workbook(path):
    xlrd = module("xlrd")
    if not xlrd:
        raise Missing("the Python of this pool has no xlrd")
    book = xlrd.open_workbook(path)
    for sheet in itertools.islice(book.sheets(), SHEETS_MAX):
        yield from table(sheet.name, ([shown(xlrd, book, at) for at in sheet.row(n)] for n in range(sheet.nrows)))


def shown(xlrd, book, at):
    if at.ctype == xlrd.XL_CELL_DATE:
        return xlrd.xldate.xldate_as_datetime(at.value, book.datemode)
    if at.ctype == xlrd.XL_CELL_NUMBER and at.value == int(at.value):
        return int(at.value)
    return at.value


# --- PDF ---


def pdf(path):
    reader = module("pypdf", "PyPDF2")
    if reader:
        for page in reader.PdfReader(path).pages:
            yield (page.extract_text() or "").strip("\n")
            yield ""
    elif shutil.which("pdftotext"):
        yield subprocess.run(["pdftotext", "-layout", "-q", path, "-"], stdout=subprocess.PIPE,
                             check=True).stdout.decode("utf-8", "replace").replace("\f", "\n\n")
    else:
        raise Missing("the Python of this pool has no pypdf, and there is no pdftotext")


# --- which of them ---

KINDS = ((b"%PDF-", pdf), (b"PK\x03\x04", new_workbook), (b"\xd0\xcf\x11\xe0", old_workbook))


def lines_of(path):
    with open(path, "rb") as file:
        head = file.read(1024)
    for magic, read in KINDS:
        if head.startswith(magic) or (read is pdf and magic in head):
            return read(path)
    raise ValueError("it is neither a PDF nor an Excel workbook")


def main(path):
    left = TEXT_MAX + 1
    warnings.simplefilter("ignore")
    try:
        for line in lines_of(path):
            data = (line + "\n").encode("utf-8", "replace")[:left]
            sys.stdout.buffer.write(data)
            left -= len(data)
            if left <= 0:
                break
    except Missing as error:
        print(error, file=sys.stderr)
        return 3
    except Exception as error:  # whatever a library thinks of a stranger's bytes
        print("%s: %s" % (type(error).__name__, error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
