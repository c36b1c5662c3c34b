// The session that the notebook and the list of files belong to. It is made when something needs it.
import { ApiError, call, type Json } from "./api";
import { Value } from "./value";

const KEEP = `retort.session:${location.pathname}`;

export const current = new Value<string | null>(localStorage.getItem(KEEP));
export const info = new Value<Json | null>(null);

export function open(id: string | null) {
  if (id) localStorage.setItem(KEEP, id);
  else localStorage.removeItem(KEEP);
  info.set(null);
  current.set(id);
}

// What the server knows of it; null when there is none, or none any more.
export async function load(): Promise<Json | null> {
  const id = current.get();
  if (!id) return null;
  try {
    const found = await call(`v1/sessions/${id}`);
    if (current.get() === id) info.set(found);
    return found;
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    if (current.get() === id) info.set(null);
    return null;
  }
}

let making: Promise<string> | null = null;
export function ensure(pool?: string): Promise<string> {
  making ??= (async () => {
    try {
      const there = await load();
      if (there) return there.id as string;
      const made = await call("v1/sessions", { json: pool ? { pool } : {} });
      const before = current.get();
      open(made.id);
      info.set(made);
      if (before !== made.id) moved.touch();
      return made.id as string;
    } finally {
      making = null;
    }
  })();
  return making;
}

// A new session took the place of the one before: the notebook goes with it.
export const moved = new Value(0);
