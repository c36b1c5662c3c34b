// The one way to the server: /v1, as any client uses it.
//
// The key lives in the session storage of this tab and goes into a header, never into an address.
// A request that needs a key waits until the user has typed one. A server that does not answer is
// asked again until it does; what only reads then goes on by itself.
import { Value } from "./value";

export type Json = Record<string, any>;

const KEY = "retort.key";
const RETRY_MS = 700;

export const home = new URL(".", document.baseURI);
// Of a path that the server named, "/v1/...": below the prefix that a proxy may have put in front.
export const address = (path: string) => new URL(path.replace(/^\/+/, ""), home).href;

export const online = new Value(true);
export const keyWanted = new Value<null | { problem: string }>(null);
export const status = new Value<Json | null>(null);

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    message: string,
    readonly body: Json = {},
  ) {
    super(message);
  }
}
export class GoneError extends Error {
  constructor() {
    super("The server does not answer.");
  }
}

export const keyOf = () => sessionStorage.getItem(KEY) ?? "";

let waiting: (() => void)[] = [];
export function keySet(key: string) {
  if (key) sessionStorage.setItem(KEY, key);
  else sessionStorage.removeItem(KEY);
  keyWanted.set(null);
  const all = waiting;
  waiting = [];
  for (const go of all) go();
}

// Several requests are refused at once: the first of them says what was wrong, and all of them wait.
function askForKey(used: string): Promise<void> {
  const now = keyOf();
  if (now && now !== used) return Promise.resolve(); // another has been typed meanwhile
  if (now) sessionStorage.removeItem(KEY);
  if (now || !keyWanted.get()) keyWanted.set({ problem: used ? "The server did not accept this key." : "" });
  return new Promise((go) => waiting.push(go));
}

export function headers(more: Record<string, string> = {}): Record<string, string> {
  const key = keyOf();
  return key ? { ...more, authorization: `Bearer ${key}` } : more;
}

// --- a server that is gone ---

let looking: Promise<void> | null = null;
export function waitForServer(): Promise<void> {
  online.set(false);
  looking ??= (async () => {
    for (;;) {
      await new Promise((go) => setTimeout(go, RETRY_MS));
      const ready = await fetch(address("ready"), { cache: "no-store" }).catch(() => null);
      if (ready?.ok) break;
    }
    looking = null;
    online.set(true);
  })();
  return looking;
}

// --- requests ---

export interface Ask {
  method?: string;
  json?: Json;
  body?: BodyInit;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

async function problemOf(answer: Response): Promise<ApiError> {
  const body = await answer.json().catch(() => ({}));
  const told = body?.error ?? {};
  return new ApiError(answer.status, told.type ?? "", told.message ?? `The server answered ${answer.status}.`, told);
}

export async function send(path: string, ask: Ask = {}): Promise<Response> {
  const method = ask.method ?? (ask.json || ask.body ? "POST" : "GET");
  for (;;) {
    const key = keyOf();
    const more: Record<string, string> = { ...ask.headers, ...(ask.json ? { "content-type": "application/json" } : {}) };
    let answer: Response;
    try {
      answer = await fetch(address(path), {
        method,
        headers: headers(more),
        body: ask.json ? JSON.stringify(ask.json) : ask.body,
        signal: ask.signal,
        credentials: "same-origin",
      });
    } catch (error) {
      if (ask.signal?.aborted) throw error;
      const back = waitForServer();
      if (method !== "GET") throw new GoneError();
      await back;
      continue;
    }
    if (answer.status === 401) {
      await askForKey(key);
      continue;
    }
    if (answer.status === 503 && method === "GET") {
      await waitForServer();
      continue;
    }
    if (!answer.ok) throw await problemOf(answer);
    return answer;
  }
}

export async function call<T = Json>(path: string, ask: Ask = {}): Promise<T> {
  const answer = await send(path, ask);
  return answer.status === 204 ? (null as T) : answer.json();
}

// Objects of a stream of JSON lines as they come; pings are left out.
export async function* lines(answer: Response): AsyncGenerator<Json> {
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  const parts: string[] = []; // of a line that is not whole yet; it may come in a thousand
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const [first, ...more] = value.split("\n");
      parts.push(first);
      for (const next of more) {
        const line = parts.join("");
        parts.splice(0, parts.length, next);
        const found = line ? JSON.parse(line) : { type: "ping" };
        if (found.type !== "ping") yield found;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// --- names ---

// A name that a stranger chose, with what turns text around or is not seen at all written out.
export const plain = (name: string) =>
  name.replace(/[\0-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

// --- downloads ---

export function saveBlob(blob: Blob, name: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = plain(name);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// With a key in a header, so that none is in an address.
export async function download(path: string, name: string) {
  saveBlob(await (await send(path)).blob(), name);
}

export async function statusLoad(): Promise<Json> {
  const found = await call("v1/status");
  status.set(found);
  return found;
}
