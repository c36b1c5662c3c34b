// The published clients against one pool: walk.mjs MODULES ASK, where ASK is JSON: base, key, dir.
// Prints what came of each step as one line of JSON. Whether that is right is the caller's to say.

import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const modules = process.argv[2];
const need = createRequire(path.join(modules, "walk.js"));
const ask = JSON.parse(process.argv[3]);
process.chdir(ask.dir); // images are written below it
const say = console.log;
console.log = () => {};

async function sessions() {
  const { AzureDynamicSessionTool } = await import(pathToFileURL(need.resolve("@llamaindex/azure")));
  const tool = new AzureDynamicSessionTool({
    poolManagementEndpoint: ask.base, sessionId: "sess-1234", azureADTokenProvider: async () => ask.key,
  });
  const plot = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()";
  return {
    call: await tool.call({ code: "x = 41\nprint('hi')\nx + 1" }),
    state: await tool.call({ code: "x" }),
    failed: await tool.call({ code: "1 / 0" }),
    plot: await tool.call({ code: plot }),
    upload: await tool.uploadFile({ data: new Blob(["hello"]), remoteFilename: "a.txt" }),
    list: await tool.listFiles(),
    download: await new Response(await tool.downloadFile({ remoteFilename: "a.txt" })).text(),
  };
}

async function mcp() {
  const { Client } = need("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = need("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const client = new Client({ name: "walk", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(ask.base + "/mcp"),
    { requestInit: { headers: { "x-ms-apikey": ask.key } } }));
  const call = (name, args) => client.callTool({ name, arguments: args });
  const launched = await call("launchShell", {});
  const environmentId = launched.structuredContent.environmentId;
  const seen = {
    server: client.getServerVersion(),
    tools: (await client.listTools()).tools.map((t) => t.name),
    python: await call("runPythonCodeInRemoteEnvironment", { environmentId, pythonCode: "print(6 * 7)" }),
    shell: await call("runShellCommandInRemoteEnvironment", { environmentId, shellCommand: "exit 3" }),
  };
  await client.close();
  return seen;
}

say(JSON.stringify({ sessions: await sessions(), mcp: await mcp() }));
process.exit(0);
