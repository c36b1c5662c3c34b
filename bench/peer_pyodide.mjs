// Python as WebAssembly, in node or Deno: a line of JSON {"code"} in, a line {"out"} or {"error"} back.
// argv: the folder of the npm package pyodide.
import { createInterface } from "node:readline";
import process from "node:process";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const { loadPyodide } = await import(pathToFileURL(folder + "/pyodide.mjs").href);
let out = "";
const python = await loadPyodide({
    indexURL: folder + "/",
    stdout: (line) => { out += line + "\n"; },
    stderr: () => {},
});
const answer = (value) => process.stdout.write(JSON.stringify(value) + "\n");

answer({ ready: true });
for await (const line of createInterface({ input: process.stdin })) {
    out = "";
    try {
        python.runPython(JSON.parse(line).code);
        answer({ out });
    } catch (error) {
        answer({ error: String(error) });
    }
}
