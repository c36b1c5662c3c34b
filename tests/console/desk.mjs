// Where a person must agree, and where a model works: with keys, and two people at two pages.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { accessible, cell, ended, equal, giveKey, go, ok, open, run, serve, test, until, write } from "./support.mjs";

// The tests' own model server: what it is asked, and a script of what it says.
const model = spawn("python3", [join(process.env.RETORT_REPO, "tests/support/model_server.py")], { stdio: ["ignore", "pipe", "inherit"] });
process.on("exit", () => model.kill());
const [control] = await new Promise((ok) => createInterface(model.stdout).once("line", (line) => ok([line])));
const CODE = `import os, time
print("counting", flush=True)
while not os.path.exists("go"): time.sleep(.01)
open("count.txt", "w").write("42")
print(6 * 7)`;
const desk = await (await fetch(control, { method: "POST", headers: { "content-type": "application/json" },
  body: JSON.stringify({ turns: [[{ text: JSON.stringify({ steps: ["count them"] }) }], [{ python: CODE }],
    [{ tool: { name: "finish", input: { answer: "It is **42**." } } }]] }) })).json();

const house = await serve({ flags: ["--preload", "", "--model-url", desk.openai, "--model-name", "any"],
  config: "[pool default]\n[pool careful]\napproval = always_ask\napproval-by = approver\n" });
const key = async (name, more) => {
  const made = await house.call("v1/keys", { tenant: "acme", name, ...more });
  house.key ||= made.secret;
  return made;
};
await key("operator", { admin: true });
const [ann, bob] = [await key("ann"), await key("bob", { approver: true })];

test("code waits for a person: one approves, one declines, and who it was is on record", async ({ page, context }) => {
  await open(page, house, "sessions");
  await giveKey(page, ann.secret);
  await page.getByRole("button", { name: "New notebook in careful" }).click();
  await page.getByRole("heading", { level: 1, name: "Notebook" }).waitFor({ state: "attached" });
  const other = await context.newPage();
  await open(other, house, "approvals");
  await giveKey(other, bob.secret);
  await other.getByText("Nothing waits").waitFor();
  const waiting = other.getByRole("navigation").getByRole("link", { name: "Approvals" }).getByText("1 waiting");
  equal(await waiting.count(), 0);

  await write(page, 1, "6 * 7");
  await page.keyboard.press("Control+Enter");
  await cell(page, 1).getByText("Waiting for a person to agree").waitFor();
  await cell(page, 1).getByText("runs by itself once a person agrees").waitFor();
  await waiting.waitFor();
  const asked = other.getByRole("article", { name: /run_code/ });
  await asked.waitFor({ timeout: 10_000 }); // sooner than the page would look by itself
  ok((await asked.innerText()).includes(ann.id) && (await asked.innerText()).includes("through rest"), "by whom, through which door");
  ok((await asked.locator("pre.code").innerText()).startsWith("6 * 7"), "what");
  await accessible(other, "code waits");
  await asked.getByLabel("Reason").fill("it is harmless");
  await asked.getByRole("button", { name: "Approve" }).click();
  await ended(page, 1);
  await cell(page, 1).locator("pre.result").waitFor();
  equal((await cell(page, 1).locator("pre.result").innerText()).trim(), "42");

  await write(page, 1, "print('never')");
  await page.keyboard.press("Control+Enter");
  await asked.getByLabel("Reason").fill("not today");
  await asked.getByRole("button", { name: "Decline" }).click();
  await cell(page, 1).getByText("A person declined this: not today").waitFor();
  const rows = other.getByRole("region", { name: "Decided" }).locator("tbody tr");
  await until("both are decided", async () => (await rows.count()) === 2);
  await until("nothing waits", async () => (await waiting.count()) === 0);
  const text = await rows.allInnerTexts();
  ok(text.every((t) => t.includes(bob.id.slice(-8)) && t.includes(ann.id.slice(-8))), text.join("\n"));
  ok(text[0].includes("declined") && text[0].includes("not today") && text[1].includes("it is harmless"), text.join("\n"));

  // Who asked may look, and not decide.
  await write(page, 1, "print('asked')");
  await page.keyboard.press("Control+Enter");
  await cell(page, 1).getByText("Waiting for a person to agree").waitFor();
  const second = await context.newPage();
  await open(second, house, "approvals");
  await giveKey(second, ann.secret);
  await second.getByText("Your key may look, and not decide.").waitFor();
  equal(await second.getByRole("button", { name: "Approve" }).count(), 0);
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await cell(page, 1).getByText("Stopped before a person agreed.").waitFor();
}, { noise: /401|403/, context: { bypassCSP: true } });

test("a request in plain words: the rounds as they happen, the answer and its file", async ({ page }) => {
  await open(page, house, "ask");
  await page.getByRole("dialog", { name: "This server needs a key" }).waitFor();
  await accessible(page, "a key is asked for");
  await giveKey(page, ann.secret);
  await page.getByLabel("What would you like to know?").fill("How many are there?");
  await page.keyboard.press("Control+Enter");
  const rounds = page.getByRole("list", { name: "Rounds" });
  await rounds.getByText("counting", { exact: true }).waitFor();
  equal(await page.getByRole("region", { name: "Answer" }).count(), 0, "the answer, while code runs");
  equal((await rounds.locator("pre.code").allInnerTexts()).map((t) => t.trim()), [CODE], "the code that runs");
  const mine = await (await fetch(house.url + "v1/sessions", { headers: { authorization: `Bearer ${ann.secret}` } })).json();
  const at = mine.data.find((s) => s.state === "running").id;
  await fetch(`${house.url}v1/sessions/${at}/files/go`, { method: "PUT", body: "x", headers: { authorization: `Bearer ${ann.secret}` } });
  const answer = page.getByRole("region", { name: "Answer" });
  equal(await answer.frameLocator("iframe").locator("strong").innerText(), "42");
  await accessible(page, "an answer");
  const [file] = await Promise.all([page.waitForEvent("download"), answer.getByRole("button", { name: /count\.txt/ }).click()]);
  equal(file.suggestedFilename(), "count.txt");
  await go(page, "Records");
  await page.locator("tbody tr").first().getByText("ubik").waitFor();
}, { noise: /401/, context: { bypassCSP: true } });

test("a new key is of the administrator's own tenant, unless another is named", async ({ page }) => {
  await open(page, house, "keys");
  await giveKey(page, house.key);
  equal(await page.getByRole("textbox", { name: "Tenant" }).inputValue(), "acme");
}, { noise: /401/ });

await run(house);
model.kill();
