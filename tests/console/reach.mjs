// Over TLS, and behind a proxy that has the page below a path of its own.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { join } from "node:path";
import { blank, cell, dropPaths, equal, frameOf, freePort, giveKey, go, House, ok, open, run, runCell, serve, test, until } from "./support.mjs";

process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
const PREFIX = "/tools/retort/";
const PEM = join(process.env.RETORT_REPO, "tests/support/self-signed.pem");
const NGINX = join(process.env.RETORT_REPO, "build/nginx/usr/sbin/nginx");

// What a person does anywhere: run a cell, see HTML in its frame, drop a file, look at the others.
async function works(page, at, secret) {
  await open(page, at);
  if (secret) await giveKey(page, secret);
  await blank(page, at);
  await runCell(page, 1, "from IPython.display import HTML\nopen('made.txt', 'w').write('by the cell')\nHTML('<b>bold</b>')");
  equal(await (await frameOf(page, 1)).locator("b").innerText(), "bold");
  const [file] = await Promise.all([page.waitForEvent("download"), cell(page, 1).getByRole("button", { name: /made\.txt/ }).click()]);
  equal(readFileSync(await file.path(), "utf8"), "by the cell");
  const given = join(house.place, "given.txt");
  writeFileSync(given, "given");
  await go(page, "Files");
  await dropPaths(page, [given]);
  await page.getByRole("row", { name: /given\.txt/ }).waitFor();
  await go(page, "Sessions");
  await page.getByRole("region", { name: "Pools" }).getByText("of memory").waitFor();
  await page.getByRole("row", { name: /in the notebook/ }).waitFor();
  await page.reload();
  await page.getByRole("row", { name: /in the notebook/ }).waitFor();
  ok(page.url().startsWith(at.url), page.url());
}

const house = await serve({ flags: ["--preload", ""] });

test("behind a path prefix", async ({ page, after }) => {
  const seen = new Set();
  const proxy = createServer((ask, answer) => {
    seen.add(ask.url.startsWith(PREFIX));
    const on = request({ host: "127.0.0.1", port: house.port, method: ask.method, headers: ask.headers, path: "/" + ask.url.slice(PREFIX.length) },
      (back) => back.pipe(answer.writeHead(back.statusCode, back.headers)));
    on.on("error", () => answer.destroy());
    answer.on("close", () => on.destroy());
    ask.pipe(on);
  });
  const port = await new Promise((go) => proxy.listen(0, "127.0.0.1", () => go(proxy.address().port)));
  after(() => (proxy.closeAllConnections(), proxy.close()));
  await works(page, { url: `http://127.0.0.1:${port}${PREFIX}` });
  equal([...seen], [true], "no address leaves the prefix");
});

test("over TLS", async ({ page, after }) => {
  const own = new House({ flags: ["--preload", "", "--tls-cert", PEM, "--tls-key", PEM], scheme: "https" }, await freePort());
  after(() => own.end());
  await own.start();
  await works(page, own);
}, { context: { ignoreHTTPSErrors: true } });

test("behind nginx: TLS, a path prefix and a key", async ({ page, after }) => {
  const port = await freePort();
  const conf = join(house.place, "nginx.conf");
  writeFileSync(conf, `
daemon off; master_process off; pid ${house.place}/nginx.pid; error_log ${house.place}/nginx.log;
events {}
http {
  access_log off; client_body_temp_path ${house.place}/body; proxy_temp_path ${house.place}/proxy;
  fastcgi_temp_path ${house.place}/f; uwsgi_temp_path ${house.place}/u; scgi_temp_path ${house.place}/s;
  server {
    listen 127.0.0.1:${port} ssl; ssl_certificate ${PEM}; ssl_certificate_key ${PEM};
    location ${PREFIX} {
      proxy_pass http://127.0.0.1:${house.port}/; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $remote_addr; proxy_buffering off;
    }
  }
}`);
  const secret = (await house.call("v1/keys", { tenant: "local", admin: true })).secret;
  house.key = secret;
  const nginx = spawn(NGINX, ["-p", house.place, "-e", join(house.place, "nginx.log"), "-c", conf], { stdio: "ignore" });
  after(() => nginx.kill());
  const at = { url: `https://127.0.0.1:${port}${PREFIX}` };
  await until("nginx serves", async () => (await fetch(at.url + "health").catch(() => null))?.ok || nginx.exitCode !== null);
  await works(page, at, secret);
}, { context: { ignoreHTTPSErrors: true }, noise: /401/ });

await run(house);
