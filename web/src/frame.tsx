// Output that may do anything: HTML, SVG, Markdown. It is shown in a frame without an origin, with a
// policy of its own (src/doors/console/door.c). The page takes one thing from it: a height.
import { useEffect, useRef, useState } from "preact/hooks";
import { address, online } from "./api";
import { dark } from "./theme";
import { useValue } from "./value";

const HEIGHT_MAX = 640;
const MESSAGES_MAX = 300; // in a second; what is drawn anew tells its height sixty times
const READY_COSTS = 100; // a frame begins anew when its cell is moved; the answer may be megabytes

export function Frame({ html, title }: { html: string; title: string }) {
  const ref = useRef<HTMLIFrameElement>(null);
  const [height, setHeight] = useState(40);
  const [near, setNear] = useState(false);
  const isDark = useValue(dark);
  const isOnline = useValue(online);
  const [stoppedAt, setStopped] = useState<string | null>(null);
  const stopped = stoppedAt === html;
  const taken = useRef<string | null>(null); // what the frame has taken: one that began while the server was gone has nothing

  useEffect(() => {
    const watch = new IntersectionObserver((all) => all.some((e) => e.isIntersecting) && setNear(true), {
      rootMargin: "400px",
    });
    watch.observe(ref.current!);
    return () => watch.disconnect();
  }, []);

  useEffect(() => {
    if (!near || stopped) return;
    const frame = ref.current!;
    let count = 0, since = 0;
    const take = (event: MessageEvent) => {
      if (event.source !== frame.contentWindow) return;
      const now = performance.now();
      const said = event.data as { ready?: unknown; height?: unknown } | null;
      if (now - since > 1000) [count, since] = [0, now];
      count += said?.ready === true ? READY_COSTS : 1;
      if (count > MESSAGES_MAX) {
        removeEventListener("message", take);
        return setStopped(html);
      }
      if (said?.ready === true) {
        taken.current = html;
        frame.contentWindow!.postMessage({ html, dark: dark.get() }, "*");
      }
      if (typeof said?.height === "number" && said.height > 0) setHeight(Math.min(HEIGHT_MAX, Math.max(24, said.height)));
    };
    addEventListener("message", take);
    if (taken.current !== html) frame.src = address("console/frame.html");
    return () => removeEventListener("message", take);
  }, [near, html, isOnline, stopped]);

  useEffect(() => {
    if (near) ref.current?.contentWindow?.postMessage({ dark: isDark }, "*");
  }, [isDark]);

  if (stopped) return <p class="note">This output was stopped: it sent the page one message after the other.</p>;
  return <iframe ref={ref} class="frame" sandbox="allow-scripts" title={title} style={{ height }} />;
}
