// How the page bears much: 10,000 lines of output, 200 cells, a table of 5 MB. Prints one line of JSON.
//
// Typing is from a key to the next frame that is painted; scrolling is the time between frames while the
// page goes down by a screen at a time.
import { blank, cell, editor, ended, open, run, serve, test, until, write } from "../tests/console/support.mjs";

const house = await serve({ flags: ["--preload", "", "--output", "64M"] });
const KEYS = 40;
const SCREENS = 30;
const found = {};

async function typing(page, n) {
  await editor(page, n).click();
  const took = [];
  for (let i = 0; i < KEYS; i++) {
    await page.evaluate(() => {
      window.typed = new Promise((ok) => addEventListener("keydown", () => {
        const begun = performance.now();
        requestAnimationFrame(() => setTimeout(() => ok(performance.now() - begun)));
      }, { once: true, capture: true }));
    });
    await page.keyboard.press("x");
    took.push(await page.evaluate(() => window.typed));
  }
  return took;
}

const scrolling = (page) => page.evaluate(async (screens) => {
  const frame = () => new Promise((ok) => requestAnimationFrame(ok));
  const took = [];
  scrollTo(0, 0);
  await frame();
  for (let i = 0, before = performance.now(); i < screens; i++) {
    scrollBy(0, innerHeight);
    const now = await frame();
    took.push(now - before);
    before = now;
  }
  return took.slice(1);
}, SCREENS);

async function measure(page, name, begun) {
  found[name] = { shown: [Date.now() - begun], typing: await typing(page, 1), scrolling: await scrolling(page) };
}

test("10,000 lines", async ({ page }) => {
  await blank(page, house);
  await write(page, 1, "for i in range(10_000): print('line', i, 'of the output')");
  const begun = Date.now();
  await page.keyboard.press("Control+Enter");
  await ended(page, 1);
  await cell(page, 1).getByRole("button", { name: /Show all/ }).click();
  await until("all of it", async () => (await cell(page, 1).locator(".line").count()) === 10_000);
  await measure(page, "10,000 lines of output", begun);
});

test("200 cells", async ({ page }) => {
  await page.addInitScript(() => localStorage.setItem("retort.notebook:/:", JSON.stringify(
    Array.from({ length: 200 }, (_, i) => ({ id: `c${i}`, language: "python", source: `value_${i} = [n * ${i} for n in range(10)]\nprint(sum(value_${i}))` })))));
  const begun = Date.now();
  await open(page, house);
  await until("all cells", async () => (await page.locator(".cell").count()) === 200);
  await measure(page, "200 cells", begun);
});

test("a table of 5 MB", async ({ page }) => {
  await blank(page, house);
  await write(page, 1, "from IPython.display import HTML\nHTML('<table>' + '<tr><td>12345.678</td><td>a town</td><td>2026-01-31</td></tr>' * 87_000 + '</table>')");
  const begun = Date.now();
  await page.keyboard.press("Control+Enter");
  await ended(page, 1);
  await until("the table is drawn", async () => (await cell(page, 1).locator("iframe.frame").boundingBox())?.height > 600);
  await measure(page, "a table of 5 MB", begun);
});

await run(house);
console.log(JSON.stringify({ found }));
