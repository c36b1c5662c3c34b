// What the suite shares: a server, a browser, and a list of tests that reports one line of JSON each.
//
//   const house = await serve({ flags: ["--preload", ""] });      house.url, house.kill(), house.start()
//   test("what a person does", async ({ page }) => { ... });
//   await run(house);
//
// Every test gets a page of its own, in a context of its own, and one browser serves them all.
// Anything the page logs as an error, or refuses by its own policy, fails the test that caused it,
// unless the test says what it expects: test(name, fn, { noise: /.../ }).
// What a test starts for its page ends after the page: after(() => proxy.close()). A page that is open
// while its server goes says, rightly, that the server does not answer.
import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const require = createRequire(join(process.env.RETORT_NPM, "node_modules/x"));
const { chromium } = require("playwright-core");
const axeSource = require("axe-core").source;

const SECONDS = 60;
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"];

export const freePort = () => new Promise((ok) => {
  const s = createServer().listen(0, "127.0.0.1", () => {
    const { port } = s.address();
    s.close(() => ok(port));
  });
});

export class House {
  constructor({ flags = [], config = "", scheme = "http" }, port) {
    this.port = port;
    this.flags = flags;
    this.place = mkdtempSync(join(tmpdir(), "retort-test-console-"));
    chmodSync(this.place, 0o755); // the server need not be who we are
    this.url = `${scheme}://127.0.0.1:${port}/`;
    this.key = "";
    writeFileSync(join(this.place, "retort.ini"), config);
  }

  // Resolves when it serves.
  async start() {
    const log = openSync(join(this.place, "log"), "a");
    this.process = spawn(process.env.RETORT_BIN, ["serve", "--listen", `127.0.0.1:${this.port}`, "--state", join(this.place, "state"), "--config", join(this.place, "retort.ini"),
      "--ready", "1", "--memory", "600M", "--timeout", "30", "--drain", "5", ...this.flags],
      { stdio: ["ignore", log, log], detached: true, env: { ...process.env, NODE_TLS_REJECT_UNAUTHORIZED: undefined } });
    const until = Date.now() + SECONDS * 1000;
    for (;;) {
      if (this.process.exitCode !== null) throw new Error("the server has ended: see " + this.place);
      const ready = await fetch(this.url + "ready").catch(() => null);
      if (ready?.ok) return this;
      if (Date.now() > until) throw new Error("the server is not ready");
      await new Promise((go) => setTimeout(go, 30));
    }
  }

  kill(signal = "SIGKILL") {
    const gone = new Promise((go) => this.process.once("exit", go));
    this.process.kill(signal);
    return gone;
  }

  async call(path, json, method) {
    const answer = await fetch(this.url + path, {
      method: method ?? (json ? "POST" : "GET"), body: json && JSON.stringify(json),
      headers: { ...(json ? { "content-type": "application/json" } : {}), ...(this.key ? { authorization: `Bearer ${this.key}` } : {}) },
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }

  async end() {
    if (this.process?.exitCode === null) await this.kill("SIGTERM");
    rmSync(this.place, { recursive: true, force: true });
  }
}

export const serve = async (settings = {}) => new House(settings, await freePort()).start();

// --- tests ---

let tests = [];
export const test = (name, fn, options = {}) => tests.push({ name, fn, ...options });

export function equal(found, wanted, what = "") {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${what} is ${a}, and should be ${b}`);
}
export function ok(truth, what) {
  if (!truth) throw new Error(what);
}
export async function until(what, look, seconds = SECONDS) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`never came: ${what}`);
    await new Promise((go) => setTimeout(go, 25));
  }
}

let shared = null; // the browser, a promise: its start is half of the time of a short file
let stays = false;
export const stay = () => (stays = true);
export const leave = async () => (await shared)?.close();

export async function run(house, options = {}) {
  const only = process.env.RETORT_ONLY;
  const browser = await (shared ??= chromium.launch({ executablePath: "/usr/bin/chromium-headless-shell", args: FLAGS }));
  const mine = tests;
  tests = [];
  let bad = 0;
  for (const { name, fn, noise, ...more } of mine) {
    if (only && !name.includes(only)) continue;
    const begun = Date.now();
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce", ...options, ...more.context });
    const page = await context.newPage();
    page.setDefaultTimeout(SECONDS * 1000);
    const said = [];
    page.on("console", (m) => m.type() === "error" && !noise?.test(m.text()) && said.push(m.text()));
    page.on("pageerror", (e) => said.push(e.stack ?? e.message));
    let error = null;
    const last = [];
    try {
      await fn({ page, context, house, browser, after: (end) => last.push(end) });
      if (said.length) throw new Error("the page said: " + said.join("\n"));
    } catch (e) {
      error = `${e.stack ?? e}\n${said.join("\n")}`;
      bad++;
      await page.screenshot({ path: `/tmp/retort-console-failed.png` }).catch(() => {});
    }
    await context.close();
    for (const end of last) await end();
    console.log(JSON.stringify({ name, error, ms: Date.now() - begun }));
  }
  if (!stays) await leave();
  await house.end();
  if (bad) process.exitCode = 1;
}

// --- what a person does ---

export const open = async (page, house, view = "") => {
  await page.goto(house.url + (view ? `#/${view}` : ""));
  await page.locator("nav.side").waitFor();
};
export const cell = (page, n) => page.getByRole("region", { name: `Cell ${n}`, exact: true });
export const editor = (page, n) => cell(page, n).getByRole("textbox");

// Types code into a cell, as fast as the keyboard goes. The editor closes brackets and indents, so the text is put in whole.
export async function write(page, n, code) {
  await editor(page, n).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.press("Delete");
  await page.keyboard.insertText(code);
}
// A cell that has ended: its region.
export async function runCell(page, n, code, keys = "Control+Enter") {
  if (code !== undefined) await write(page, n, code);
  else await editor(page, n).click();
  await page.keyboard.press(keys);
  return ended(page, n);
}
export async function ended(page, n) {
  const c = cell(page, n);
  await c.locator(".how").waitFor();
  await until(`the end of cell ${n}`, async () => !(await c.locator(".how-running, .how-sending, .how-queued").count()));
  return c;
}
// A page with one empty cell and no session.
export async function blank(page, house) {
  await open(page, house);
  await write(page, 1, "");
}
// The key that the page asks for.
export async function giveKey(page, secret) {
  const dialog = page.getByRole("dialog", { name: "This server needs a key" });
  await dialog.getByLabel("Key").fill(secret);
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
}
// Files and folders of this machine, dropped in the middle of the page as a person drops them.
export async function dropPaths(page, paths) {
  const input = await page.context().newCDPSession(page);
  const data = { items: [], files: paths, dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver", "drop"]) await input.send("Input.dispatchDragEvent", { type, x: 600, y: 400, data });
  await input.detach();
}
export const go = async (page, name) => {
  await page.getByRole("navigation").getByRole("link", { name }).click();
  await page.getByRole("heading", { level: 1, name }).waitFor({ state: "attached" });
};
// No violation of what the page shows now, light and dark, where only colours differ. For a context with bypassCSP: axe itself is put into the page.
export async function accessible(page, what) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axeSource);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await until(colorScheme, () => page.evaluate((name) => document.documentElement.dataset.theme === name, colorScheme));
    const found = await page.evaluate((dark) => axe.run(document, { resultTypes: ["violations"], ...(dark && { runOnly: ["color-contrast"] }) }), colorScheme === "dark");
    equal(found.violations.map((v) => [v.id, v.nodes[0].html.slice(0, 200)]), [], `${what}, ${colorScheme}`);
  }
}
export const sessionOf = (page) => page.evaluate(() => localStorage.getItem(`retort.session:${location.pathname}`));
// The colours of a picture, each channel in sixteenths: "1,7,11".
export const coloursOf = (img) => img.evaluate(async (img) => {
  await img.decode();
  const canvas = new OffscreenCanvas(img.naturalWidth, img.naturalHeight).getContext("2d");
  canvas.drawImage(img, 0, 0);
  const data = canvas.getImageData(0, 0, img.naturalWidth, img.naturalHeight).data;
  const seen = new Set();
  for (let i = 0; i < data.length; i += 4) seen.add(`${data[i] >> 4},${data[i + 1] >> 4},${data[i + 2] >> 4}`);
  return [...seen];
});
// The frame that the n-th piece of HTML, SVG or Markdown of a cell is in.
export async function frameOf(page, n, at = 0) {
  const handle = await cell(page, n).locator("iframe.frame").nth(at).elementHandle();
  const frame = await until("the frame", () => handle.contentFrame());
  await frame.waitForFunction(() => document.getElementById("content")?.childNodes.length > 0);
  return frame;
}
