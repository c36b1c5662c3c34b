// Small parts that several views share.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { plain } from "./api";
import { Value, useValue } from "./value";

// --- icons: paths of a 20 by 20 grid ---

const ICONS: Record<string, string> = {
  run: "M6 4.5v11l9-5.5z",
  stop: "M5.5 5.5h9v9h-9z",
  plus: "M10 4v12M4 10h12",
  up: "M10 16V4M5 9l5-5 5 5",
  down: "M10 4v12M5 11l5 5 5-5",
  trash: "M4 6h12M8 6V4h4v2M6 6l.7 10h6.6L14 6",
  restart: "M15.5 10a5.5 5.5 0 1 1-1.7-4M14 2.5V6h-3.5",
  download: "M10 3v9M6 8.5l4 4 4-4M4 16h12",
  upload: "M10 13V4M6 7.5l4-4 4 4M4 16h12",
  notebook: "M5 3h10v14H5zM8 3v14M10.5 7H13",
  files: "M3 6h5l2 2h7v8H3z",
  sessions: "M3 5h14v4H3zM3 11h14v4H3zM6 7h.01M6 13h.01",
  records: "M5 3h10v14H5zM8 7h4M8 10h4M8 13h2",
  approvals: "M10 3l6 2v4.5c0 4-2.6 6.3-6 7.5-3.400-1.200-6-3.500-6-7.500V5zM7.500 10l2 2 3.500-4",
  keys: "M12.500 7.500m-3.500 0a3.500 3.500 0 1 0 7 0a3.500 3.500 0 1 0-7 0M10 10l-6 6M6 14l2 2",
  ask: "M3 4h14v9H9l-4 3.500V13H3z",
  edit: "M4 16l.8-3.500L13 4.300 15.700 7 7.500 15.200z",
  close: "M5 5l10 10M15 5L5 15",
  sun: "M10 6.500a3.500 3.500 0 1 0 0 7a3.500 3.500 0 0 0 0-7M10 2v2M10 16v2M2 10h2M16 10h2M4.300 4.300l1.400 1.400M14.300 14.300l1.400 1.400M4.300 15.700l1.400-1.400M14.300 5.700l1.400-1.400",
  all: "M3 4.500v11l6-5.500zM10.500 4.500v11l6-5.500z",
  copy: "M7 7h9v9H7zM4 13V4h9",
};

export function Icon({ name }: { name: string }) {
  return <svg class={`icon icon-${name}`} viewBox="0 0 20 20" aria-hidden="true" width="18" height="18"><path d={ICONS[name]} /></svg>;
}

type ButtonProps = { icon?: string; label: string; quiet?: boolean; kind?: string; text?: boolean } & Omit<JSX.IntrinsicElements["button"], "label" | "icon">;

// With text, or with an icon and its name for those who do not see it.
export function Button({ icon, label, kind = "", text, ...rest }: ButtonProps) {
  const shown = text || !icon;
  return (
    <button type="button" {...rest} class={`button ${kind} ${shown ? "" : "round"}`} aria-label={rest["aria-label"] ?? label} title={shown ? undefined : label}>
      {icon && <Icon name={icon} />}
      {shown && <span>{label}</span>}
    </button>
  );
}

// Asks in place before it does something that cannot be taken back. The question lies over what stands there, so
// that nothing moves; afterwards the focus is where it was.
export function Confirm({ label, question, icon = "trash", onYes, text }: { label: string; question: string; icon?: string; onYes: () => void; text?: boolean }) {
  const [asked, setAsked] = useState(false);
  const place = useRef<HTMLSpanElement>(null);
  const before = useRef(asked);
  useLayoutEffect(() => {
    if (before.current !== asked) place.current?.querySelector<HTMLElement>(asked ? ".danger" : ".button")?.focus();
    before.current = asked;
  }, [asked]);
  return (
    <span ref={place} class="asks">
      <Button icon={icon} label={label} text={text} kind={asked ? "covered" : ""} onClick={() => setAsked(true)} />
      {asked && (
        <span class="confirm" role="group" aria-label={question} onKeyDown={(e) => e.key === "Escape" && setAsked(false)}>
          <button type="button" class="button danger" onClick={() => { setAsked(false); onYes(); }}>{question}</button>
          <Button icon="close" label="Cancel" onClick={() => setAsked(false)} />
        </span>
      )}
    </span>
  );
}

// A name that can be changed where it stands.
export function Rename({ name, label, onName, empty }: { name: string; label: string; onName: (name: string) => void; empty?: string }) {
  const [editing, setEditing] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const byKeys = useRef(false);
  // Before the next key: whoever types on is not to lose the first letters.
  useLayoutEffect(() => {
    if (editing) field.current?.select();
    else if (byKeys.current) button.current?.focus();
    byKeys.current = false;
  }, [editing]);
  if (!editing)
    return (
      <button ref={button} type="button" class="rename" onClick={() => setEditing(true)} title={label}>
        <span class={name ? "" : "soft"}>{plain(name) || empty}</span><Icon name="edit" /><span class="unseen">{label}</span>
      </button>
    );
  const keep = () => {
    if (!field.current) return; // Enter has taken it away already
    const next = field.current.value.trim();
    setEditing(false);
    if (next && next !== name) onName(next);
  };
  return (
    <input ref={field} class="rename-field" aria-label={label} defaultValue={name} onBlur={keep}
      onKeyDown={(e) => {
        byKeys.current = e.key === "Enter" || e.key === "Escape";
        if (byKeys.current) e.preventDefault(); // else the same key presses the button that has the focus next
        if (e.key === "Enter") keep();
        if (e.key === "Escape") setEditing(false);
      }} />
  );
}

// --- what is told in passing ---

interface Toast { id: number; text: string; bad: boolean }
const toasts = new Value<Toast[]>([]);
let toastId = 0;

export function tell(text: string, bad = false) {
  const one = { id: ++toastId, text, bad };
  toasts.set([...toasts.get(), one]);
  setTimeout(() => toasts.set(toasts.get().filter((t) => t !== one)), bad ? 9000 : 4000);
}
export const tellError = (error: unknown) => tell(error instanceof Error ? error.message : String(error), true);

export function Toasts() {
  const all = useValue(toasts);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {all.map((t) => <div key={t.id} class={`toast ${t.bad ? "bad" : ""}`}>{t.text}</div>)}
    </div>
  );
}

// --- dialogs ---

export function Dialog({ title, children, onClose }: { title: string; children: ComponentChildren; onClose?: () => void }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current!;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  return (
    <dialog ref={ref} aria-label={title} onCancel={(e) => { e.preventDefault(); onClose?.(); }}>
      <div class="dialog-head"><h2>{title}</h2>{onClose && <Button icon="close" label="Close" onClick={onClose} />}</div>
      {children}
    </dialog>
  );
}

// --- words and numbers ---

export const bytes = (n: number) => inUnits(n, 1000, ["kB", "MB", "GB", "TB"]);
// Memory and limits, which are set in these: 600M is 600 MiB.
export const binary = (n: number) => inUnits(n, 1024, ["KiB", "MiB", "GiB", "TiB"]);

function inUnits(n: number, base: number, units: string[]): string {
  if (n < 1000) return `${n} B`;
  let value = n, at = -1;
  while (value >= 999.5 && at < units.length - 1) {
    value /= base;
    at++;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}

export function seconds(s: number): string {
  if (s < 0.0995) return `${Math.max(1, Math.round(s * 1000))} ms`;
  if (s < 60) return `${s < 10 || s % 1 ? s.toFixed(1) : s} s`;
  const m = Math.floor(s / 60);
  if (m < 60) return Math.round(s % 60) ? `${m} min ${Math.round(s % 60)} s` : `${m} min`;
  if (m < 48 * 60) return `${Math.floor(m / 60)} h ${m % 60} min`;
  return `${Math.floor(m / 1440)} days`;
}

export function ago(time: string | null): string {
  if (!time) return "never";
  const s = (Date.now() - Date.parse(time)) / 1000;
  return s < 5 ? "just now" : `${s < 60 ? `${Math.round(s)} s` : s < 3600 ? `${Math.round(s / 60)} min` : s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} days`} ago`;
}

export const clock = (time: string | null) => (time ? new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" }) : "");
export const Time = ({ at }: { at: string | null }) => (at ? <time dateTime={at} title={clock(at)}>{ago(at)}</time> : <span class="soft">never</span>);

// Of lists that the server tells changes of: ages and figures are brought up to date all the same.
export const LOOK_MS = 15_000;

// Loads, and loads again every so many milliseconds while the view is on the screen, and whenever `live` has
// changed. One load at a time: where changes come faster than answers, each answer is shown all the same.
export function useLoad<T>(load: () => Promise<T>, deps: unknown[], every = 0, live = 0): { value: T | null; problem: string; again: () => void } {
  const [state, setState] = useState<{ value: T | null; problem: string }>({ value: null, problem: "" });
  const [turn, setTurn] = useState(0);
  const look = useRef(() => {});
  useEffect(() => {
    let over = false, busy = false, onceMore = false;
    let timer = 0;
    const go = () => {
      clearTimeout(timer);
      onceMore = busy;
      if (busy) return;
      busy = true;
      load().then(
        (value) => !over && setState({ value, problem: "" }),
        (error: Error) => !over && setState((s) => ({ ...s, problem: error.message })),
      ).finally(() => {
        busy = false;
        if (!over && onceMore) go();
        else if (!over && every) timer = window.setTimeout(go, every);
      });
    };
    look.current = go;
    go();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [...deps, turn]);
  const seen = useRef(live);
  useEffect(() => {
    if (seen.current === live) return;
    seen.current = live;
    look.current();
  }, [live]);
  return { ...state, again: () => setTurn((n) => n + 1) };
}

export const State = ({ state }: { state: string }) => <span class={`state state-${state}`}>{state.replace("_", " ")}</span>;
export const Empty = ({ icon, children }: { icon: string; children: ComponentChildren }) => <div class="empty"><Icon name={icon} />{children}</div>;
export const Problem = ({ text }: { text: string }) => (text ? <p class="problem" role="alert">{text}</p> : null);
