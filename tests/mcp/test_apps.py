"""The page that shows results in clients that can: read from the server, and looked at in a browser."""

import json
import os
import re

import pytest
from browser import PROGRAM, Browser
from support.mcp import Legacy, Modern

pytestmark = pytest.mark.once

PAGE = "ui://retort/result.html"
MIME = "text/html;profile=mcp-app"
PLOT = """
import pandas as pd, matplotlib.pyplot as plt
df = pd.DataFrame({"city": ["Oslo", "Rome, IT", "Kyiv \\"K\\""], "rides": [120, 340, 95], "share": [0.216, 0.613, 0.171]})
df.to_csv("cities.csv", index=False)
open("notes.txt", "w").write("counted by hand\\n")
plt.figure(figsize=(6, 3)); plt.bar(df.city, df.rides); plt.ylabel("rides"); plt.show()
print("three cities")
df
"""
pictures = os.environ.get("RETORT_PICTURES")  # a folder for screenshots, to be looked at


@pytest.fixture(scope="module")
def page_of(server):
    return Modern(server).request("resources/read", {"uri": PAGE})["contents"][0]["text"]


@pytest.fixture(scope="module")
def browser():
    assert PROGRAM, "chromium-headless-shell is missing: ./dev test installs it"
    with Browser() as one:
        yield one


# --- as the protocol has it ---


def test_declared(legacy, modern):
    declared = modern.request("server/discover")["capabilities"]["extensions"]
    assert declared["io.modelcontextprotocol/ui"] == {"mimeTypes": [MIME]}
    assert "extensions" not in legacy.info["capabilities"]


def test_tools_that_run_name_the_page(either):
    shown = {name for name, tool in either.tools().items()
             if tool.get("_meta", {}).get("ui", {}).get("resourceUri") == PAGE}
    assert shown == {"run_code", "run_shell", "get_execution"}


def test_older_revisions_have_no_meta(server):
    with Legacy(server, version="2025-03-26") as client:
        assert "_meta" not in client.tools()["run_code"]


def test_the_page(either):
    row = next(r for r in either.request("resources/list")["resources"] if r["uri"] == PAGE)
    (found,) = either.request("resources/read", {"uri": PAGE})["contents"]
    assert row["mimeType"] == found["mimeType"] == MIME
    assert found["_meta"]["ui"] == {"prefersBorder": True}
    assert row["size"] == len(found["text"].encode()) < 32_000


def test_the_page_stands_alone(page_of):
    assert not re.search(r"https?://|//[a-z]|@import|url\(|<link|src=|\bfetch\(|XMLHttpRequest|eval\(|innerHTML|\bon[a-z]+=",
                         page_of)


# --- in a browser ---


def text(page):
    return page.evaluate("document.getElementById('result').innerText")


def shown(page, name):
    if pictures:
        page.picture(f"{pictures}/{name}.png")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_plot_a_table_and_files(server, browser, page_of, theme):
    client = Modern(server)
    result = client.call("run_code", code=PLOT)
    read = lambda params: client.request("resources/read", params)  # noqa: E731
    with browser.host(page_of, {"resources/read": read}, theme=theme) as page:
        page.send("ui/notifications/tool-input", {"arguments": {"code": PLOT}})
        page.wait_for("document.body.innerText.includes('Running')")
        page.send("ui/notifications/tool-result", result)
        page.wait_for("document.querySelector('img')?.naturalWidth > 100")
        page.wait_for("document.querySelectorAll('tbody tr').length === 3")
        assert page.evaluate("[...document.querySelectorAll('th')].map((c) => c.textContent)") == [
            "city", "rides", "share"]
        assert page.evaluate("[...document.querySelectorAll('tbody tr')].map((r) => r.cells[0].textContent)") == [
            "Oslo", "Rome, IT", 'Kyiv "K"']
        assert page.evaluate("document.querySelectorAll('td.number').length") == 6
        assert "three cities" in text(page) and "cities.csv" in text(page)
        assert page.evaluate("document.querySelector('.chip.good').textContent") == "ok"
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        sizes = [m["params"]["height"] for m in page.told if m.get("method") == "ui/notifications/size-changed"]
        assert sizes[-1] > 300
        shown(page, f"result-{theme}")

        page.evaluate("[...document.querySelectorAll('button')].find((b) => b.innerText.includes('notes')).click()")
        page.wait_for("document.body.innerText.includes('counted by hand')")
        page.evaluate("document.querySelector('details').open = true")
        assert "DataFrame" in text(page)


def test_an_error(server, browser, page_of):
    result = Modern(server).call("run_code", code="print('before')\n1 / 0")
    with browser.host(page_of) as page:
        page.send("ui/notifications/tool-result", result)
        page.wait_for("document.querySelector('.chip.bad')")
        assert "ZeroDivisionError" in text(page) and "before" in text(page)
        shown(page, "error")


def test_files_without_a_host_that_reads(server, browser, page_of):
    result = Modern(server).call("run_code", code="open('a.csv', 'w').write('x\\n1\\n')")
    with browser.host(page_of) as page:
        page.send("ui/notifications/tool-result", result)
        page.wait_for("document.querySelector('button')?.disabled")


def test_what_code_says_is_only_text(browser, page_of):
    hostile = "<img src=x onerror=document.title='taken'><script>document.title='taken'</script>"
    links = [{"type": "resource_link", "uri": "retort://x", "name": hostile, "mimeType": "text/csv", "size": 9}]
    content = [{"type": "text", "text": f"[session {hostile}]\n{hostile}"},
               {"type": "image", "mimeType": "image/svg+xml", "data": "PHN2Zy8+"},
               {"type": "image", "mimeType": "image/png\" onerror=\"document.title='taken'", "data": "x"},
               {"type": "other", "text": hostile}, *links]
    read = lambda params: {"contents": [{"uri": "x", "text": f"{hostile}\n{hostile}\n"}]}  # noqa: E731
    with browser.host(page_of, {"resources/read": read}) as page:
        page.send("ui/notifications/tool-input", {"arguments": {"code": hostile}})
        page.send("ui/notifications/tool-result", {"content": content})
        page.wait_for("document.querySelector('td')")
        assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0
        assert page.evaluate("document.title") == "Result"
        assert hostile in text(page)


def test_odd_messages_do_no_harm(browser, page_of):
    with browser.host(page_of, {"resources/read": lambda params: {}}) as page:
        for params in ({}, {"content": None}, {"content": [{"type": "text"}, {"type": "resource_link"}]},
                       {"content": [{"type": "resource_link", "uri": "retort://x", "name": "x.csv", "size": 5}]}):
            page.send("ui/notifications/tool-result", params)
        page.run("say(5), say({id: 'a', method: 'ping'}), say({id: 'b', method: 'none'}), say({id: 99, result: {}}), "
                 "frame.contentWindow.postMessage('x', '*'), frame.contentWindow.postMessage(null, '*')", page.main)
        page.send("ui/notifications/host-context-changed", {
            "theme": "dark", "styles": {"variables": {"--color-text-primary": "#f0f", "x;y": "z"}}})
        page.wait_for("getComputedStyle(document.body).color === 'rgb(255, 0, 255)'")
        page.send("ui/notifications/tool-cancelled", {"reason": "the user"})
        page.wait_for("document.body.innerText.includes('Cancelled. the user')")
        answers = {m["id"]: m for m in page.told if "method" not in m}
        assert answers["a"]["result"] == {} and answers["b"]["error"]["code"] == -32601


def test_a_large_table_is_cut(browser, page_of):
    lines = ["n,text", *(f'{i},"a ""quoted"", line\n{i}"' for i in range(500))]
    asked = []

    def read(params):
        asked.append(params["uri"])
        return {"contents": [{"uri": params["uri"], "mimeType": "text/csv", "text": "\n".join(lines) + "\n"}]}

    link = {"type": "resource_link", "uri": "retort://big.csv", "name": "big.csv", "mimeType": "text/csv"}
    with browser.host(page_of, {"resources/read": read}) as page:
        page.send("ui/notifications/tool-result", {"content": [{**link, "size": 10_000_000}]})
        page.wait_for("document.querySelector('button')")
        assert page.evaluate("document.querySelectorAll('table').length") == 0
        page.evaluate("document.querySelector('button').click()")
        page.wait_for("document.querySelectorAll('tbody tr').length === 200")
        assert asked == ["retort://big.csv?offset=0&limit=262144"]
        assert page.evaluate("document.querySelectorAll('tbody tr')[199].cells[1].textContent") == 'a "quoted", line\n199'
        assert "larger table" in text(page)
        assert json.loads(page.evaluate("JSON.stringify([...document.querySelectorAll('tr')].map((r) => r.cells.length))")
                          ) == [2] * 201
