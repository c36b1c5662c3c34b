// What a cell shows: the best of the forms that it offers.
import { marked } from "marked";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import temml from "temml";
import type { Json } from "./api";
import { Frame } from "./frame";
import { TerminalText } from "./output";
import { Terminal } from "./terminal";

// --- mathematics ---

const MATH = /\$\$([\s\S]+?)\$\$|\$((?:\\.|[^$\\])+?)\$|\\\[([\s\S]+?)\\\]|\\\(([\s\S]+?)\\\)/g;

interface Piece {
  text: string;
  math: boolean;
  display: boolean;
}

function pieces(source: string): Piece[] {
  const found: Piece[] = [];
  let at = 0;
  for (const m of source.matchAll(MATH)) {
    if (m.index > at) found.push({ text: source.slice(at, m.index), math: false, display: false });
    const text = m[1] ?? m[2] ?? m[3] ?? m[4];
    found.push({ text, math: true, display: m[1] !== undefined || m[3] !== undefined });
    at = m.index + m[0].length;
  }
  if (at < source.length) found.push({ text: source.slice(at), math: false, display: false });
  return found;
}

function mathOf(p: Piece): string {
  try {
    return temml.renderToString(p.text, { displayMode: p.display, trust: false, maxExpand: 200, throwOnError: false });
  } catch {
    return escapeHtml(p.text);
  }
}

const escapeHtml = (s: string) => s.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

function markdownHtml(source: string): string {
  const math: string[] = [];
  const marker = (i: number) => `\u0001${i}\u0002`;
  const text = pieces(source)
    .map((p) => (p.math ? marker(math.push(mathOf(p)) - 1) : p.text))
    .join("");
  const html = marked.parse(text, { async: false, gfm: true }) as string;
  return html.replace(/\u0001(\d+)\u0002/g, (_, i) => math[+i] ?? "");
}

function Latex({ source }: { source: string }) {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const place = ref.current!;
    const parts = pieces(source.trim());
    const all = parts.some((p) => p.math) ? parts : [{ text: source, math: true, display: true }];
    place.textContent = "";
    for (const p of all) {
      const one = place.appendChild(document.createElement("span"));
      if (!p.math) one.textContent = p.text;
      else {
        try {
          temml.render(p.text, one, { displayMode: p.display, trust: false, maxExpand: 200, throwOnError: true });
        } catch {
          one.textContent = p.text;
        }
      }
    }
  }, [source]);
  return <div class="latex" ref={ref} tabIndex={0} role="group" aria-label="Formula" />;
}

// --- JSON ---

const CHILDREN_MAX = 100;
const OPEN_MAX = 20;

function Leaf({ value }: { value: unknown }) {
  const kind = value === null ? "null" : typeof value;
  return <span class={`json-${kind}`}>{kind === "string" ? JSON.stringify(value) : String(value)}</span>;
}

function Branch({ name, value, depth }: { name?: string; value: unknown; depth: number }) {
  const [open, setOpen] = useState(depth === 0 || (depth === 1 && value !== null && typeof value === "object" && Object.keys(value).length <= OPEN_MAX));
  const [shown, setShown] = useState(CHILDREN_MAX);
  const label = name === undefined ? null : <span class="json-name">{name}: </span>;
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
      return <pre class="text">{text}</pre>;
    }
  }
  return <div class="json"><Branch value={value} depth={0} /></div>;
}

// --- the choice ---

const MARKUP_MAX = 200_000; // the page reads it; what is longer is shown as text
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
  if (markdown !== undefined && markdown.length <= MARKUP_MAX) return <Frame html={markdownHtml(markdown)} title="Output as Markdown" />;
  const latex = text("text/latex");
  if (latex !== undefined && latex.length <= MARKUP_MAX) return <Latex source={latex} />;
  if (data["application/json"] !== undefined) return <JsonTree text={data["application/json"]} />;
  const plain = about || markdown || latex || "";
  return plain.length > TEXT_MAX ? <LongText text={plain} /> : <pre class="text result" tabIndex={0}>{plain}</pre>;
}
