// The pictures of docs/console.md and the README, from a real server: `./dev screenshots`.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { cell, ended, open, run, runCell, serve, test, until, write } from "./support.mjs";

const REPO = process.env.RETORT_REPO;
const house = await serve();
const save = (page, name) => page.screenshot({ path: join(REPO, "docs/images", `console-${name}.png`) });

const RIDES = `import pandas as pd
import matplotlib.pyplot as plt

rides = pd.read_csv("rides.csv", parse_dates=["date"])
monthly = rides.set_index("date")[["members", "visitors"]].resample("M").sum()
monthly.plot(figsize=(8, 2.8), title="A year of bicycle hires")
plt.savefig("hires.png")`;

async function notebook(page, name) {
  const made = await house.call("v1/sessions", { name });
  await fetch(`${house.url}v1/sessions/${made.id}/files/rides.csv`, { method: "PUT", body: readFileSync(join(REPO, "demo/rides.csv")) });
  await open(page, house);
  await page.evaluate((id) => localStorage.setItem("retort.session:/", id), made.id);
  await page.reload();
  await write(page, 1, RIDES);
  await page.keyboard.press("Shift+Enter");
  await ended(page, 1);
  await cell(page, 1).locator("img.picture").waitFor();
  await runCell(page, 2, "rides.describe().round(1)");
  await until("the table", async () => (await cell(page, 2).locator("iframe").boundingBox()).height > 60);
  await page.evaluate(() => scrollTo(0, 0));
}

test("notebook", async ({ page }) => {
  await notebook(page, "bicycle hires");
  await save(page, "notebook");
});
test("notebook, dark", async ({ page }) => {
  await notebook(page, "hires, at night");
  await save(page, "dark");
}, { context: { colorScheme: "dark" } });
test("phone", async ({ page }) => {
  await open(page, house);
  await page.getByRole("button", { name: "Run the example" }).click();
  await ended(page, 1);
  await cell(page, 1).locator("img.picture").waitFor();
  await save(page, "phone");
}, { context: { viewport: { width: 390, height: 844 } } });
test("sessions", async ({ page }) => {
  const made = await house.call("v1/sessions", { name: "tide tables" });
  await open(page, house, "sessions");
  for (let i = 0; i < 20; i++) {
    await house.call(`v1/sessions/${made.id}/execute`, { code: "sum(range(10**5))" });
    await page.waitForResponse((r) => r.url().endsWith("/v1/status"));
  }
  await save(page, "sessions");
});

await run(house);
