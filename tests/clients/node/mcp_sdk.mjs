// The MCP SDK for TypeScript: mcp_sdk.mjs MODULES v1|v2. Reads url and key, or command, args and env; and calls.

import { createRequire } from "node:module";
import path from "node:path";
import readline from "node:readline/promises";

const [, , modules, version] = process.argv;
const need = createRequire(path.join(modules, "x.js"));
const ask = JSON.parse((await readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]().next()).value);
const v1 = version === "v1";

const { Client } = need(v1 ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client");
const { StreamableHTTPClientTransport } = need(v1 ? "@modelcontextprotocol/sdk/client/streamableHttp.js" : "@modelcontextprotocol/client");
const { StdioClientTransport } = need(v1 ? "@modelcontextprotocol/sdk/client/stdio.js" : "@modelcontextprotocol/client/stdio");

const client = new Client({ name: "walk", version: "1" }, v1 ? {} : { versionNegotiation: { mode: "auto" } });
const seen = { calls: {}, progress: [] };

const shown = (result) => ({
  text: result.content.filter((c) => c.type === "text").map((c) => c.text).join("\n"), is_error: result.isError === true,
  images: result.content.filter((c) => c.type === "image").map((c) => ({ mime: c.mimeType, data: c.data })),
});

async function walk() {
  const headers = { Authorization: `Bearer ${ask.key}` };
  await client.connect(ask.url ? new StreamableHTTPClientTransport(new URL(ask.url), { requestInit: { headers } })
    : new StdioClientTransport({ command: ask.command, args: ask.args, env: ask.env }));
  seen.tools = (await client.listTools()).tools.map((t) => t.name);
  for (const { case: name, tool, arguments: args } of ask.calls) {
    const options = name === "progress" ? { onprogress: (p) => seen.progress.push(p.progress) } : {};
    const params = { name: tool, arguments: args };
    seen.calls[name] = shown(await (v1 ? client.callTool(params, undefined, options) : client.callTool(params, options)));
  }
  await client.close();
}

try {
  await walk();
} catch (error) {
  if (!ask.may_fail) throw error;
  seen.refused = `${error.code ?? ""} ${error.stack}`;
}
console.log(JSON.stringify(seen));
process.exit(0);
