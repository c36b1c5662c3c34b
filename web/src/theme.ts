// Light, dark, or as the system says.
import { Value } from "./value";

export type Choice = "system" | "light" | "dark";
const KEEP = "retort.theme";
const system = matchMedia("(prefers-color-scheme: dark)");

export const choice = new Value<Choice>((localStorage.getItem(KEEP) as Choice) ?? "system");
export const dark = new Value(false);

function apply() {
  const now = choice.get() === "system" ? system.matches : choice.get() === "dark";
  document.documentElement.dataset.theme = now ? "dark" : "light";
  dark.set(now);
}

export function choose(next: Choice) {
  localStorage.setItem(KEEP, next);
  choice.set(next);
  apply();
}

system.addEventListener("change", apply);
apply();
