// What a cell shows: the best of the forms that it offers.
import { useEffect, useMemo, useState } from "preact/hooks";
import { type Json, waitForServer } from "./api";
import { Frame } from "./frame";
import type { Kind } from "./markup";
import { TerminalText } from "./output";
import { Terminal } from "./terminal";

// --- Markdown and mathematics ---

const MARKUP_MS = 5000; // a page of formulas takes a hundred milliseconds
const TRIES = 2; // the worker's script cannot be had while the server is gone

interface Work {
  kind: Kind;
  source: string;
  tries: number;
  done: (html: string | null) => void;
}
const works: Work[] = [];
let worker: Worker | null = null;
let clock = 0;

function workEnd(html: string | null) {
  clearTimeout(clock);
  works.shift()!.done(html);
  if (works.length) workBegin();
}

function workerStop() {
  worker?.terminate();
  worker = null;
}

// One after the other, in one worker; a text that takes too long takes the worker with it.
function workBegin() {
  const work = works[0];
  if (!worker) {
    worker = new Worker(new URL("./markupworker.ts", import.meta.url), { type: "module" });
    worker.onerror = () => {
      workerStop();
      if (--works[0].tries > 0) void waitForServer().then(workBegin);
      else workEnd(null);
    };
    worker.onmessage = ({ data }: MessageEvent<{ begun?: true; html?: string | null }>) => {
      if (data.html !== undefined) return workEnd(data.html);
      clock = window.setTimeout(() => {
        workerStop();
        workEnd(null);
      }, MARKUP_MS);
    };
  }
  worker.postMessage({ kind: work.kind, source: work.source });
}

function Markup({ kind, source, title }: { kind: Kind; source: string; title: string }) {
  const [made, setMade] = useState<{ source: string; html: string | null } | null>(null);
  useEffect(() => {
    let gone = false;
    works.push({ kind, source, tries: TRIES, done: (html) => !gone && setMade({ source, html }) });
    if (works.length === 1) workBegin();
    return () => void (gone = true);
  }, [kind, source]);
  if (made?.source !== source) return <div class="making" />;
  return made.html === null ? <Plain text={source} /> : <Frame html={made.html} title={title} />;
}

// --- JSON ---

const CHILDREN_MAX = 100;
const OPEN_MAX = 20;
const STRING_MAX = 2000; // of a name or a string; the whole text is on record

const cut = (s: string) => (s.length > STRING_MAX ? `${s.slice(0, STRING_MAX)}… ${(s.length - STRING_MAX).toLocaleString()} more characters` : s);

function Leaf({ value }: { value: unknown }) {
  const kind = value === null ? "null" : typeof value;
  return <span class={`json-${kind}`}>{kind === "string" ? cut(JSON.stringify(value)) : String(value)}</span>;
}

function Branch({ name, value, depth }: { name?: string; value: unknown; depth: number }) {
  const [open, setOpen] = useState(depth === 0 || (depth === 1 && value !== null && typeof value === "object" && Object.keys(value).length <= OPEN_MAX));
  const [shown, setShown] = useState(CHILDREN_MAX);
  const label = name === undefined ? null : <span class="json-name">{cut(name)}: </span>;
  if (value === null || typeof value !== "object")
    return <div class="json-row">{label}<Leaf value={value} /></div>;
  const list = Array.isArray(value);
  const entries = Object.entries(value);
  const [before, after] = list ? "[]" : "{}";
  if (!entries.length) return <div class="json-row">{label}<span class="json-mark">{before}{after}</span></div>;
  return (
    <div class="json-row">
      <button class="json-toggle" aria-expanded={open} onClick={() => setOpen(!open)}>
        {label}
        <span class="json-mark">{before}</span>
        {!open && <span class="json-count">{entries.length} {entries.length === 1 ? "item" : "items"}</span>}
        {!open && <span class="json-mark">{after}</span>}
      </button>
      {open && (
        <div class="json-children">
          {entries.slice(0, shown).map(([k, v]) => <Branch key={k} name={k} value={v} depth={depth + 1} />)}
          {entries.length > shown && (
            <button class="plain" onClick={() => setShown(shown + 10 * CHILDREN_MAX)}>
              {(entries.length - shown).toLocaleString()} more
            </button>
          )}
        </div>
      )}
      {open && <span class="json-mark">{after}</span>}
    </div>
  );
}

export function JsonTree({ text }: { text: unknown }) {
  let value = text;
  if (typeof text === "string") {
    try {
      value = JSON.parse(text);
    } catch {
      return <Plain text={text} />;
    }
  }
  return <div class="json"><Branch value={value} depth={0} /></div>;
}

// --- the choice ---

const MARKUP_MAX = 200_000; // what is longer is shown as text
const TEXT_MAX = 10_000;
const IMAGES = ["image/png", "image/jpeg", "image/webp", "image/gif"];

// Long text folds, and so do long lines of it.
function LongText({ text }: { text: string }) {
  const terminal = useMemo(() => {
    const made = new Terminal();
    made.feed(text);
    return made;
  }, [text]);
  return <TerminalText terminal={terminal} stream="result" />;
}

const Plain = ({ text }: { text: string }) =>
  text.length > TEXT_MAX ? <LongText text={text} /> : <pre class="text result" tabIndex={0}>{text}</pre>;

function Picture({ mime, data, about }: { mime: string; data: string; about: string }) {
  return <img class="picture" src={`data:${mime.split(";")[0]};base64,${data.replace(/\s/g, "")}`} alt={about || "A picture"} />;
}

export function Rich({ data }: { data: Json }) {
  const text = (mime: string) => (typeof data[mime] === "string" ? (data[mime] as string) : undefined);
  const about = text("text/plain") ?? "";
  const html = text("text/html");
  if (html !== undefined) return <Frame html={html} title="Output as HTML" />;
  const image = IMAGES.find((m) => text(m)) ?? IMAGES.map((m) => `${m};preview=1`).find((m) => text(m));
  if (image) return <Picture mime={image} data={text(image)!} about={about} />;
  const svg = text("image/svg+xml");
  if (svg !== undefined) return <Frame html={svg} title="Output as SVG" />;
  const markdown = text("text/markdown");
  if (markdown !== undefined && markdown.length <= MARKUP_MAX) return <Markup kind="markdown" source={markdown} title="Output as Markdown" />;
  const latex = text("text/latex");
  if (latex !== undefined && latex.length <= MARKUP_MAX) return <Markup kind="latex" source={latex} title="Formula" />;
  if (data["application/json"] !== undefined) return <JsonTree text={data["application/json"]} />;
  return <Plain text={about || markdown || latex || ""} />;
}
