import { useEffect, useRef, useState } from "preact/hooks";
import { address, call, download, headers, type Json, online, plain, send, waitForServer } from "./api";
import { useChanges } from "./changes";
import { Frame } from "./frame";
import * as session from "./session";
import { bytes, Button, Confirm, Dialog, Empty, LOOK_MS, Problem, Rename, tellError, Time, useLoad } from "./ui";
import { useValue, Value } from "./value";

// --- dropped and chosen files ---

export interface Given {
  path: string;
  file: File;
}

async function walk(entry: FileSystemEntry, into: Given[]) {
  if (entry.isFile) {
    const file = await new Promise<File>((ok, no) => (entry as FileSystemFileEntry).file(ok, no));
    into.push({ path: entry.fullPath.replace(/^\//, ""), file });
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((ok, no) => reader.readEntries(ok, no));
    if (some.length === 0) return;
    for (const one of some) await walk(one, into);
  }
}

async function dropped(data: DataTransfer): Promise<Given[]> {
  const entries = [...data.items].map((i) => i.webkitGetAsEntry?.()).filter((e) => e != null);
  const found: Given[] = [];
  if (entries.length) for (const entry of entries) await walk(entry!, found);
  else for (const file of data.files) found.push({ path: file.name, file });
  return found;
}

export function useDrop(take: (files: Given[]) => void) {
  const [over, setOver] = useState(false);
  const isFiles = (e: DragEvent) => [...(e.dataTransfer?.types ?? [])].includes("Files");
  return {
    over,
    handlers: {
      onDragOver: (e: DragEvent) => {
        if (!isFiles(e)) return;
        e.preventDefault();
        setOver(true);
      },
      onDragLeave: (e: DragEvent) => !(e.currentTarget as Node).contains(e.relatedTarget as Node) && setOver(false),
      onDrop: (e: DragEvent) => {
        if (!isFiles(e)) return;
        e.preventDefault();
        setOver(false);
        dropped(e.dataTransfer!).then(take, tellError);
      },
    },
  };
}

// --- uploads, with progress ---

interface Upload {
  id: number;
  path: string;
  size: number;
  sent: number;
  problem: string;
  stop: () => void;
}
const uploads = new Value(new Set<Upload>());
const UPLOADS_SHOWN = 12;
const stored = new Value(0);
let storedDue = 0;
// What is stored together is listed once.
function storedSoon() {
  storedDue ||= window.setTimeout(() => {
    storedDue = 0;
    stored.set(stored.get() + 1);
  }, 300);
}
const AT_A_TIME = 3;
let uploadId = 0;

// The body of a fetch says nothing of its progress, so this is the one place without fetch.
function put(u: Upload, id: string, file: File): Promise<void> {
  return new Promise((ok, no) => {
    const ask = new XMLHttpRequest();
    ask.open("PUT", address(`v1/sessions/${id}/files/${u.path.split("/").map(encodeURIComponent).join("/")}`));
    for (const [name, value] of Object.entries(headers())) ask.setRequestHeader(name, value);
    ask.upload.onprogress = (e) => {
      u.sent = e.loaded;
      uploadsSoon();
    };
    ask.onload = () => {
      if (ask.status < 300) return ok();
      let told = `The server answered ${ask.status}.`;
      try {
        told = JSON.parse(ask.responseText).error.message;
      } catch {
        // what is no JSON has no message
      }
      no(new Error(told));
    };
    ask.onerror = () => {
      void waitForServer();
      no(new Error("The server did not take it. Try again when it is back."));
    };
    ask.onabort = () => no(null);
    u.stop = () => ask.abort();
    ask.send(file);
  });
}

function drop(u: Upload) {
  if (uploads.get().delete(u)) uploadsSoon();
}

// A folder may have a hundred thousand files: the list is drawn once a frame at most.
let drawn = false;
function uploadsSoon() {
  if (drawn) return;
  drawn = true;
  requestAnimationFrame(() => {
    drawn = false;
    uploads.touch();
  });
}

export async function uploadAll(files: Given[]) {
  const all = files.map(({ path, file }) => ({ u: { id: ++uploadId, path, size: file.size, sent: 0, problem: "", stop: () => {} } as Upload, file }));
  for (const { u } of all) uploads.get().add(u);
  uploadsSoon();
  try {
    const id = await session.ensure();
    let next = 0;
    for (const { u } of all) u.stop = () => drop(u);
    await Promise.all(Array.from({ length: AT_A_TIME }, async () => {
      while (next < all.length) {
        const { u, file } = all[next++];
        if (!uploads.get().has(u)) continue;
        try {
          await put(u, id, file);
          drop(u);
        } catch (error) {
          if (error === null) drop(u);
          else {
            u.problem = (error as Error).message;
            u.stop = () => drop(u);
            uploadsSoon();
          }
        }
        storedSoon();
      }
    }));
  } catch (error) {
    for (const { u } of all) drop(u);
    tellError(error);
  }
}

function Uploads() {
  const all = useValue(uploads);
  if (!all.size) return null;
  const shown = [...all].sort((a, b) => +!!b.problem - +!!a.problem || a.id - b.id).slice(0, UPLOADS_SHOWN);
  return (
    <ul class="uploads" aria-label="Uploads">
      {all.size > shown.length && (
        <li class="all"><strong>{all.size.toLocaleString()} files</strong><span class="soft">are on their way.</span>
          <Button label="Cancel all" kind="outline" onClick={() => [...all].forEach((u) => u.stop())} /></li>
      )}
      {shown.map((u) => (
        <li key={u.id}>
          <span class="path">{plain(u.path)}</span>
          <span class="soft">{bytes(u.sent)} of {bytes(u.size)}</span>
          {u.problem ? <span class="problem">{u.problem}</span>
            : <progress value={u.sent} max={u.size || 1} aria-label={`Upload of ${u.path}`} />}
          <Button icon="close" label={u.problem ? "Close" : `Cancel the upload of ${u.path}`} onClick={() => u.stop()} />
        </li>
      ))}
    </ul>
  );
}

// --- previews ---

const FIRST = 256 * 1024;
const FILES_SHOWN = 200;
const FIND_FROM = 20;
const ROWS = 100;
const COLUMNS = 40;
const NUMBER = /^\s*[-+]?[\d.,]+(e[-+]?\d+)?%?\s*$/i;

// The first rows of comma- or tab-separated values, as RFC 4180 writes them.
export function rowsOf(text: string, separator: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [], field = "", quoted = false;
  for (let i = 0; i < text.length && rows.length < ROWS; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') field += c;
      else if (text[i + 1] === '"') field += text[++i];
      else quoted = false;
    } else if (c === '"' && field === "") quoted = true;
    else if (c === separator) {
      row.push(field);
      field = "";
    } else if (c === "\n") {
      row.push(field.replace(/\r$/, ""));
      rows.push(row);
      row = [];
      field = "";
    } else field += c;
  }
  if (rows.length < ROWS && (field || row.length)) rows.push([...row, field]);
  return rows;
}

function Table({ text, name, whole }: { text: string; name: string; whole: boolean }) {
  const rows = rowsOf(text, name.endsWith(".tsv") ? "\t" : ",");
  const wide = rows.some((r) => r.length > COLUMNS);
  const [head, ...body] = rows.map((r) => r.slice(0, COLUMNS));
  if (!head) return <p class="soft">The file is empty.</p>;
  const numbers = head.map((_, k) => body.length > 0 && body.every((r) => !r[k] || NUMBER.test(r[k])) ? "number" : undefined);
  return (
    <>
      <div class="table-scroll" tabIndex={0} role="region" aria-label={`The first rows of ${name}`}>
        <table class="data">
          <thead><tr>{head.map((h, i) => <th key={i} scope="col" class={numbers[i]}>{h}</th>)}</tr></thead>
          <tbody>{body.map((r, i) => <tr key={i}>{r.map((v, k) => <td key={k} class={numbers[k]}>{v}</td>)}</tr>)}</tbody>
        </table>
      </div>
      {(!whole || rows.length >= ROWS || wide) && <p class="soft">The first {body.length} rows{wide ? ` and ${COLUMNS} columns` : ""}.</p>}
    </>
  );
}

const TEXT = /^(text\/|application\/(json|xml|x-yaml|javascript|toml|x-sh|x-python|x-ipynb))/;
const IMAGE = /^image\/(png|jpeg|gif|webp|bmp)/;
const SVG_MAX = 5_000_000;

function Preview({ file, onClose }: { file: Json; onClose: () => void }) {
  const [shown, setShown] = useState<{ kind: string; text?: string; url?: string; whole?: boolean } | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let url = "";
    (async () => {
      if (IMAGE.test(file.mime) || file.mime === "application/pdf") {
        const blob = new Blob([await (await send(file.url)).arrayBuffer()], { type: file.mime });
        url = URL.createObjectURL(blob);
        return setShown({ kind: file.mime === "application/pdf" ? "pdf" : "image", url });
      }
      // A few lines of SVG can be a billion circles: what draws them is a frame, and not the page.
      if (/^image\/svg/.test(file.mime) && file.size <= SVG_MAX) return setShown({ kind: "svg", text: await (await send(file.url)).text() });
      const part = file.size > 0 ? await (await send(file.url, { headers: { range: `bytes=0-${FIRST - 1}` } })).arrayBuffer() : new ArrayBuffer(0);
      const text = new TextDecoder().decode(part);
      const whole = part.byteLength >= file.size;
      const binary = !TEXT.test(file.mime) && text.includes("\0");
      setShown(binary ? { kind: "none" } : { kind: /\.(csv|tsv)$/i.test(file.path) ? "table" : "text", text, whole });
    })().catch((error: Error) => setProblem(error.message));
    return () => URL.revokeObjectURL(url);
  }, [file.url, file.sha256]);
  const name = file.path.split("/").pop()!;
  return (
    <Dialog title={plain(file.path)} onClose={onClose}>
      <p class="soft">{file.mime}, {bytes(file.size)}</p>
      <Problem text={problem} />
      {!shown && !problem && <p>Loading…</p>}
      {shown?.kind === "image" && <img class="picture" src={shown.url} alt={name} />}
      {shown?.kind === "svg" && <Frame html={shown.text!} title={name} />}
      {shown?.kind === "pdf" && <iframe class="pdf" src={shown.url} title={name} />}
      {shown?.kind === "table" && <Table text={shown.text!} name={name} whole={shown.whole!} />}
      {shown?.kind === "text" && <pre class="text preview-text" tabIndex={0}>{shown.text}</pre>}
      {shown?.kind === "text" && !shown.whole && <p class="soft">The first {bytes(FIRST)}.</p>}
      {shown?.kind === "none" && <p>There is no preview of such a file.</p>}
      <Button icon="download" label="Download" text kind="accent" onClick={() => download(file.url, name).catch(tellError)} />
    </Dialog>
  );
}

// --- the list ---

export function FilesView() {
  const id = useValue(session.current);
  const info = useValue(session.info);
  const count = useValue(stored);
  const isOnline = useValue(online);
  const [preview, setPreview] = useState<Json | null>(null);
  const chosen = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  const { over, handlers } = useDrop((files) => void uploadAll(files));
  const { value, problem, again } = useLoad(
    async () => ((await session.load()) ? (await call<{ data: Json[] }>(`v1/sessions/${session.current.get()}/files`)).data : []),
    [id, count, isOnline], LOOK_MS, useChanges("file"));
  const [shown, setShown] = useState(FILES_SHOWN);
  const [find, setFind] = useState("");
  const files = value ?? [];
  const found = find ? files.filter((f) => f.path.toLowerCase().includes(find.toLowerCase())) : files;
  const change = (what: Promise<unknown>) => what.then(again, tellError);
  const pick = (e: Event) => {
    const field = e.currentTarget as HTMLInputElement;
    void uploadAll([...(field.files ?? [])].map((file) => ({ path: file.webkitRelativePath || file.name, file })));
    field.value = "";
  };

  return (
    <div class={`view ${over ? "drop-over" : ""}`} {...handlers}>
      <header class="bar">
        <h1>Files</h1>
        {info && <span class="soft of">of {info.name ? plain(info.name) : "the notebook's session"}</span>}
        <span class="grow" />
        <div class="tools">
          <Button icon="upload" label="Upload" text kind="accent" onClick={() => chosen.current!.click()} />
          <Button icon="files" label="Upload a folder" text onClick={() => folder.current!.click()} />
          <Button icon="download" label="Download all as zip" text disabled={!files.length} onClick={() =>
            download(`v1/sessions/${id}/workspace?format=zip`, `${info?.name ?? "workspace"}.zip`).catch(tellError)} />
        </div>
        <input ref={chosen} type="file" multiple hidden aria-label="Files to upload" onChange={pick} />
        <input ref={folder} type="file" hidden aria-label="A folder to upload" {...({ webkitdirectory: true } as object)} onChange={pick} />
      </header>
      <div class="column">
        <Uploads />
        <Problem text={problem} />
        {value && !files.length && (
          <Empty icon="files">
            <h2>No files yet</h2>
            <p>Drop files or folders here, or have a cell write some. Code finds them in its working directory.</p>
          </Empty>
        )}
        {files.length > FIND_FROM && (
          <div class="filters"><label>Find<input type="search" value={find} onInput={(e) => setFind(e.currentTarget.value)} placeholder="part of a name" /></label>
            <span class="soft">{found.length.toLocaleString()} of {files.length.toLocaleString()} files, {bytes(found.reduce((sum, f) => sum + f.size, 0))}</span></div>
        )}
        {find && !found.length && <p class="soft">No name has “{find}” in it.</p>}
        {found.length > 0 && (
          <table class="list">
            <thead><tr><th scope="col">Name</th><th scope="col" class="number">Size</th><th scope="col">Changed</th><th scope="col"><span class="unseen">Actions</span></th></tr></thead>
            <tbody>
              {found.slice(0, shown).map((f) => (
                <tr key={f.url}>
                  <td><Rename name={f.path} label={`Rename ${f.path}`} onName={(path) => change(call(f.url, { method: "PATCH", json: { path } }))} /></td>
                  <td class="number" data-name="Size">{bytes(f.size)}</td>
                  <td data-name="Changed"><Time at={f.modified_at} /></td>
                  <td class="actions">
                    <Button label="Preview" onClick={() => setPreview(f)} aria-label={`Preview ${f.path}`} />
                    <Button icon="download" label={`Download ${f.path}`} onClick={() => download(f.url, f.path.split("/").pop()!).catch(tellError)} />
                    <Confirm label={`Delete ${f.path}`} question="Delete?" onYes={() => change(call(f.url, { method: "DELETE" }))} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {found.length > shown && <Button label={`Show ${FILES_SHOWN} more`} kind="outline" onClick={() => setShown(shown + FILES_SHOWN)} />}
      </div>
      {preview && <Preview file={preview} onClose={() => setPreview(null)} />}
    </div>
  );
}
