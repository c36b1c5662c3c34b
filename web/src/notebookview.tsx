import { useEffect, useRef, useState } from "preact/hooks";
import { call, download, plain, saveBlob } from "./api";
import { useChanges } from "./changes";
import { Editor, type Handle, type Language } from "./editor";
import { uploadAll, useDrop } from "./filesview";
import { exportNotebook, importNotebook } from "./ipynb";
import * as book from "./notebook";
import type { Cell, Run } from "./notebook";
import { Outputs } from "./output";
import * as session from "./session";
import { bytes, Button, Confirm, Rename, seconds, State, tell, tellError } from "./ui";
import { useValue } from "./value";

const handles = new Map<Cell, Handle>();
let wanted: Cell | null = null; // a cell that is not on the page yet

function focusCell(cell: Cell) {
  wanted = handles.has(cell) ? null : cell;
  handles.get(cell)?.focus();
}

function handleSet(cell: Cell, handle: Handle | null) {
  if (!handle) {
    handles.delete(cell);
    return;
  }
  handles.set(cell, handle);
  if (wanted === cell) focusCell(cell);
}

function runAndGoOn(cell: Cell): boolean {
  const all = book.cells.get();
  const at = all.indexOf(cell);
  const next = all[at + 1] ?? book.insert(at + 1, book.cellNew());
  void book.execute(cell);
  focusCell(next);
  return true;
}

// --- how a run went ---

function Elapsed({ run }: { run: Run }) {
  const [, turn] = useState(0);
  useEffect(() => {
    if (!book.isRunning(run)) return;
    const timer = setInterval(() => turn((n) => n + 1), 100);
    return () => clearInterval(timer);
  }, [run.status]);
  const s = run.seconds ?? (run.startedAt && book.isRunning(run) ? (Date.now() - run.startedAt) / 1000 : undefined);
  return s === undefined ? null : <span class="elapsed">{seconds(s)}</span>;
}

const SAYS: Record<string, string> = {
  sending: "Sending", queued: "Waiting for its turn", running: "Running", waiting: "Waiting for a person to agree",
  raised: "Raised", timeout: "Out of time", memory: "Out of memory", interrupted: "Stopped", died: "The interpreter died",
  session_lost: "Lost", failed: "Not run",
};

function Foot({ cell, run }: { cell: Cell; run: Run }) {
  const files = run.files.filter((f) => f.change !== "deleted");
  const running = book.isRunning(run);
  const say = cell.language === "shell" && run.status === "raised" ? `Exit status ${run.exitCode}` : SAYS[run.status];
  if (cell.language === "markdown" || run.status === "imported") return null;
  return (
    <div class="foot">
      <p class={`how how-${run.status}`}>
        {say ? <strong>{say}</strong> : null} <Elapsed run={run} />
        {run.message && <span class="sentence">{run.message}</span>}
        {running && <Button icon="stop" label="Stop this cell" onClick={() => book.stop(cell).catch(tellError)} />}
      </p>
      {files.length > 0 && (
        <ul class="made" aria-label="Files that this cell made">
          {files.map((f) => (
            <li key={f.path}>
              <button type="button" class="chip" disabled={!f.url} onClick={() => download(f.url!, f.path.split("/").pop()!).catch(tellError)}>
                <span>{plain(f.path)}</span> <span class="soft">{bytes(f.size)}</span><span class="unseen">download</span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

// --- a cell ---

function CellView({ cell, number }: { cell: Cell; number: number }) {
  useValue(cell.changed);
  const run = cell.run;
  const name = { python: "Python", shell: "Shell", markdown: "Text" }[cell.language];
  const change = (source: string) => {
    cell.source = source;
    if (run?.failed.length) run.failed = [];
    book.save();
  };
  const shift = (by: number) => {
    book.move(cell, by);
    requestAnimationFrame(() => focusCell(cell));
    return true;
  };

  useEffect(() => {
    handles.get(cell)?.mark(run?.failed ?? []);
  }, [run, run?.failed.join()]);

  const keys = [
    { key: "Shift-Enter", run: () => runAndGoOn(cell) },
    { key: "Ctrl-Enter", run: () => (void book.execute(cell), true), },
    { key: "Cmd-Enter", run: () => (void book.execute(cell), true) },
    { key: "Alt-Enter", run: () => {
      void book.execute(cell);
      focusCell(book.insert(book.cells.get().indexOf(cell) + 1, book.cellNew(cell.language)));
      return true;
    } },
    { key: "Ctrl-Alt-ArrowUp", run: () => shift(-1) },
    { key: "Ctrl-Alt-ArrowDown", run: () => shift(1) },
  ];

  return (
    <section class={`cell ${book.isRunning(run) ? "running" : ""}`} aria-label={`Cell ${number}`}>
      <div class="cell-bar">
        <label>
          <span class="unseen">Language of cell {number}</span>
          <select value={cell.language} onChange={(e) => {
            cell.language = e.currentTarget.value as Language;
            cell.hidden = false;
            book.save();
            book.touch(cell);
          }}>
            <option value="python">Python</option>
            <option value="shell">Shell</option>
            <option value="markdown">Text</option>
          </select>
        </label>
        <span class="grow" />
        {cell.hidden && <Button icon="edit" label={`Edit cell ${number}`} onClick={() => {
          cell.hidden = false;
          book.touch(cell);
          book.save();
          focusCell(cell);
        }} />}
        <Button icon="up" label={`Move cell ${number} up`} onClick={() => book.move(cell, -1)} />
        <Button icon="down" label={`Move cell ${number} down`} onClick={() => book.move(cell, 1)} />
        <Button icon="trash" label={`Delete cell ${number}`} onClick={() => book.remove(cell)} />
        {book.isRunning(run)
          ? <Button icon="stop" label={`Stop cell ${number}`} kind="accent" onClick={() => book.stop(cell).catch(tellError)} />
          : <Button icon="run" label={`Run cell ${number}`} kind="accent" onClick={() => void book.execute(cell)} />}
      </div>
      {!cell.hidden && (
        <Editor source={cell.source} language={cell.language} label={`Cell ${number}, ${name}`} keys={keys} onChange={change}
          hint={cell.language === "python" ? "Python. Shift+Enter runs it." : cell.language === "shell" ? "Bash. Shift+Enter runs it." : "Markdown. Shift+Enter shows it."}
          marks={run?.failed} handle={(h) => handleSet(cell, h)} />
      )}
      {run && (
        <div class="out">
          <Outputs outputs={run.outputs} execution={run.execution} />
          <Foot cell={cell} run={run} />
        </div>
      )}
    </section>
  );
}

// --- the bar above ---

function SessionName() {
  const info = useValue(session.info);
  const changes = useChanges("session", "execution");
  useEffect(() => {
    session.load().catch(tellError);
  }, [changes]);
  if (!info) return <span class="session-name soft">No session yet</span>;
  const rename = (name: string) =>
    call(`v1/sessions/${info.id}`, { method: "PATCH", json: { name } }).then((next) => session.info.set(next), tellError);
  return (
    <span class="session-name">
      <Rename name={info.name ?? ""} empty="unnamed session" label="Rename the session" onName={rename} />
      <State state={info.state} />
    </span>
  );
}

function Bar() {
  useValue(book.busy);
  const all = useValue(book.cells);
  const picker = useRef<HTMLInputElement>(null);
  const running = all.some((c) => book.isRunning(c.run));

  const restart = () =>
    call(`v1/sessions/${session.current.get()}/restart`, { method: "POST" }).then((next) => {
      session.info.set(next);
      tell("The interpreter is fresh: variables are gone, files are kept.");
    }, tellError);
  const take = async (file: File | undefined) => {
    if (!file) return;
    try {
      book.cells.set(importNotebook(await file.text()));
      book.save();
      tell(`Opened ${file.name}.`);
    } catch (error) {
      tellError(error);
    }
  };

  return (
    <header class="bar">
      <h1 class="unseen">Notebook</h1>
      <SessionName />
      <span class="grow" />
      <div class="tools" role="toolbar" aria-label="Notebook">
        <Button icon="all" label="Run all" text onClick={() => void book.executeAll()} disabled={running} />
        <Button icon="stop" label="Stop" text onClick={() => book.stop(all.find((c) => book.isRunning(c.run))).catch(tellError)} disabled={!running} />
        <Confirm icon="restart" label="Restart" text question="Lose all variables?" onYes={restart} />
        <span class="rule" />
        <Button icon="upload" label="Open .ipynb" text onClick={() => picker.current!.click()} />
        <Button icon="download" label="Save as .ipynb" text onClick={() =>
          saveBlob(new Blob([JSON.stringify(exportNotebook(all), null, 1)], { type: "application/x-ipynb+json" }), `${session.info.get()?.name ?? "notebook"}.ipynb`)} />
        <Button icon="plus" label="New notebook" text onClick={() => void book.fresh().catch(tellError)} />
        <input ref={picker} type="file" accept=".ipynb" hidden aria-label="A notebook to open" onChange={(e) => {
          void take(e.currentTarget.files?.[0]);
          e.currentTarget.value = "";
        }} />
      </div>
    </header>
  );
}

function Welcome() {
  const all = useValue(book.cells);
  const id = useValue(session.current);
  const first = all[0];
  useValue(first.changed);
  if (id || all.length !== 1 || first.run || first.source !== book.EXAMPLE) return null;
  return (
    <div class="welcome">
      <h2>Write Python, see what it does</h2>
      <p>Every session is a sealed interpreter of its own, already warm. Run the example: it draws a plot and leaves two files to download.</p>
      <button type="button" class="button accent big" onClick={() => void book.execute(first)}>Run the example</button>
      <span class="soft keys-hint">or press <kbd>Shift</kbd> <kbd>Enter</kbd> in the cell</span>
    </div>
  );
}

export function NotebookView() {
  const all = useValue(book.cells);
  const { over, handlers } = useDrop(async (files) => {
    const notebook = files.length === 1 && files[0].path.endsWith(".ipynb") ? files[0] : null;
    if (notebook) {
      try {
        book.cells.set(importNotebook(await notebook.file.text()));
        book.save();
        return;
      } catch {
        // no notebook after all: a file like any other
      }
    }
    uploadAll(files);
    location.hash = "#/files";
  });

  return (
    <div class={`view notebook ${over ? "drop-over" : ""}`} {...handlers}>
      <Bar />
      <div class="column">
        <Welcome />
        {all.map((cell, i) => <CellView key={cell.id} cell={cell} number={i + 1} />)}
        <div class="add">
          <Button icon="plus" label="Python" text onClick={() => focusCell(book.insert(all.length, book.cellNew("python")))} />
          <Button icon="plus" label="Shell" text onClick={() => focusCell(book.insert(all.length, book.cellNew("shell")))} />
          <Button icon="plus" label="Text" text onClick={() => focusCell(book.insert(all.length, book.cellNew("markdown")))} />
        </div>
      </div>
    </div>
  );
}
