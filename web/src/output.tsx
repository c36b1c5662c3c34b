// The output of one run, in the order in which it came.
import { memo } from "preact/compat";
import { useState } from "preact/hooks";
import { download, type Json, saveBlob } from "./api";
import { Rich } from "./rich";
import { LINES_HEAD, Terminal, type Span, type Style } from "./terminal";
import { tellError } from "./ui";

export interface TextOutput {
  kind: "text";
  stream: "stdout" | "stderr";
  terminal: Terminal;
}
export interface RichOutput {
  kind: "rich";
  data: Json;
  result: boolean;
  display?: string;
  version: number;
}
export interface ErrorOutput {
  kind: "error";
  name: string;
  message: string;
  traceback: Terminal;
  frames: { file: string; line: number; function: string; text: string }[];
}
export interface NoteOutput {
  kind: "note";
  text: string;
}
export type Output = TextOutput | RichOutput | ErrorOutput | NoteOutput;

// Adds an event of the server to what is shown.
export function take(outputs: Output[], event: Json) {
  if (event.type === "stdout" || event.type === "stderr") {
    const last = outputs.at(-1);
    if (last?.kind === "text" && last.stream === event.type) last.terminal.feed(event.text);
    else {
      const terminal = new Terminal();
      terminal.feed(event.text);
      outputs.push({ kind: "text", stream: event.type, terminal });
    }
  } else if (event.type === "display" || event.type === "result") {
    const place = event.update && outputs.find((o): o is RichOutput => o.kind === "rich" && o.display === event.display_id);
    if (place) {
      place.data = event.data;
      place.version++;
    } else outputs.push({ kind: "rich", data: event.data, result: event.type === "result", display: event.display_id, version: 0 });
  } else if (event.type === "error") {
    const traceback = new Terminal();
    traceback.feed(event.traceback ?? "");
    outputs.push({ kind: "error", name: event.name, message: event.message ?? "", traceback, frames: event.frames ?? [] });
  } else if (event.type === "clear") {
    outputs.length = 0;
  } else if (event.type === "status" && event.text) {
    outputs.push({ kind: "note", text: event.text });
  }
}

// --- text ---

const HEAD = 15; // with the tail, as much as is seen without scrolling, so that the fold is seen too
const TAIL = 15;
const FOLD = 200;

function classOf(s: Style): string {
  const names = [];
  const [fg, bg] = s.inverse ? [s.bg ?? "paper", s.fg ?? "ink"] : [s.fg, s.bg];
  if (fg && fg[0] !== "#") names.push(`fg-${fg}`);
  if (bg && bg[0] !== "#") names.push(`bg-${bg}`);
  if (s.bold) names.push("bold");
  if (s.dim) names.push("dim");
  if (s.italic) names.push("italic");
  if (s.underline) names.push("underline");
  return names.join(" ");
}

const Words = ({ spans }: { spans: Span[] }) => (
  <>
    {spans.map(({ text, style }, i) => {
      const name = classOf(style);
      const paint: Record<string, string> = {};
      if (style.fg?.[0] === "#") paint.color = style.fg;
      if (style.bg?.[0] === "#") paint.backgroundColor = style.bg;
      return name || style.fg || style.bg ? <span key={i} class={name} style={paint}>{text}</span> : text;
    })}
  </>
);

// A hundred lines at a time, so that what has been printed before is not rendered again.
const CHUNK = 100;
const LINE_MAX = 10_000; // of a line on the page: a browser breaks a line of ten megabytes for a minute
const Chunk = memo(
  ({ terminal, from, to }: { terminal: Terminal; from: number; to: number; version: number }) => (
    <div class={to - from === CHUNK ? "chunk" : ""}>
      {terminal.lines.slice(from, to).map((line, i) => (
        <div key={i} class="line">
          <Words spans={line.length > LINE_MAX ? line.cut(0, LINE_MAX) : line.spans} />
          {line.length > LINE_MAX && <span class="soft"> … {(line.length - LINE_MAX).toLocaleString()} more characters in this line</span>}
        </div>
      ))}
    </div>
  ),
  (a, b) => a.terminal === b.terminal && a.from === b.from && a.to === b.to && a.version === b.version,
);

function Lines({ terminal, from, to }: { terminal: Terminal; from: number; to: number }) {
  const chunks = [];
  for (let at = from; at < to; at = at - (at % CHUNK) + CHUNK) {
    const end = Math.min(to, at - (at % CHUNK) + CHUNK);
    let version = terminal.dropped;
    for (let i = at; i < end; i++) version += terminal.lines[i].version + 1;
    chunks.push(<Chunk key={at} terminal={terminal} from={at} to={end} version={version} />);
  }
  return <>{chunks}</>;
}

interface TextProps { terminal: Terminal; stream: string; execution?: string }

// Where the rest is: on the server's record, or, of what has none, with the page.
const Rest = ({ terminal, stream, execution }: TextProps) => (
  <button class="plain" onClick={() => (execution ? download(`v1/executions/${execution}/output`, `${execution}.txt`).catch(tellError)
    : saveBlob(new Blob([terminal.text], { type: "text/plain" }), `${stream}.txt`))}>
    Download the whole output
  </button>
);

function Opened({ terminal, stream, execution, onFold }: TextProps & { onFold?: () => void }) {
  const count = terminal.lineCount;
  const long = terminal.lines.some((l) => l.length > LINE_MAX);
  return (
    <>
      <Lines terminal={terminal} from={0} to={terminal.dropped ? LINES_HEAD : count} />
      {terminal.dropped > 0 && (
        <>
          <div class="fold"><span>{terminal.dropped.toLocaleString()} lines are too many for a page.</span></div>
          <Lines terminal={terminal} from={LINES_HEAD} to={count} />
        </>
      )}
      {(onFold || long || terminal.dropped > 0) && (
        <div class="fold">
          {onFold && <button class="plain" onClick={onFold}>Fold {(count + terminal.dropped).toLocaleString()} lines</button>}
          {(long || terminal.dropped > 0) && <Rest terminal={terminal} stream={stream} execution={execution} />}
        </div>
      )}
    </>
  );
}

export function TerminalText({ terminal, stream, execution }: TextProps) {
  const [open, setOpen] = useState(false);
  const count = terminal.lineCount, all = count + terminal.dropped;
  const label = stream === "stderr" ? "Error output" : "Output";
  if (count <= FOLD || open)
    return (
      <div class={`text ${stream} ${count > FOLD ? "long" : ""}`} tabIndex={0} role="region" aria-label={label}>
        <Opened terminal={terminal} stream={stream} execution={execution} onFold={count > FOLD ? () => setOpen(false) : undefined} />
      </div>
    );
  return (
    <div class={`text folded ${stream}`} tabIndex={0} role="region" aria-label={label}>
      <Lines terminal={terminal} from={0} to={HEAD} />
      <div class="fold">
        <span>{(all - HEAD - TAIL).toLocaleString()} lines are folded here.</span>
        <button class="plain" onClick={() => setOpen(true)}>{terminal.dropped ? `Show ${count.toLocaleString()} of ${all.toLocaleString()}` : `Show all ${all.toLocaleString()}`}</button>
        <Rest terminal={terminal} stream={stream} execution={execution} />
      </div>
      <Lines terminal={terminal} from={count - TAIL} to={count} />
    </div>
  );
}

// --- all of it ---

const MESSAGE_MAX = 2000;

function ErrorView({ error }: { error: ErrorOutput }) {
  const [open, setOpen] = useState(error.frames.length < 4);
  return (
    <div class="error">
      <p class="error-head"><strong>{error.name}</strong>{error.message ? `: ${error.message.slice(0, MESSAGE_MAX)}` : ""}
        {error.message.length > MESSAGE_MAX && <span class="soft"> … {(error.message.length - MESSAGE_MAX).toLocaleString()} more characters</span>}</p>
      {error.traceback.lineCount > 1 && (
        <>
          <button class="plain" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "Hide" : "Show"} the traceback</button>
          {open && (
            <div class="text traceback" tabIndex={0} role="region" aria-label="Traceback">
              <Lines terminal={error.traceback} from={0} to={error.traceback.lineCount} />
            </div>
          )}
        </>
      )}
    </div>
  );
}

function OutputView({ o, execution }: { o: Output; execution?: string }) {
  if (o.kind === "text") return <TerminalText terminal={o.terminal} stream={o.stream} execution={execution} />;
  if (o.kind === "error") return <ErrorView error={o} />;
  if (o.kind === "note") return <p class="note">{o.text}</p>;
  return <Rich key={o.version} data={o.data} />;
}

// A cell may show ten thousand things: the first, the last, and more of them when they are asked for.
const FIRST = 60;
const LAST = 20;
const MORE = 200;

export function Outputs({ outputs, execution }: { outputs: Output[]; execution?: string }) {
  const [first, setFirst] = useState(FIRST);
  const hidden = outputs.length - first - LAST;
  const view = (o: Output, i: number) => <OutputView key={i} o={o} execution={execution} />;
  if (hidden <= 0) return <>{outputs.map(view)}</>;
  return (
    <>
      {outputs.slice(0, first).map(view)}
      <div class="fold">
        <span>{hidden.toLocaleString()} outputs are folded here.</span>
        <button class="plain" onClick={() => setFirst(first + MORE)}>Show {Math.min(hidden, MORE).toLocaleString()} more</button>
      </div>
      {outputs.slice(-LAST).map((o, i) => view(o, outputs.length - LAST + i))}
    </>
  );
}
