// A request in plain words: the agent's rounds as they happen, through the interface of docs/ubik.md.
import { useRef, useState } from "preact/hooks";
import { ApiError, call, download, home, type Json, plain, send } from "./api";
import { TerminalText } from "./output";
import { Rich } from "./rich";
import { Terminal } from "./terminal";
import { bytes, Button, Problem, State, tellError } from "./ui";

const API = "ubik/api/v1";

// Of an address that the server made of how it was reached, perhaps with the prefix of a proxy.
const pathOf = (url: string) => {
  const path = new URL(url, home).pathname;
  return path.startsWith(home.pathname) ? path.slice(home.pathname.length) : path;
};

const NO_MODEL = "No model is configured. The server's --model-url and --model-name name one: docs/models.md tells how.";
const problemOf = (e: Json) => (/NoModel/.test(`${e.code} ${e.type} ${e.message}`) ? NO_MODEL : String(e.message ?? "It failed."));

interface Round {
  phase: string;
  message: string;
  code: string;
  output: Terminal | null;
}
interface Asked {
  id: string;
  request: string;
  rounds: Round[];
  prompt: string;
  end: Json | null;
}

// A model that is asked once more for the same thing is no round of its own.
function withRound(rounds: Round[], next: Round): Round[] {
  const last = rounds.at(-1);
  const same = last && !last.output && !last.code && last.phase === next.phase && last.message === next.message;
  return same ? rounds : [...rounds, next];
}

// Server-sent events; one that is too long comes in pieces, which are put together again.
async function* events(answer: Response): AsyncGenerator<Json> {
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  const pieces = new Map<string, string[]>();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const all = (rest + value).split("\n\n");
    rest = all.pop()!;
    for (const block of all) {
      const data = block.split("\n").filter((l) => l.startsWith("data: ")).map((l) => l.slice(6)).join("\n");
      if (!data) continue;
      const found = JSON.parse(data);
      if (found.chunk_id === undefined) {
        yield found;
        continue;
      }
      const parts = pieces.get(found.chunk_id) ?? [];
      parts[found.chunk_index] = found.chunk_data;
      pieces.set(found.chunk_id, parts);
      if (found.is_last_chunk) yield JSON.parse(parts.join(""));
    }
  }
}

export function AskView() {
  const [asked, setAsked] = useState<Asked | null>(null);
  const [problem, setProblem] = useState("");
  const [text, setText] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  const running = asked !== null && asked.end === null;

  const follow = async (run: Asked) => {
    const shown = () => setAsked({ ...run });
    for await (const e of events(await send(`${API}/tool-executions/${run.id}/stream`))) {
      if (e.event_type === "tool_update") run.rounds = withRound(run.rounds, { phase: e.phase, message: e.message ?? "", code: e.data?.code ?? "", output: null });
      else if (e.event_type === "tool_partial_update") {
        const last = run.rounds.at(-1) ?? { phase: "run", message: "", code: "", output: null };
        if (!run.rounds.length) run.rounds = [last];
        last.output ??= new Terminal();
        last.output.feed(e.content ?? "");
      } else if (e.event_type === "tool_input_required") run.prompt = e.prompt ?? "The agent asks.";
      else if (e.event_type === "tool_end" || e.event_type === "error") {
        run.end = e.event_type === "error" ? { status: "failed", error: { message: e.message, code: e.code } } : e;
        run.prompt = "";
      }
      shown();
    }
    if (!run.end) run.end = await call(`${API}/tool-executions/${run.id}`);
    shown();
  };

  const start = async () => {
    setProblem("");
    try {
      const made = await call(`${API}/tools/code_execution/execute`, { json: { inputs: { request: text } } });
      const run: Asked = { id: made.execution_id, request: text, rounds: [], prompt: "", end: null };
      setAsked(run);
      await follow(run);
    } catch (error) {
      setAsked(null);
      setProblem(problemOf(error instanceof ApiError && error.body.message ? error.body : { message: (error as Error).message }));
    }
  };
  const answer = (approve: boolean) => {
    const form = new FormData();
    form.append("input_data_json", JSON.stringify({ approve }));
    return send(`${API}/tool-executions/${asked!.id}/provide-input`, { method: "POST", body: form }).then(() => setAsked({ ...asked!, prompt: "" }), tellError);
  };
  const files: Json[] = [...(asked?.end?.artifacts ?? []), ...(asked?.end?.generated_files ?? [])];

  return (
    <div class="view">
      <header class="bar"><h1>Ask</h1></header>
      <div class="column">
        <form class="form" onSubmit={(e) => {
          e.preventDefault();
          if (text.trim() && !running) void start();
        }}>
          <label>What would you like to know?<textarea ref={field} rows={4} value={text} onInput={(e) => setText(e.currentTarget.value)}
            placeholder="Which day of the week sells most? Draw it." onKeyDown={(e) => e.key === "Enter" && (e.ctrlKey || e.metaKey) && void start()} /></label>
          <div class="row">
            <button class="button accent" type="submit" disabled={running || !text.trim()}>Ask</button>
            {running && <Button label="Stop" kind="outline" onClick={() => call(`${API}/tool-executions/${asked!.id}/stop?hard=true`, { method: "POST" }).catch(tellError)} />}
          </div>
        </form>
        <Problem text={problem} />
        {!asked && !problem && <p class="soft">A model plans, writes Python, and sees what it prints, until there is an answer that code has computed. Each round stands here as it happens.</p>}
        {asked && (
          <>
            <ol class="rounds" aria-label="Rounds">
              {asked.rounds.map((r, i) => (
                <li key={i}><span class="phase">{r.phase}</span>
                  <div class="turn"><p class="answer">{r.message}</p>
                    {r.code && <pre class="code" tabIndex={0}>{r.code}</pre>}
                    {r.output && <TerminalText terminal={r.output} stream="stdout" />}</div></li>
              ))}
            </ol>
            {running && !asked.prompt && <p class="soft working" role="status"><State state="running" /></p>}
            {asked.prompt && <div class="box" role="alert"><p>{asked.prompt}</p><div class="row"><Button label="Agree" kind="accent" onClick={() => answer(true)} /><Button label="Decline" kind="outline" onClick={() => answer(false)} /></div></div>}
            {asked.end && (
              <section class="box" aria-label="Answer">
                <h2>Answer <State state={asked.end.status ?? "completed"} /></h2>
                {asked.end.answer && <Rich data={{ "text/markdown": asked.end.answer }} />}
                {asked.end.error && <p class="problem" role="alert">{problemOf(asked.end.error)}</p>}
                {files.length > 0 && <ul class="made left">{files.map((f) => (
                  <li key={f.url}><button type="button" class="chip" onClick={() => download(pathOf(f.url), f.asset_filename).catch(tellError)}><span>{plain(f.asset_filename)}</span> <span class="soft">{bytes(f.size)}</span></button></li>
                ))}</ul>}
              </section>
            )}
          </>
        )}
      </div>
    </div>
  );
}
