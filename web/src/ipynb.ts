// Notebooks of Jupyter, nbformat 4, in and out. A cell of the shell is a cell with the magic %%bash.
import type { Json } from "./api";
import { type Cell, cellNew } from "./notebook";
import type { Output } from "./output";
import { take } from "./output";

const split = (text: string) => text.split(/(?<=\n)/);
const join = (text: unknown, between = "") => (Array.isArray(text) ? text.join(between) : typeof text === "string" ? text : "");

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function outputOut(o: Output, count: number): Json | null {
  if (o.kind === "text") return { output_type: "stream", name: o.stream, text: split(o.terminal.text) };
  if (o.kind === "error") return { output_type: "error", ename: o.name, evalue: o.message, traceback: o.traceback.text.split("\n") };
  if (o.kind === "note") return null;
  const data: Json = {};
  for (const [mime, value] of Object.entries(o.data)) {
    if (mime.includes(";preview")) continue;
    data[mime] = mime === "application/json" && typeof value === "string" ? jsonOf(value)
      : mime.startsWith("text/") || mime === "image/svg+xml" ? split(String(value)) : value;
  }
  return o.result ? { output_type: "execute_result", execution_count: count, data, metadata: {} }
    : { output_type: "display_data", data, metadata: {} };
}

export function exportNotebook(cells: Cell[]): Json {
  let count = 0;
  return {
    nbformat: 4,
    nbformat_minor: 5,
    metadata: {
      kernelspec: { name: "python3", display_name: "Python 3", language: "python" },
      language_info: { name: "python" },
    },
    cells: cells.map((c) => {
      const id = c.id.slice(0, 64);
      if (c.language === "markdown") return { id, cell_type: "markdown", metadata: {}, source: split(c.source) };
      const ran = c.run && c.run.status !== "failed" ? ++count : null;
      return {
        id,
        cell_type: "code",
        metadata: {},
        execution_count: ran,
        source: split(c.language === "shell" ? `%%bash\n${c.source}` : c.source),
        outputs: ran ? c.run!.outputs.map((o) => outputOut(o, ran)).filter(Boolean) : [],
      };
    }),
  };
}

const CELLS_MAX = 2000; // a page of more is slow

// A file may say anything: what should be text is text from here on.
function outputIn(o: Json): Json {
  if (o.output_type === "stream") return { type: o.name === "stderr" ? "stderr" : "stdout", text: join(o.text) };
  if (o.output_type === "error")
    return { type: "error", name: join(o.ename), message: join(o.evalue), traceback: join(o.traceback, "\n"), frames: [] };
  const data: Json = {};
  for (const [mime, value] of Object.entries(o.data ?? {})) data[mime] = Array.isArray(value) && value.every((v) => typeof v === "string") ? value.join("") : value;
  return { type: o.output_type === "execute_result" ? "result" : "display", data };
}

export function importNotebook(text: string): Cell[] {
  let book: Json;
  try {
    book = JSON.parse(text);
  } catch {
    throw new Error("This file is no notebook: it is not JSON.");
  }
  if (book.nbformat !== 4 || !Array.isArray(book.cells)) throw new Error("This file is no notebook of nbformat 4.");
  if (book.cells.length > CELLS_MAX) throw new Error(`This notebook has ${book.cells.length.toLocaleString()} cells; the page opens ${CELLS_MAX.toLocaleString()} and no more.`);
  return (book.cells as Json[]).filter((c) => ["code", "markdown", "raw"].includes(c?.cell_type)).map((c) => {
    const source = join(c.source);
    const shell = /^%%(bash|sh)\s*\n/.exec(source);
    if (c.cell_type !== "code") return cellNew("markdown", source);
    const cell = shell ? cellNew("shell", source.slice(shell[0].length)) : cellNew("python", source);
    if (Array.isArray(c.outputs) && c.outputs.length) {
      cell.run = { status: "imported", outputs: [], files: [], failed: [] };
      for (const o of (c.outputs as Json[]).filter((o) => o && typeof o === "object")) take(cell.run.outputs, outputIn(o));
    }
    return cell;
  });
}
