"""Odd code and odd output: large, empty, foreign, torn."""

import pytest

from support import retort

pytestmark = pytest.mark.once

session = retort.Session()

empty = session.cell("")
blank = session.cell("  \n\t\n")
comment = session.cell("# nothing but a remark")
crlf = session.cell("def f(a):\r\n    if a:\r\n        return 'yes'\r\n    return 'no'\r\nf(1)\r\n")
crlf_error = session.cell("x = 1\r\n\r\n1 / 0\r\n")
crlf_magic = session.cell("%%bash\r\necho one\r\n")
tabs = session.cell("def g():\n\tfor i in range(2):\n\t\tyield i\nlist(g())")
mixed = session.cell("if True:\n\tx = 1\n        y = 2\n")
indented = session.cell("    a = 1\n    a + 1")
identifiers = session.cell("größe = 3\n变量 = 4\nπ = größe + 变量\nπ")
text = session.cell("print('Grüße, 数据, 🎉, \\u200b, é')\n'🎉'")
no_newline = session.cell("import sys\nsys.stdout.write('no newline');")
carriage = session.cell("print('a\\rb\\r\\nc')")
zero = session.cell("print('a\\0b')")
surrogate = session.cell("print('\\udc80 \\ud800')\n'\\udc80'")
encoding_line = session.cell("# -*- coding: latin-1 -*-\n'é'")
long_line = session.cell("x = [" + "1, " * 30_000 + "]\nsum(x)")
deep = session.cell("x = " + "[" * 80 + "]" * 80 + "\nprint('deep')")
backslash = session.cell("x = 1 + \\\n    2\nx")
future = session.cell("from __future__ import annotations\ndef f(x: nowhere): pass\nf.__annotations__")


def test_nothing_to_do():
    for answer in (empty, blank, comment):
        assert answer.events == [] and answer.status == "ok"


def test_line_ends():
    assert crlf.result == "'yes'"
    assert [(f["line"], f["text"]) for f in crlf_error.error["frames"]] == [(3, "1 / 0")]
    assert crlf_magic.stdout.strip() == "one"


def test_indentation():
    assert tabs.result == "[0, 1]"
    assert mixed.error["name"] == "TabError"
    assert indented.result == "2"


def test_every_alphabet():
    assert identifiers.result == "7"
    assert text.stdout == "Grüße, 数据, 🎉, \u200b, é\n" and text.result == "'🎉'"
    assert encoding_line.result == "'é'"


def test_odd_characters():
    assert no_newline.stdout == "no newline"
    assert carriage.stdout == "a\rb\r\nc\n"
    assert zero.stdout == "a\0b\n"
    assert surrogate.status == "ok" and surrogate.stdout.endswith("\n")


def test_shapes():
    assert long_line.result == "30000"
    assert deep.stdout == "deep\n"
    assert backslash.result == "3"
    assert future.result == "{'x': 'nowhere'}"


large = retort.Session()

large_code = large.cell("text = '" + "abcde" * 1_000_000 + "'\nlen(text)")
large_unicode = large.cell("text = '" + "é数🎉" * 200_000 + "'\nlen(text)")
many_statements = large.cell("n = 0\n" + "n += 1\n" * 20_000 + "n")
large_error = large.cell("#" + "x" * 200_000 + "\n1 / 0")
many_lines = large.cell("for i in range(10_000): print('line', i)")
one_line = large.cell("print('ab' * 2_500_000)")
large_result = large.cell("'r' * 1_000_000")
both_streams = large.cell("import os\nfor i in range(64):\n    os.write(1, b'o' * 10_000)\n"
                          "    os.write(2, b'e' * 10_000)")


def test_large_code():
    assert large_code.result == "5000000"
    assert large_unicode.result == "600000"
    assert many_statements.result == "20000"
    assert large_error.error["frames"][0]["line"] == 2


def test_large_output():
    assert many_lines.stdout == "".join(f"line {i}\n" for i in range(10_000))
    assert many_lines.outcome["output_bytes"] == len(many_lines.stdout)
    assert one_line.stdout == "ab" * 2_500_000 + "\n"
    assert len(large_result.result) == 1_000_002
    assert both_streams.stdout == "o" * 640_000 and both_streams.stderr == "e" * 640_000
    for answer in (many_lines, one_line, large_result, both_streams):
        assert answer.status == "ok" and answer.limits == [] and answer.outcome["output_dropped"] == 0


torn = retort.Session()

garbage = torn.cell("import os, time\nos.write(1, bytes(range(256)));")
random_garbage = torn.cell("os.write(1, os.urandom(200_000)); print('end')")
split = torn.cell("for b in 'é数🎉'.encode():\n    os.write(1, bytes([b])); time.sleep(0.02)")
split_streams = torn.cell("o, e = '数'.encode(), '🎉'.encode()\n"
                          "os.write(1, o[:1]); os.write(2, e[:2]); time.sleep(0.05)\n"
                          "os.write(1, o[1:]); os.write(2, e[2:]);")
borders = torn.cell("os.write(1, b'x' + '数'.encode() * 100_000);")
cut_short = torn.cell("os.write(1, b'abc\\xe6\\x95');")
next_is_clean = torn.cell("print('clean')")
overlong = torn.cell("os.write(1, b'\\xc0\\xaf \\xed\\xa0\\x80 \\xf8\\x88 \\xff end');")
latin1 = torn.shell("printf 'caf\\xe9\\n'")
lone_tail = torn.shell("printf '\\xe6\\x95'")


def test_bytes_that_are_no_text():
    assert garbage.stdout[:128] == bytes(range(128)).decode()
    assert set(garbage.stdout[128:]) == {"\ufffd"}
    assert random_garbage.stdout.endswith("end\n") and "\ufffd" in random_garbage.stdout
    assert overlong.stdout.endswith(" end") and "/" not in overlong.stdout
    assert latin1.stdout == "caf\ufffd\n"


def test_characters_in_pieces():
    assert split.stdout == "é数🎉"
    assert split_streams.stdout == "数" and split_streams.stderr == "🎉"
    assert borders.stdout == "x" + "数" * 100_000


def test_half_a_character_at_the_end():
    assert cut_short.stdout.startswith("abc") and set(cut_short.stdout[3:]) == {"\ufffd"}
    assert next_is_clean.stdout == "clean\n"
    assert set(lone_tail.stdout) == {"\ufffd"}
