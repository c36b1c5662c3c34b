// @llamaindex/azure: llamaindex_sessions.mjs MODULES. Reads pool, a pool's management endpoint, and key.

import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import readline from "node:readline/promises";
import { pathToFileURL } from "node:url";

const need = createRequire(path.join(process.argv[2], "x.js"));
const ask = JSON.parse((await readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]().next()).value);
const say = console.log;
console.log = () => {};

const { AzureDynamicSessionTool } = await import(pathToFileURL(need.resolve("@llamaindex/azure")));
const sessions = (key) => new AzureDynamicSessionTool({ poolManagementEndpoint: ask.pool, azureADTokenProvider: async () => key });
const tool = sessions(ask.key);
const call = async (code) => (await tool.call({ code }));

const seen = { run: await call("print('counting')\n6 * 7") };
await call("kept = [5, 7]");
seen.state = (await call("sum(kept)")).result;
// It puts images into a folder.
await call(ask.plot);
seen.plot = readFileSync(`tool-output/${readdirSync("tool-output")[0]}`).toString("base64");
await tool.uploadFile({ data: new Blob(["n\n4\n9\n"]), remoteFilename: "in.csv" });
await call(ask.use);
seen.files = {
  listed: (await tool.listFiles()).map((f) => f.filename),
  read: await new Response(await tool.downloadFile({ remoteFilename: "out.txt" })).text(),
};
seen.error = (await call("1 / 0")).stderr;
seen.key = await sessions("wrong").call({ code: "1" }).then(JSON.stringify, String);
say(JSON.stringify(seen));
process.exit(0);
