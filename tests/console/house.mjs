// Files, sessions, records, keys, and a server that is gone for a while.
import { axeSource, blank, cell, ended, equal, ok, open, run, runCell, serve, test, until, write } from "./support.mjs";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const house = await serve("--preload", "");
const sessionOf = (page) => page.evaluate(() => localStorage.getItem("retort.session:/"));
const go = async (page, name) => {
  await page.getByRole("navigation").getByRole("link", { name }).click();
  await page.getByRole("heading", { level: 1, name }).waitFor();
};

test("files are dropped, previewed, renamed, downloaded as zip and deleted", async ({ page }) => {
  await open(page, house, "files");
  await page.getByText("No files yet").waitFor();
  const data = await page.evaluateHandle(() => {
    const all = new DataTransfer();
    all.items.add(new File(["city,people\nLyon,522\n\"Nice, Côte\",343\n"], "towns.csv", { type: "text/csv" }));
    all.items.add(new File(["plain words"], "notes.txt", { type: "text/plain" }));
    return all;
  });
  await page.locator(".view").dispatchEvent("drop", { dataTransfer: data });
  await page.getByRole("row", { name: /towns\.csv/ }).waitFor();
  await page.getByRole("button", { name: "Preview towns.csv" }).click();
  await page.locator("dialog td").first().waitFor();
  equal(await page.locator("dialog td").allInnerTexts(), ["Lyon", "522", "Nice, Côte", "343"]);
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: /Rename notes\.txt/ }).click();
  await page.getByRole("textbox", { name: "Rename notes.txt" }).fill("kept/words.txt");
  await page.keyboard.press("Enter");
  await page.getByRole("row", { name: /kept\/words\.txt/ }).waitFor();
  const [zip] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download all as zip" }).click()]);
  const bytes = readFileSync(await zip.path());
  ok(bytes.subarray(0, 2).toString() === "PK" && bytes.includes("kept/words.txt"), "a zip with the file in it");
  await page.getByRole("button", { name: "Delete towns.csv" }).click();
  await page.getByRole("button", { name: "Delete?" }).click();
  await until("it is gone", async () => (await page.getByRole("row").count()) === 2);
});

test("a folder is uploaded with its paths", async ({ page }) => {
  const folder = join(house.place, "survey");
  mkdirSync(join(folder, "deep"), { recursive: true });
  writeFileSync(join(folder, "a.txt"), "a");
  writeFileSync(join(folder, "deep", "b.txt"), "b");
  await open(page, house, "files");
  await page.getByLabel("A folder to upload").setInputFiles(folder);
  await page.getByRole("row", { name: /survey\/deep\/b\.txt/ }).waitFor();
  await page.getByRole("row", { name: /survey\/a\.txt/ }).waitFor();
});

test("sessions are listed, opened, renamed and deleted; pools and figures are there", async ({ page }) => {
  const other = await house.call("v1/sessions", { name: "an older one" });
  await blank(page, house);
  await runCell(page, 1, "1");
  await go(page, "Sessions");
  const row = page.getByRole("row", { name: /an older one/ });
  await row.waitFor();
  await page.getByRole("region", { name: "Pools" }).getByText("of memory").waitFor();
  await page.getByText("Cells a second").waitFor();
  await page.getByRole("button", { name: "Open an older one" }).click();
  await until("the notebook has that session", async () => (await sessionOf(page)) === other.id);
  await go(page, "Sessions");
  await page.getByRole("button", { name: "Delete an older one" }).click();
  await page.getByRole("button", { name: "Delete with its files?" }).click();
  await until("it is gone", async () => (await row.count()) === 0);
});

test("records are filtered by outcome, and one is opened", async ({ page }) => {
  await blank(page, house);
  await runCell(page, 1, "print('on record')\n1 / 0");
  await go(page, "Records");
  await page.getByLabel("Outcome").selectOption("raised");
  await until("raised ones alone", async () => {
    const states = await page.locator("tbody .state").allInnerTexts();
    return states.length > 0 && states.every((s) => s === "raised");
  });
  await page.getByRole("link", { name: /^Open exec_/ }).first().click();
  await page.getByText("through rest without a key").waitFor();
  ok((await page.locator("pre.code").innerText()).includes("1 / 0"), "the code");
  await page.getByText("on record", { exact: true }).waitFor();
});

test("the server is killed and restarted: the page says so, and goes on by itself", async ({ page }) => {
  await blank(page, house);
  await write(page, 1, "print('begun')\nwhile True: pass");
  await page.keyboard.press("Control+Enter");
  await cell(page, 1).locator(".stdout").getByText("begun").waitFor();
  await house.kill();
  await page.getByText("The server does not answer.").waitFor();
  await house.start();
  await page.getByText("The server does not answer.").waitFor({ state: "detached" });
  await ended(page, 1);
  ok((await cell(page, 1).locator(".how").innerText()).includes("Lost"), "the cell says what became of it");
  await runCell(page, 1, "6 * 7");
  equal((await cell(page, 1).locator("pre.result").innerText()).trim(), "42");
}, { noise: /ERR_|Failed to load/ });

// Every view, as it stands after a cell has run. bypassCSP: for axe itself.
const violations = async ({ page }) => {
  await blank(page, house);
  await runCell(page, 1, "import sys\nprint('out')\nprint('err', file=sys.stderr)\nopen('f.csv', 'w').write('a,b')\n{}['x']");
  for (const view of ["notebook", "files", "ask", "sessions", "records", "approvals", "keys"]) {
    await page.goto(`${house.url}#/${view}`);
    await until(view, async () => (await page.title()).toLowerCase().startsWith(view));
    await page.locator("main h1").waitFor({ state: "attached" });
    await page.evaluate(axeSource);
    const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
    equal(found.violations.map((v) => [v.id, v.nodes[0].html.slice(0, 200)]), [], view);
  }
};
test("axe finds no violation in any view, light", violations, { context: { bypassCSP: true } });
test("axe finds no violation in any view, dark, on a phone", violations,
  { context: { bypassCSP: true, colorScheme: "dark", viewport: { width: 390, height: 844 } } });

// Last: from here on every request needs a key.
test("a key is made, shown once, asked for once, kept in the tab, and revoked", async ({ page }) => {
  const addresses = [];
  page.on("request", (r) => addresses.push(r.url()));
  await open(page, house, "keys");
  await page.getByLabel("Name", { exact: true }).fill("first");
  await page.getByRole("button", { name: "Create the key" }).click();
  const dialog = page.getByRole("dialog", { name: "This server needs a key" });
  await dialog.waitFor();
  const secret = await page.locator(".secret code").innerText();
  await dialog.getByLabel("Key").fill("rt_wrong");
  await page.keyboard.press("Enter");
  await dialog.getByText("did not accept").waitFor();
  await dialog.getByLabel("Key").fill(secret);
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  equal(await page.evaluate(() => Object.values(sessionStorage)), [secret]);
  ok(!(await page.evaluate(() => JSON.stringify(localStorage))).includes(secret), "not in the local storage");
  await page.reload();
  await page.getByRole("row", { name: /first/ }).waitFor();
  equal(await page.locator(".secret").count(), 0, "the secret, later");
  await go(page, "Notebook");
  await write(page, 1, "6 * 7");
  await page.keyboard.press("Control+Enter");
  await ended(page, 1);
  ok(!addresses.some((a) => a.includes(secret)), "no key in an address");
  await go(page, "Keys");
  await page.getByRole("button", { name: "Revoke first" }).click();
  await page.getByRole("button", { name: "Revoke?" }).click();
  await page.getByRole("dialog", { name: "This server needs a key" }).waitFor();
}, { noise: /401/ });

await run(house);
