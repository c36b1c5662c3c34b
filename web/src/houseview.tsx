// Sessions, the pools they are made from, and how the server does.
import { useEffect } from "preact/hooks";
import { call, type Json, online, statusLoad } from "./api";
import { useChanges } from "./changes";
import * as book from "./notebook";
import * as session from "./session";
import { ago, binary, Button, Confirm, Empty, LOOK_MS, Problem, Rename, seconds, State, tellError, Time, useLoad } from "./ui";
import { useValue } from "./value";

// --- figures ---

const POINTS = 60;
const FEW = 12; // fewer take the width of so many, so that a first look is no sliver
const EVERY_MS = 2000;

function Spark({ points }: { points: number[] }) {
  const most = Math.max(...points, 1e-9);
  const wide = Math.max(FEW, points.length);
  const step = 100 / (wide - 1);
  const at = points.map((v, i) => `${((i + wide - points.length) * step).toFixed(2)},${(30 - (v / most) * 27).toFixed(2)}`);
  if (at.length < 2) return <svg class="spark" viewBox="0 0 100 32" preserveAspectRatio="none" aria-hidden="true" />;
  const from = ((wide - points.length) * step).toFixed(2);
  return (
    <svg class="spark" viewBox="0 0 100 32" preserveAspectRatio="none" aria-hidden="true">
      <path class="area" d={`M${from},32 L${at.join(" L")} L100,32 Z`} />
      <path class="stroke" d={`M${at.join(" L")}`} />
    </svg>
  );
}

// The time that a share of the executions between two looks stayed below.
function quantile(before: Json[], now: Json[], share: number): number {
  const fresh = now.map((b, i) => b.count - (before[i]?.count ?? 0));
  let left = fresh.reduce((a, b) => a + b, 0) * share;
  for (let i = 0; i < fresh.length; i++) {
    left -= fresh[i];
    if (left <= 0 && fresh[i] > 0) return now[i].le ?? 300;
  }
  return 0;
}

interface Look {
  at: number;
  status: Json;
}

const STALE_MS = 5 * EVERY_MS;
let looks: Look[] = []; // kept while another view is shown: whoever comes back soon finds the chart as it was

function Figures() {
  const { value } = useLoad(async () => {
    const status = await statusLoad();
    const now = Date.now();
    if (now - (looks.at(-1)?.at ?? 0) > STALE_MS) looks = [];
    looks = [...looks, { at: now, status }].slice(-POINTS - 1);
    return status;
  }, [useValue(online)], EVERY_MS);
  if (!value) return null;
  const all = looks;
  const pairs = all.slice(1).map((now, i) => ({ before: all[i], now }));
  const live = (s: Json) => s.sessions.idle + s.sessions.running + s.sessions.starting;
  const rate = pairs.map(({ before, now }) => Math.max(0, (now.status.cell_seconds.count - before.status.cell_seconds.count) / ((now.at - before.at) / 1000)));
  const late = pairs.map(({ before, now }) => quantile(before.status.cell_seconds.buckets, now.status.cell_seconds.buckets, 0.95));
  const total = Object.values(value.executions as Record<string, number>).reduce((a, b) => a + b, 0);
  const cards: [string, string, string, number[]][] = [
    ["Sessions with an interpreter", String(live(value)), `${value.sessions.running} running`, all.map((l) => live(l.status))],
    ["Cells a second", (rate.at(-1) ?? 0).toFixed(1), `${total.toLocaleString()} since the start`, rate],
    ["Time of a cell", late.at(-1) ? `≤ ${seconds(late.at(-1)!)}` : "–", "95 of 100 are faster, now", late],
    ["Memory of the machine", binary(value.memory.host_used_bytes), `of ${binary(value.memory.host_total_bytes)}; server ${binary(value.memory.server_bytes)}`, all.map((l) => l.status.memory.host_used_bytes)],
  ];
  return (
    <section class="section" aria-label="Figures">
      <div class="cards">
        {cards.map(([name, figure, more, points]) => (
          <div class="card" key={name}><h2 class="soft">{name}</h2><div class="figure">{figure}</div><Spark points={points} /><span class="soft">{more}</span></div>
        ))}
      </div>
    </section>
  );
}

// --- sessions ---

function Sessions() {
  const current = useValue(session.current);
  const { value, problem, again } = useLoad(() => call<{ data: Json[]; has_more: boolean }>("v1/sessions?limit=200"), [useValue(online)], LOOK_MS, useChanges("session", "execution"));
  const act = (what: Promise<unknown>) => what.then(again, tellError);
  const open = (id: string) => {
    book.switchTo(id);
    location.hash = "#/notebook";
  };
  const rows = value?.data ?? [];
  return (
    <section class="section" aria-label="Sessions">
      <Problem text={problem} />
      {value && !rows.length && <Empty icon="sessions"><h2>No sessions</h2><p>Run a cell in the notebook, or have a client make one.</p></Empty>}
      {rows.length > 0 && (
        <table class="list">
          <thead><tr><th scope="col">Session</th><th scope="col">State</th><th scope="col">Pool</th><th scope="col">Age</th><th scope="col" class="number">Most memory</th><th scope="col">Last use</th><th scope="col"><span class="unseen">Actions</span></th></tr></thead>
          <tbody>
            {rows.map((s) => (
              <tr key={s.id}>
                <td><Rename name={s.name ?? ""} empty={s.id.slice(-8)} label={`Rename ${s.name ?? s.id}`} onName={(name) => act(call(`v1/sessions/${s.id}`, { method: "PATCH", json: { name } }).then((next) => current === s.id && session.info.set(next)))} />
                  {s.id === current && <span class="soft"> in the notebook</span>}</td>
                <td data-name="State"><State state={s.state} /></td>
                <td data-name="Pool">{s.pool}</td>
                <td data-name="Age" class="once">{ago(s.created_at).replace(" ago", "")}</td>
                <td data-name="Most memory" class="number">{s.memory_bytes ? binary(s.memory_bytes) : <span class="soft">–</span>}</td>
                <td data-name="Last use"><Time at={s.last_used_at} /></td>
                <td class="actions">
                  <Button label="Open" aria-label={`Open ${s.name ?? s.id}`} onClick={() => open(s.id)} />
                  <Confirm icon="restart" label={`Restart ${s.name ?? s.id}`} question="Lose its variables?" onYes={() => act(call(`v1/sessions/${s.id}/restart`, { method: "POST" }))} />
                  <Confirm label={`Delete ${s.name ?? s.id}`} question="Delete with its files?" onYes={() => act(call(`v1/sessions/${s.id}`, { method: "DELETE" }).then(() => {
                    if (s.id === current) book.switchTo(null);
                    book.forget(s.id);
                  }))} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {value?.has_more && <p class="soft">The newest 200 are shown.</p>}
    </section>
  );
}

// --- pools ---

function begin(pool: string) {
  call("v1/sessions", { json: { pool } }).then((made) => {
    book.switchTo(made.id);
    location.hash = "#/notebook";
  }, tellError);
}

function Pools() {
  const { value } = useLoad(() => call<{ data: Json[] }>("v1/pools"), [useValue(online)], 10_000);
  return (
    <section class="section" aria-label="Pools">
      <h2>Pools</h2>
      {value?.data.map((p) => {
        const packages = Object.entries(p.packages as Record<string, string>).sort(([a], [b]) => a.localeCompare(b));
        return (
          <div class="pool" key={p.name}>
            <div class="pool-head"><h3>{p.name} {p.up ? <span class="soft">Python {p.python}</span> : <span class="problem">{p.problem}</span>}</h3>
              <Button icon="plus" label="New notebook" text aria-label={`New notebook in ${p.name}`} disabled={!p.up} onClick={() => begin(p.name)} /></div>
            {p.description && <p class="soft">{p.description}</p>}
            <dl>
              <dt>Live</dt><dd>{p.sessions} of {p.max_sessions} sessions, {p.parked} ready</dd>
              <dt>Limits</dt><dd>{seconds(p.limits.wall_s)} a run, {binary(p.limits.memory_bytes)} of memory, {binary(p.limits.disk_bytes)} of disk, {p.limits.processes} processes, {p.limits.cpus} {p.limits.cpus === 1 ? "core" : "cores"}</dd>
              <dt>Sleeps</dt><dd>after {seconds(p.idle_timeout)} without use</dd>
              <dt>Network</dt><dd>{p.egress.mode === "none" ? "none" : p.egress.hosts.join(", ")}</dd>
            </dl>
            <details><summary>{packages.length} packages</summary>
              <ul class="packages" tabIndex={0} aria-label={`Packages of ${p.name}`}>{packages.map(([name, version]) => <li key={name}>{name} <span class="soft">{version}</span></li>)}</ul>
            </details>
          </div>
        );
      })}
    </section>
  );
}

export function SessionsView() {
  useEffect(() => void session.load().catch(() => {}), []);
  return (
    <div class="view">
      <header class="bar"><h1>Sessions</h1></header>
      <div class="column wide"><Figures /><Sessions /><Pools /></div>
    </div>
  );
}
