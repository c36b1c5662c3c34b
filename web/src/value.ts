// A value that components can watch.
import { useEffect, useReducer } from "preact/hooks";

export class Value<T> {
  version = 0;
  private watchers = new Set<() => void>();
  constructor(private held: T) {}

  get(): T {
    return this.held;
  }

  set(next: T) {
    if (next === this.held) return;
    this.held = next;
    this.touch();
  }

  // Says that something inside it has changed.
  touch() {
    this.version++;
    for (const watcher of [...this.watchers]) watcher();
  }

  watch(watcher: () => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }
}

export function useValue<T>(value: Value<T>): T {
  const [, again] = useReducer((n: number) => n + 1, 0);
  const seen = value.version;
  useEffect(() => {
    if (value.version !== seen) again(0); // a browser paints before effects run, and an answer may come meanwhile
    return value.watch(() => again(0));
  }, [value]);
  return value.get();
}
