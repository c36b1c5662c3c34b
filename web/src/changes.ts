// What changes in the sessions of the tenant, as the server tells it: GET /v1/events.
//
// A view reads its list again when something of its kind has changed. The page as a whole listens too: the end
// of the stream is how it knows that the server is gone, whatever it shows. The stream is closed while the tab
// is hidden: a browser opens six connections to a server and no more, for all of its tabs.
import { useEffect, useReducer } from "preact/hooks";
import { lines, send } from "./api";
import { Value } from "./value";

export type Kind = "session" | "execution" | "file" | "approval";

const SETTLE_MS = 150; // what changes together is read once
const STEADY_MS = 1000; // on a busy server a list is read once a second
const AGAIN_MS = 3000;
const counts: Record<Kind, Value<number>> = { session: new Value(0), execution: new Value(0), file: new Value(0), approval: new Value(0) };
const KINDS = Object.keys(counts) as Kind[];

const due = new Set<Kind>();
let timer = 0;
let told = -STEADY_MS;
function mark(...kinds: Kind[]) {
  for (const kind of kinds) due.add(kind);
  timer ||= window.setTimeout(() => {
    timer = 0;
    told = performance.now();
    const all = [...due];
    due.clear();
    for (const kind of all) counts[kind].set(counts[kind].get() + 1);
  }, Math.max(SETTLE_MS, told + STEADY_MS - performance.now()));
}

let watchers = 0;
let stream: AbortController | null = null;

async function follow(mine: AbortController) {
  while (!mine.signal.aborted) {
    let heard = false;
    try {
      for await (const change of lines(await send("v1/events?format=ndjson", { signal: mine.signal }))) {
        heard = true;
        // Once it is open, whatever came before is to be looked at once more.
        if (change.type === "open" || change.type === "missed") mark(...KINDS);
        else if (change.type in counts) mark(change.type as Kind);
      }
    } catch {
      // cut short, or refused: once more
    }
    // A stream that was cut is asked for again at once; one that never spoke, later.
    if (!mine.signal.aborted && !heard) await new Promise((go) => setTimeout(go, AGAIN_MS));
  }
}

function settle() {
  const wanted = watchers > 0 && !document.hidden;
  if (wanted && !stream) void follow((stream = new AbortController()));
  if (!wanted && stream) {
    stream.abort();
    stream = null;
  }
}
document.addEventListener("visibilitychange", settle);

// A number that grows whenever something of one of these kinds has changed.
export function useChanges(...kinds: Kind[]): number {
  const [, again] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    const leave = kinds.map((kind) => counts[kind].watch(() => again(0)));
    watchers++;
    settle();
    return () => {
      for (const one of leave) one();
      watchers--;
      setTimeout(settle, AGAIN_MS); // the next view may want it at once
    };
  }, []);
  return kinds.reduce((sum, kind) => sum + counts[kind].get(), 0);
}
