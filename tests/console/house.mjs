// Files, sessions, records, keys, and a server that is gone for a while.
import { accessible, blank, cell, coloursOf, dropPaths, ended, equal, frameOf, giveKey, go, ok, open, run, runCell, serve, sessionOf, test, until, write } from "./support.mjs";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const house = await serve({ flags: ["--preload", ""] });

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

test("folders are dropped and chosen, with their paths", async ({ page }) => {
  for (const name of ["survey", "chosen"]) {
    mkdirSync(join(house.place, name, "deep"), { recursive: true });
    writeFileSync(join(house.place, name, "a.txt"), "a");
    writeFileSync(join(house.place, name, "deep", "b.txt"), "b");
  }
  await open(page, house, "files");
  await dropPaths(page, [join(house.place, "survey")]);
  await page.getByLabel("A folder to upload").setInputFiles(join(house.place, "chosen"));
  for (const name of ["survey/a", "survey/deep/b", "chosen/a", "chosen/deep/b"])
    await page.getByRole("row", { name: new RegExp(`${name}\\.txt`) }).waitFor();
});

test("an upload shows its progress and is cancelled, and the others go on", async ({ page, context }) => {
  const size = 8_000_000;
  writeFileSync(join(house.place, "large.bin"), Buffer.alloc(size));
  writeFileSync(join(house.place, "small.txt"), "small");
  await open(page, house, "files");
  await page.getByText("No files yet").waitFor();
  const network = await context.newCDPSession(page);
  await network.send("Network.enable");
  await network.send("Network.emulateNetworkConditions", { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: size / 20 });
  await dropPaths(page, [join(house.place, "large.bin"), join(house.place, "small.txt")]);
  const bar = page.getByRole("progressbar", { name: "Upload of large.bin" });
  await until("some of it is sent", async () => {
    const [sent, max] = await bar.evaluate((p) => [p.value, p.max]);
    return max === size && sent > 0 && sent < size;
  });
  await page.getByRole("button", { name: "Cancel the upload of large.bin" }).click();
  await bar.waitFor({ state: "detached" });
  await page.getByRole("row", { name: /small\.txt/ }).waitFor();
  equal((await house.call(`v1/sessions/${await sessionOf(page)}/files`)).data.map((f) => f.path), ["small.txt"]);
});

const PICTURE = `import zlib, struct
def part(kind, data): return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
rows = b"".join(b"\\0" + bytes((200, 30, 100)) * 8 for _ in range(8))
open("square.png", "wb").write(b"\\x89PNG\\r\\n\\x1a\\n" + part(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)) + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))
import matplotlib
matplotlib.use("pdf")
import matplotlib.pyplot as plt
plt.plot([1, 2]); plt.savefig("page.pdf"); plt.close()
open("notes.txt", "w").write("plain words")
open("data.bin", "wb").write(bytes(range(256)))
open("long.csv", "w").write("n,square\\n" + "".join(f"{i},{i * i}\\n" for i in range(100_000)))`;

test("previews: a picture, the first rows of a long CSV, text, PDF; names, sizes and times", async ({ page }) => {
  // The page itself may fetch no blob, so what is in one is noted when it is made.
  await page.addInitScript(() => {
    window.blobs = new Map();
    const make = URL.createObjectURL;
    URL.createObjectURL = (blob) => {
      const url = make.call(URL, blob), seen = { type: blob.type };
      blob.slice(0, 5).text().then((head) => (seen.head = head));
      window.blobs.set(url, seen);
      return url;
    };
  });
  await blank(page, house);
  await runCell(page, 1, PICTURE);
  await cell(page, 1).getByRole("list", { name: "Files that this cell made" }).getByText("long.csv").waitFor();
  await go(page, "Files");
  const row = page.getByRole("row", { name: /long\.csv/ });
  ok(/1\.6 MB/.test(await row.innerText()) && /just now|s ago/.test(await row.innerText()), await row.innerText());
  const look = async (name, there) => {
    await page.getByRole("button", { name: `Preview ${name}` }).click();
    await there(page.getByRole("dialog"));
    await page.getByRole("button", { name: "Close" }).click();
  };
  await look("square.png", async (d) => {
    await d.locator("img.picture").waitFor();
    equal(await coloursOf(d.locator("img.picture")), ["12,1,6"]);
  });
  await look("long.csv", async (d) => {
    await d.getByText("The first 99 rows").waitFor();
    equal((await d.locator("td").allInnerTexts()).slice(-2), ["98", "9604"]);
    equal(await d.locator("td").last().evaluate((e) => getComputedStyle(e).textAlign), "right", "numbers stand");
  });
  await look("notes.txt", (d) => d.getByText("plain words").waitFor());
  await look("data.bin", (d) => d.getByText("There is no preview of such a file.").waitFor());
  await look("page.pdf", async (d) => {
    const frame = d.locator("iframe.pdf");
    await frame.waitFor();
    const shown = await frame.evaluate((f) => window.blobs.get(f.src));
    equal([shown.type, shown.head], ["application/pdf", "%PDF-"]);
  });
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download notes.txt" }).click()]);
  equal(readFileSync(await file.path(), "utf8"), "plain words");
});

test("sessions are listed, renamed, restarted, opened and deleted; pools and figures are there", async ({ page }) => {
  await blank(page, house);
  await go(page, "Sessions");
  await page.getByRole("region", { name: "Pools" }).getByText("of memory").waitFor();
  const pool = page.getByRole("region", { name: "Pools" }).locator(".pool").first();
  await pool.getByText(/packages/).click();
  await pool.getByRole("list", { name: /Packages of/ }).getByText("numpy").waitFor();
  await pool.getByText("600 MiB of memory").waitFor(); // as it was set
  await page.getByText("Cells a second").waitFor();
  await until("a chart is drawn", async () => (await page.locator(".spark .stroke").count()) === 4);
  await go(page, "Records");
  await go(page, "Sessions");
  await page.locator(".card").first().waitFor();
  equal(await page.locator(".spark .stroke").count(), 4, "charts, for who comes back");
  // It is in the list although nobody looked: the server told.
  const other = await house.call("v1/sessions", { name: "of another client" });
  await page.getByRole("row", { name: /of another client/ }).waitFor({ timeout: 10_000 });
  await house.call(`v1/sessions/${other.id}/execute`, { code: "kept = b'x' * 50_000_000" });
  const facts = () => page.getByRole("row", { name: /of another client/ }).locator("td").allInnerTexts();
  await until("its memory", async () => /\d+ MiB/.test((await facts())[4]));
  const [, state, pool_, age, , last] = await facts();
  ok(state === "idle" && pool_ === "default" && /just now|\d+ s/.test(age) && /just now|s ago/.test(last), JSON.stringify(await facts()));
  ok((await house.call(`v1/sessions/${other.id}`)).memory_bytes > 50_000_000, "memory_bytes");
  await page.getByRole("button", { name: "Restart of another client" }).click();
  await page.getByRole("button", { name: "Lose its variables?" }).click();
  await until("a fresh interpreter", async () => (await house.call(`v1/sessions/${other.id}/execute`, { code: "'kept' in globals()" })).result === "False");
  await page.getByRole("button", { name: /Rename of another client/ }).click();
  await page.getByRole("textbox", { name: "Rename of another client" }).fill("an older one");
  await page.keyboard.press("Enter");
  const row = page.getByRole("row", { name: /an older one/ });
  await row.waitFor();
  await page.getByRole("button", { name: "Open an older one" }).click();
  await until("the notebook has that session", async () => (await sessionOf(page)) === other.id);
  await go(page, "Sessions");
  await page.getByRole("button", { name: "Delete an older one" }).click();
  await page.getByRole("button", { name: "Delete with its files?" }).click();
  await until("it is gone", async () => (await row.count()) === 0);
});

test("records are filtered by outcome, session and time, and one is opened", async ({ page }) => {
  await blank(page, house);
  await runCell(page, 1, "print('on record')\nopen('made.txt', 'w').write('x')\n1 / 0");
  await go(page, "Records");
  await page.locator("tbody tr").first().waitFor();
  const hour = (by) => { // as the field writes it: local time, to the minute
    const t = new Date(Date.now() + by * 3600_000);
    return new Date(t - t.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  };
  await page.getByLabel("Until").fill(hour(-1));
  await page.getByText("No execution matches these filters.").waitFor();
  await page.getByLabel("Until").fill(hour(1));
  await page.getByLabel("From").fill(hour(-1));
  await page.locator("tbody tr").first().waitFor();
  await page.getByLabel("From").fill(hour(1));
  await page.getByText("No execution matches these filters.").waitFor();
  await page.getByLabel("From").fill("");
  await page.getByLabel("Until").fill("");
  await page.getByRole("textbox", { name: "Session" }).fill(await sessionOf(page));
  await page.getByRole("textbox", { name: "Session" }).press("Enter");
  await until("its one execution", async () => (await page.locator("tbody tr").count()) === 1);
  await page.getByRole("textbox", { name: "Session" }).fill("");
  await page.getByLabel("Key").fill("key_nobody");
  await page.getByLabel("Key").press("Enter");
  await page.getByText("No execution matches these filters.").waitFor();
  await page.getByLabel("Key").fill("");
  await page.getByLabel("Key").press("Enter");
  await page.getByLabel("Outcome").selectOption("raised");
  await until("raised ones alone", async () => {
    const states = await page.locator("tbody .state").allInnerTexts();
    return states.length > 0 && states.every((s) => s === "raised");
  });
  // What another client runs is there although nobody looked, and stays within the filter.
  const before = await page.locator("tbody tr").count();
  await house.call("v1/execute", { code: "'fine'" });
  await house.call("v1/execute", { code: "1 / 0" });
  await until("the new one", async () => (await page.locator("tbody tr").count()) === before + 1);
  await page.getByLabel("Outcome").selectOption("");
  const queued = await house.call(`v1/sessions/${await sessionOf(page)}/execute`, { code: "import os, time\nprint('begun', flush=True)\nwhile not os.path.exists('go'): time.sleep(.01)", background: true });
  const live = page.getByRole("row").filter({ has: page.getByRole("link", { name: `Open ${queued.id}` }) });
  await live.getByText(/queued|running/).waitFor();
  await live.getByRole("link").click();
  await page.getByText("begun", { exact: true }).waitFor();
  await fetch(`${house.url}v1/sessions/${await sessionOf(page)}/files/go`, { method: "PUT", body: "x" });
  await page.locator("header .state-ok").waitFor();
  await page.goBack();
  await live.getByText("ok", { exact: true }).waitFor();
  await page.getByLabel("Outcome").selectOption("raised");
  await until("raised ones alone", async () => {
    const states = await page.locator("tbody .state").allInnerTexts();
    return states.length > 0 && states.every((s) => s === "raised");
  });
  await page.getByRole("row").filter({ hasText: (await sessionOf(page)).slice(-8) }).getByRole("link", { name: /^Open exec_/ }).first().click();
  await page.getByText("through rest without a key").waitFor();
  ok((await page.locator("pre.code").innerText()).includes("1 / 0"), "the code");
  await page.getByText("on record", { exact: true }).waitFor();
  await page.getByRole("region", { name: "Files" }).getByText("made.txt").waitFor();
  await page.getByText(/^\d+ events$/).waitFor();
  const slow = await house.call("v1/execute", { code: "while True: pass", timeout: 0.2 });
  await page.goto(`${house.url}#/records/${slow.id}`);
  await page.getByText("wall_time").waitFor();
  await page.getByText(/stopped at the time limit/).waitFor();
});

test("a request in plain words where there is no model", async ({ page }) => {
  await open(page, house, "ask");
  await page.getByLabel("What would you like to know?").fill("How many?");
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page.getByText("No model is configured.").waitFor();
}, { noise: /Failed to load/ });

test("the server is killed and restarted: the page says so, and goes on by itself", async ({ page, context }) => {
  // Pages that nobody works in notice as well.
  const idle = [];
  for (const view of ["notebook", "keys"]) {
    const one = await context.newPage();
    await Promise.all([one.waitForResponse((r) => r.url().includes("/v1/events")), open(one, house, view)]);
    idle.push(one);
  }
  await blank(page, house);
  await write(page, 1, "print('begun')\nwhile True: pass");
  await page.keyboard.press("Control+Enter");
  await cell(page, 1).locator(".stdout").getByText("begun").waitFor();
  await house.kill();
  for (const one of [page, ...idle]) await one.getByText("The server does not answer.").waitFor();
  await house.start();
  for (const one of [page, ...idle]) await one.getByText("The server does not answer.").waitFor({ state: "detached" });
  await ended(page, 1);
  ok((await cell(page, 1).locator(".how").innerText()).includes("Lost"), "the cell says what became of it");
  await runCell(page, 1, "6 * 7");
  equal((await cell(page, 1).locator("pre.result").innerText()).trim(), "42");
}, { noise: /ERR_|Failed to load/ });

test("what is looked at while the server is gone is drawn when it is back", async ({ page }) => {
  await blank(page, house);
  await runCell(page, 1, "from IPython.display import HTML\nHTML('<b>bold</b>')");
  equal(await (await frameOf(page, 1)).locator("b").innerText(), "bold");
  await go(page, "Files");
  await house.kill();
  await page.getByText("The server does not answer.").waitFor();
  await accessible(page, "the server is gone");
  await go(page, "Notebook");
  await cell(page, 1).locator("iframe.frame").waitFor();
  await until("the frame has asked in vain", () => page.frames().some((f) => f.url().startsWith("chrome-error")));
  await house.start();
  await page.getByText("The server does not answer.").waitFor({ state: "detached" });
  equal(await (await frameOf(page, 1)).locator("b").innerText(), "bold");
}, { noise: /ERR_|Failed to load/, context: { bypassCSP: true } });

// Every view, as it stands after a cell has run. bypassCSP: for axe itself.
const violations = async ({ page }) => {
  await blank(page, house);
  await runCell(page, 1, "import sys\nprint('out')\nprint('err', file=sys.stderr)\nopen('f.csv', 'w').write('a,b')\n{}['x']");
  for (const view of ["notebook", "files", "ask", "sessions", "records", "approvals", "keys"]) {
    await page.goto(`${house.url}#/${view}`);
    await until(view, async () => (await page.title()).toLowerCase().startsWith(view));
    await page.locator("main h1").waitFor({ state: "attached" });
    await accessible(page, view);
  }
  await page.goto(`${house.url}#/files`);
  await page.getByRole("button", { name: "Preview f.csv" }).click();
  await page.locator("dialog th").first().waitFor();
  await accessible(page, "a preview");
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Delete f.csv" }).click();
  await accessible(page, "a question");
  await go(page, "Sessions");
  await page.getByText(/^\d+ packages$/).first().click();
  await accessible(page, "packages");
  await go(page, "Records");
  await page.getByRole("link", { name: /^Open exec_/ }).first().click();
  await page.getByText(/^\d+ events$/).waitFor();
  await accessible(page, "a record");
};
test("axe finds no violation in any view", violations, { context: { bypassCSP: true } });
test("axe finds no violation in any view on a phone", violations,
  { context: { bypassCSP: true, viewport: { width: 390, height: 844 } } });

// Last: from here on every request needs a key.
test("a key is made, shown once, asked for once, kept in the tab, and revoked", async ({ page }) => {
  const addresses = [];
  page.on("request", (r) => addresses.push(r.url()));
  await open(page, house, "keys");
  await page.getByLabel("Name", { exact: true }).fill("first");
  await page.getByRole("button", { name: "Create the key" }).click();
  const secret = await page.locator(".secret code").innerText();
  // From here on every request needs one: this tab has it, and so its secret can be read and copied.
  await page.getByText("this tab, which uses it from now on").waitFor();
  await page.getByRole("row", { name: /first/ }).waitFor();
  const dialog = page.getByRole("dialog", { name: "This server needs a key" });
  equal(await dialog.count(), 0, "asked, although the tab has the key");
  await page.getByRole("button", { name: "Forget the key" }).click();
  await dialog.getByLabel("Key").fill("rt_wrong");
  await page.keyboard.press("Enter");
  await dialog.getByText("did not accept").waitFor();
  await giveKey(page, secret);
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
  house.key = secret;
  const { id } = (await house.call("v1/keys")).data.find((k) => k.name === "first");
  await go(page, "Records");
  await page.getByRole("textbox", { name: "Key" }).fill(id);
  await page.getByRole("textbox", { name: "Key" }).press("Enter");
  await until("what that key ran", async () => (await page.locator("tbody tr").count()) === 1);
  ok((await page.locator("tbody tr").innerText()).includes(id.slice(-8)), "by which key");
  await go(page, "Keys");
  await page.getByRole("button", { name: "Revoke first" }).click();
  await page.getByRole("button", { name: "Revoke?" }).click();
  await page.getByRole("dialog", { name: "This server needs a key" }).waitFor();
}, { noise: /401|INCOMPLETE_CHUNKED/ }); // the server cuts the stream of a key that is revoked

await run(house);
