// Markdown and mathematics as HTML, for a frame. It runs in a worker (markupworker.ts): a text of a hundred
// kilobytes can hold both parsers for minutes, and then it is the worker that is ended, not the page.
import { marked } from "marked";
import temml from "temml";

export type Kind = "markdown" | "latex";

interface Piece {
  text: string;
  math: boolean;
  display: boolean;
}

const MATH: { opens: string; closes: string; display: boolean }[] = [
  { opens: "$$", closes: "$$", display: true },
  { opens: "\\[", closes: "\\]", display: true },
  { opens: "\\(", closes: "\\)", display: false },
  { opens: "$", closes: "$", display: false },
];

// Text and formulas, in turns. What is opened and never closed is text.
function pieces(source: string): Piece[] {
  const found: Piece[] = [];
  const missing = new Set<string>(); // what does not close any more: a search of each to the end takes minutes
  let from = 0;
  for (let at = 0; at < source.length;) {
    const m = MATH.find((k) => source.startsWith(k.opens, at) && !missing.has(k.closes));
    const start = m ? at + m.opens.length : 0;
    const end = m ? closing(source, m.closes, start) : -1;
    if (m && end < 0) missing.add(m.closes);
    if (!m || end <= start) {
      at += source[at] === "\\" && !m ? 2 : 1;
      continue;
    }
    if (at > from) found.push({ text: source.slice(from, at), math: false, display: false });
    found.push({ text: source.slice(start, end), math: true, display: m.display });
    from = at = end + m.closes.length;
  }
  if (from < source.length) found.push({ text: source.slice(from), math: false, display: false });
  return found;
}

// A dollar after a backslash is a dollar, and no end of a formula.
function closing(source: string, closes: string, from: number): number {
  for (let end = source.indexOf(closes, from); end >= 0; end = source.indexOf(closes, end + 1))
    if (closes !== "$" || source[end - 1] !== "\\") return end;
  return -1;
}

const escapeHtml = (s: string) => s.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

function mathOf(p: Piece): string {
  try {
    return temml.renderToString(p.text, { displayMode: p.display, trust: false, maxExpand: 200, throwOnError: true });
  } catch {
    return escapeHtml(p.text);
  }
}

function markdownHtml(source: string): string {
  const math: string[] = [];
  const marker = (i: number) => `\u0001${i}\u0002`;
  const text = pieces(source)
    .map((p) => (p.math ? marker(math.push(mathOf(p)) - 1) : p.text))
    .join("");
  const html = marked.parse(text, { async: false, gfm: true }) as string;
  return html.replace(/\u0001(\d+)\u0002/g, (_, i) => math[+i] ?? "");
}

function latexHtml(source: string): string {
  const parts = pieces(source.trim());
  const all = parts.some((p) => p.math) ? parts : [{ text: source, math: true, display: true }];
  return `<div class="latex">${all.map((p) => (p.math ? mathOf(p) : escapeHtml(p.text))).join("")}</div>`;
}

export const markupHtml: Record<Kind, (source: string) => string> = { markdown: markdownHtml, latex: latexHtml };
