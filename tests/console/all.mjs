// Runs several files of tests, one after the other, in one browser: node all.mjs FILE...
import { pathToFileURL } from "node:url";
import { leave, stay } from "./support.mjs";

stay();
for (const file of process.argv.slice(2)) {
  try {
    await import(pathToFileURL(file).href);
  } catch (error) {
    console.error(file, error);
    process.exitCode = 1;
  }
}
await leave();
