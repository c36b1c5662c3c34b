// One walk with a published client: walk.mjs MODULES ASK, where ASK is JSON:
//   sdk: "v1" or "v2"; mode: of v2's version negotiation; url, or command and args and env.
// Prints what came of each step as one line of JSON. Whether that is right is the caller's to say.

import { createRequire } from "node:module";
import path from "node:path";

const need = createRequire(path.join(process.argv[2], "walk.js"));
const ask = JSON.parse(process.argv[3]);

function clientOf() {
  const info = { name: "walk", version: "1" };
  if (ask.sdk === "v1") {
    const { Client } = need("@modelcontextprotocol/sdk/client/index.js");
    return new Client(info, { capabilities: {} });
  }
  const { Client } = need("@modelcontextprotocol/client");
  return new Client(info, { capabilities: {}, versionNegotiation: { mode: ask.mode } });
}

function transportOf() {
  const v1 = ask.sdk === "v1";
  if (ask.url) {
    const { StreamableHTTPClientTransport } = need(
      v1 ? "@modelcontextprotocol/sdk/client/streamableHttp.js" : "@modelcontextprotocol/client");
    return new StreamableHTTPClientTransport(new URL(ask.url));
  }
  const { StdioClientTransport } = need(
    v1 ? "@modelcontextprotocol/sdk/client/stdio.js" : "@modelcontextprotocol/client/stdio");
  return new StdioClientTransport({ command: ask.command, args: ask.args, env: ask.env, stderr: "inherit" });
}

const client = clientOf();
const transport = transportOf();
let session;

function call(name, args, options) {
  const params = { name, arguments: session && name !== "list_packages" ? { session_id: session, ...args } : args };
  return ask.sdk === "v1" ? client.callTool(params, undefined, options) : client.callTool(params, options);
}

const text = (result) => result.content.filter((c) => c.type === "text").map((c) => c.text).join("\n");
const run = (code, options, more) => call("run_code", { code, ...more }, options);

// --- the steps; each gives what it has seen ---

async function state() {
  const first = text(await run("x = 41"));
  session = /sess_[a-z0-9]+/.exec(first)?.[0];
  return { first, second: text(await run("print('x is', x + 1)")) };
}

async function plot() {
  const result = await run("import struct, zlib\ndef part(kind, data):\n    return struct.pack('>I', len(data)) + kind + data + "
    + "struct.pack('>I', zlib.crc32(kind + data))\nfrom IPython.display import Image, display\n"
    + "display(Image(data=b'\\x89PNG\\r\\n\\x1a\\n' + part(b'IHDR', struct.pack('>IIBBBBB', 2, 2, 8, 0, 0, 0, 0)) + "
    + "part(b'IDAT', zlib.compress(b'\\0\\0\\xff' * 2)) + part(b'IEND', b'')))");
  return result.content.filter((c) => c.type === "image").map((c) => ({
    mime: c.mimeType, head: Buffer.from(c.data, "base64").subarray(0, 8).toString("latin1") }));
}

async function error() {
  const result = await run("print('before')\n1 / 0");
  return { isError: result.isError === true, text: text(result) };
}

async function progress() {
  const heard = [];
  await run("import time\nfor i in range(12):\n    print('line', i)\n    time.sleep(0.25)", { onprogress: (p) => heard.push(p) });
  return heard;
}

// A file of the session tells that the code runs; only then is there something to cancel.
async function cancel() {
  const stop = new AbortController();
  const running = run("open('running', 'w').close()\nwhile True:\n    pass", { signal: stop.signal })
    .then(() => "answered", (e) => "rejected: " + e.message);
  while (!text(await call("list_files", {})).includes("running"))
    await new Promise((go) => setTimeout(go, 20));
  stop.abort("enough");
  return { how: await running, after: text(await run("print('still', x)")) };
}

async function resources() {
  if (!client.getServerCapabilities()?.resources)
    return null;
  await run("open('made.txt', 'w').write('made by code')");
  const uri = `retort://sessions/${session}/files/made.txt`;
  return { listed: (await client.listResources()).resources.length, read: (await client.readResource({ uri })).contents };
}

await client.connect(transport);
const seen = { info: client.getServerVersion(), pid: transport.pid ?? null };
if (ask.sdk === "v2")
  seen.version = client.getNegotiatedProtocolVersion();
seen.tools = (await client.listTools()).tools;
for (const step of [state, plot, error, progress, cancel, resources])
  seen[step.name] = await step();
await client.close();
process.stdout.write(JSON.stringify(seen) + "\n");
process.exit(0);
