// A notebook: cells, their runs, and where both are kept.
//
// The text of the cells is in this browser's storage, under the session; what they printed is on the
// server's record and is read from there again after a reload. A run is started in the background with
// a stream: when the page goes away, or its connection, the code goes on, and the record tells the rest.
import { ApiError, call, type Json, lines, send, waitForServer } from "./api";
import type { Language } from "./editor";
import { type Output, take } from "./output";
import * as session from "./session";
import { Value } from "./value";

export interface FileMade {
  path: string;
  change: "created" | "changed" | "deleted";
  size: number;
  mime: string;
  url: string | null;
}

export interface Run {
  execution?: string;
  status: string; // "waiting", "sending", "queued", "running", then that of the outcome, or "failed"
  outputs: Output[];
  files: FileMade[];
  startedAt?: number;
  seconds?: number;
  message?: string;
  exitCode?: number; // of a command
  failed: number[]; // lines of the cell
  approval?: string;
}

export interface Cell {
  id: string;
  language: Language;
  source: string;
  run: Run | null;
  hidden: boolean; // Markdown that is shown instead of its text
  changed: Value<number>;
}

const RUNNING = new Set(["waiting", "sending", "queued", "running"]);
export const isRunning = (run: Run | null) => run !== null && RUNNING.has(run.status);
const POLL_MS = 600;
const QUEUED_MS = 3000; // where many wait, each looks more rarely
const pause = (ms: number) => new Promise((go) => setTimeout(go, ms));

export const cells = new Value<Cell[]>([]);
export const busy = new Value(0); // changes whenever a run begins or ends

let numbers = 0;
export function cellNew(language: Language = "python", source = ""): Cell {
  return { id: `c${Date.now().toString(36)}${numbers++}`, language, source, run: null, hidden: false, changed: new Value(0) };
}
const runNew = (status: string): Run => ({ status, outputs: [], files: [], failed: [] });

export function touch(cell: Cell) {
  cell.changed.set(cell.changed.get() + 1);
}

// At most once a frame, however fast output comes.
const due = new Set<Cell>();
function touchSoon(cell: Cell) {
  if (due.size === 0)
    requestAnimationFrame(() => {
      const all = [...due];
      due.clear();
      all.forEach(touch);
    });
  due.add(cell);
}

// --- where it is kept ---

const place = (id: string | null) => `retort.notebook:${location.pathname}:${id ?? ""}`;
let saving = 0;

export function save() {
  clearTimeout(saving);
  saving = window.setTimeout(saveNow, 200);
}

function saveNow() {
  clearTimeout(saving);
  const kept = cells.get().map((c) => ({ id: c.id, language: c.language, source: c.source, hidden: c.hidden, execution: c.run?.execution }));
  try {
    localStorage.setItem(place(session.current.get()), JSON.stringify(kept));
  } catch {
    // The storage is full: the notebook lives as long as the page.
  }
}
addEventListener("pagehide", saveNow);

export const EXAMPLE = `import numpy as np
import matplotlib.pyplot as plt

x = np.linspace(0, 4 * np.pi, 400)
plt.figure(figsize=(7, 3))
plt.plot(x, np.sin(x) * np.exp(-x / 8), label="a damped wave")
plt.plot(x, np.cos(x) * np.exp(-x / 8), label="its neighbour")
plt.legend()
plt.savefig("wave.png", dpi=150)

np.savetxt("wave.csv", np.column_stack([x, np.sin(x)]), delimiter=",", header="x,sin(x)", comments="")`;

export function loadNotebook() {
  const text = localStorage.getItem(place(session.current.get()));
  let kept: Json[] = [];
  try {
    kept = text ? JSON.parse(text) : [];
  } catch {
    kept = [];
  }
  const found = kept.map((k) => ({ ...cellNew(k.language, k.source), id: k.id as string, hidden: !!k.hidden && k.language === "markdown" }));
  found.forEach((cell, i) => {
    if (kept[i].execution) void restore(cell, kept[i].execution);
    else if (cell.hidden) runMarkdown(cell);
  });
  cells.set(found.length ? found : [cellNew("python", session.current.get() ? "" : EXAMPLE)]);
}

async function restore(cell: Cell, execution: string) {
  cell.run = { ...runNew("running"), execution };
  try {
    await follow(cell, cell.run);
  } catch {
    cell.run = null; // not on record any more, or of another key
  }
  touch(cell);
}

session.moved.watch(save);

// --- cells ---

export function insert(at: number, cell: Cell): Cell {
  const next = [...cells.get()];
  next.splice(at, 0, cell);
  cells.set(next);
  save();
  return cell;
}

export function remove(cell: Cell) {
  if (isRunning(cell.run)) void stop(cell);
  const next = cells.get().filter((c) => c !== cell);
  cells.set(next.length ? next : [cellNew()]);
  save();
}

export function move(cell: Cell, by: number) {
  const next = [...cells.get()];
  const at = next.indexOf(cell);
  const to = at + by;
  if (to < 0 || to >= next.length) return;
  next.splice(at, 1);
  next.splice(to, 0, cell);
  cells.set(next);
  save();
}

// --- runs ---

function takeEvent(cell: Cell, run: Run, event: Json) {
  if (event.type === "file") {
    const at = run.files.findIndex((f) => f.path === event.path);
    if (at >= 0) run.files.splice(at, 1);
    run.files.push(event as unknown as FileMade);
  } else if (event.type === "execution") {
    run.execution = event.id;
    run.status = "running";
    save();
  } else take(run.outputs, event);
  if (event.type === "error") {
    const own = event.frames?.[0]?.file;
    run.failed = [...new Set<number>((event.frames ?? []).filter((f: Json) => f.file === own).map((f: Json) => f.line as number))].sort((a, b) => a - b);
  }
  touchSoon(cell);
}

function end(cell: Cell, run: Run, done: Json) {
  run.status = done.status;
  run.message = done.outcome?.message || undefined;
  run.exitCode = done.outcome?.exit_code ?? undefined;
  run.seconds = done.outcome ? done.outcome.wall_ms / 1000 : undefined;
  if (done.outcome?.output_dropped > 0)
    run.message = [run.message, `${done.outcome.output_dropped.toLocaleString()} bytes of output were dropped; the limit is the pool's`].filter(Boolean).join("; ");
  if (done.status === "session_lost" && !run.message) run.message = "the server was restarted while this ran; files are kept, variables are gone";
  touch(cell);
  busy.set(busy.get() + 1);
}

// Reads the record of a run until it has ended.
async function follow(cell: Cell, run: Run) {
  let wait = POLL_MS;
  for (;;) {
    const record = await call(`v1/executions/${run.execution}`);
    run.outputs = [];
    run.files = [];
    run.startedAt ??= Date.parse(record.started_at ?? record.created_at);
    for (const event of record.events) takeEvent(cell, run, event);
    run.files = record.files;
    run.status = record.status;
    if (record.ended_at) return end(cell, run, record);
    touch(cell);
    await pause(wait);
    wait = record.status === "queued" ? Math.min(wait * 1.5, QUEUED_MS) : POLL_MS;
  }
}

// Cells run in the order in which they were started, so each is sent when the one before has been taken.
let turn: Promise<unknown> = Promise.resolve();
function inTurn<T>(what: () => Promise<T>): Promise<T> {
  const mine = turn.then(what);
  turn = mine.catch(() => {});
  return mine;
}

// A browser opens six connections to a server: what waits behind these streams is read from its record.
const STREAMS_MAX = 2;
let streams = 0;

async function stream(cell: Cell, run: Run) {
  const id = await session.ensure();
  const ask = { code: cell.source, language: cell.language, background: true };
  if (streams >= STREAMS_MAX) {
    const record = await inTurn(() => call(`v1/sessions/${id}/execute`, { json: ask }));
    run.execution = record.id;
    save();
    return follow(cell, run);
  }
  streams++;
  try {
    const answer = await inTurn(() => send(`v1/sessions/${id}/execute`, { json: { ...ask, stream: "ndjson" } }));
    run.startedAt = Date.now();
    for await (const event of lines(answer)) {
      if (event.type === "done") return end(cell, run, event);
      if (event.type === "error" && event.error) throw new ApiError(0, event.error.type, event.error.message, event.error);
      takeEvent(cell, run, event);
    }
  } finally {
    streams--;
  }
  throw new TypeError("the stream was cut short");
}

function fail(cell: Cell, run: Run, message: string) {
  run.status = "failed";
  run.message = message;
  touch(cell);
  busy.set(busy.get() + 1);
}

// Where a person must agree first, the same request is sent again once they have.
async function awaitApproval(cell: Cell, run: Run, error: ApiError) {
  run.approval = error.body.approval?.id ?? /apr_\w+/.exec(error.message)?.[0];
  run.status = "waiting";
  run.message = "Nothing has run yet. It stands under Approvals, and runs by itself once a person agrees.";
  touch(cell);
  while (cell.run === run && run.approval) {
    const found = await call(`v1/approvals/${run.approval}`);
    if (found.state === "approved") return execute(cell);
    if (found.state !== "pending")
      return fail(cell, run, found.state === "declined" ? `A person declined this${found.reason ? `: ${found.reason}` : "."}` : `The approval has ${found.state}.`);
    await pause(POLL_MS);
  }
}

function runMarkdown(cell: Cell) {
  cell.run = { ...runNew("ok"), outputs: [{ kind: "rich", data: { "text/markdown": cell.source }, result: false, version: numbers++ }] };
  cell.hidden = true;
  touch(cell);
  save();
}

export async function execute(cell: Cell): Promise<void> {
  if (cell.language === "markdown") return runMarkdown(cell);
  if (isRunning(cell.run) && cell.run!.status !== "waiting") return;
  const run = runNew("sending");
  run.startedAt = Date.now();
  cell.run = run;
  touch(cell);
  busy.set(busy.get() + 1);
  try {
    await stream(cell, run);
  } catch (error) {
    if (error instanceof ApiError && error.type === "approval_required") return awaitApproval(cell, run, error);
    if (error instanceof ApiError) return fail(cell, run, error.message);
    if (!run.execution) return fail(cell, run, "The server did not answer, and this was not run. Run it again when the server is back.");
    await waitForServer();
    await follow(cell, run).catch((e: Error) => fail(cell, run, e.message));
  }
  void session.load().catch(() => {});
}

export async function executeAll() {
  for (const cell of cells.get()) {
    if (!cell.source.trim()) continue;
    await execute(cell);
    if (cell.run && !["ok"].includes(cell.run.status)) return;
  }
}

export async function stop(cell?: Cell) {
  const id = cell?.run?.execution;
  if (cell?.run?.status === "waiting") return fail(cell, cell.run, "Stopped before a person agreed.");
  if (id) await call(`v1/executions/${id}/interrupt`, { method: "POST" });
  else if (session.current.get()) await call(`v1/sessions/${session.current.get()}/interrupt`, { method: "POST" });
}

// --- another session, another notebook ---

export function switchTo(id: string | null) {
  if (id === session.current.get()) return;
  saveNow();
  session.open(id);
  loadNotebook();
  busy.set(busy.get() + 1);
}

export async function fresh() {
  saveNow();
  session.open(null);
  localStorage.removeItem(place(null));
  cells.set([cellNew()]);
  await session.ensure();
  saveNow();
}

export const forget = (id: string) => localStorage.removeItem(place(id));
