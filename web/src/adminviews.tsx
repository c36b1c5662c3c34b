// Approvals that wait for a person, and keys.
import { useRef, useState } from "preact/hooks";
import { call, type Json, keyOf, keySet, online, status, statusLoad } from "./api";
import { useChanges } from "./changes";
import { Button, clock, Confirm, Empty, LOOK_MS, Problem, State, tell, tellError, Time, useLoad } from "./ui";
import { useValue } from "./value";

// --- approvals ---

const whoOf = (key: string | null) => (key ? key.slice(-8) : "no key");

function Waiting({ a, may, again }: { a: Json; may: boolean; again: () => void }) {
  const reason = useRef<HTMLInputElement>(null);
  const decide = (decision: string) => () =>
    call(`v1/approvals/${a.id}`, { json: { decision, ...(reason.current?.value.trim() ? { reason: reason.current.value.trim() } : {}) } }).then(() => {
      tell(decision === "approve" ? "Approved." : "Declined.");
      again();
    }, tellError);
  return (
    <article class="box" aria-label={`${a.tool}, ${a.id}`}>
      <h2>{a.tool} <span class="soft">in pool {a.pool}</span></h2>
      <dl class="facts">
        <dt>Asked</dt><dd><Time at={a.created_at} /> through {a.door}{a.key ? ` with ${a.key}` : " without a key"}</dd>
        {a.session && <><dt>Session</dt><dd>{a.session}</dd></>}
        <dt>Until</dt><dd>{clock(a.expires_at)}</dd>
      </dl>
      <pre class="code" tabIndex={0}>{a.text}</pre>
      {a.text_size > 2000 && <p class="soft">The whole code has {a.text_size.toLocaleString()} characters.</p>}
      {may ? (
        <div class="decide">
          <label>Reason<input ref={reason} placeholder="if there is one" /></label>
          <Button label="Approve" kind="accent" onClick={decide("approve")} />
          <Button label="Decline" kind="outline" onClick={decide("decline")} />
        </div>
      ) : <p class="soft">Your key may look, and not decide.</p>}
    </article>
  );
}

export function ApprovalsView() {
  const who = useValue(status);
  const { value, problem, again } = useLoad(() => call<{ data: Json[] }>("v1/approvals?limit=100"), [useValue(online)], LOOK_MS, useChanges("approval"));
  const pending = value?.data.filter((a) => a.state === "pending") ?? [];
  const past = value?.data.filter((a) => a.state !== "pending") ?? [];
  return (
    <div class="view">
      <header class="bar"><h1>Approvals</h1></header>
      <div class="column">
        <Problem text={problem} />
        {value && !pending.length && <Empty icon="approvals"><h2>Nothing waits</h2><p>Where a pool is set to ask, what its clients want to run stands here until a person agrees.</p></Empty>}
        {pending.map((a) => <Waiting key={a.id} a={a} may={!!who?.approver} again={again} />)}
        {past.length > 0 && (
          <section class="section" aria-label="Decided">
            <h2>Decided</h2>
            <table class="list">
              <thead><tr><th scope="col">What</th><th scope="col">State</th><th scope="col">Asked</th><th scope="col">Decided by</th><th scope="col">Reason</th></tr></thead>
              <tbody>{past.map((a) => (
                <tr key={a.id}>
                  <td>{a.tool} <span class="soft">{a.text.split("\n")[0].slice(0, 60)}</span></td>
                  <td data-name="State"><State state={a.state} /></td>
                  <td data-name="Asked"><Time at={a.created_at} /> <span class="soft">{whoOf(a.key)}</span></td>
                  <td data-name="Decided by">{a.decided_at ? whoOf(a.decided_by) : <span class="soft">nobody</span>}</td>
                  <td data-name="Reason">{a.reason ?? ""}</td>
                </tr>
              ))}</tbody>
            </table>
          </section>
        )}
      </div>
    </div>
  );
}

// --- keys ---

const DAYS = [["", "never"], ["1", "in a day"], ["30", "in 30 days"], ["365", "in a year"]];
const names = (text: string) => text.split(/[\s,]+/).filter(Boolean);

function Make({ onMade, first, tenant }: { onMade: (key: Json) => void; first: boolean; tenant: string }) {
  const form = useRef<HTMLFormElement>(null);
  const make = (e: Event) => {
    e.preventDefault();
    const f = new FormData(form.current!);
    const text = (name: string) => String(f.get(name) ?? "").trim();
    call("v1/keys", { json: {
      tenant: text("tenant"), ...(text("name") ? { name: text("name") } : {}),
      ...(f.get("admin") ? { admin: true } : {}), ...(f.get("approver") ? { approver: true } : {}), ...(f.get("read_only") ? { read_only: true } : {}),
      ...(text("pools") ? { pools: names(text("pools")) } : {}), ...(text("doors") ? { doors: names(text("doors")) } : {}),
      ...(text("days") ? { expires_in: +text("days") * 86400 } : {}),
    } }).then((key) => {
      form.current?.reset();
      onMade(key);
    }, tellError);
  };
  return (
    <form ref={form} class="form box" onSubmit={make} aria-label="A new key">
      <h2>A new key</h2>
      {first && <p class="soft">There is no key yet. From the first one on every request needs one, so make that one an administrator's.</p>}
      <div class="row">
        <label>Tenant<input name="tenant" required defaultValue={tenant} maxLength={63} /></label>
        <label>Name<input name="name" placeholder="what it is for" maxLength={128} /></label>
        <label>Expires<select name="days">{DAYS.map(([n, text]) => <option key={n} value={n}>{text}</option>)}</select></label>
      </div>
      <div class="row">
        <label>Pools<input name="pools" placeholder="all" /></label>
        <label>Doors<input name="doors" placeholder="all" /></label>
      </div>
      <div class="row">
        <label class="check"><input type="checkbox" name="admin" defaultChecked={first} />Administrator</label>
        <label class="check"><input type="checkbox" name="approver" />Approver</label>
        <label class="check"><input type="checkbox" name="read_only" />Only reads</label>
      </div>
      <button class="button accent" type="submit">Create the key</button>
    </form>
  );
}

export function KeysView() {
  const [made, setMade] = useState<Json | null>(null);
  const who = useValue(status);
  const { value, problem, again } = useLoad(() => call<{ data: Json[] }>("v1/keys"), [useValue(online)]);
  const keys = value?.data ?? [];
  return (
    <div class="view">
      <header class="bar"><h1>Keys</h1></header>
      <div class="column">
        <Problem text={problem} />
        {made && (
          <div class="secret" role="status">
            <span>This is the secret of the new key. It is shown once, and kept nowhere{made.secret === keyOf() ? " but in this tab, which uses it from now on" : ""}:</span>
            <code>{made.secret}</code>
            <Button icon="copy" label="Copy" text onClick={() => navigator.clipboard.writeText(made.secret).then(() => tell("Copied."), tellError)} />
            <Button label="Done" onClick={() => setMade(null)} />
          </div>
        )}
        {value && <Make first={!keys.length} tenant={who?.tenant ?? "local"} onMade={(key) => {
          // The first key closes the server to who has none, and who has made it must be able to read it.
          if (!keyOf()) keySet(key.secret);
          setMade(key);
          again();
          statusLoad().catch(() => {});
        }} />}
        {keys.length > 0 && (
          <table class="list">
            <thead><tr><th scope="col">Name</th><th scope="col">Tenant</th><th scope="col">May</th><th scope="col">Last used</th><th scope="col"><span class="unseen">Actions</span></th></tr></thead>
            <tbody>{keys.map((k) => (
              <tr key={k.id}>
                <td><strong>{k.name || "unnamed"}</strong> <span class="soft">{k.hint}…</span></td>
                <td data-name="Tenant">{k.tenant}</td>
                <td data-name="May">{[k.admin && "administer", k.approver && "approve", k.read_only ? "read" : "run", k.pools && `in ${k.pools.join(", ")}`, k.doors && `through ${k.doors.join(", ")}`].filter(Boolean).join(", ")}</td>
                <td data-name="Last used"><Time at={k.last_used_at} /></td>
                <td class="actions">{k.revoked_at ? <span class="soft">revoked</span>
                  : <Confirm label={`Revoke ${k.name || k.id}`} question="Revoke?" onYes={() => call(`v1/keys/${k.id}`, { method: "DELETE" }).then(again, tellError)} />}</td>
              </tr>
            ))}</tbody>
          </table>
        )}
      </div>
    </div>
  );
}
