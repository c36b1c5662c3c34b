// The console: navigation, what is said about the server, and the views.
import "./style.css";
import { render } from "preact";
import type { FunctionComponent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { call, type Json, keySet, keyOf, keyWanted, online, status, statusLoad } from "./api";
import { ApprovalsView, KeysView } from "./adminviews";
import { AskView } from "./askview";
import { useChanges } from "./changes";
import { FilesView } from "./filesview";
import { SessionsView } from "./houseview";
import { loadNotebook } from "./notebook";
import { NotebookView } from "./notebookview";
import { RecordsView } from "./recordsview";
import { choice, choose } from "./theme";
import { Dialog, Icon, LOOK_MS, Toasts, useLoad } from "./ui";
import { useValue } from "./value";

interface View {
  path: string;
  name: string;
  icon: string;
  view: FunctionComponent<{ rest: string }>;
  shown?: (status: Record<string, any> | null) => boolean;
}

const views: View[] = [
  { path: "notebook", name: "Notebook", icon: "notebook", view: NotebookView },
  { path: "files", name: "Files", icon: "files", view: FilesView },
  { path: "ask", name: "Ask", icon: "ask", view: AskView },
  { path: "sessions", name: "Sessions", icon: "sessions", view: SessionsView },
  { path: "records", name: "Records", icon: "records", view: RecordsView },
  { path: "approvals", name: "Approvals", icon: "approvals", view: ApprovalsView },
  { path: "keys", name: "Keys", icon: "keys", view: KeysView, shown: (who) => !!who?.admin },
];

const route = () => location.hash.replace(/^#\/?/, "").split("/");

function Key({ problem }: { problem: string }) {
  const field = useRef<HTMLInputElement>(null);
  return (
    <Dialog title="This server needs a key">
      <form class="form" onSubmit={(e) => {
        e.preventDefault();
        if (field.current!.value.trim()) keySet(field.current!.value.trim());
      }}>
        <p>Keys are made with <code>retort keys create</code>. This tab keeps yours until it is closed; it is stored nowhere else.</p>
        {problem && <p class="problem" role="alert">{problem}</p>}
        <label>Key<input ref={field} type="password" autocomplete="off" spellcheck={false} required /></label>
        <button class="button accent" type="submit">Open</button>
      </form>
    </Dialog>
  );
}

function Theme() {
  const now = useValue(choice);
  const next = { system: "light", light: "dark", dark: "system" } as const;
  return <button type="button" class="side-button" onClick={() => choose(next[now])}><Icon name="sun" /><span>Theme: {now}</span></button>;
}

// How many requests wait for a person, for those who may decide: they need not have that view open.
function Waiting() {
  const { value } = useLoad(() => call<{ data: Json[] }>("v1/approvals?state=pending&limit=100"), [useValue(online)], LOOK_MS, useChanges("approval"));
  const count = value?.data.length ?? 0;
  return count ? <span class="waiting">{count}<span class="unseen"> waiting</span></span> : null;
}

function App() {
  const [at, setAt] = useState(route());
  const wanted = useValue(keyWanted);
  const isOnline = useValue(online);
  const known = useValue(status);
  useChanges();

  useEffect(() => {
    const go = () => setAt(route());
    addEventListener("hashchange", go);
    return () => removeEventListener("hashchange", go);
  }, []);
  useEffect(() => {
    if (isOnline) statusLoad().catch(() => {});
  }, [isOnline]);

  const offered = views.filter((v) => !v.shown || v.shown(known));
  const current = offered.find((v) => v.path === at[0]) ?? views[0];
  const Current = current.view;
  useEffect(() => {
    document.title = `${current.name} · retort`;
  }, [current]);

  return (
    <>
      <a class="skip" href="#content" onClick={(e) => {
        e.preventDefault();
        document.getElementById("content")?.focus();
      }}>Skip to the content</a>
      <nav class="side" aria-label="Views">
        <a class="brand" href="#/notebook"><svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true"><path d="M12 4h8M14 4v8L6.500 24.500A2.500 2.500 0 0 0 8.700 28h14.600a2.500 2.500 0 0 0 2.200-3.500L18 12V4" /><path class="fill" d="M10.500 20h11l2.800 5a1 1 0 0 1-.9 1.500H8.600a1 1 0 0 1-.9-1.500z" /></svg><span>retort</span></a>
        <ul>
          {offered.map((v) => (
            <li key={v.path}>
              <a href={`#/${v.path}`} aria-current={v === current ? "page" : undefined}><Icon name={v.icon} /><span>{v.name}</span>{v.path === "approvals" && known?.approver && <Waiting />}</a>
            </li>
          ))}
        </ul>
        <div class="side-foot">
          <Theme />
          {keyOf() && <button type="button" class="side-button" onClick={() => { keySet(""); location.reload(); }}><Icon name="keys" /><span>Forget the key</span></button>}
          {known && <span class="soft version">{known.tenant} · {known.version}</span>}
        </div>
      </nav>
      <main id="content" tabIndex={-1}>
        {!isOnline && <div class="gone" role="alert"><strong>The server does not answer.</strong> The page tries again, and goes on by itself when it is back.</div>}
        <Current rest={at.slice(1).join("/")} />
      </main>
      {wanted && <Key problem={wanted.problem} />}
      <Toasts />
    </>
  );
}

loadNotebook();
render(<App />, document.getElementById("app")!);
