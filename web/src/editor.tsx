// A code editor. It stands in a shadow root, where its styles need no exception from the page's policy.
// A notebook may have hundreds: one is made when it is near the screen and the browser has nothing else to
// do, so that scrolling past does not wait for editors. Until then its text stands there.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { shell } from "@codemirror/legacy-modes/mode/shell";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, type Extension, Prec, RangeSetBuilder, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration, type DecorationSet, drawSelection, EditorView, highlightSpecialChars, keymap, lineNumbers, placeholder,
} from "@codemirror/view";
import { tags as t } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";

export type Language = "python" | "shell" | "markdown";

const colours = HighlightStyle.define([
  { tag: [t.keyword, t.operatorKeyword, t.controlKeyword, t.modifier, t.definitionKeyword], color: "var(--code-keyword)" },
  { tag: [t.string, t.special(t.string)], color: "var(--code-string)" },
  { tag: [t.number, t.bool, t.null, t.atom], color: "var(--code-number)" },
  { tag: [t.comment, t.lineComment], color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [t.function(t.variableName), t.function(t.definition(t.variableName)), t.definition(t.className), t.className], color: "var(--code-name)" },
  { tag: [t.meta, t.standard(t.variableName)], color: "var(--code-name)" },
]);

const look = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "transparent", fontSize: "13.5px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { padding: "10px 0", caretColor: "var(--accent)" },
  ".cm-line": { padding: "0 14px 0 6px" },
  ".cm-gutters": { backgroundColor: "var(--paper)", color: "var(--faint)", border: "none", minWidth: "34px" },
  ".cm-lineNumbers .cm-gutterElement": { padding: "0 6px 0 8px", minWidth: "28px" },
  "&.cm-focused .cm-cursor": { borderLeftColor: "var(--accent)", borderLeftWidth: "2px" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--select)" },
  ".cm-matchingBracket": { backgroundColor: "var(--select)", outline: "none" },
  ".cm-selectionMatch": { backgroundColor: "var(--select)" },
  ".cm-placeholder": { color: "var(--soft)" },
  ".cm-failed": { backgroundColor: "var(--bad-paper)", boxShadow: "inset 3px 0 var(--bad)" },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--ink)", borderTop: "1px solid var(--line)" },
  ".cm-panel input, .cm-panel button": { color: "var(--ink)", backgroundColor: "var(--paper)", backgroundImage: "none", border: "1px solid var(--line)", borderRadius: "5px" },
  ".cm-panel label": { color: "var(--ink)" },
  ".cm-panel.cm-search": { padding: "6px 8px", font: "13px var(--sans)" },
  ".cm-panel.cm-search input, .cm-panel.cm-search button, .cm-panel.cm-search label": { fontSize: "13px" },
  ".cm-panel.cm-search input.cm-textfield, .cm-panel.cm-search .cm-button": { padding: "3px 8px" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", border: "1px solid var(--line)", borderRadius: "8px", color: "var(--ink)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-searchMatch": { backgroundColor: "var(--warn-paper)" },
});

// --- lines that an error points at ---

const markLines = StateEffect.define<number[]>();
const failedLine = Decoration.line({ class: "cm-failed" });
const failed = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, change) {
    for (const effect of change.effects) {
      if (!effect.is(markLines)) continue;
      const set = new RangeSetBuilder<Decoration>();
      for (const n of effect.value) if (n >= 1 && n <= change.state.doc.lines) set.add(change.state.doc.line(n).from, change.state.doc.line(n).from, failedLine);
      return set.finish();
    }
    return change.docChanged ? Decoration.none : marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const languages: Record<Language, () => Extension> = {
  python: () => [python(), indentUnit.of("    ")],
  shell: () => [StreamLanguage.define(shell), indentUnit.of("  ")],
  markdown: () => [EditorView.lineWrapping],
};

// --- editors that are to be made, one whenever the browser is idle ---

const IDLE_MS = 500; // a browser that is never idle makes one all the same
const due = new Set<() => void>();
let asked = false;

function askIdle() {
  if (asked || due.size === 0) return;
  asked = true;
  const go = () => {
    asked = false;
    const [first] = due;
    due.delete(first);
    first?.();
    askIdle();
  };
  if ("requestIdleCallback" in window) requestIdleCallback(go, { timeout: IDLE_MS });
  else setTimeout(go, 30); // Safari
}

export interface Handle {
  focus(): void;
  mark(lines: number[]): void;
}

export interface EditorProps {
  source: string;
  language: Language;
  label: string;
  handle?: (h: Handle | null) => void;
  readOnly?: boolean;
  hint?: string;
  marks?: number[];
  onChange?: (source: string) => void;
  keys?: { key: string; run: () => boolean }[];
}

export function Editor(props: EditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const now = useRef(props);
  const language = useRef(new Compartment());
  const label = useRef(new Compartment());
  now.current = props;

  const make = (): EditorView => {
    if (view.current) return view.current;
    const p = now.current;
    const root = place.current!.shadowRoot ?? place.current!.attachShadow({ mode: "open" });
    root.replaceChildren();
    const keys = (p.keys ?? []).map((k, i) => ({ key: k.key, run: () => now.current.keys![i].run() }));
    view.current = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: p.source,
        extensions: [
          Prec.highest(keymap.of(keys)),
          lineNumbers(), highlightSpecialChars(), history(), drawSelection(), indentOnInput(), bracketMatching(),
          closeBrackets(), autocompletion({ activateOnTyping: false }), highlightSelectionMatches(), search({ top: false }),
          syntaxHighlighting(colours), look, failed,
          language.current.of(languages[p.language]()),
          label.current.of(EditorView.contentAttributes.of({ "aria-label": p.label, tabindex: "0" })),
          placeholder(p.hint ?? ""),
          EditorState.tabSize.of(4),
          p.readOnly ? [EditorState.readOnly.of(true), EditorView.editable.of(false)] : [],
          keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap, indentWithTab]),
          EditorView.updateListener.of((u) => u.docChanged && now.current.onChange?.(u.state.doc.toString())),
        ],
      }),
    });
    if (p.marks?.length) view.current.dispatch({ effects: markLines.of(p.marks) });
    return view.current;
  };

  useEffect(() => {
    const root = place.current!.shadowRoot ?? place.current!.attachShadow({ mode: "open" });
    const still = document.createElement("pre");
    still.textContent = now.current.source || " ";
    still.style.cssText = "margin:0;padding:10px 14px 10px 40px;font:13.5px/1.55 var(--mono);overflow:hidden";
    root.replaceChildren(still);
    const makeNow = () => {
      watch.disconnect();
      due.delete(makeNow);
      make();
    };
    const watch = new IntersectionObserver(
      (all) => {
        if (!all.at(-1)!.isIntersecting) return void due.delete(makeNow);
        due.add(makeNow);
        askIdle();
      },
      { rootMargin: "600px" },
    );
    watch.observe(place.current!);
    place.current!.addEventListener("pointerdown", makeNow, { once: true, capture: true });
    now.current.handle?.({
      focus: () => make().focus(),
      mark: (lines) => view.current?.dispatch({ effects: markLines.of(lines) }),
    });
    return () => {
      watch.disconnect();
      due.delete(makeNow);
      now.current.handle?.(null);
      view.current?.destroy();
      view.current = null;
    };
  }, []);

  useEffect(() => {
    view.current?.dispatch({
      effects: [
        language.current.reconfigure(languages[props.language]()),
        label.current.reconfigure(EditorView.contentAttributes.of({ "aria-label": props.label, tabindex: "0" })),
      ],
    });
  }, [props.language, props.label]);

  useEffect(() => {
    const v = view.current;
    if (v && props.source !== v.state.doc.toString())
      v.dispatch({ changes: { from: 0, to: v.state.doc.length, insert: props.source } });
  }, [props.source]);

  return <div class="editor" ref={place} />;
}
