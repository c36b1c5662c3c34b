// Calls tools with a published client: call.mjs MODULES ASK, where ASK is JSON:
//   sdk: "v1" or "v2"; mode: of v2's version negotiation; url; calls: [[name, arguments], ...].
// Prints the names of the tools and the results, as one line of JSON.

import { createRequire } from "node:module";
import path from "node:path";

const need = createRequire(path.join(process.argv[2], "call.js"));
const ask = JSON.parse(process.argv[3]);
const v1 = ask.sdk === "v1";
const { Client } = need(v1 ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client");
const { StreamableHTTPClientTransport } = need(
  v1 ? "@modelcontextprotocol/sdk/client/streamableHttp.js" : "@modelcontextprotocol/client");

const client = new Client({ name: "call", version: "1" },
  { capabilities: {}, ...(v1 ? {} : { versionNegotiation: { mode: ask.mode } }) });
await client.connect(new StreamableHTTPClientTransport(new URL(ask.url)));
const { tools } = await client.listTools();
const results = [];
for (const [name, args] of ask.calls) results.push(await client.callTool({ name, arguments: args }));
console.log(JSON.stringify({ tools: tools.map((t) => t.name), results }));
await client.close();
