"""What a script returns arrives, with its labels; what JSON has no word for is told in notes."""

import pytest
from support.mcp import Legacy

FLAGS = ["--memory", "1G"]


@pytest.fixture
def run(client):
    def ask(code):
        return client.post("/prisme/execute_python", {"code": code}).expect(200).json
    return ask


@pytest.fixture
def whole(run):
    """The value of a script of which nothing was lost."""
    def ask(code):
        answer = run(code)
        assert "error" not in answer and "notes" not in answer, answer
        return answer["result"]
    return ask


@pytest.fixture
def noted(run):
    """The value, and the one note on it."""
    def ask(code):
        answer = run(code)
        assert "error" not in answer, answer
        note, = answer["notes"]
        return answer["result"], note
    return ask


TABLE = """import pandas as pd
t = pd.DataFrame({"town": ["Lyon", "Nice", "Lyon"], "sold": [5, 2, 7]})
"""


# --- numbers and text ---

def test_every_digit_of_a_float(server, whole):
    values = [0.1, 1 / 3, 0.1 + 0.2, 3.141592653589793, 1e-300, 123456789.123456789, 2.0]
    assert whole(f"return {values!r}") == values
    with Legacy(server, path="/prisme/mcp") as agent:
        told = agent.call("execute_python", code=f"return {values!r}")
    assert told["structuredContent"]["result"] == values


def test_integers_of_any_size(whole, noted):
    assert whole("return [2**63 - 1, -2**63]") == [2**63 - 1, -2**63]
    value, note = noted("return {'n': [2**63, -3**50, 7]}")
    assert value == {"n": [str(2**63), str(-3**50), 7]} and "64 bits" in note
    value, note = noted("return 7**9000")
    assert int(value, 16) == 7**9000


def test_numbers_that_json_has_not(noted):
    assert noted("return [1.5, float('nan')]") == ([1.5, None], "NaN is given as null")
    value, note = noted("return [float('inf'), -float('inf')]")
    assert value == ["Infinity", "-Infinity"] and "infinite" in note


@pytest.mark.parametrize("code, value, word", [
    ("'a\\0b'", "a\ufffdb", "NUL"), ("'\\udc80'", "\ufffd", "surrogate"),
    ("{'k\\0': 1}", {"k\ufffd": 1}, "NUL"), ("b'\\xff\\x00'", "/wA=", "base64"),
    ("{1: 'a', '1': 'b'}", {"1": "a", "1 (2)": "b"}, "two keys"),
])
def test_text_and_keys_that_json_has_not(noted, code, value, word):
    got, note = noted("return " + code)
    assert got == value and word in note


def test_what_has_no_form_is_text_and_told(noted):
    value, note = noted("class Thing:\n    def __str__(self):\n        return 'a thing'\nreturn [Thing()]")
    assert value == ["a thing"] and "Thing" in note
    value, note = noted("class Bad:\n    def __str__(self):\n        raise OSError\nreturn Bad()")
    assert "OSError" in value and "Bad" in note


def test_nested_and_endless(noted, whole):
    assert whole("v = 1\nfor _ in range(40):\n    v = [v]\nreturn v")
    value, note = noted("v = 1\nfor _ in range(70):\n    v = [v]\nreturn v")
    assert value and "nested" in note
    value, note = noted("v = [1]\nv += [v, v]\nreturn v")
    assert value[0] == 1 and "contains itself" in note


@pytest.mark.parametrize("code", ["return 'x' * (9 << 20)", "return list(range(400_000))",
                                  "result = {'k': ['y' * 1000] * 9000}", "'z' * (8 << 20)"])
def test_too_much_is_an_error(run, code):
    answer = run("print('before')\n" + code)
    assert answer["result"] is None and answer["logs"] == ["before"]
    assert answer["error"]["code"] == "ResultTooLarge" and "file" in answer["error"]["message"]


def test_kinds_of_values(whole):
    assert whole("""
from collections import Counter, OrderedDict, deque, namedtuple
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path

@dataclass
class Point:
    x: int
    y: int = 2

class Colour(Enum):
    RED = "r"

return [namedtuple("Pair", "a b")(1, 2), Point(3), Colour.RED, deque([1]), range(3), {1: 2}.values(),
        (n * n for n in (2, 3)), Counter("aab"), Decimal("0.10"), Path("a/b"), date(2024, 2, 29),
        timedelta(hours=1), {("a", 1): 0}, {date(2024, 1, 1): 5}]
""") == [{"a": 1, "b": 2}, {"x": 3, "y": 2}, "r", [1], [0, 1, 2], [2], [4, 9], {"a": 2, "b": 1}, "0.10",
         "a/b", "2024-02-29", "1:00:00", {"a.1": 0}, {"2024-01-01": 5}]


def test_numpy(whole):
    assert whole("import numpy as np\nreturn [np.int64(4), np.float32(0.5), np.eye(2), np.bool_(True),\n"
                 "        np.datetime64('2024-01-01T00:00:00.000000005'), np.array(['2024'], 'M8[Y]')]") == \
        [4, 0.5, [[1.0, 0.0], [0.0, 1.0]], True, "2024-01-01T00:00:00.000000005", ["2024"]]


# --- tables ---

@pytest.mark.parametrize("code, value", [
    ("t", [{"town": "Lyon", "sold": 5}, {"town": "Nice", "sold": 2}, {"town": "Lyon", "sold": 7}]),
    ("t.sold", [5, 2, 7]),
    ("t.groupby('town').sold.sum()", {"Lyon": 12, "Nice": 2}),
    ("t.town.value_counts()", {"Lyon": 2, "Nice": 1}),
    ("pd.Series([0, 0, 1]).value_counts()", {"0": 2, "1": 1}),
    ("t.groupby('town').sum()", [{"town": "Lyon", "sold": 12}, {"town": "Nice", "sold": 2}]),
    ("t.groupby('town').agg({'sold': ['min', 'max']})",
     [{"town": "Lyon", "sold.min": 5, "sold.max": 7}, {"town": "Nice", "sold.min": 2, "sold.max": 2}]),
    ("t.groupby(['town', 'sold']).size()",
     [{"town": "Lyon", "sold": 5, "value": 1}, {"town": "Lyon", "sold": 7, "value": 1},
      {"town": "Nice", "sold": 2, "value": 1}]),
    ("t[t.sold > 4]", [{"index": 0, "town": "Lyon", "sold": 5}, {"index": 2, "town": "Lyon", "sold": 7}]),
    ("pd.Series([1, 2], index=['a', 'a'])", [{"index": "a", "value": 1}, {"index": "a", "value": 2}]),
    ("pd.Series([1], index=pd.to_datetime(['2024-05-01']))", {"2024-05-01T00:00:00": 1}),
    ("t.dtypes.astype(str)", {"town": "object", "sold": "int64"}),
    ("t.columns", ["town", "sold"]),
    ("[pd.NaT, pd.NA, pd.Timestamp('2024-05-01'), pd.Period('2024-05')]",
     [None, None, "2024-05-01T00:00:00", "2024-05"]),
])
def test_tables_keep_their_labels(whole, code, value):
    assert whole(TABLE + "return " + code) == value


def test_describe_keeps_its_labels(whole):
    rows = whole(TABLE + "return t.describe()")
    assert [r["index"] for r in rows] == ["count", "mean", "std", "min", "25%", "50%", "75%", "max"]
    assert rows[-1]["sold"] == 7
    assert whole(TABLE + "return t.sold.describe()")["max"] == 7


def test_columns_of_the_same_name(noted):
    value, note = noted("import pandas as pd\nreturn pd.DataFrame([[1, 2]], columns=['a', 'a'])")
    assert value == [{"a": 1, "a (2)": 2}] and "two keys" in note


# --- scripts that return ---

@pytest.mark.parametrize("code, value", [
    ("total: int = 4\nreturn total + 1", 5),
    ("total: int\ntotal = 3\ndef f(n: int) -> int:\n    return n + total\nreturn f(1)", 4),
    ("if True:\n    x: Undefined = 2\nreturn [x for _ in range(2)]", [2, 2]),
    ("from __future__ import annotations\nreturn annotations.compiler_flag > 0", True),
    ("'''About.'''\nfrom __future__ import annotations\ndef f(x: Nobody):\n    return 8\nreturn f(0)", 8),
    ("from __future__ import annotations\n1 + 1", 2),
    ("from math import *\nreturn floor(pi)", 3),
    ("async def f(n):\n    return n\nk = await f(2)\nreturn k + await f(5)", 7),
    ("async def f():\n    return 'last'\nawait f()", "last"),
    ("async def f():\n    return 1\nresult = 'named'\nawait f()", "named"),
    ("async def g():\n    for n in (1, 2):\n        yield n\nreturn [n async for n in g()]", [1, 2]),
    ("async def f():\n    return 6\nasync def g():\n    return await f()\nreturn g.__name__", "g"),
    ("import math\nclass C:\n    n: int = 2\nreturn C.__annotations__['n'].__name__", "int"),
])
def test_what_a_module_may_hold(whole, code, value):
    assert whole(code) == value


@pytest.mark.parametrize("code", ["x: int = 1\n\nreturn x / 0",
                                  "from __future__ import annotations\nfrom math import *\nreturn 1 / 0"])
def test_lines_of_errors(run, code):
    error = run(code)["error"]
    assert error["code"] == "ZeroDivisionError" and "line 3, in <module>" in error["stack"]


# --- what allowed modules need themselves ---

@pytest.mark.parametrize("code, value", [
    ("import datetime\nreturn datetime.datetime.strptime('03/02/2021', '%d/%m/%Y').isoformat()",
     "2021-02-03T00:00:00"),
    ("from datetime import datetime as d\nreturn [d.strptime(s, '%H').hour for s in ('07', '23')]", [7, 23]),
    ("import time\nreturn time.strptime('1999', '%Y').tm_year", 1999),
    ("import time\nreturn list(map(lambda s: time.strptime(s, '%Y')[0], ['2001']))", [2001]),
    ("return '\\N{BULLET}'.encode('utf-16-le').decode('utf-16-le')", "\u2022"),
])
def test_modules_in_c_import_what_they_need(whole, code, value):
    assert whole(code) == value


def test_help(run):
    answer = run("help(len)")
    assert "error" not in answer and "number of items" in answer["result"]


@pytest.mark.parametrize("code", ["__import__('os', fromlist=[])", "import _strptime", "import pydoc",
                                  "from os import *\nreturn 1", "eval(\"__import__('os', {}, {}, [])\")"])
def test_asking_by_oneself_is_still_refused(run, code):
    error = run(code)["error"]
    assert error["code"] == "ImportError" and "not allowed" in error["message"]
