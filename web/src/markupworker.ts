// Says when it begins, so that the time it may take is its own and not that of its way here.
import { type Kind, markupHtml } from "./markup";

addEventListener("message", ({ data }: MessageEvent<{ kind: Kind; source: string }>) => {
  postMessage({ begun: true });
  let html: string | null = null;
  try {
    html = markupHtml[data.kind](data.source);
  } catch {
    // nested too deep: it is shown as text
  }
  postMessage({ html });
});
