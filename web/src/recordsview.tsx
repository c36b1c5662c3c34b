// Executions on record: a list with filters, and one of them with all that is known of it. Both are live.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call, download, type Json, online, plain } from "./api";
import { useChanges } from "./changes";
import { type Output, Outputs, take } from "./output";
import { binary, bytes, Button, clock, Empty, Problem, LOOK_MS, seconds, State, tellError, Time, useLoad } from "./ui";
import { useValue } from "./value";

const STATUSES = ["queued", "running", "ok", "raised", "timeout", "memory", "interrupted", "died", "session_lost"];

const RUNNING_MS = 1000; // between two looks at one that still runs

function One({ id }: { id: string }) {
  const [over, setOver] = useState(false);
  const { value: x, problem } = useLoad(() => call(`v1/executions/${encodeURIComponent(id)}`), [id, useValue(online)], over ? 0 : RUNNING_MS);
  useEffect(() => setOver(!!x?.ended_at), [x]);
  const outputs = useMemo(() => {
    const all: Output[] = [];
    for (const event of x?.events ?? []) take(all, event);
    return all;
  }, [x]);
  return (
    <div class="view">
      <header class="bar"><h1>Execution</h1>{x && <State state={x.status} />}<span class="grow" /><a href="#/records">All records</a></header>
      <div class="column">
        <Problem text={problem} />
        {x && (
          <>
            <dl class="facts box">
              <dt>Id</dt><dd>{x.id}</dd>
              <dt>Asked</dt><dd>{clock(x.created_at)}, through {x.door}{x.key ? ` with ${x.key}` : " without a key"}</dd>
              <dt>Session</dt><dd>{x.session}, pool {x.pool}</dd>
              {x.outcome && <><dt>Took</dt><dd>{seconds(x.outcome.wall_ms / 1000)}, {seconds(x.outcome.cpu_ms / 1000)} of CPU, {binary(x.outcome.memory_peak_bytes)} of memory</dd></>}
              {x.kind === "command" && x.outcome && <><dt>Exit status</dt><dd>{x.outcome.exit_code}</dd></>}
              {x.outcome && <><dt>Limits hit</dt><dd>{x.outcome.limits_hit.join(", ") || "none"}</dd></>}
              {x.outcome?.message && <><dt>Outcome</dt><dd>{x.outcome.message}</dd></>}
            </dl>
            <section class="section" aria-label="Code"><h2>{x.kind === "cell" ? "Python" : "Shell"}</h2><pre class="code" tabIndex={0}>{x.code}</pre></section>
            <section class="section" aria-label="What it said">
              <h2>{x.events.length} {x.events.length === 1 ? "event" : "events"}</h2>
              {outputs.length > 0 && <div class="box"><Outputs outputs={outputs} execution={x.id} /></div>}
            </section>
            {x.files.length > 0 && (
              <section class="section" aria-label="Files">
                <h2>Files</h2>
                <ul class="made left">{x.files.map((f: Json) => (
                  <li key={f.path}><button type="button" class="chip" disabled={!f.url} onClick={() => download(f.url, f.path.split("/").pop()!).catch(tellError)}>
                    <span>{plain(f.path)}</span> <span class="soft">{f.change}, {bytes(f.size)}</span></button></li>
                ))}</ul>
              </section>
            )}
          </>
        )}
      </div>
    </div>
  );
}

interface Page {
  data: Json[];
  has_more: boolean;
  last_id: string;
}

export function RecordsView({ rest }: { rest: string }) {
  const [filter, setFilter] = useState({ status: "", session: "", key: "", since: "", until: "" });
  const query = Object.entries(filter).filter(([, v]) => v)
    .map(([k, v]) => `&${k}=${encodeURIComponent(k === "since" || k === "until" ? new Date(v).toISOString() : v.trim())}`).join("");
  const older = useRef<{ query: string; page: Page } | null>(null);
  const [, drawn] = useState(0);
  const ask = (after = "") => call<Page>(`v1/executions?limit=50${query}${after}`);
  const changes = useChanges("execution");
  const { value, problem } = useLoad(async () => {
    if (rest) return null;
    const first = await ask();
    const before = older.current;
    // What was read further down stays, as long as it joins what is new.
    if (before && (before.query !== query || !first.data.some((x) => before.page.data.some((y) => y.id === x.id)))) older.current = null;
    return first;
  }, [query, useValue(online), rest], rest ? 0 : LOOK_MS, rest ? 0 : changes);
  if (rest) return <One key={rest} id={rest} />;
  const further = older.current?.query === query ? older.current.page : null;
  const fresh = new Set(value?.data.map((x) => x.id));
  const rows = [...(value?.data ?? []), ...(further?.data ?? []).filter((x) => !fresh.has(x.id))];
  const last = further ?? value;
  const next = () => ask(`&after=${last!.last_id}`).then((page) => {
    older.current = { query, page: { ...page, data: [...rows, ...page.data] } };
    drawn((n) => n + 1);
  }, tellError);
  const set = (name: string) => (e: Event) => setFilter({ ...filter, [name]: (e.currentTarget as HTMLInputElement).value });
  return (
    <div class="view">
      <header class="bar"><h1>Records</h1></header>
      <div class="column wide">
        <div class="filters" role="group" aria-label="Filters">
          <label>Outcome<select value={filter.status} onChange={set("status")}><option value="">any</option>{STATUSES.map((s) => <option key={s} value={s}>{s.replace("_", " ")}</option>)}</select></label>
          <label>Session<input value={filter.session} placeholder="sess_…" onChange={set("session")} /></label>
          <label>Key<input value={filter.key} placeholder="key_…" onChange={set("key")} /></label>
          <label>From<input type="datetime-local" value={filter.since} onChange={set("since")} /></label>
          <label>Until<input type="datetime-local" value={filter.until} onChange={set("until")} /></label>
        </div>
        <Problem text={problem} />
        {value && !rows.length && <Empty icon="records"><h2>Nothing on record</h2><p>{query ? "No execution matches these filters." : "Every cell and command that runs here is kept, with who asked for it."}</p></Empty>}
        {rows.length > 0 && (
          <table class="list">
            <thead><tr><th scope="col">When</th><th scope="col">Outcome</th><th scope="col">Kind</th><th scope="col">Session</th><th scope="col">Asked by</th><th scope="col" class="number">Took</th><th scope="col"><span class="unseen">Actions</span></th></tr></thead>
            <tbody>
              {rows.map((x) => (
                <tr key={x.id}>
                  <td><Time at={x.created_at} /></td>
                  <td data-name="Outcome"><State state={x.status} /></td>
                  <td data-name="Kind">{x.kind}</td>
                  <td data-name="Session"><button type="button" class="plain" onClick={() => setFilter({ ...filter, session: x.session })} title="Only this session">{x.session.slice(-8)}</button></td>
                  <td data-name="Asked by">{x.door}{x.key ? `, ${x.key.slice(-8)}` : ""}</td>
                  <td data-name="Took" class="number">{x.outcome ? seconds(x.outcome.wall_ms / 1000) : "–"}</td>
                  <td class="actions"><a class="button" href={`#/records/${x.id}`} aria-label={`Open ${x.id}`}>Open</a></td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {last?.has_more && <Button label="Older" kind="outline" onClick={next} />}
      </div>
    </div>
  );
}
