// The notebook, as a person uses it.
import { blank, cell, coloursOf, editor, ended, equal, frameOf, ok, open, run, runCell, serve, sessionOf, test, until, write } from "./support.mjs";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const house = await serve({ flags: ["--preload", ""] });

const hasFocus = (page, n) => editor(page, n).evaluate((e) => e.getRootNode().activeElement === e);

test("a new user runs the example at a click, sees the plot and downloads a file", async ({ page }) => {
  await open(page, house);
  ok((await page.locator("header.bar").boundingBox()).height < 60, "the bar is one line");
  await page.getByRole("button", { name: "Run the example" }).click();
  const c = await ended(page, 1);
  const plot = c.locator("img.picture");
  await plot.waitFor();
  const colours = await coloursOf(plot);
  ok(colours.includes("1,7,11") && colours.includes("15,7,0"), `no blue and no orange line: ${colours.slice(0, 20)}`);
  const [download] = await Promise.all([page.waitForEvent("download"), c.getByRole("button", { name: /wave\.png/ }).click()]);
  equal(download.suggestedFilename(), "wave.png");
  equal(readFileSync(await download.path()).subarray(1, 4).toString(), "PNG");
});

test("typing, brackets, indentation, and the keys that run", async ({ page }) => {
  await blank(page, house);
  await editor(page, 1).click();
  await page.keyboard.type("def half(n):\nreturn (n / 2");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.type("half(9)");
  await page.keyboard.press("Shift+Enter");
  await ended(page, 1);
  equal((await cell(page, 1).locator("pre.result").innerText()).trim(), "4.5");
  equal((await editor(page, 1).locator(".cm-line").nth(1).innerText()).replace(/\u00a0/g, " "), "    return (n / 2)");
  await until("the next cell has the focus", () => hasFocus(page, 2));
  await runCell(page, 2, "half(3)", "Control+Enter");
  ok(await hasFocus(page, 2), "Control+Enter stays in the cell");
  await editor(page, 2).click();
  await page.keyboard.press("Alt+Enter");
  await cell(page, 3).waitFor();
  ok(await editor(page, 1).locator("[class*=ͼ]").count(), "words are coloured");
  const paper = (part) => cell(page, 1).locator(part).evaluate((e) => getComputedStyle(e).backgroundColor);
  equal(await paper(".cm-gutters"), await cell(page, 1).evaluate((e) => getComputedStyle(e).backgroundColor), "what a long line is scrolled below");
});

test("find in a cell", async ({ page }) => {
  await blank(page, house);
  await write(page, 1, "needle = 1\nhay = 2\nneedle = 3");
  await page.keyboard.press("Control+f");
  await cell(page, 1).locator(".cm-search input[name=search]").waitFor();
  await page.keyboard.type("needle");
  await until("two matches", async () => (await cell(page, 1).locator(".cm-searchMatch").count()) === 2);
});

test("cells are added, moved, deleted, and are Python or shell", async ({ page }) => {
  await blank(page, house);
  await write(page, 1, "first = 1");
  await page.getByRole("button", { name: "Shell", exact: true }).click();
  await write(page, 2, "echo from bash; echo $0");
  await runCell(page, 2);
  ok((await cell(page, 2).locator(".stdout").innerText()).includes("from bash"), "the shell ran");
  await runCell(page, 2, "exit 3");
  await cell(page, 2).locator(".how").getByText("Exit status 3").waitFor();
  await write(page, 2, "echo from bash; echo $0");
  await page.getByRole("button", { name: "Move cell 2 up" }).click();
  equal(await editor(page, 1).innerText(), "echo from bash; echo $0");
  await editor(page, 1).click();
  await page.keyboard.press("Control+Alt+ArrowDown");
  await until("it moved by keys", async () => (await editor(page, 2).innerText()).startsWith("echo"));
  await page.getByRole("button", { name: "Delete cell 1" }).click();
  equal(await page.locator(".cell").count(), 1);
  await cell(page, 1).getByRole("combobox").selectOption("python");
  await runCell(page, 1, "6 * 7");
  equal((await cell(page, 1).locator("pre.result").innerText()).trim(), "42");
});

test("colours, progress bars that redraw, and output as it comes", async ({ page }) => {
  await blank(page, house);
  await write(page, 1, [
    "import sys, os",
    "print('\\x1b[31mred\\x1b[0m plain \\x1b[1;38;2;1;200;3mgreen\\x1b[0m')",
    "for i in range(101):",
    "    print(f'\\r{i:3d}% done', end='', file=sys.stderr)",
    "print(file=sys.stderr)",
    "print('one\\ntwo\\x1b[1A\\rONE', end='')",
    "print('\\nbegun')",
    "while not os.path.exists('go'): pass",
    "print('over')",
  ].join("\n"));
  await page.keyboard.press("Control+Enter");
  const out = cell(page, 1).locator(".out");
  await out.getByText("begun").waitFor();
  ok((await out.locator(".how").innerText()).includes("Running"), "it still runs while its output is there");
  const id = await page.evaluate(() => localStorage.getItem("retort.session:/"));
  await fetch(`${house.url}v1/sessions/${id}/files/go`, { method: "PUT", body: "x" });
  await ended(page, 1);
  equal(await out.locator(".stderr").innerText(), "100% done");
  equal(await out.locator(".fg-1").innerText(), "red");
  equal(await out.getByText("green").evaluate((e) => getComputedStyle(e).color), "rgb(1, 200, 3)");
  equal(await out.locator(".stdout").last().innerText(), "ONE\nbegun\nover", "what the cursor went up to and wrote over");
});

test("long output folds, says where the rest is, and opens", async ({ page }) => {
  await blank(page, house);
  await runCell(page, 1, "for i in range(10_000): print('line', i)");
  const out = cell(page, 1).locator(".stdout");
  await out.getByText("9,970 lines are folded here.").waitFor();
  equal(await out.locator(".line").count(), 30);
  equal(await out.evaluate((e) => e.scrollHeight - e.clientHeight), 0, "what is left to scroll to");
  ok((await out.innerText()).includes("line 14\n") && (await out.innerText()).trimEnd().endsWith("line 9999"), "its head and its end");
  const [file] = await Promise.all([page.waitForEvent("download"), out.getByRole("button", { name: "Download the whole output" }).click()]);
  equal(readFileSync(await file.path(), "utf8").split("\n").length, 10_001);
  await out.getByRole("button", { name: "Show all 10,000" }).click();
  await until("all of it", async () => (await out.locator(".line").count()) === 10_000);
  await out.getByRole("button", { name: "Fold 10,000 lines" }).click();
  await until("it is folded", async () => (await out.locator(".line").count()) === 30);
});

test("seven cells are started at once: they run in order, and Stop still reaches the server", async ({ page }) => {
  await blank(page, house);
  await write(page, 1, "import os, time\nseen = []\nprint('begun')\nwhile not os.path.exists('go'): time.sleep(.01)");
  await page.keyboard.press("Shift+Enter");
  for (let i = 2; i <= 7; i++) {
    await editor(page, i).waitFor();
    await write(page, i, `seen.append(${i}); seen`);
    await page.keyboard.press("Shift+Enter");
  }
  await cell(page, 1).locator(".stdout").getByText("begun").waitFor();
  await fetch(`${house.url}v1/sessions/${await sessionOf(page)}/files/go`, { method: "PUT", body: "x" });
  await ended(page, 7);
  equal((await cell(page, 7).locator("pre.result").innerText()).trim(), "[2, 3, 4, 5, 6, 7]");
  await write(page, 1, "print('again')\nwhile True: time.sleep(.01)");
  await page.evaluate(() => document.querySelectorAll(".cell-bar .accent").forEach((b) => b.click()));
  await cell(page, 1).locator(".stdout").getByText("again").waitFor();
  await page.getByRole("toolbar").getByRole("button", { name: "Stop" }).click();
  await cell(page, 1).getByText("Stopped").waitFor();
});

test("by keyboard alone", async ({ page }) => {
  await open(page, house);
  await page.getByRole("button", { name: "Run the example" }).waitFor();
  const focused = () => page.evaluate(() => {
    let e = document.activeElement;
    while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
    return e?.getAttribute("aria-label") ?? e?.textContent ?? "";
  });
  const tabTo = async (name, key = "Tab") => {
    for (let i = 0; i < 60; i++) {
      if (/^Cell \d/.test(await focused())) await page.keyboard.press("Escape"); // Tab belongs to the editor until then
      await page.keyboard.press(key);
      if (name.test(await focused())) return;
    }
    throw new Error(`Tab does not reach ${name}: ${await focused()}`);
  };
  await tabTo(/^Skip to the content$/);
  await page.keyboard.press("Enter");
  await tabTo(/^Cell 1, Python$/);
  await page.keyboard.press("Control+a");
  await page.keyboard.type("print('typed')");
  await page.keyboard.press("Shift+Enter");
  await ended(page, 1);
  equal(await cell(page, 1).locator(".stdout").innerText(), "typed");
  await until("the next cell has the focus", async () => /^Cell 2/.test(await focused()));
  await page.keyboard.press("Escape");
  await tabTo(/^Shell$/);
  await page.keyboard.press("Enter");
  await until("a cell of the shell", async () => /^Cell 3, Shell/.test(await focused()));
  await page.keyboard.type("echo by keys");
  await page.keyboard.press("Control+Enter");
  await ended(page, 3);
  await page.keyboard.press("Escape");
  await tabTo(/^Delete cell 3$/, "Shift+Tab");
  await page.keyboard.press("Enter");
  await until("it is gone", async () => (await page.locator(".cell").count()) === 2);
  await tabTo(/^Sessions$/);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Sessions" }).waitFor();
  await tabTo(/^Delete /);
  await page.keyboard.press("Enter");
  await until("it asks", async () => /^Delete with its files\?$/.test(await focused()));
  await page.keyboard.press("Escape");
  await until("it is left alone", async () => (await page.getByRole("button", { name: "Delete with its files?" }).count()) === 0);
  await until("the focus is where it was", async () => /^Delete /.test(await focused()));
  await tabTo(/Rename /, "Shift+Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("textbox", { name: /^Rename / }).waitFor();
  await page.keyboard.type("by keys");
  await page.keyboard.press("Enter");
  await until("and stays with the name", async () => /^by keys/.test(await focused()));
}, { noise: /inline style/ }); // of Chromium's own: it styles what is typed over a selection, and the editor draws it anew

test("on a phone: every view fits, and a finger is enough", async ({ page }) => {
  await open(page, house);
  await page.getByRole("button", { name: "Run the example" }).tap();
  await ended(page, 1);
  await cell(page, 1).locator("img.picture").waitFor();
  await runCell(page, 1, "print('w' * 3000)\nfrom IPython.display import HTML\nHTML('<div style=\"width:3000px\">wide</div>')");
  const name = "a study of the tides at Saint-Malo between 1850 and 1990";
  await house.call(`v1/sessions/${await sessionOf(page)}`, { name }, "PATCH");
  await page.getByRole("button", { name: `${name} Rename the session` }).waitFor();
  await page.getByRole("button", { name: "Restart" }).tap();
  const [cancel, high] = [await page.getByRole("button", { name: "Cancel" }).boundingBox(), (await page.locator("header.bar").boundingBox()).height];
  ok(cancel.x + cancel.width <= 390 && high < 100, `the question is within the width: ${JSON.stringify(cancel)}, ${high}`);
  await page.getByRole("button", { name: "Cancel" }).tap();
  for (const view of ["Notebook", "Files", "Ask", "Sessions", "Records", "Approvals", "Keys"]) {
    await page.getByRole("navigation").getByRole("link", { name: view }).tap();
    await until(view, async () => (await page.title()).startsWith(view));
    await page.locator("main h1").waitFor({ state: "attached" });
    equal(await page.evaluate(() => document.documentElement.scrollWidth), 390, `the width of ${view}`);
    const links = await page.getByRole("navigation").getByRole("link").evaluateAll((all) => all.filter((a) => a.offsetParent !== null).map((a) => a.getBoundingClientRect()).map((b) => b.left >= 0 && b.right <= innerWidth));
    equal(links, Array(7).fill(true), "every view is a tap away");
  }
  const theme = page.getByRole("button", { name: /^Theme/ });
  ok((await theme.evaluate((e) => e.getBoundingClientRect().right)) <= 390, "the theme is within the width");
  await theme.tap();
  await page.getByRole("button", { name: "Theme: light" }).waitFor();
}, { context: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true } });

test("tables, images, SVG, Markdown, LaTeX and JSON", async ({ page }) => {
  await blank(page, house);
  await runCell(page, 1, [
    "from IPython.display import *",
    "display(HTML('<table><tr><th>city<td>Lyon</table>'))",
    "display(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"40\" height=\"30\"><circle r=\"9\" fill=\"red\"/></svg>'))",
    "display(Markdown('# Title\\n\\n*soft* $x^2$'))",
    "display(Latex(r'$\\frac{a}{b}$'))",
    "display(JSON({'deep': {'list': [1, 'two', None]}, 'none': {}}))",
  ].join("\n"));
  equal(await (await frameOf(page, 1, 0)).locator("td").innerText(), "Lyon");
  equal(await (await frameOf(page, 1, 1)).locator("circle").getAttribute("fill"), "red");
  const text = await frameOf(page, 1, 2);
  equal(await text.locator("h1").innerText(), "Title");
  equal(await text.locator("math msup").count(), 1);
  equal(await (await frameOf(page, 1, 3)).locator("mfrac").count(), 1);
  const tree = cell(page, 1).locator(".json");
  ok((await tree.innerText()).includes('"deep"') || (await tree.innerText()).includes("deep:"), "the tree has its names");
  ok((await tree.innerText()).includes("none: {}") && !(await tree.getByRole("button", { name: /none/ }).count()), "what is empty needs no fold");
  await tree.getByRole("button", { name: /deep/ }).click();
  ok((await tree.getByRole("button", { name: /deep/ }).innerText()).includes("1 item"), "it folds");
});

test("a long table shows its first rows, and all of them when asked; long lines and messages are cut", async ({ page }) => {
  await blank(page, house);
  await runCell(page, 1, [
    "from IPython.display import HTML",
    "row = '<tr><th>%d</th><td>a town</td><td>' + 'x' * 50 + '</td></tr>'",
    "table = '<table><thead><tr><th></th><th>place</th><th>x</th></tr></thead><tbody>%s</tbody></table><p id=after>3,000 rows</p>'",
    "display(HTML(table % ''.join(row % i for i in range(3000))))",
    "display(HTML(table % ''.join(row % i for i in range(3000)) + '<script>window.seen = document.querySelectorAll(\"tr\").length</script>'))",
  ].join("\n"));
  const frame = await frameOf(page, 1);
  await frame.getByText("500 of 3,000 rows are shown.").waitFor();
  equal([await frame.locator("tr").count(), await frame.locator("#after").innerText()], [501, "3,000 rows"]);
  await frame.getByRole("button", { name: "Show all 3,000" }).click();
  await until("all rows", async () => (await frame.locator("tr").count()) === 3001);
  equal(await frame.locator(".rest").count(), 0);
  equal(await frame.evaluate(() => [...document.querySelectorAll("tbody th")].every((e, i) => e.textContent === String(i))), true, "their order");
  const paper = (n) => frame.getByRole("rowheader", { name: String(n), exact: true }).evaluate((e) => getComputedStyle(e.parentNode).backgroundColor);
  ok((await paper(499)) !== (await paper(500)) && (await paper(499)) === (await paper(501)), "the stripes go on");
  const left = (name) => frame.getByRole("cell", { name: "a town" })[name]().evaluate((e) => Math.round(e.getBoundingClientRect().left));
  equal(await left("last"), await left("first"), "where a column of the last rows begins");
  await until("a script sees its whole table", async () => (await (await frameOf(page, 1, 1)).evaluate(() => window.seen)) === 3001);

  await runCell(page, 1, "'y' * 3_000_000");
  await cell(page, 1).getByText("2,990,002 more characters in this line").waitFor();
  const [whole] = await Promise.all([page.waitForEvent("download"), cell(page, 1).getByRole("button", { name: "Download the whole output" }).click()]);
  equal(statSync(await whole.path()).size, 3_000_002, "the rest is where it says");
  await runCell(page, 1, "raise ValueError('z' * 3_000_000)");
  await cell(page, 1).locator(".error-head").getByText(/ … [\d,]+ more characters/).waitFor();
});

test("an error marks its lines in the cell", async ({ page }) => {
  await blank(page, house);
  await runCell(page, 1, "def f(n):\n    return n / 0\n\nf(1)");
  equal(await cell(page, 1).locator(".error-head").innerText(), "ZeroDivisionError: division by zero");
  equal(await cell(page, 1).locator(".cm-failed").allInnerTexts(), ["    return n / 0", "f(1)"]);
  await write(page, 1, "1");
  equal(await cell(page, 1).locator(".cm-failed").count(), 0);
});

test("a limit says its plain sentence, and Stop keeps variables", async ({ page }) => {
  await blank(page, house);
  await runCell(page, 1, "kept = 5\n'x' * 10**12");
  await runCell(page, 1, "kept = 5");
  await write(page, 1, "print('in the loop')\nwhile True: pass");
  await page.keyboard.press("Control+Enter");
  await cell(page, 1).getByText("in the loop").first().waitFor();
  await cell(page, 1).locator(".stdout").getByText("in the loop").waitFor();
  await until("the clock runs", async () => parseFloat(await cell(page, 1).locator(".elapsed").innerText()) > 0);
  await page.getByRole("toolbar").getByRole("button", { name: "Stop" }).click();
  await ended(page, 1);
  ok((await cell(page, 1).locator(".how").innerText()).includes("Stopped"), "it says so");
  await runCell(page, 1, "kept");
  equal((await cell(page, 1).locator("pre.result").innerText()).trim(), "5");
  await runCell(page, 1, "big = bytearray(2 * 10**9)");
  ok(/memory/i.test(await cell(page, 1).locator(".out").innerText()), "memory is named");
  await runCell(page, 1, "import os\nos.write(1, b'y' * 40_000_000); None");
  ok(/output/.test(await cell(page, 1).locator(".sentence").innerText()), await cell(page, 1).locator(".out .foot").innerText());
});

test("run all stops at an error; restart loses variables and keeps files", async ({ page }) => {
  await blank(page, house);
  await write(page, 1, "open('kept.txt', 'w').write('x'); v = 1");
  await page.getByRole("button", { name: "Python", exact: true }).click();
  await write(page, 2, "v / 0");
  await page.getByRole("button", { name: "Python", exact: true }).click();
  await write(page, 3, "print('never')");
  await page.getByRole("button", { name: "Run all" }).click();
  await ended(page, 2);
  equal(await cell(page, 3).locator(".out").count(), 0);
  await page.getByRole("button", { name: "Restart" }).click();
  await page.getByRole("button", { name: "Lose all variables?" }).click();
  await page.getByText("The interpreter is fresh").waitFor();
  await runCell(page, 3, "import os; ('v' in globals(), os.path.exists('kept.txt'))");
  equal((await cell(page, 3).locator("pre.result").innerText()).trim(), "(False, True)");
});

test("a notebook goes out as .ipynb and comes back", async ({ page }) => {
  await blank(page, house);
  await runCell(page, 1, "print('said')\n6 * 7");
  await page.getByRole("button", { name: "Shell", exact: true }).click();
  await write(page, 2, "ls");
  await page.getByRole("button", { name: "Text", exact: true }).click();
  await write(page, 3, "# Words");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save as .ipynb" }).click()]);
  const book = JSON.parse(readFileSync(await download.path(), "utf8"));
  equal(book.cells.map((c) => [c.cell_type, c.source.join("")]), [["code", "print('said')\n6 * 7"], ["code", "%%bash\nls"], ["markdown", "# Words"]]);
  equal(book.cells[0].outputs.map((o) => o.output_type), ["stream", "execute_result"]);
  book.cells[0].source = ["print('again')"];
  const path = join(house.place, "again.ipynb");
  writeFileSync(path, JSON.stringify(book));
  await page.getByLabel("A notebook to open").setInputFiles(path);
  await until("it is open", async () => (await editor(page, 1).innerText()) === "print('again')");
  equal((await cell(page, 1).locator("pre.result").innerText()).trim(), "42");
  equal(await cell(page, 2).getByRole("combobox").inputValue(), "shell");
  await runCell(page, 1);
  equal(await cell(page, 1).locator(".stdout").innerText(), "again");
});

test("the page is left and opened again: cells and output are there, and what ran goes on", async ({ page }) => {
  await blank(page, house);
  await write(page, 1, "import time, os\nprint('begun')\nwhile not os.path.exists('go'): time.sleep(.01)\nprint('ended')");
  await page.keyboard.press("Control+Enter");
  await cell(page, 1).locator(".stdout").getByText("begun").waitFor();
  await page.reload();
  await cell(page, 1).locator(".stdout").getByText("begun").waitFor();
  ok((await editor(page, 1).innerText()).startsWith("import time"), "the code is there");
  const id = await page.evaluate(() => localStorage.getItem("retort.session:/"));
  await fetch(`${house.url}v1/sessions/${id}/files/go`, { method: "PUT", body: "x" });
  await cell(page, 1).locator(".stdout").getByText("ended").waitFor();
  await ended(page, 1);
});

test("a session gets a name", async ({ page }) => {
  await blank(page, house);
  await runCell(page, 1, "1");
  await page.getByRole("button", { name: /Rename the session/ }).click();
  await page.getByRole("textbox", { name: "Rename the session" }).fill("tide tables");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "tide tables Rename the session" }).waitFor();
  const all = await house.call("v1/sessions");
  ok(all.data.some((s) => s.name === "tide tables"), "the server knows it");
});

await run(house);
