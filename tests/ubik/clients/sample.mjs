// One call of code_execution with a published client that lends its own model: sample.mjs MODULES
// ASK, where ASK is JSON: sdk "v1" or "v2"; mode: of v2's version negotiation; url; tools: whether
// the model knows any. Prints what came of it as one line of JSON.

import { createRequire } from "node:module";
import path from "node:path";

const need = createRequire(path.join(process.argv[2], "sample.js"));
const ask = JSON.parse(process.argv[3]);
const v1 = ask.sdk === "v1";
const asked = [];

const code = "print(6 * 7)";
const turns = ask.tools
  ? [{ type: "text", text: '{"steps": ["multiply"]}' },
     { type: "tool_use", id: "one", name: "run_python", input: { code } },
     { type: "tool_use", id: "two", name: "finish", input: { answer: "It is 42." } }]
  : [{ type: "text", text: '{"steps": ["multiply"]}' },
     { type: "text", text: "```python\n" + code + "\n```" },
     { type: "text", text: "FINAL: It is 42." }];

function answer(request) {
  const turn = turns[Math.min(asked.length, turns.length - 1)];
  asked.push(Object.keys(request.params).sort());
  return { role: "assistant", model: "sample", content: turn,
           stopReason: turn.type === "tool_use" ? "toolUse" : "endTurn" };
}

function clientOf() {
  const info = { name: "sample", version: "1" };
  const capabilities = { sampling: ask.tools ? { tools: {} } : {} };
  if (v1) {
    const { Client } = need("@modelcontextprotocol/sdk/client/index.js");
    const { CreateMessageRequestSchema } = need("@modelcontextprotocol/sdk/types.js");
    const client = new Client(info, { capabilities });
    client.setRequestHandler(CreateMessageRequestSchema, async (request) => answer(request));
    return client;
  }
  const { Client } = need("@modelcontextprotocol/client");
  const client = new Client(info, { capabilities, versionNegotiation: { mode: ask.mode } });
  client.setRequestHandler("sampling/createMessage", async (request) => answer(request));
  return client;
}

const { StreamableHTTPClientTransport } = need(
  v1 ? "@modelcontextprotocol/sdk/client/streamableHttp.js" : "@modelcontextprotocol/client");
const client = clientOf();
await client.connect(new StreamableHTTPClientTransport(new URL(ask.url)));
const params = { name: "code_execution", arguments: { request: "What is 6 * 7?" } };
const result = v1 ? await client.callTool(params, undefined) : await client.callTool(params);
await client.close();
process.stdout.write(JSON.stringify({ result, asked }) + "\n");
process.exit(0);
